package registry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/latchfree/latchfree/cluster/internal/push"
	"github.com/latchfree/latchfree/shardedregistry"
)

type (
	// Version is the revision of a value in the bucket.
	Version = shardedregistry.Version
	// Entry is what a key held at one moment.
	Entry[K comparable, V any] = shardedregistry.Entry[K, V]
	// Event is a change of a key and what the key holds after it.
	Event[K comparable, V any] = shardedregistry.Event[K, V]
	// Filter says of which keys a loop is told: see [shardedregistry.Keys],
	// [shardedregistry.Prefix] and [shardedregistry.Matching].
	Filter[K comparable] = shardedregistry.Filter[K]
)

// held is what the mirror holds of a key. Its Version is the revision, and its Stamp when the
// server stored it, by its clock, in nanoseconds. Together they identify the message: a bucket
// that was restored may give a revision again, but not at the same nanosecond.
type held[V any] struct {
	Value   V
	Version Version
	Stamp   int64
}

// Registry mirrors a KV bucket: see the package's documentation. It is made by
// [Open]. Any number of goroutines may call all methods at once.
type Registry[K ~string, V any] struct {
	inner  *shardedregistry.Registry[K, held[V]]
	tombs  tombs[K]
	ends   sync.Map // of the keys that expire by their own time to live: K to end. The mirror's goroutine alone changes it
	config Config[K, V]

	js      jetstream.JetStream
	conn    *nats.Conn
	stream  string // of the bucket
	prefix  string // of the subjects of keys, as they are delivered
	publish string // the same, as they are published
	syncKey string // under which this registry beats

	life    context.Context // ends with Close and with the connection, with an ErrClosed
	end     context.CancelCauseFunc
	workers sync.WaitGroup
	ready   chan struct{} // closed when the first listing is complete
	begun   time.Time     // from which instants are counted

	calls   calls[K]
	names   atomic.Uint64 // of message ids, besides id
	id      string
	status  status
	mirror  mirror[K]
	beater  beater
	sharing sharing
}

// Open returns a registry that mirrors a bucket, which must exist. It returns when the
// mirror holds everything that was stored in the bucket before the call; it writes a
// sync message to prove that. The connection stays the caller's: it should reconnect for ever. A registry whose
// connection is closed ends, as by Close.
//
// If ctx ends first, Open returns its cause, and the reason for which the bucket was not mirrored. An
// [ErrUnsuitable] bucket, one that does not exist and invalid settings are errors at once.
//
// A bucket is unsuitable if it is a mirror of another, or if keys expire in it without a
// marker: a TTL, or AllowMsgTTL, without LimitMarkerTTL.
//
// Open panics if ctx or js is nil. It is blocking: it waits for the bucket.
func Open[K ~string, V any](ctx context.Context, js jetstream.JetStream, bucket string, config Config[K, V]) (*Registry[K, V], error) {
	needContext(ctx, "Open")
	if js == nil {
		panic("registry: Open called with a nil JetStream")
	}
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Registry[K, V]{
		config: config, js: js, conn: js.Conn(),
		stream: "KV_" + bucket, prefix: "$KV." + bucket + ".",
		ready: make(chan struct{}), begun: time.Now(), id: nuid.Next(),
	}
	r.publish = r.prefix
	if js.Options().APIPrefix != "" && push.API(js) != jetstream.DefaultAPIPrefix {
		r.publish = push.API(js) + r.prefix
	}
	r.syncKey = syncPrefix + strconv.Itoa(int(r.begun.UnixNano()/1000%syncKeys))
	indexes := make(map[string]func(K, held[V]) []string, len(config.Indexes))
	for name, f := range config.Indexes {
		if f != nil { // which New finds, with the name
			indexes[name] = func(k K, h held[V]) []string { return f(k, h.Value) }
		} else {
			indexes[name] = nil
		}
	}
	if r.inner, err = shardedregistry.New(shardedregistry.Config[K, held[V]]{Normalize: config.Normalize, Indexes: indexes}); err != nil {
		return nil, err
	}
	r.life, r.end = context.WithCancelCause(context.Background())
	r.tombs.init()
	r.calls.init()
	r.mirror.init()
	r.beater.init()
	if _, err := r.inspect(ctx); fatal(err) {
		return nil, err
	}
	r.workers.Go(r.endWithConnection)
	r.workers.Go(r.mirrorBucket)
	r.workers.Go(r.beat)
	if config.MaxLag > 0 {
		r.sharing.init(bucket, r.id, config.MaxLag/beatsPerLag)
		r.workers.Go(r.stayFresh)
	}
	select {
	case <-r.ready:
		return r, nil
	case <-r.life.Done():
		err = context.Cause(r.life)
	case <-ctx.Done():
		err = context.Cause(ctx)
		if why := r.status.failure(); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		if last := r.conn.LastError(); errors.Is(last, nats.ErrPermissionViolation) {
			err = fmt.Errorf("%w: %w", err, last)
		}
	}
	r.end(ErrClosed)
	r.workers.Wait()
	return nil, err
}

// fatal reports whether to try again is of no use to a caller of Open.
func fatal(err error) bool {
	for _, e := range []error{
		ErrUnsuitable, jetstream.ErrBucketNotFound, jetstream.ErrInvalidBucketName, jetstream.ErrInvalidStreamName,
		jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// endWithConnection ends the registry when its connection is closed for good.
func (r *Registry[K, V]) endWithConnection() {
	closed := r.conn.StatusChanged(nats.CLOSED)
	defer r.conn.RemoveStatusListener(closed)
	if !r.conn.IsClosed() {
		select {
		case <-closed:
		case <-r.life.Done():
			return
		}
	}
	r.end(fmt.Errorf("%w: %w", ErrClosed, nats.ErrConnectionClosed))
	r.calls.end()
}

// Close ends the registry: its goroutines, its loops, and calls that wait, which get
// [ErrClosed]. It leaves the connection and the bucket alone. The mirror can still be
// read as it is. If ctx ends before the goroutines have, Close returns its cause: a
// function of Config is still running. Further calls do the same.
//
// Close panics if ctx is nil. It is blocking: it waits for the registry's goroutines.
func (r *Registry[K, V]) Close(ctx context.Context) error {
	needContext(ctx, "Close")
	r.end(ErrClosed)
	r.calls.end()
	done := make(chan struct{})
	go func() {
		r.workers.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		select {
		case <-done:
			return nil
		default:
			return context.Cause(ctx)
		}
	}
}

// Get returns the value of key, and whether key is present. It is local and wait-free, as
// [shardedregistry.Registry.Get].
func (r *Registry[K, V]) Get(key K) (value V, ok bool) {
	if h := r.inner.Peek(key); h != nil {
		return h.Value, true
	}
	return value, false
}

// Lookup returns what key holds, with its version, and whether key is present. It is local
// and wait-free, as [shardedregistry.Registry.Lookup].
func (r *Registry[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	if r.config.Normalize != nil {
		e, ok := r.inner.Lookup(key)
		return shownEntry(e), ok
	}
	if h := r.inner.Peek(key); h != nil { // which copies once
		return Entry[K, V]{Key: key, Value: h.Value, Version: h.Version}, true
	}
	return entry, false
}

// Len returns the number of keys. It is local, as [shardedregistry.Registry.Len].
func (r *Registry[K, V]) Len() int { return r.inner.Len() }

// All returns an iterator over the keys and their values, in no particular order. It is
// local, as [shardedregistry.Registry.All].
func (r *Registry[K, V]) All() iter.Seq2[K, V] { return pairs(r.inner.Entries()) }

// Entries is All with versions. It is local, as [shardedregistry.Registry.Entries].
func (r *Registry[K, V]) Entries() iter.Seq[Entry[K, V]] { return shown(r.inner.Entries()) }

// ByIndex returns an iterator over the entries of the keys that have value in an index of
// Config.Indexes. It is local, as [shardedregistry.Registry.ByIndex]; it panics if
// there is no index of that name.
func (r *Registry[K, V]) ByIndex(index, value string) iter.Seq[Entry[K, V]] {
	return shown(r.inner.ByIndex(index, value))
}

// IndexValues returns an iterator over the values of an index. It is local, as
// [shardedregistry.Registry.IndexValues]; it panics if there is no index of that name.
func (r *Registry[K, V]) IndexValues(index string) iter.Seq[string] {
	return r.inner.IndexValues(index)
}

// shown returns the entries of the mirror as callers see them.
func shown[K ~string, V any](entries iter.Seq[Entry[K, held[V]]]) iter.Seq[Entry[K, V]] {
	return func(yield func(Entry[K, V]) bool) {
		for e := range entries {
			if !yield(shownEntry(e)) {
				return
			}
		}
	}
}

// pairs returns the keys and values of entries of the mirror.
func pairs[K ~string, V any](entries iter.Seq[Entry[K, held[V]]]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := range entries {
			if !yield(e.Key, e.Value.Value) {
				return
			}
		}
	}
}

func shownEntry[K ~string, V any](e Entry[K, held[V]]) Entry[K, V] {
	return Entry[K, V]{Key: e.Key, Value: e.Value.Value, Version: e.Value.Version}
}

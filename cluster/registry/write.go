package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// minTTL is the shortest time to live, and its unit, that the server accepts.
const minTTL = time.Second

// Option changes how a value is stored.
type Option func(*options)

type options struct {
	ttl     time.Duration
	expires bool
}

// TTL makes the key expire when that time has passed since the bucket stored the value,
// unless it is changed before: the bucket then deletes it, and all replicas see an
// [Event] with Expired. The bucket counts by its own clock. The time is at least 1 s, and
// whole seconds. The bucket must have LimitMarkerTTL, and a History of 1, in which no
// older value can come back: otherwise the write returns [ErrNoTTL].
//
// The version that the write returns is a fencing token: every later owner of the key has
// a higher one.
func TTL(d time.Duration) Option { return func(o *options) { *o = options{ttl: d, expires: true} } }

// headers returns the headers that options ask for.
func (r *Registry[K, V]) headers(o options) (nats.Header, error) {
	switch {
	case !o.expires:
		return nil, nil
	case o.ttl < minTTL || o.ttl%minTTL != 0:
		return nil, fmt.Errorf("registry: TTL is %v, and must be whole seconds, at least 1", o.ttl)
	case !r.status.ttl.Load():
		return nil, ErrNoTTL
	}
	return nats.Header{jetstream.MsgTTLHeader: {o.ttl.String()}}, nil
}

// endHeader is the header of an Update of a key that expires: when, in nanoseconds of the bucket's time. The
// time to live has whole seconds, and rounding it up again and again would put the end off.
const endHeader = "Latchfree-End"

// end is when a key expires that has a revision.
type end struct {
	revision uint64
	at       int64 // in ns of the bucket's time
}

// bucketNow returns the bucket's time, in ns, as it was when the mirror attached.
func (r *Registry[K, V]) bucketNow() int64 {
	return r.status.clock.Load() + int64(time.Since(r.begun))
}

// endOf returns when a key expires whose message has a header and was stored at a time, or 0.
func (r *Registry[K, V]) endOf(h nats.Header, stored int64) int64 {
	text := h.Get(jetstream.MsgTTLHeader)
	if text == "" {
		return 0
	}
	if at, err := strconv.ParseInt(h.Get(endHeader), 10, 64); err == nil {
		return at
	}
	ttl, err := time.ParseDuration(text)
	if err != nil {
		seconds, _ := strconv.ParseInt(text, 10, 32) // 0 if it is never
		ttl = time.Duration(seconds) * time.Second
	}
	if ttl <= 0 {
		return 0
	}
	if stored == 0 { // just now
		stored = r.bucketNow()
	}
	return stored + int64(ttl)
}

// keepTTL gives a write that replaces a revision the time to live that the key has left. It reports whether
// there is none left, and the key is about to expire.
func (w *write[K, V]) keepTTL(revision uint64) (over bool) {
	w.header = nil
	at, _ := w.r.ends.Load(w.key)
	e, ok := at.(end)
	if !ok || e.revision != revision {
		return false
	}
	left := time.Duration(e.at - w.r.bucketNow())
	if left <= 0 {
		return true
	}
	left = (left + minTTL - 1).Truncate(minTTL)
	w.header = nats.Header{jetstream.MsgTTLHeader: {left.String()}, endHeader: {strconv.FormatInt(e.at, 10)}}
	return false
}

// replaced waits until the mirror shows something else of the key than a revision.
func (w *write[K, V]) replaced(revision uint64) error {
	if _, err := w.r.Wait(w.ctx, w.key, Version(revision)); err != nil && !errors.Is(err, ErrNotFound) {
		return w.r.ended(w.ctx, false, err)
	}
	return nil
}

// write is one call that writes a key.
type write[K ~string, V any] struct {
	r      *Registry[K, V]
	ctx    context.Context
	key    K
	name   string // in the bucket
	header nats.Header
	id     string // of its messages, if all have one; "" if each attempt has another

	// suspicious says that a sending of its message had an answer that may not be the leader's.
	suspicious bool

	proved bool // a beat of this call has proved what the mirror shows
}

// begin checks the arguments of a call.
func (r *Registry[K, V]) begin(ctx context.Context, method string, key K, opts []Option) (*write[K, V], error) {
	needContext(ctx, method)
	key, err := r.normalized(key)
	if err != nil {
		return nil, err
	}
	name, err := encodeKey(string(key))
	if err != nil {
		return nil, err
	}
	var o options
	for _, f := range opts {
		f(&o)
	}
	header, err := r.headers(o)
	if err != nil {
		return nil, err
	}
	if r.life.Err() != nil {
		return nil, context.Cause(r.life)
	}
	return &write[K, V]{r: r, ctx: ctx, key: key, name: name, header: header}, nil
}

// encode begins a call, and returns what it stores.
func (r *Registry[K, V]) encode(ctx context.Context, method string, key K, value V, opts []Option) (w *write[K, V], data []byte, err error) {
	if w, err = r.begin(ctx, method, key, opts); err == nil {
		data, err = r.config.Codec.Encode(value)
	}
	return w, data, err
}

// prove makes what the mirror shows a proof of what the bucket held at an instant of this
// call. It reports whether that is so already.
func (w *write[K, V]) prove() (bool, error) {
	if w.proved {
		return true, nil
	}
	if err := w.r.Sync(w.ctx); err != nil {
		return false, err
	}
	w.proved = true
	return false, nil
}

// refused waits until another attempt makes sense, after the bucket has refused one that
// expected a revision. It returns err unless that is a *conflict.
func (w *write[K, V]) refused(err error, expect uint64) error {
	var c *conflict
	if !errors.As(err, &c) {
		return err
	}
	if c.last > expect {
		return w.await(c.last)
	}
	// The bucket has lost what the mirror has seen.
	if proved, err := w.prove(); err != nil || !proved {
		return err
	}
	w.proved = false
	w.r.listAgain()
	return w.r.Sync(w.ctx)
}

// await waits until the mirror has a revision of the key.
func (w *write[K, V]) await(revision uint64) error {
	c := w.r.calls.add(w.key, "", revision)
	defer w.r.calls.remove(w.key, c)
	if w.r.caught(w.key, revision) {
		return nil
	}
	select {
	case <-c.done:
		if w.r.life.Err() == nil {
			return nil
		}
	case <-w.ctx.Done():
	}
	return w.r.ended(w.ctx, false, nil)
}

// Create stores value for key if key is absent, and returns its version. It never
// overwrites: if key is present, the error is an [*ExistsError]; if it has a foreign
// value, [ErrForeign].
//
// Create panics if ctx is nil. It is blocking: it waits for the bucket and the mirror. It
// takes effect when the bucket stores the value.
func (r *Registry[K, V]) Create(ctx context.Context, key K, value V, opts ...Option) (Version, error) {
	w, data, err := r.encode(ctx, "Create", key, value, opts)
	if err != nil {
		return 0, err
	}
	w.id = r.nextID()
	var other *uint64 // what the bucket expects, where it differs from what the mirror knows
	for {
		s := r.known(w.key)
		if other == nil && (s.present || s.foreign) {
			if proved, err := w.prove(); err != nil {
				return 0, err
			} else if !proved {
				continue
			}
			if s.foreign {
				return 0, ErrForeign
			}
			return 0, &ExistsError{Given: key, Stored: w.key, Version: Version(s.revision)}
		}
		expect := s.expect
		if other != nil {
			expect = *other
		}
		revision, err := w.store(expect, data)
		if err == nil || errors.Is(err, ErrBehind) {
			return Version(revision), err
		}
		var c *conflict
		if errors.As(err, &c) && c.last == 0 && expect != 0 { // the marker has expired
			other = &c.last
			continue
		}
		other = nil
		if err := w.refused(err, expect); err != nil {
			return 0, err
		}
		if r.known(w.key).revision != 0 {
			continue
		}
		// The key was deleted, and its tomb is forgotten. Or the bucket was restored or made anew, and the mirror
		// has come to this revision in the one that it was, and not to the key.
		if err := r.Sync(ctx); err != nil {
			return 0, err
		}
		if r.known(w.key).revision == 0 {
			other = &c.last
		}
	}
}

// Put stores value for key, whatever key holds, and returns its version.
//
// Put panics if ctx is nil. It is blocking: it waits for the bucket and the mirror, and
// repeats its request while others change the key. It takes effect when the bucket
// stores the value.
func (r *Registry[K, V]) Put(ctx context.Context, key K, value V, opts ...Option) (Version, error) {
	w, data, err := r.encode(ctx, "Put", key, value, opts)
	if err != nil {
		return 0, err
	}
	w.id = r.nextID()
	expect := r.known(w.key).expect
	for {
		revision, err := w.store(expect, data)
		if err == nil || errors.Is(err, ErrBehind) {
			return Version(revision), err
		}
		// Which revision is replaced is of no interest, so the mirror need not have it.
		var c *conflict
		if errors.As(err, &c) {
			expect = c.last
			continue
		}
		if err := w.refused(err, expect); err != nil {
			return 0, err
		}
	}
}

// Update replaces the value of key by what fn returns for it, and returns what key holds
// then. If key is absent, it returns [ErrNotFound]; if it has a foreign value,
// [ErrForeign]. If fn returns an error, Update returns that error as it is, and nothing
// has changed; fn may have seen an old value then, unless Sync was called before.
//
// A key with a [TTL] expires when it would have without the Update, or in the second after that, unless
// another TTL is given. When its time is over, Update waits until the key is gone.
//
// Fn runs on the caller's goroutine, outside every lock, and again if another operation
// has changed key meanwhile. It must not modify its argument.
//
// Update panics if ctx or fn is nil. It is blocking: it waits for the bucket and the
// mirror. It takes effect when the bucket stores the value.
func (r *Registry[K, V]) Update(ctx context.Context, key K, fn func(V) (V, error), opts ...Option) (Entry[K, V], error) {
	if fn == nil {
		panic("registry: Update called with a nil function")
	}
	w, err := r.begin(ctx, "Update", key, opts)
	if err != nil {
		return Entry[K, V]{}, err
	}
	var value V
	keeps := w.header == nil
	_, revision, err := w.change(w.present, func(s state[V]) ([]byte, error) {
		changed, err := fn(s.value)
		if err != nil {
			return nil, err
		}
		value = changed
		data, err := r.config.Codec.Encode(value)
		if err == nil && keeps && w.keepTTL(s.revision) {
			err = cmp.Or(w.replaced(s.revision), errReplaced)
		}
		return data, err
	})
	if revision == 0 {
		return Entry[K, V]{}, err
	}
	return Entry[K, V]{Key: w.key, Value: value, Version: revision}, err
}

// errReplaced makes change look at the key again.
var errReplaced = errors.New("registry: the key has changed")

// change stores what plan makes of what the key has, again and again while others change that. Have returns what the
// mirror knows of the key, or why the call fails. The version is 0 if nothing was stored.
func (w *write[K, V]) change(have func() (state[V], error), plan func(state[V]) ([]byte, error)) (state[V], Version, error) {
	for {
		s, err := have()
		if err != nil {
			return s, 0, err
		}
		data, err := plan(s)
		if err == errReplaced {
			continue
		}
		if err != nil {
			return s, 0, err
		}
		revision, err := w.store(s.revision, data)
		if err == nil || errors.Is(err, ErrBehind) {
			return s, Version(revision), err
		}
		if err := w.refused(err, s.revision); err != nil {
			return s, 0, err
		}
	}
}

// present returns what the mirror knows of the key if that is present, and otherwise,
// when that is proved, ErrNotFound or ErrForeign.
func (w *write[K, V]) present() (state[V], error) {
	for {
		s := w.r.known(w.key)
		if s.present {
			return s, nil
		}
		proved, err := w.prove()
		switch {
		case err != nil:
			return s, err
		case !proved:
		case s.foreign:
			return s, ErrForeign
		default:
			return s, ErrNotFound
		}
	}
}

// UpdateIf stores value for key if key's version is version, and returns the new version.
// If key does not have it, the error is a [*ConflictError], or [ErrNotFound] if key
// is absent.
//
// UpdateIf panics if ctx is nil. It is blocking: it waits for the bucket and the mirror.
// It takes effect when the bucket stores the value.
func (r *Registry[K, V]) UpdateIf(ctx context.Context, key K, version Version, value V, opts ...Option) (Version, error) {
	w, data, err := r.encode(ctx, "UpdateIf", key, value, opts)
	if err != nil {
		return 0, err
	}
	_, revision, err := w.change(w.at(version), func(state[V]) ([]byte, error) { return data, nil })
	return revision, err
}

// Renew stores the value that key holds at a version again, with another time to live, and
// returns its new version: the owner of a claim puts off its end. The errors are those of
// UpdateIf, and [ErrNoTTL].
//
// A renewal should come well before the end: the bucket may delete a key whose renewal
// comes in the moment in which it expires. The owner sees that as an Event with Expired.
//
// Renew panics if ctx is nil. It is blocking: it waits for the bucket and the mirror. It
// takes effect when the bucket stores the value.
func (r *Registry[K, V]) Renew(ctx context.Context, key K, version Version, ttl time.Duration) (Version, error) {
	w, err := r.begin(ctx, "Renew", key, []Option{TTL(ttl)})
	if err != nil {
		return 0, err
	}
	_, revision, err := w.change(w.at(version), func(s state[V]) ([]byte, error) { return r.config.Codec.Encode(s.value) })
	return revision, err
}

// at returns a function that returns what the mirror knows of the key if that has a version, and otherwise, when
// that is proved, a *ConflictError, ErrNotFound or ErrForeign.
func (w *write[K, V]) at(version Version) func() (state[V], error) {
	return func() (state[V], error) {
		for {
			s, err := w.present()
			if err != nil || s.revision == uint64(version) {
				return s, err
			}
			// A higher revision is a proof. The mirror may not have come to a lower one's successor.
			if s.revision > uint64(version) || w.proved {
				return s, &ConflictError{Have: Version(s.revision), Want: version}
			}
			if _, err := w.prove(); err != nil {
				return s, err
			}
		}
	}
}

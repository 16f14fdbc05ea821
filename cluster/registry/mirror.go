package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

const (
	// A new attachment begins after such a pause, which doubles while none settles. Without
	// it, all replicas of a large service would list at the same moment.
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
)

var (
	errOther  = errors.New("registry: a write was delivered otherwise than it was acknowledged")
	errMarker = errors.New("registry: a marker may have expired before it was delivered")
	errAgain  = errors.New("registry: the bucket must be listed again")
)

// mirror is the state of the goroutine that keeps the mirror. What is not atomic belongs
// to that goroutine.
type mirror[K ~string] struct {
	delivered atomic.Uint64 // the revision of the last delivery of this attachment; stored before it is shown
	position  atomic.Uint64 // up to where the mirror shows deliveries and acknowledged writes of this attachment
	shown     atomic.Uint64 // the mirror has been at this revision
	gaps      atomic.Uint64 // how often revisions were not consecutive, and attachments
	following atomic.Bool   // attached: a beat can be answered
	settled   atomic.Bool   // attached, and not listing

	beats  chan sentBeat    // from the beater
	stored chan storedWrite // from calls whose writes were acknowledged
	again  chan struct{}    // asks for another listing

	beat    sentBeat          // under way, if answer is not nil
	exact   time.Duration     // the mirror has all that was stored before, as beater.proven
	markers time.Duration     // how long the bucket keeps those of keys that are gone; 0: for ever
	created time.Time         // when the stream was that the mirror has listed
	foreign map[string]uint64 // the bucket's keys that are none, and their revisions
	careful bool              // a caller's function has called runtime.Goexit

	attached, resets, deliveries, foreignKeys atomic.Uint64 // those of Stats
}

func (m *mirror[K]) init() {
	m.beats, m.stored, m.again = make(chan sentBeat), make(chan storedWrite), make(chan struct{}, 1)
	m.foreign = make(map[string]uint64)
}

// attachment is a consumer from its creation on.
type attachment[K ~string, V any] struct {
	consumer *push.Consumer
	listing  *listing[K, V] // nil when it is complete
	early    earlyWrites
}

// listing is what a listing has found out. It is complete when a beat says so.
type listing[K ~string, V any] struct {
	first   bool              // the mirror was empty
	floor   uint64            // the revision that the mirror had before
	changed bool              // the stream is another one
	created time.Time         // when it was
	seen    map[K]struct{}    // keys that were listed, unless first
	aside   map[K]change[V]   // what contradicts the mirror
	foreign map[string]uint64 // as in mirror
}

// mirrorBucket attaches to the bucket again and again, until the registry ends.
func (r *Registry[K, V]) mirrorBucket() {
	returned := false
	defer func() {
		if !returned {
			r.mirror.careful = true
			r.workers.Go(r.mirrorBucket)
		}
	}()
	pause := firstPause
	for r.life.Err() == nil {
		listed, err := r.attach()
		if listed {
			pause = firstPause
		}
		r.mirror.gaps.Add(1)
		r.refuse()
		r.status.fail(err)
		_ = push.Pause(r.life, pause/2+rand.N(pause))
		pause = min(2*pause, lastPause)
	}
	returned = true
}

// attach creates a consumer, and keeps the mirror by what that delivers. It returns whether
// a listing was completed, and why it has ended.
func (r *Registry[K, V]) attach() (listed bool, err error) {
	r.mirror.gaps.Add(1)
	info, err := r.inspect(r.life)
	if err != nil {
		return false, err
	}
	deleted, foreign := r.tombs.len()
	a := &attachment[K, V]{listing: &listing[K, V]{
		first: r.inner.Len()+deleted+foreign == 0,
		floor: r.mirror.shown.Load(), created: info.Created,
		seen: make(map[K]struct{}), aside: make(map[K]change[V]), foreign: make(map[string]uint64),
	}}
	if !r.mirror.created.IsZero() && !info.Created.Equal(r.mirror.created) {
		a.listing.changed, a.listing.floor = true, 0
	}
	r.mirror.delivered.Store(0)
	r.mirror.position.Store(0)
	a.consumer, err = push.Open(r.life, r.js, r.stream, r.prefix+">", r.config.Heartbeat, r.config.Timeout)
	if err != nil {
		return false, fmt.Errorf("registry: %w", err)
	}
	defer a.consumer.Close()
	r.sharing.attached(info.Created)
	r.mirror.attached.Add(1)
	err = r.follow(a)
	return a.listing == nil, err
}

// inspect returns what the stream of the bucket is, or why it cannot be mirrored.
func (r *Registry[K, V]) inspect(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	s, err := r.js.Stream(ctx, r.stream)
	if err != nil {
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = jetstream.ErrBucketNotFound
		}
		return nil, fmt.Errorf("registry: no information about stream %s: %w", r.stream, err)
	}
	info := s.CachedInfo()
	switch c := info.Config; {
	case c.Mirror != nil:
		return nil, fmt.Errorf("%w: it is a mirror of %s", ErrUnsuitable, c.Mirror.Name)
	case c.MaxMsgsPerSubject < 1:
		return nil, fmt.Errorf("%w: it is no KV bucket", ErrUnsuitable)
	case c.MaxAge > 0 && c.SubjectDeleteMarkerTTL == 0:
		return nil, fmt.Errorf("%w: its TTL is %v, and it has no LimitMarkerTTL, so that keys expire unnoticed", ErrUnsuitable, c.MaxAge)
	case c.AllowMsgTTL && c.SubjectDeleteMarkerTTL == 0:
		return nil, fmt.Errorf("%w: it lets messages expire, and has no LimitMarkerTTL, so that keys expire unnoticed", ErrUnsuitable)
	case c.SubjectTransform != nil:
		return nil, fmt.Errorf("%w: it stores messages under other subjects", ErrUnsuitable)
	case c.Retention != jetstream.LimitsPolicy:
		return nil, fmt.Errorf("%w: its retention is %v, with which consumers remove keys", ErrUnsuitable, c.Retention)
	case c.DiscardNewPerSubject:
		return nil, fmt.Errorf("%w: it refuses to replace values", ErrUnsuitable)
	case c.Discard == jetstream.DiscardOld && (c.MaxBytes > 0 || c.MaxMsgs > 0):
		return nil, fmt.Errorf("%w: it discards old keys unnoticed", ErrUnsuitable)
	default:
		r.status.known.Store(int64(c.Duplicates))
		r.status.clock.Store(info.TimeStamp.UnixNano() - int64(time.Since(r.begun)))
		r.beater.refill.Store(c.MaxBytes > 0 || c.MaxMsgs > 0)
		r.mirror.markers = c.SubjectDeleteMarkerTTL
		if c.MaxAge > 0 {
			r.mirror.markers = min(r.mirror.markers, c.MaxAge)
		}
		r.status.ttl.Store(c.AllowMsgTTL && c.SubjectDeleteMarkerTTL > 0 && c.MaxMsgsPerSubject == 1)
	}
	return info, nil
}

// follow keeps the mirror by what the consumer of a delivers. It returns why it has ended.
func (r *Registry[K, V]) follow(a *attachment[K, V]) error {
	r.mirror.following.Store(true)
	defer func() { // also if a function of the caller calls runtime.Goexit
		r.mirror.settled.Store(false)
		r.mirror.following.Store(false)
	}()
	r.beater.demand()
	for {
		select {
		case m := <-a.consumer.Raw:
			if err := r.receive(a, m); err != nil {
				return err
			}
		case w := <-r.mirror.stored:
			r.acknowledged(a, w)
		case r.mirror.beat = <-r.mirror.beats:
		case <-a.consumer.Ticks:
			if err := a.consumer.Tick(); err != nil {
				return fmt.Errorf("registry: %w", err)
			}
		case <-r.mirror.again:
			return errAgain
		case <-r.life.Done():
			return context.Cause(r.life)
		}
		r.prove(a)
	}
}

// prove answers the beat under way as soon as it can: see "Exact positions" in DESIGN.md.
func (r *Registry[K, V]) prove(a *attachment[K, V]) {
	b := &r.mirror.beat
	switch {
	case b.answer == nil:
	case b.gaps != r.mirror.gaps.Load(), len(r.mirror.again) > 0: // somebody knows that the bucket is another one
		r.refuse()
	case r.mirror.position.Load() >= b.revision:
		if a.listing != nil {
			r.complete(a.listing, b.revision)
			a.listing = nil
			r.mirror.settled.Store(true)
			r.status.fail(nil)
			select {
			case <-r.ready:
			default:
				close(r.ready)
			}
		}
		r.mirror.exact = b.began
		b.answer <- true
		*b = sentBeat{}
	}
}

// refuse answers the beat under way, if there is one, that it proves nothing.
func (r *Registry[K, V]) refuse() {
	if b := &r.mirror.beat; b.answer != nil {
		b.answer <- false
		*b = sentBeat{}
	}
}

// receive shows a delivery of the consumer.
func (r *Registry[K, V]) receive(a *attachment[K, V], raw *nats.Msg) error {
	m, ok, err := a.consumer.Read(raw)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if !ok {
		return nil
	}
	return r.deliver(a, m)
}

// deliver shows a delivery.
func (r *Registry[K, V]) deliver(a *attachment[K, V], m push.Message) error {
	seq, at := m.Sequence, r.mirror.position.Load()
	if seq > at+1 {
		r.mirror.gaps.Add(1)
		if a.listing == nil && r.mayHaveExpired() {
			return errMarker
		}
	}
	r.mirror.deliveries.Add(1)
	r.mirror.delivered.Store(seq)
	if seq <= at {
		return a.early.confirm(m.Msg, seq)
	}
	r.show(a, m.Msg, seq, m.Stored.UnixNano())
	a.early.passed(at, seq)
	r.catchUp(a)
	return nil
}

// mayHaveExpired reports whether a message that the consumer has passed over may have been a marker that
// had expired. What the mirror lacks was stored after it was exact.
func (r *Registry[K, V]) mayHaveExpired() bool {
	exact := max(r.mirror.exact, time.Duration(r.beater.proven.Load()))
	return r.mirror.markers > 0 && time.Since(r.begun)-exact >= r.mirror.markers
}

// show brings the mirror to the revision of a message.
func (r *Registry[K, V]) show(a *attachment[K, V], m *nats.Msg, seq uint64, stored int64) {
	r.take(a, m, seq, r.stamp(m.Header, stored), r.endOf(m.Header, stored))
	r.mirror.position.Store(seq)
	if a.listing == nil {
		r.mirror.shown.Store(seq)
	}
}

// listAgain makes the mirror list the bucket again.
func (r *Registry[K, V]) listAgain() {
	r.mirror.settled.Store(false)
	select {
	case r.mirror.again <- struct{}{}:
	default:
	}
}

package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// A new attachment begins after such a pause, which doubles while none settles. Without
	// it, all replicas of a large service would list at the same moment.
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
)

var (
	errSilent = errors.New("registry: the server that feeds the mirror is silent")
	errMissed = errors.New("registry: a delivery was lost")
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

	beat     sentBeat             // under way, if answer is not nil
	exact    time.Duration        // the mirror has all that was stored before, as beater.proven
	markers  time.Duration        // how long the bucket keeps those of keys that are gone; 0: for ever
	created  time.Time            // when the stream was that the mirror has listed
	foreign  map[string]uint64    // the bucket's keys that are none, and their revisions
	decoding message              // for which a caller's function runs
	poison   map[message]struct{} // those for which one called runtime.Goexit
	met      map[message]struct{} // those of them that the listing has met

	counters
}

// counters are those of Stats.
type counters struct {
	attached, resets, deliveries, foreignKeys atomic.Uint64
}

func (m *mirror[K]) init() {
	m.beats, m.stored, m.again = make(chan sentBeat), make(chan storedWrite), make(chan struct{}, 1)
	m.foreign, m.poison, m.met = make(map[string]uint64), make(map[message]struct{}), make(map[message]struct{})
}

// attachment is a consumer from its creation on.
type attachment[K ~string, V any] struct {
	messages chan *nats.Msg
	dseq     uint64         // the sequence of the last delivery
	silence  int            // how many times a heartbeat was due since the last message
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
			r.exited()
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
		r.status.detached(err)
		r.rest(pause/2 + rand.N(pause))
		pause = min(2*pause, lastPause)
	}
	returned = true
}

// exited notes that a function of the caller has called runtime.Goexit.
func (r *Registry[K, V]) exited() {
	if r.mirror.decoding != (message{}) {
		r.mirror.poison[r.mirror.decoding] = struct{}{}
		r.mirror.decoding = message{}
	}
}

// rest waits for d or the registry's end, and refuses beats meanwhile.
func (r *Registry[K, V]) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case r.mirror.beat = <-r.mirror.beats:
			r.refuse()
		case <-t.C:
			return
		case <-r.life.Done():
			return
		}
	}
}

// attach creates a consumer, and keeps the mirror by what that delivers. It returns whether
// a listing was completed, and why it has ended.
func (r *Registry[K, V]) attach() (listed bool, err error) {
	r.mirror.gaps.Add(1)
	ctx, cancel := context.WithCancel(r.life)
	defer cancel()
	info, err := r.inspect(ctx)
	if err != nil {
		return false, err
	}
	a := &attachment[K, V]{messages: make(chan *nats.Msg, 256)}
	a.listing = &listing[K, V]{
		first: r.inner.Len() == 0 && r.tombs.len() == 0,
		floor: r.mirror.shown.Load(), created: info.Created,
		seen: make(map[K]struct{}), aside: make(map[K]change[V]), foreign: make(map[string]uint64),
	}
	if !r.mirror.created.IsZero() && !info.Created.Equal(r.mirror.created) {
		a.listing.changed, a.listing.floor = true, 0
	}
	r.mirror.met = make(map[message]struct{})
	r.mirror.delivered.Store(0)
	r.mirror.position.Store(0)
	inbox := r.conn.NewInbox()
	name, err := r.consumer(ctx, info, inbox)
	if err != nil {
		return false, fmt.Errorf("registry: no consumer of stream %s: %w", r.stream, err)
	}
	defer r.release(name)
	sub, err := r.conn.Subscribe(inbox, func(m *nats.Msg) {
		select {
		case a.messages <- m:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	_ = sub.SetPendingLimits(-1, -1) // flow control bounds what is on its way
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
	tick := time.NewTicker(r.config.Heartbeat)
	defer tick.Stop()
	r.status.hear(time.Since(r.begun))
	r.mirror.following.Store(true)
	defer func() { // also if a function of the caller calls runtime.Goexit
		r.mirror.settled.Store(false)
		r.mirror.following.Store(false)
	}()
	r.beater.demand()
	for {
		select {
		case m := <-a.messages:
			if err := r.receive(a, m); err != nil {
				return err
			}
		case w := <-r.mirror.stored:
			r.acknowledged(a, w)
		case r.mirror.beat = <-r.mirror.beats:
		case <-tick.C:
			// The clock would say nothing of the server: a process that was stopped, and a
			// mirror that was held up, have not read yet what has come. They miss all ticks but one.
			if a.silence++; a.silence > missedHeartbeats {
				return errSilent
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
			r.status.attached()
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

// receive does what a message of the consumer asks for.
func (r *Registry[K, V]) receive(a *attachment[K, V], m *nats.Msg) error {
	a.silence = 0
	r.status.hear(time.Since(r.begun))
	if len(m.Data) == 0 && m.Header.Get("Status") != "" && !strings.HasPrefix(m.Subject, r.prefix) { // which another client's message may have
		return r.control(a, m)
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil // not of the consumer
	}
	if meta.Sequence.Consumer != a.dseq+1 {
		return errMissed
	}
	a.dseq++
	seq, at := meta.Sequence.Stream, r.mirror.position.Load()
	if seq > at+1 {
		r.mirror.gaps.Add(1)
		if a.listing == nil && r.mayHaveExpired() {
			return errMarker
		}
	}
	r.mirror.deliveries.Add(1)
	r.mirror.delivered.Store(seq)
	if seq <= at {
		return a.early.confirm(m, seq)
	}
	r.show(a, m, seq, meta.Timestamp.UnixNano())
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

// control answers a message that is no delivery.
func (r *Registry[K, V]) control(a *attachment[K, V], m *nats.Msg) error {
	if m.Header.Get("Status") != "100" {
		return fmt.Errorf("registry: the server that feeds the mirror ends it: %s", m.Header.Get("Description"))
	}
	if m.Reply != "" { // flow control: all that came before it is in the mirror
		return r.conn.Publish(m.Reply, nil)
	}
	if stalled := m.Header.Get("Nats-Consumer-Stalled"); stalled != "" {
		if err := r.conn.Publish(stalled, nil); err != nil {
			return err
		}
	}
	if last, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64); err == nil && last != a.dseq {
		return errMissed
	}
	return nil
}

// listAgain makes the mirror list the bucket again.
func (r *Registry[K, V]) listAgain() {
	r.mirror.settled.Store(false)
	select {
	case r.mirror.again <- struct{}{}:
	default:
	}
}

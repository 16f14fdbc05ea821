package registry

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

const (
	// A beat that has proved nothing is repeated after such a pause, which doubles.
	firstBeatPause = time.Millisecond
	lastBeatPause  = 250 * time.Millisecond
)

// sentBeat is a sync message that is stored, for the mirror to prove that it is exact.
type sentBeat struct {
	began    time.Duration // before it was sent
	gaps     uint64
	revision uint64
	answer   chan bool // has room
}

// beater sends the beats, one at a time.
type beater struct {
	demands chan struct{}
	proven  atomic.Int64 // the mirror has all that was stored before, in ns since Open; only increases
	due     atomic.Bool  // a beat is, for this registry and for others that have asked it
	refill  atomic.Bool  // the bucket is limited, and may have no reserve

	mu   sync.Mutex
	next chan struct{} // closed when a beat that begins later has proved something; nil while nobody waits
}

func (b *beater) init() { b.demands = make(chan struct{}, 1) }

// demand makes the beater look whether there is something to do.
func (b *beater) demand() {
	select {
	case b.demands <- struct{}{}:
	default:
	}
}

// join returns a channel that is closed when a beat has proved something which begins later.
func (b *beater) join() chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	b.demand()
	return b.next
}

// take returns the channel of those that have joined, or nil.
func (b *beater) take() chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.next
	b.next = nil
	return c
}

// prove notes that the mirror has all that was stored before an instant.
func (b *beater) prove(began time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.proven.Store(max(b.proven.Load(), int64(began)))
}

// Sync returns when the mirror shows all writes that were acknowledged to anybody, of any
// replica, before Sync was called. It writes a sync message to the bucket, which
// calls at the same time share. If ctx ends first, the error matches
// [ErrUnavailable] and the cause of ctx.
//
// Sync panics if ctx is nil. It is blocking: it waits for the bucket and the mirror.
func (r *Registry[K, V]) Sync(ctx context.Context) error {
	needContext(ctx, "Sync")
	select {
	case <-r.beater.join():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	case <-r.life.Done():
		return context.Cause(r.life)
	}
}

// Relist lists the bucket again, and returns as Sync does when the mirror has that. An operator calls it at
// each replica after a purge that leaves no markers, by the stream's API or by PurgeDeletes, which no mirror is
// told of: until then it shows what was purged.
//
// Relist panics if ctx is nil. It is blocking: it waits for the bucket and the mirror.
func (r *Registry[K, V]) Relist(ctx context.Context) error {
	needContext(ctx, "Relist")
	r.listAgain()
	return r.Sync(ctx)
}

// beat sends beats as long as somebody needs one.
func (r *Registry[K, V]) beat() {
	var waiting []chan struct{}
	for {
		select {
		case <-r.beater.demands:
		case <-r.life.Done():
			return
		}
		pause, due := firstBeatPause, false
		for r.mirror.following.Load() && r.life.Err() == nil {
			if c := r.beater.take(); c != nil {
				waiting = append(waiting, c)
			}
			due = r.beater.due.Swap(false) || due
			if len(waiting) == 0 && !due && r.mirror.settled.Load() {
				break
			}
			// LP(Sync): the message is committed, if that proves something.
			began := time.Since(r.begun)
			if r.beatOnce(began, due) {
				r.beater.prove(began)
				for _, c := range waiting {
					close(c)
				}
				r.status.fail(nil)
				waiting, due = nil, false
				r.reserve(r.life)
				continue
			}
			_ = push.Pause(r.life, pause/2+rand.N(pause))
			pause = min(2*pause, lastBeatPause)
		}
	}
}

// beatOnce writes a sync message at an instant, and reports whether the mirror is exact at its revision.
// Share says that it answers the requests of other replicas, and offers the next beat to all
// if nobody else does.
func (r *Registry[K, V]) beatOnce(began time.Duration, share bool) bool {
	b := sentBeat{began: began, gaps: r.mirror.gaps.Load(), answer: make(chan bool, 1)}
	before := r.mirror.position.Load()
	m := &nats.Msg{Subject: r.publish + r.syncKey}
	var requests []*nats.Msg
	if share {
		requests = r.sharing.take()
		if host := r.sharing.current(); host == "" || host == r.sharing.name {
			m.Header = nats.Header{offerHeader: {r.sharing.offer()}}
		}
	}
	ctx, cancel := context.WithTimeout(r.life, r.config.Timeout)
	ack, err := r.js.PublishMsg(ctx, m)
	if full(err) && r.spend(ctx) == nil {
		ack, err = r.js.PublishMsg(ctx, m)
	}
	cancel()
	if err != nil {
		r.status.fail(fmt.Errorf("registry: no sync message can be stored: %w", err))
		return false
	}
	if ack.Sequence <= before { // the bucket went back
		r.listAgain()
		return false
	}
	for _, m := range requests {
		_ = m.Respond(strconv.AppendUint(nil, ack.Sequence, 10)) // who gets no answer asks again
	}
	b.revision = ack.Sequence
	select {
	case r.mirror.beats <- b:
	case <-r.life.Done():
		return false
	}
	select {
	case ok := <-b.answer:
		return ok
	case <-r.life.Done():
		return false
	}
}

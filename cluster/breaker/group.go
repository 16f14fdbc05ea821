package breaker

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/internal/push"
)

// ErrClosed reports that a group is closed.
var ErrClosed = errors.New("breaker: group is closed")

// Group is an [atomicbreaker.Group] whose keys other replicas know about. Make it with
// [NewGroup]. All methods of the local group for requests are its own: none of them waits
// for the engine, and they go on working after Close.
//
// The methods that an operator uses, Trip, ForceOpen, Disable, HalfOpen, Reset and
// ResetAll, take effect here at once and at other replicas as soon as they hear of it.
// If several operators command different things for a key, all replicas end with that
// which the engine has stored last. Those methods of the embedded Group are of this
// replica alone, and a hint may undo them.
type Group[K ~string] struct {
	*atomicbreaker.Group[K]
	config  Config[K]
	replica string // a random name of this Group
	outbox  *outbox

	commands commands
	opened   opened[K]
	counts   counts
	acked    atomic.Uint64 // the sequence of the last hint that the publisher has stored; 0: the follower has found the stream restored since

	usable, heard chan struct{}
	found         func() // closes usable: the follower has found the stream, with the right settings
	all           func() // closes heard: the follower has met all that was in the stream when it began
	stop          context.CancelCauseFunc
	closed        sync.WaitGroup
}

// NewGroup returns a group of closed breakers that exchanges hints over js, or an error
// that names the setting that is wrong. It does not wait for the engine: see [Group.Wait].
//
// NewGroup panics if js is nil.
func NewGroup[K ~string](js jetstream.JetStream, config Config[K]) (*Group[K], error) {
	if js == nil {
		panic("breaker: NewGroup called with a nil JetStream")
	}
	c, err := config.checked()
	if err != nil {
		return nil, err
	}
	g := &Group[K]{config: c, replica: nuid.Next(), outbox: newOutbox(), usable: make(chan struct{}), heard: make(chan struct{})}
	g.commands.given = make(map[string]string)
	g.opened.init()
	if g.Group, err = atomicbreaker.NewGroup(g.listened(c.Group)); err != nil {
		return nil, err
	}
	g.found, g.all = sync.OnceFunc(func() { close(g.usable) }), sync.OnceFunc(func() { close(g.heard) })
	ctx, stop := context.WithCancelCause(context.Background())
	g.stop = stop
	f := newFollower(js, g)
	g.work(ctx, func() { g.publishAll(ctx, js) })
	g.work(ctx, func() { f.run(ctx) })
	return g, nil
}

// work runs f on a goroutine that Close waits for, and again on another one, after a pause, if
// a function of the caller has ended it by runtime.Goexit.
func (g *Group[K]) work(ctx context.Context, f func()) {
	g.closed.Go(func() {
		returned := false
		defer func() {
			if !returned && push.Pause(ctx, firstPause) == nil {
				g.work(ctx, f)
			}
		}()
		f()
		returned = true
	})
}

// listened returns c with the listener of hints.
func (g *Group[K]) listened(c atomicbreaker.GroupConfig[K]) atomicbreaker.GroupConfig[K] {
	then := c.OnStateChange
	c.OnStateChange = func(k K, e atomicbreaker.Event) {
		g.opened.changed(k, e)
		if h, ok := newReport(string(k), g.replica, e); ok && !e.Shadow {
			g.publish(h)
		}
		if then != nil {
			then(k, e)
		}
	}
	return c
}

// maxKey is how many bytes a key may have that other replicas hear of: servers end a
// connection over a subject of 4 KiB.
const maxKey = 1024

// publish leaves h to the publisher, or drops it if too many wait or its key is too long. It
// reports whether the publisher has it.
func (g *Group[K]) publish(h hint) bool {
	h.ID = cmp.Or(h.ID, nuid.Next()) // one for all attempts
	if len(h.Key) > maxKey || !g.outbox.put(h.subject(g.config.Stream), h) {
		g.counts.dropped.Add(1)
		return false
	}
	return true
}

// Update gives the local group other settings, as [atomicbreaker.Group.Update] does. The
// settings of hints stay.
func (g *Group[K]) Update(c atomicbreaker.GroupConfig[K]) error {
	return g.Group.Update(g.listened(c))
}

// Wait returns when the group has heard all hints that were in the stream when the group
// first reached it, forced states among them, or with the error of ctx, or ErrClosed.
//
// Wait is blocking.
func (g *Group[K]) Wait(ctx context.Context) error {
	select {
	case <-g.heard:
		return nil
	default:
	}
	select {
	case <-g.heard:
		return nil
	case <-g.outbox.closed:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the exchange of hints, and returns when no goroutine of the group is left. It
// publishes nothing more: hints that wait are dropped. The local group goes on. The
// connection is the caller's. Close may be called again, but not by a function of Config,
// which may run on a goroutine that Close waits for.
//
// Close is blocking: it waits for functions of Config and the group's goroutines.
func (g *Group[K]) Close() {
	g.stop(ErrClosed)
	g.outbox.close()
	g.closed.Wait()
	g.counts.dropped.Add(int64(g.outbox.drain()))
	g.commands.mu.Lock()
	defer g.commands.mu.Unlock()
	clear(g.commands.given) // nobody meets them
}

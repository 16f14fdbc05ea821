package oncecache

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// A creation has its turn when nothing is left of its key that it must not run
// beside: a Refresh that has made the value before, which has been removed
// since, and, with Config.CloseBeforeCreate, every function and every value of
// the key that came before.

// occupied reports whether a creation of k would have to wait for its turn. Who
// looks before it enters one is found in the table by others only if it creates,
// or waits there.
func (r *root[K]) occupied(k K) bool {
	if r.exclusive(k) {
		if c := r.claims.Load(r.at(k)); c != nil && c.count.Load() > 0 {
			return true
		}
	}
	e, _ := r.renewal(k)
	return e != nil
}

// exclusive reports whether there are claims of k: not if it holds a NaN, and
// each creation has a key of its own.
func (r *root[K]) exclusive(k K) bool {
	return r.claims != nil && k == k //nolint:staticcheck // false for NaN
}

// renewal returns the Refresh of k that is under way, or nil, and its phase.
func (r *root[K]) renewal(k K) (*entry[K], *phase[K]) {
	renewals := r.renewals.Load()
	if renewals == nil {
		return nil, nil
	}
	if e := renewals.root.Load().find(k); e != nil {
		if p := e.state.Load(); p.creating() {
			return e, p
		}
	}
	return nil, nil
}

// takeTurn waits until the function of n may be called, and returns an error if
// it must not be called any more: because the creation was called off, or was
// ended by Set, which is also what a Refresh does that ends well. Those that
// cannot be called off begin anew if they would have to wait.
func (n *creation[K]) takeTurn() error {
	err := n.awaitRenewal()
	for err == nil && n.root.exclusive(n.entry.key) {
		c, free := n.root.claim(n.entry.key)
		if n.holds = free; free {
			break
		}
		err = n.await(c)
	}
	return err
}

// awaitRenewal waits for a Refresh, unless that waits for this creation. Then it
// must go on beside it, or fail if it must be alone.
func (n *creation[K]) awaitRenewal() error {
	e, p := n.root.renewal(n.entry.key)
	if e == nil {
		return nil
	}
	return n.wait(func() error {
		p.ext.mute.Add(1)
		defer p.ext.mute.Add(-1)
		who := caller{ctx: n.ctx, seat: oneCaller, part: n.phase.node()}
		_, _, err := e.outcome(&who)
		if tally(n.root.books.work.Load()).closed() {
			return ErrClosed // which may have ended the Refresh first
		}
		if ended := n.ctx.Err(); ended != nil {
			return ended
		}
		if e.state.Load() == p && n.root.exclusive(n.entry.key) {
			return err
		}
		return nil
	})
}

// wait calls f, which waits, while the entry is in the table. If it leaves, those
// who wait for n begin anew. Forget looks for who waits when it has removed the entry,
// and n looks for the entry when it is known to wait.
func (n *creation[K]) wait(f func() error) error {
	if n.ctx == nil {
		return errAgain
	}
	turn := &n.phase.ext.turn
	turn.Store(waiting)
	if n.root.find(n.entry.key) != n.entry {
		return errAgain
	}
	err := f()
	if !turn.CompareAndSwap(waiting, 0) {
		return errAgain
	}
	return err
}

// await waits until there may be nothing left of the key. What makes it wait is
// older if the entry is still in the table, and goes without it. Otherwise it may
// be newer, and stay.
func (n *creation[K]) await(c *claim[K]) error {
	return n.wait(func() error {
		for _, f := range n.root.functions(n.entry.key) {
			if f == n.phase.flight {
				continue // which others are about to end
			}
			if f.runsHere() {
				return errRecursion
			}
			d, err := n.phase.node().depend(f, n.entry.key, calls)
			if err != nil {
				return err
			}
			defer d.end()
		}
		return c.wait(n.ctx)
	})
}

// functions returns the flights whose functions may hold the key though it has
// none of them any more. Whoever takes one from the key has noted it before.
func (r *root[K]) functions(k K) []*flight {
	same := func(other K) bool { return other == k }
	all := r.backlog.flights(same)
	if renewals := r.renewals.Load(); renewals != nil {
		all = append(all, renewals.root.Load().backlog.flights(same)...)
	}
	return all
}

// freeTurn ends the claim of a creation that has made no value.
func (n *creation[K]) freeTurn() {
	if n.holds {
		n.holds = false
		n.root.disown(n.entry.key)
	}
}

// claim, with Config.CloseBeforeCreate, is what there is of a key: create
// functions that run, and values that are not closed, whether the key has them
// or has had them. It is in a table as long as there is something.
type claim[K comparable] struct {
	key K

	// count is how much there is, or gone when the claim has left the table or
	// is about to.
	count atomics.Int64

	// free is made by the first creation that waits, nil → non-nil, and taken
	// back and fired by whoever leaves nothing.
	free atomics.Pointer[atomics.Event]
}

const gone = -1

type claims[K comparable] = table.Cells[K, claim[K]]

// claim makes the key a creation's if there is nothing of it. Otherwise it
// returns what there is.
func (r *root[K]) claim(k K) (c *claim[K], free bool) {
	for {
		c, _ = r.claims.LoadOrStore(r.at(k), &claim[K]{key: k})
		switch n := c.count.Load(); {
		case n > 0:
			return c, false
		case n == gone:
			r.claims.CompareAndDelete(r.at(k), c)
		case c.count.CompareAndSwap(0, 1):
			return c, true
		}
	}
}

// own begins what the cache has to close: a value of k that was not created in
// its turn. It reports whether the cache is closed.
func (r *root[K]) own(k K) (closed bool) {
	if r.exclusive(k) {
		for {
			c, _ := r.claims.LoadOrStore(r.at(k), &claim[K]{key: k})
			n := c.count.Load()
			if n == gone {
				r.claims.CompareAndDelete(r.at(k), c)
			} else if c.count.CompareAndSwap(n, n+1) {
				break
			}
		}
	}
	return r.books.begin(onePending)
}

// unown ends what own began.
func (r *root[K]) unown(k K) {
	r.disown(k)
	r.books.finish(onePending)
}

// disown ends what own or claim began of the key, for a value that is closed, or a
// function that has made none.
func (r *root[K]) disown(k K) {
	if !r.exclusive(k) {
		return
	}
	c := r.claims.Load(r.at(k))
	if c.count.Add(-1) != 0 {
		return
	}
	if w := c.free.Swap(nil); w != nil {
		w.Fire()
	}
	if c.count.CompareAndSwap(0, gone) {
		r.claims.CompareAndDelete(r.at(k), c)
	}
}

// wait returns when there may be nothing left, or with an error when ctx has
// ended. No wake-up is lost: the caller publishes the event and then looks at
// the count, and whoever leaves nothing changes the count and then looks for the
// event.
func (c *claim[K]) wait(ctx context.Context) error {
	w := c.free.Load()
	if w == nil {
		made := atomics.MakeEvent()
		if w = &made; !c.free.CompareAndSwap(nil, w) {
			return nil // another one came, or went
		}
	}
	if c.count.Load() <= 0 {
		return nil
	}
	return w.WaitContext(ctx)
}

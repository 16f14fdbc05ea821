package oncecache

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// A creation has its turn when nothing is left of its key that it must not run
// beside: a Refresh that began from a value which has been removed since, and, with
// Config.CloseBeforeCreate, every function and every value of the key that came
// before. See creation.takeTurn.

// underWay returns the creation of k that is under way, or nil, and its phase. In the
// root of renewals, that is a Refresh.
func (r *root[K]) underWay(k table.Hashed[K]) (e *entry[K], p *phase[K]) {
	if e := r.entries.Load(k); e != nil {
		if p := e.state.Load(); p.creating() {
			return e, p
		}
	}
	return nil, nil
}

// candidate is a creation that waits for its turn.
type candidate[K comparable] struct {
	root  *root[K]
	entry *entry[K]
	phase *phase[K]
	ctx   context.Context
}

// awaitRenewal waits for the Refresh whose entry is e, in phase p, unless that waits
// for this creation. Then it must go on beside it, or fail if it must be alone.
func awaitRenewal[K comparable](e *entry[K], p *phase[K], n candidate[K]) error {
	return n.wait(func() error {
		p.ext.mute.Add(1)
		defer p.ext.mute.Add(-1)
		who := caller{ctx: n.ctx, counts: oneCaller, part: n.phase.node()}
		_, _, err := e.outcome(&who)
		if tally(n.root.accounting.work.Load()).closed() {
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

// wait calls f, which waits, while the entry is in the table. If the entry leaves it,
// the callers that wait for n begin anew. Forget removes the entry and then looks whether
// n waits; n says that it waits and then looks for the entry.
func (n *candidate[K]) wait(f func() error) error {
	if n.ctx == nil {
		return errAgain
	}
	turn := &n.phase.ext.turn
	turn.Store(waiting)
	if n.root.seek(n.entry.key) != n.entry {
		return errAgain
	}
	err := f()
	if !turn.CompareAndSwap(waiting, 0) {
		return errAgain
	}
	return err
}

// takeKey waits until there is nothing of the key, and claims it.
func (t *claims[K]) takeKey(n candidate[K]) (holds bool, err error) {
	for err == nil {
		c, free := t.claim(n.root.at(n.entry.key))
		if free {
			return true, nil
		}
		err = n.await(c)
	}
	return false, err
}

// await waits until there may be nothing left of the key. While the entry is in the
// table, the functions and values that n waits for are older, and end without n.
// Otherwise they may be newer, and stay.
func (n *candidate[K]) await(c *claim[K]) error {
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

// functions returns the flights that have left the key and whose functions may still
// hold it. A call that takes one from the key has noted it before.
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

// claim, with Config.CloseBeforeCreate, counts what is left of a key: create functions
// that run, and values that are not closed, whether the key has them or has had them. It
// is in a table while there is something.
type claim[K comparable] struct {
	key K

	// count is how much there is, or gone when the claim has left the table or
	// is about to.
	count atomics.Int64

	free atomics.Waker // of creations that wait, by the call that makes count zero
}

const gone = -1

// claiming is the claims of a cache with Config.CloseBeforeCreate. It is an interface, and
// the names of its methods are their own, so that only New brings claims into a program.
type claiming[K comparable] interface {
	isClaimed(k table.Hashed[K]) bool
	takeKey(n candidate[K]) (holds bool, err error)
	shareKey(k table.Hashed[K])
	freeKey(k table.Hashed[K])
}

type claims[K comparable] struct {
	table.Cells[K, claim[K]]
}

func newClaims[K comparable](hash table.Hash[K]) claiming[K] {
	c := new(claims[K])
	c.Init(hash, 0)
	return c
}

// isClaimed reports whether there is anything of the key.
func (t *claims[K]) isClaimed(k table.Hashed[K]) bool {
	c := t.Load(k)
	return c != nil && c.count.Load() > 0
}

// claim makes the key a creation's if there is nothing of it. Otherwise it returns the
// claim to wait for.
func (t *claims[K]) claim(k table.Hashed[K]) (c *claim[K], free bool) {
	for {
		c, _ = t.LoadOrStore(k, &claim[K]{key: k.Key})
		switch n := c.count.Load(); {
		case n > 0:
			return c, false
		case n == gone:
			t.CompareAndDelete(k, c)
		case c.count.CompareAndSwap(0, 1):
			return c, true
		}
	}
}

// shareKey adds one to the count of the key.
func (t *claims[K]) shareKey(k table.Hashed[K]) {
	for {
		c, _ := t.LoadOrStore(k, &claim[K]{key: k.Key})
		n := c.count.Load()
		if n == gone {
			t.CompareAndDelete(k, c)
		} else if c.count.CompareAndSwap(n, n+1) {
			return
		}
	}
}

// freeKey takes off one.
func (t *claims[K]) freeKey(k table.Hashed[K]) {
	c := t.Load(k)
	if c.count.Add(-1) != 0 {
		return
	}
	c.free.Wake()
	if c.count.CompareAndSwap(0, gone) {
		t.CompareAndDelete(k, c)
	}
}

// own counts a value of k that the cache has to close and that was not created in its
// turn. It reports whether the cache is closed.
func (r *root[K]) own(k K) (closed bool) {
	if r.exclusive(k) {
		r.claims.shareKey(r.at(k))
	}
	return r.accounting.begin(onePending)
}

// unown is the opposite of own.
func (r *root[K]) unown(k K) {
	r.disown(k)
	r.accounting.finish(onePending)
}

// disown takes a value that is closed, or a function that has made none, off the claim
// of the key.
func (r *root[K]) disown(k K) {
	if r.exclusive(k) {
		r.claims.freeKey(r.at(k))
	}
}

// wait returns when there may be nothing left, or with an error when ctx has ended.
func (c *claim[K]) wait(ctx context.Context) error {
	w := c.free.Event()
	if c.count.Load() <= 0 {
		return nil
	}
	return w.WaitContext(ctx)
}

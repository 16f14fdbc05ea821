package oncecache

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// lookupStripe is one cell of recorder.lookups, on a cache line of its own.
type lookupStripe struct {
	hits, misses, joined atomics.Gauge
	_                    [atomics.CacheLineSize - 3*8]byte
}

// recorder records what Config.RecordStats and Config.OnCreate ask for. It never changes.
type recorder[K comparable] struct {
	// lookups counts look-ups, split by processors; nil: without RecordStats.
	lookups []lookupStripe

	onCreate func(K, time.Duration, error) // nil: there is none
}

// recording is a recorder. It is an interface, and the names of its methods are their own,
// so that only New brings one into a program. It does not depend on K, so that its own type
// is in a program once: an e is an *entry[K].
type recording interface {
	recordEnd(a *accounting, e any, since time.Duration, err error) (record func())
	countLookup(e any)
	countJoined(e any)
	lookupCounts() (hits, misses, joined uint64, counted bool)
}

// stripe returns where the caller counts look-ups; nil: they are not counted.
func (c *recorder[K]) stripe() *lookupStripe {
	if c.lookups == nil {
		return nil
	}
	return &c.lookups[atomics.Stripe(len(c.lookups))]
}

// countLookup counts a look-up that has found e, or nil.
func (c *recorder[K]) countLookup(e any) {
	switch s := c.stripe(); {
	case s == nil: // look-ups are not counted
	case e.(*entry[K]).has():
		s.hits.Add(1)
	default:
		s.misses.Add(1)
	}
}

// countJoined counts a caller that is about to wait for e, if that is being created.
func (c *recorder[K]) countJoined(e any) {
	if s := c.stripe(); s != nil && e.(*entry[K]).state.Load().creating() {
		s.joined.Add(1)
	}
}

// lookupCounts returns the sums of all stripes, and whether look-ups are counted.
func (c *recorder[K]) lookupCounts() (hits, misses, joined uint64, counted bool) {
	for i := range c.lookups {
		of := &c.lookups[i]
		hits += uint64(of.hits.Load())
		misses += uint64(of.misses.Load())
		joined += uint64(of.joined.Load())
	}
	return hits, misses, joined, c.lookups != nil
}

// joins is countJoined, if there is a recorder. Refresh is no look-up.
func (r *root[K]) joins(e *entry[K]) {
	if r.recorder != nil && !r.renews {
		r.recorder.countJoined(e)
	}
}

// recordEnd is called when the function has ended that creates e since then. The caller
// calls what it returns when others have the result. If there is a listener, Close waits
// until it has been told.
func (c *recorder[K]) recordEnd(a *accounting, e any, since time.Duration, err error) (record func()) {
	k, took := e.(*entry[K]).key, a.now()-since
	if c.onCreate == nil {
		return func() { c.record(a, k, took, err) }
	}
	a.begin(onePending)
	return func() {
		defer a.finish(onePending)
		c.record(a, k, took, err)
	}
}

// settleRecorded is settle in a cache that has a recorder. It is apart because of what a defer
// costs even where it is not reached.
func (n *creation[K]) settleRecorded(how *result) {
	defer n.root.recorder.recordEnd(n.root.accounting, n.entry, n.phase.began(), how.err)() // also if a Close function exits
	n.settle(how)
}

// recordEnds is recordEnd for a batch.
func (b *batch[K]) recordEnds(ends []result) (record func()) {
	all := make([]func(), len(b.own))
	for i := range all {
		var err error
		if ends != nil {
			err = ends[i].err
		}
		all[i] = b.root.recorder.recordEnd(b.root.accounting, b.own[i].entry, b.all.since, err)
	}
	return func() { callAll(all) }
}

// callAll calls all functions, though some may end the goroutine.
func callAll(all []func()) {
	defer func() {
		if len(all) > 0 {
			callAll(all)
		}
	}()
	for len(all) > 0 {
		f := all[0]
		all = all[1:]
		f()
	}
}

// record records one call of a function. If the listener panics, the caller goes on.
func (c *recorder[K]) record(a *accounting, k K, took time.Duration, err error) {
	if err == errNoBase {
		return // it was not called
	}
	a.createTime.Add(int64(took))
	if c.onCreate == nil {
		return
	}
	returned := false
	defer func() {
		if p := recover(); p != nil {
			a.note(&PanicError{Value: p, Stack: debug.Stack(), from: fromOnCreate})
		} else if !returned {
			a.note(errors.New("oncecache: OnCreate function called runtime.Goexit"))
		}
	}()
	c.onCreate(k, took, err)
	returned = true
}

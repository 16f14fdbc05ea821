package oncecache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/goid"
)

// CycleError is the error of a call that would wait for itself: for a creation that,
// maybe by way of others, waits for the creation that calls. The others go on as soon
// as the caller's creation ends. A creation that would wait for itself for its turn
// fails with a CycleError, which all its callers get.
type CycleError struct {
	// Path holds the keys of the creations in the order in which each waits for
	// the next. It begins and ends with the creation that called. The keys may be
	// of several caches. Without contexts only the first is known.
	Path []any
}

// Error returns a text with the path.
func (e *CycleError) Error() string {
	var b strings.Builder
	b.WriteString("oncecache: create function would wait for itself: ")
	for i, k := range e.Path {
		if i > 0 {
			b.WriteString(" → ")
		}
		fmt.Fprint(&b, k)
	}
	return b.String()
}

// errRecursion stands for a CycleError of a call on the goroutine that runs the function
// for which it would wait.
var errRecursion = errors.New("oncecache: recursion")

// explain makes an error of errRecursion for k.
//
//go:noinline
func explain[K comparable](err error, k K) error {
	if err == errRecursion {
		return &CycleError{Path: []any{k, k}}
	}
	return err
}

// runsHere reports whether the calling goroutine runs the create function.
func (f *flight) runsHere() bool {
	here := goid.Token()
	return here != 0 && (f.by == here || f.ext != nil && f.ext.alone.Load() == int64(here))
}

// runAlone says that the calling goroutine is there for the create function.
func (f *flight) runAlone() { f.ext.alone.Store(int64(goid.Token())) }

// createContext is the context of a create function. It knows its flight, so that a
// call which the function makes, and hands its context to, is known as its own.
type createContext struct {
	context.Context
	part *flight
}

type partKey struct{}

// Value returns the flight, or the value of the context inside.
func (c *createContext) Value(key any) any {
	if key == (partKey{}) {
		return c.part
	}
	return c.Context.Value(key)
}

// partOf returns the innermost creation that ctx belongs to, or nil.
func partOf(ctx context.Context) *flight {
	f, _ := ctx.Value(partKey{}).(*flight)
	return f
}

// dependence is one thing that the function of a creation waits for: another
// creation. Dependences are the edges of a graph, of all caches together, in
// which a cycle would wait for ever.
//
// A call that is about to wait publishes its dependence and then looks for a cycle. So of
// the calls that together make a cycle, the last to publish sees all of it. If several
// see it, a CAS on the dependence with the lowest rank of the cycle, which is the same for
// all of them, decides which call gives up.
type dependence struct {
	on   *flight
	key  any // of the creation that on is
	how  how
	rank uint64

	// over is set when the caller does not wait any more, or is about to give
	// up.
	over atomics.Bool

	// victim is the dependence that gives up because of the last cycle in which
	// this one had the lowest rank. By CAS of the caller whose it is. One that
	// is replaced is over.
	victim atomics.Pointer[dependence]
}

// how says how a function depends on a creation.
type how bool

const (
	waits how = false // until the creation has ended
	calls how = true  // until the creation's function, which it calls, returns
)

// end says that the caller does not wait any more.
func (d *dependence) end() { d.over.Store(true) }

// counts reports whether d is an edge: its caller waits, and the creation that it waits
// for has not ended. The caller has made wake before it waits.
func (d *dependence) counts() bool {
	if d.over.Load() {
		return false
	}
	if d.how == calls {
		return true // even if Set or a timer has ended the creation
	}
	w := d.on.wake.Load()
	return w == nil || !w.Fired()
}

// dependences is a list of those of one creation, newest first. It never
// changes; a later list leaves out those that have ended.
type dependences struct {
	*dependence
	older *dependences

	len    int // of this and the older ones
	enough int // how long the list may grow before it is pruned
}

const fewDependences = 8

// with returns the list with d at its head. It takes constant time on average,
// and memory in proportion to the dependences that count.
func (l *dependences) with(d *dependence) *dependences {
	for l != nil && l.over.Load() {
		l = l.older
	}
	if l != nil && l.len >= l.enough {
		l = l.pruned()
	}
	n := &dependences{dependence: d, older: l, len: 1, enough: fewDependences}
	if l != nil {
		n.len, n.enough = l.len+1, l.enough
	}
	return n
}

// pruned returns the list without those that have ended.
func (l *dependences) pruned() (n *dependences) {
	var live []*dependence
	for ; l != nil; l = l.older {
		if !l.over.Load() {
			live = append(live, l.dependence)
		}
	}
	for i, d := range slices.Backward(live) {
		n = &dependences{dependence: d, older: n, len: len(live) - i, enough: max(fewDependences, 2*len(live))}
	}
	return n
}

// node is the flight in whose awaits the function's dependences are.
func (f *flight) node() *flight {
	if f.ext != nil && f.ext.whole != nil {
		return f.ext.whole
	}
	return f
}

// awaited returns the dependences of the function of f. Those of a function without a
// context are not known.
func (f *flight) awaited() *dependences {
	if f.ext == nil {
		return nil
	}
	return f.ext.awaits.Load()
}

// depend says that the function of f, which has a context, waits for another
// creation, until end is called. It fails if that would be for ever.
//
// It retries only if others have begun to wait, or have given up.
func (f *flight) depend(on *flight, key any, how how) (*dependence, error) {
	d := &dependence{on: on, key: key, how: how, rank: atomics.Rank()}
	for {
		head := f.awaited()
		if f.ext.awaits.CompareAndSwap(head, head.with(d)) {
			break
		}
		// The function has begun to wait for something else too.
	}
	for {
		cycle := d.cycle(f)
		if cycle == nil || !d.counts() {
			return d, nil
		}
		lowest := slices.MinFunc(cycle, func(a, b *dependence) int {
			if a.rank < b.rank {
				return -1
			}
			return 1
		})
		v := lowest.victim.Load()
		if v != nil {
			v.end() // it gives up, in a moment; it may be one of this cycle
		}
		if slices.ContainsFunc(cycle, func(d *dependence) bool { return !d.counts() }) {
			continue
		}
		if lowest.victim.CompareAndSwap(v, d) {
			d.end()
			return nil, cycleError(cycle)
		}
		// Another caller gives up, maybe one of this cycle.
	}
}

// cycle returns the dependences by which f waits for itself, beginning with d,
// which is one of f's own, or nil.
func (d *dependence) cycle(f *flight) []*dependence {
	seen := map[*flight]bool{}
	var path []*dependence
	var leads func(d *dependence) bool
	leads = func(d *dependence) bool {
		path = append(path, d)
		on := d.on.node()
		if on == f {
			return true
		}
		if !seen[on] {
			seen[on] = true
			for next := on.awaited(); next != nil; next = next.older {
				if next.counts() && leads(next.dependence) {
					return true
				}
			}
		}
		path = path[:len(path)-1]
		return false
	}
	if !leads(d) {
		return nil
	}
	return path
}

func cycleError(cycle []*dependence) *CycleError {
	keys := []any{cycle[len(cycle)-1].key}
	for _, d := range cycle {
		keys = append(keys, d.key)
	}
	return &CycleError{Path: keys}
}

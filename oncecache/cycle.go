package oncecache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/internal/atomics"
)

// CycleError is the error of a create function's call that would wait for a creation which,
// directly or through others, waits for that create function.
type CycleError struct {
	// Path holds the keys of the creations, maybe of several caches, in the order in which each waits
	// for the next. It begins and ends with the creation that called.
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

// errRecursion stands for a CycleError of a call on the goroutine that runs the function for
// which it would wait.
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

// createContext is the context of a create function. It knows the flight, so that a call which
// the function makes with it is known as the creation's own.
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

// detached returns ctx without its end and its deadline.
func detached(ctx context.Context) context.Context {
	if _, ends := ctx.Deadline(); !ends && ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// dependence is one thing that a create function with a context waits for: another creation. Dependences
// are the edges of a graph, of all caches together, in which a cycle would wait for ever.
//
// A call that is about to wait publishes its dependence and then looks for a cycle. So of the calls that
// together make a cycle, the last to publish sees all of it. If several see it, a CAS on the dependence
// with the lowest rank, which is the same for all of them, decides which call gives up.
type dependence struct {
	on   *flight
	key  any // of the creation that on is
	how  how
	rank uint64

	over atomics.Bool // the caller does not wait any more, or is about to give up

	// victim is the dependence that gives up because of the last cycle in which this one had
	// the lowest rank. A caller replaces it by CAS, by its own; one that is replaced is over.
	victim atomics.Pointer[dependence]
}

// how says how long a function depends on a creation.
type how bool

const (
	waits how = false // until the creation has ended
	calls how = true  // until the creation's function, which it calls, has returned
)

func (d *dependence) end() { d.over.Store(true) }

// counts reports whether d is an edge.
func (d *dependence) counts() bool {
	if d.over.Load() {
		return false
	}
	if d.how == calls {
		return true // even if Set or a timer has ended the creation
	}
	return !d.on.wake.Load().Fired()
}

// dependences returns what the function of f waits for.
func (f *flight) dependences() []*dependence {
	if f.function != nil {
		if all := f.function.awaits.Load(); all != nil {
			return *all
		}
	}
	return nil
}

// calls says that the caller's part, if one is known, runs the function of f itself. It returns
// the dependence to be ended, or nil.
func (c *caller) calls(f *flight, key any) *dependence {
	if c.part == nil {
		return nil
	}
	d, err := c.part.depend(f, key, calls)
	if err != nil {
		return nil // its part no longer waits for the function that asks
	}
	return d
}

// depend says that the function of f, which has a context, waits for another creation until the result is
// ended. It fails if that would be for ever. It retries only if others have begun to wait, or have given up.
func (f *flight) depend(on *flight, key any, how how) (*dependence, error) {
	if how == waits {
		on.event() // before others find d: an end that came between would not show
	}
	d := &dependence{on: on, key: key, how: how, rank: atomics.Rank()}
	for list := &f.function.awaits; ; {
		old := list.Load()
		now := []*dependence{d}
		if old != nil {
			for _, d := range *old {
				if !d.over.Load() {
					now = append(now, d)
				}
			}
		}
		if list.CompareAndSwap(old, &now) {
			break
		}
	}
	for {
		cycle := d.cycle(f)
		if cycle == nil || !d.counts() {
			return d, nil
		}
		lowest := slices.MinFunc(cycle, func(a, b *dependence) int { return cmp.Compare(a.rank, b.rank) })
		v := lowest.victim.Load()
		if v != nil {
			v.end() // it gives up, in a moment; it may be one of this cycle
		}
		if slices.ContainsFunc(cycle, func(d *dependence) bool { return !d.counts() }) {
			continue
		}
		if lowest.victim.CompareAndSwap(v, d) {
			d.end()
			keys := []any{key}
			for _, d := range cycle {
				keys = append(keys, d.key)
			}
			keys[0] = cycle[len(cycle)-1].key
			return nil, &CycleError{Path: keys}
		}
	}
}

// cycle returns the dependences by which f waits for itself, beginning with d, which is one of f's own, or nil.
func (d *dependence) cycle(f *flight) []*dependence {
	seen := map[*function]bool{}
	var path []*dependence
	var leads func(d *dependence) bool
	leads = func(d *dependence) bool {
		path = append(path, d)
		on := d.on.function
		if on == f.function {
			return true
		}
		if !seen[on] {
			seen[on] = true
			for _, next := range d.on.dependences() {
				if next.counts() && leads(next) {
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

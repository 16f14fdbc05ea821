//go:build modelcheck

package interleavings

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// creationEnding is how a create function ends.
type creationEnding byte

const (
	inValue creationEnding = iota
	inError
	inPanic
	inGoexit
)

func (e creationEnding) String() string {
	return [...]string{"a value", "an error", "a panic", "Goexit"}[e]
}

// err is what those get who wait for it.
func (e creationEnding) err() error {
	return [...]error{nil, errInjected, &oncecache.PanicError{Value: errInjected}, oncecache.ErrGoexit}[e]
}

// errCalledOff is the error of a function whose context was cancelled.
var errCalledOff = errors.New("called off")

// created prints what a creation returns.
func created(v int, err error) any {
	if p := new(oncecache.PanicError); errors.As(err, &p) {
		return fmt.Sprint("PanicError: ", p.Value)
	}
	if err != nil {
		return err
	}
	return v
}

// flavour is how a creation is asked for. With a context that can end, the
// function runs on a goroutine of its own.
type flavour struct {
	op      string
	lease   bool
	context int // -1: none that can end
}

var (
	plainly             = flavour{"GetOrCreate", false, -1}
	asOneOfFirst        = flavour{"GetOrCreateContext", false, 0}
	asOneOfSecond       = flavour{"GetOrCreateContext", false, 1}
	leasing             = flavour{"Acquire", true, -1}
	leasingAsOneOfFirst = flavour{"Acquire with a context", true, 0}
)

// do asks for a creation. A lease is kept, and must not be of a value that has
// been closed.
func (f flavour) do(c *cacheCaller, key int, fn createFunc) any {
	if !f.lease && f.context < 0 {
		return created(c.Real.GetOrCreate(key, func() (int, error) { return fn(context.Background(), key) }))
	}
	ctx := context.Background()
	if f.context >= 0 {
		ctx = c.Real.contexts[f.context]
	}
	if !f.lease {
		return created(c.Real.GetOrCreateContext(ctx, key, fn))
	}
	l, err := &heldLease{key: key}, error(nil)
	if l.cacheLease, err = c.Real.Acquire(ctx, key, fn); err != nil {
		return created(0, err)
	}
	c.Real.leases[c.Thread] = append(c.Real.leases[c.Thread], l)
	if c.Real.closings[l.Value()].Load() > 0 {
		return "a lease of what is closed"
	}
	return l.Value()
}

// cacheCreation is a run of a create function, or none.
type cacheCreation struct {
	key          int
	called       interleave.Mark
	ran          bool
	began, ended interleave.Mark
	value        int
	err          error
	begins       *cacheMoment
	refreshes    bool // by Refresh, which may run beside others
}

// asking is a call that may create. What it does takes effect at several
// moments: it begins a creation, or joins one, or finds it over; the creation
// ends, which may be before its function does; and it returns. A lease that
// came too late makes it look again, and maybe create again.
type asking struct {
	as       flavour
	how      creationEnding
	looks    [3]*cacheCreation // one is enough but for leases
	forks    [3]*cacheCaller   // for functions on goroutines of their own
	runs     mc.Tally
	again    *cacheCreation
	returned interleave.Mark
	got      string
	others   []string // what else it may have got, of several errors
	gone     bool     // it has got nothing: the function of its batch has panicked, or called Goexit, for other keys
}

// nothing is no operation.
var nothing = cacheOp{Do: func(*cacheCaller) {}}

// cacheCreate asks for a creation. The function does another operation first,
// unless that might wait for this creation, or the function may outlive its
// caller: then it comes later.
func cacheCreate(key, v int, how creationEnding, as flavour, inner cacheOp) cacheOp {
	name := fmt.Sprintf("%s(%d, %d) by %v", as.op, key, v, how)
	within, later := inner, nothing
	starts := func(with string) bool { return strings.HasPrefix(inner.Name, with) }
	waits := starts("GetOrCreate") || starts("Acquire") || starts("Refresh") || starts("Wait")
	switch {
	case inner.Name == "":
	case as.context >= 0, waits && (key == 1 || !starts("GetOrCreate(1") && !starts("Refresh(1") && !starts("Wait(1")):
		within, later = nothing, inner
		name += "; " + inner.Name
	default:
		name += " after " + inner.Name
	}
	return cacheOp{Name: name, Do: func(c *cacheCaller) {
		defer later.Do(c)
		a := &asking{as: as, how: how, again: new(cacheCreation)}
		called := c.Begin()
		for i := range a.looks {
			a.looks[i] = &cacheCreation{key: key, called: called, value: v + 30*i, err: how.err()}
			a.forks[i] = c
			if a.apart() {
				a.forks[i] = c.Fork()
			}
		}
		*a.again = *a.looks[0]
		c.Real.creations[c.Thread] = append(c.Real.creations[c.Thread], a.looks[:]...)
		a.moments(c)
		got := any(interleave.Exits)
		defer func() {
			if p := recover(); p != nil {
				got = thrown(p)
			}
			a.got, a.returned = fmt.Sprint(got), c.End()
		}()
		got = as.do(c, key, func(ctx context.Context, _ int) (int, error) {
			run := a.runs.Value()
			a.runs.Add(1)
			first := within
			if run > 0 {
				first = nothing // nobody may set a value again that was removed
			}
			return a.run(ctx, a.forks[run], a.looks[run], first)
		})
	}}
}

// apart tells that functions have goroutines of their own.
func (a *asking) apart() bool { return a.as.context >= 0 }

// left tells that the caller did not wait.
func (a *asking) left() bool { return a.got == context.Canceled.Error() }

// run is the create function.
func (a *asking) run(ctx context.Context, where *cacheCaller, look *cacheCreation, within cacheOp) (int, error) {
	look.ran, look.began = true, where.End()
	returned := false
	defer func() {
		if !returned { // the operation within has called Goexit, which ends this function too
			look.err, a.how = inGoexit.err(), inGoexit
		}
		look.ended = where.Begin()
	}()
	within.Do(where)
	returned = true
	switch a.how {
	case inError:
		if ctx.Err() != nil {
			look.err = errCalledOff
		}
		return 1000, look.err
	case inPanic:
		panic(errInjected)
	case inGoexit:
		runtime.Goexit()
	}
	return look.value, nil
}

// thrown prints a panic that left a call: the function's own, or one that wraps
// what others got.
func thrown(p any) any {
	if err, ok := p.(error); ok && err != errInjected {
		p = created(0, err)
	}
	return interleave.Panics(p)
}

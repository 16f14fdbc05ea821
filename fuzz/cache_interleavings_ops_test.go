//go:build modelcheck

package fuzz

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	"github.com/latchfree/latchfree/oncecache"
)

func found(v int, ok bool) string { return fmt.Sprint(v, " ", ok) }

// cacheOnce is an operation that takes effect once.
func cacheOnce(op, args string, do func(c *sharedCache) string, want func(s *cacheModel) string) cacheOp {
	return cacheOp{Name: op + args, Do: func(c *cacheCaller) {
		c.Once(op, func() any { return do(c.Real) }, func(s *cacheModel, _ int) any { return want(s) })
	}}
}

func cacheGet(key int) cacheOp {
	return cacheOp{Name: fmt.Sprintf("Get(%d)", key), Do: func(c *cacheCaller) {
		c.Once("Get", func() any {
			v, ok := c.Real.Get(key)
			c.Real.seen[c.Thread] = v
			return found(v, ok)
		}, func(s *cacheModel, _ int) any { return found(s.Get(key)) })
	}}
}

// ending is an operation that may end a creation before its function ends.
func ending(o cacheOp) cacheOp {
	do := o.Do
	o.Do = func(c *cacheCaller) {
		do(c)
		m := c.Last()
		c.Real.ends[c.Thread] = append(c.Real.ends[c.Thread], interval{m.From.At, m.To.At})
	}
	return o
}

func cacheSet(key, v int) cacheOp {
	return ending(cacheOnce("Set", fmt.Sprint("(", key, ", ", v, ")"),
		func(c *sharedCache) string { return found(c.Set(key, v)) },
		func(s *cacheModel) string { return found(s.Set(key, v)) }))
}

func cacheDelete(key int) cacheOp {
	return ending(cacheOnce("Delete", fmt.Sprint("(", key, ")"),
		func(c *sharedCache) string { return found(c.Delete(key)) },
		func(s *cacheModel) string { return found(s.Delete(key)) }))
}

func cacheSetIfAbsent(key, v int) cacheOp {
	return cacheOnce("SetIfAbsent", fmt.Sprint("(", key, ", ", v, ")"),
		func(c *sharedCache) string { return fmt.Sprint(c.SetIfAbsent(key, v)) },
		func(s *cacheModel) string { return fmt.Sprint(s.SetIfAbsent(key, v)) })
}

// cacheCompareAndDelete wants what the thread has seen last, or the prelude, or
// another value.
func cacheCompareAndDelete(key, off int) cacheOp {
	return cacheOp{Name: fmt.Sprintf("CompareAndDelete(%d, seen) %d", key, off), Do: func(c *cacheCaller) {
		old := cmp.Or(c.Real.seen[c.Thread], c.Real.seen[0])
		if off == 3 {
			old = 1000
		}
		c.Once("CompareAndDelete", func() any { return c.Real.CompareAndDelete(key, old) },
			func(s *cacheModel, _ int) any { return s.CompareAndDelete(key, old) })
	}}
}

// creationEnding is how a create function ends.
type creationEnding byte

const (
	inValue creationEnding = iota
	inError
	inPanic
	inGoexit
	joined // it was not called
)

func (e creationEnding) String() string {
	return [...]string{"a value", "an error", "a panic", "Goexit", "none"}[e]
}

// err is what the others get who take part in the creation.
func (e creationEnding) err() error {
	return [...]error{nil, errInjected, &oncecache.PanicError{Value: errInjected}, oncecache.ErrGoexit}[e]
}

// created prints what GetOrCreate returns.
func created(v int, err error) any {
	if p := new(oncecache.PanicError); errors.As(err, &p) {
		return fmt.Sprint("PanicError: ", p.Value)
	}
	if err != nil {
		return fmt.Sprint(v, ", ", err)
	}
	return v
}

// cacheCreate takes effect twice: when the creation begins, or another is joined
// or found over, and when it ends. That may be before its function ends.
//
// The function does another operation first, unless that might wait for this
// creation: then it comes later.
func cacheCreate(key, v int, how creationEnding, inner cacheOp) cacheOp {
	name := fmt.Sprintf("GetOrCreate(%d, %d) by %v", key, v, how)
	within, later := inner.Do, inner.Do
	switch {
	case inner.Do == nil:
		within, later = nop, nop
	case key == 0 && strings.HasPrefix(inner.Name, "GetOrCreate(1") || !strings.HasPrefix(inner.Name, "GetOrCreate"):
		name, later = name+" after "+inner.Name, nop
	default:
		name, within = name+"; "+inner.Name, nop
	}
	return cacheOp{Name: name, Do: func(c *cacheCaller) {
		defer later(c)
		call := &cacheCreation{key: key}
		from, ends := c.Begin(), joined
		call.called = from.At
		begins := func(to interleave.Mark) int {
			creates := ends != joined
			return c.Add(interleave.Moment[*cacheModel]{Op: "GetOrCreate creates", Got: fmt.Sprint(creates), From: from, To: to,
				Explains: func(s *cacheModel, _ int) (ok bool) {
					s.calls[call], ok = s.Begin(key)
					return ok == creates
				}})
		}
		begun, got := 0, any(interleave.Exits)
		defer func() {
			if p := recover(); p != nil {
				got = interleave.Panics(p)
			}
			to := c.End()
			if ends == joined {
				begun = begins(to)
			} else {
				c.Real.creations[c.Thread] = append(c.Real.creations[c.Thread], *call)
			}
			text, how := fmt.Sprint(got), ends
			c.Add(interleave.Moment[*cacheModel]{Op: "GetOrCreate by " + how.String(), Got: text, From: from, To: to, Follows: begun,
				Explains: func(s *cacheModel, _ int) bool { return s.ends(call, v, how, text) }})
		}()
		got = created(c.Real.GetOrCreate(key, func() (int, error) {
			ends = how
			began := c.End()
			begun = begins(began)
			call.ran.from = began.At
			defer func() { call.ran.to = c.Begin().At }()
			within(c)
			switch how {
			case inError:
				return 1000, errInjected
			case inPanic:
				panic(errInjected)
			case inGoexit:
				runtime.Goexit()
			}
			return v, nil
		}))
	}}
}

func nop(*cacheCaller) {}

// ends is the second moment of a GetOrCreate.
func (s *cacheModel) ends(call *cacheCreation, v int, how creationEnding, got string) bool {
	f := s.calls[call]
	if how == joined {
		return f.Over && got == fmt.Sprint(created(f.Value, f.Err))
	}
	if how != inValue {
		s.End(call.key, f, 0, how.err())
	} else {
		s.End(call.key, f, v, nil)
	}
	switch how {
	case inPanic:
		return got == interleave.Panics(errInjected)
	case inGoexit:
		return got == interleave.Exits
	}
	return got == fmt.Sprint(created(f.Value, f.Err))
}

var (
	// cacheLoop takes effect for each key at a moment of its own.
	cacheLoop = cacheOp{Name: "All", Do: func(c *cacheCaller) {
		var got [2]string
		from := c.Begin()
		for k, v := range c.Real.All() {
			got[k] += found(v, true) // twice is once too often
		}
		to := c.End()
		for key, text := range got {
			text := cmp.Or(text, found(0, false))
			c.Add(interleave.Moment[*cacheModel]{Op: "All", Got: text, From: from, To: to,
				Explains: func(s *cacheModel, _ int) bool { return found(s.Get(key)) == text }})
		}
	}}
	cacheLen = cacheOnce("Len", "", func(c *sharedCache) string {
		n := c.Len()
		return fmt.Sprint(n >= 0 && n <= 2+len(c.seen))
	}, func(*cacheModel) string { return "true" })

	// cacheQuietLen is for when nobody else is there.
	cacheQuietLen = cacheOnce("Len", "", func(c *sharedCache) string { return fmt.Sprint(c.Len()) },
		func(s *cacheModel) string { return fmt.Sprint(len(s.Cache.All())) })

	cacheAudit = cacheOnce("audit", "", (*sharedCache).audit, func(*cacheModel) string { return "" })
)

// audit looks for functions of one key that ran at one time, although no Set or
// Delete can have ended one creation before the function of the other began.
func (c *sharedCache) audit() string {
	all, ends := slices.Concat(c.creations[:]...), slices.Concat(c.ends[:]...)
	for i, a := range all {
		for j, b := range all {
			together := i != j && a.key == b.key && a.ran.from < b.ran.from && b.ran.from < a.ran.to
			if together && !slices.ContainsFunc(ends, func(e interval) bool {
				return min(a.called, b.called) < e.to && e.from < b.ran.from
			}) {
				return fmt.Sprintf("functions of key %d overlap", a.key)
			}
		}
	}
	return ""
}

//go:build modelcheck

package interleavings

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

// cacheOnce does an operation that takes effect once. In a closed cache it
// returns the zero value of what it returns.
func cacheOnce[T any](c *cacheCaller, op string, do func() T, want func(m *model.Cache) T) *cacheMoment {
	from := c.Begin()
	got := fmt.Sprint(do())
	return c.Add(&cacheMoment{Op: op, Got: got, From: from, To: c.End(), Ways: c.Real.ways,
		Explains: func(s *cacheModel, way int) bool {
			var zero T
			m, ok := s.in(from.At, way)
			if m == nil {
				return ok && got == fmt.Sprint(zero)
			}
			return ok && got == fmt.Sprint(want(m))
		}})
}

// lookup is what a key holds.
type lookup struct {
	value int
	found bool
}

func looked(v int, ok bool) lookup { return lookup{v, ok} }

func cacheGet(key int) cacheOp {
	return cacheOp{Name: fmt.Sprintf("Get(%d)", key), Do: func(c *cacheCaller) {
		cacheOnce(c, "Get", func() lookup {
			v, ok := c.Real.Get(key)
			c.Real.seen[c.Thread] = v
			return lookup{v, ok}
		}, func(m *model.Cache) lookup { return looked(m.Get(key)) })
	}}
}

// mayEnd notes an operation that may end a creation before its function ends.
func (c *sharedCache) mayEnd(thread int, m *cacheMoment) {
	c.ends[thread] = append(c.ends[thread], interval{m.From.At, m.To.At})
}

// overtakes notes a Set of a key.
func (c *sharedCache) overtakes(thread, key int, m *cacheMoment) {
	c.mayEnd(thread, m)
	c.overtakers[thread] = append(c.overtakers[thread], overtaker{key, interval{m.From.At, m.To.At}})
}

// owns notes that a value is the cache's own from now on.
func (c *sharedCache) owns(thread, v int) { c.owned[thread] = append(c.owned[thread], v) }

// drops is the moment at which an operation that Close has overtaken removes
// what it has stored.
func drops(c *cacheCaller, key, v int, stores *cacheMoment) {
	c.Add(&cacheMoment{Op: "drops", From: stores.From, To: stores.To, Follows: stores,
		Explains: func(s *cacheModel, _ int) bool {
			if s.closed {
				s.open.CompareAndDelete(key, v)
			}
			return true
		}})
}

func cacheSet(key, v int) cacheOp {
	return cacheOp{Name: fmt.Sprintf("Set(%d, %d)", key, v), Do: func(c *cacheCaller) {
		c.Real.owns(c.Thread, v)
		m := cacheOnce(c, "Set", func() lookup { return looked(c.Real.Set(key, v)) },
			func(m *model.Cache) lookup { return looked(m.Set(key, v)) })
		c.Real.overtakes(c.Thread, key, m)
		drops(c, key, v, m)
	}}
}

func cacheDelete(key int) cacheOp {
	return cacheOp{Name: fmt.Sprintf("Delete(%d)", key), Do: func(c *cacheCaller) {
		c.Real.mayEnd(c.Thread, cacheOnce(c, "Delete", func() lookup { return looked(c.Real.Delete(key)) },
			func(m *model.Cache) lookup { return looked(m.Delete(key)) }))
	}}
}

func cacheSetIfAbsent(key, v int) cacheOp {
	return cacheOp{Name: fmt.Sprintf("SetIfAbsent(%d, %d)", key, v), Do: func(c *cacheCaller) {
		drops(c, key, v, cacheOnce(c, "SetIfAbsent", func() lookup {
			actual, stored := c.Real.SetIfAbsent(key, v)
			if stored {
				c.Real.owns(c.Thread, v)
			}
			return lookup{actual, stored}
		}, func(m *model.Cache) lookup { return looked(m.SetIfAbsent(key, v)) }))
	}}
}

// cacheCompareAndDelete wants what the thread has seen last, or the prelude, or
// another value.
func cacheCompareAndDelete(key, off int) cacheOp {
	return cacheOp{Name: fmt.Sprintf("CompareAndDelete(%d, seen) %d", key, off), Do: func(c *cacheCaller) {
		old := cmp.Or(c.Real.seen[c.Thread], c.Real.seen[0])
		if off == 3 {
			old = 1000
		}
		cacheOnce(c, "CompareAndDelete", func() bool { return c.Real.CompareAndDelete(key, old) },
			func(m *model.Cache) bool { return m.CompareAndDelete(key, old) })
	}}
}

// cacheCancel ends one of the contexts.
func cacheCancel(i int) cacheOp {
	return cacheOp{Name: fmt.Sprint("Cancel ", i), Do: func(c *cacheCaller) {
		c.Once("Cancel", func() any {
			c.Real.cancels[i]()
			return done
		}, func(s *cacheModel, _ int) any { s.cancelled[i] = true; return done })
	}}
}

// cacheClose closes, and waits for what is still to be closed or not: those who
// hold leases cannot wait for themselves. What it returns otherwise is that a
// function panicked while nobody waited for it. It takes effect for all who
// come later, and then for one key after the other.
func cacheClose(wait bool) cacheOp {
	return cacheOp{Name: "Close", Do: func(c *cacheCaller) {
		ctx := context.Background()
		if !wait {
			ctx = cancelled()
		}
		from := c.Begin()
		err := c.Real.Close(ctx)
		to := c.End()
		if p := new(oncecache.PanicError); errors.As(err, &p) && p.Value == any(errInjected) || !wait && errors.Is(err, context.Canceled) {
			err = nil
		}
		closes := c.Add(&cacheMoment{Op: "Close", Got: fmt.Sprint(err), From: from, To: to,
			Explains: func(s *cacheModel, _ int) bool {
				s.close(interval{from.At, to.At})
				return err == nil
			}})
		c.Real.mayEnd(c.Thread, closes)
		for key := range 2 {
			c.Add(&cacheMoment{Op: "Close removes", From: from, To: to, Follows: closes,
				Explains: func(s *cacheModel, _ int) bool { s.drain(key); return true }})
		}
	}}
}

var (
	// cacheLoop takes effect for each key at a moment of its own.
	cacheLoop = cacheOp{Name: "All", Do: func(c *cacheCaller) {
		var got [2]string
		from := c.Begin()
		for k, v := range c.Real.All() {
			got[k] += fmt.Sprint(lookup{v, true}) // twice is once too often
		}
		to := c.End()
		for key, text := range got {
			text := cmp.Or(text, fmt.Sprint(lookup{}))
			c.Add(&cacheMoment{Op: "All", Got: text, From: from, To: to, Ways: c.Real.ways,
				Explains: func(s *cacheModel, way int) bool {
					m, ok := s.in(from.At, way)
					if m == nil {
						return ok && text == fmt.Sprint(lookup{})
					}
					return ok && text == fmt.Sprint(looked(m.Get(key)))
				}})
		}
	}}

	// cacheLen is only roughly right while others are there.
	cacheLen = cacheOp{Name: "Len", Do: func(c *cacheCaller) {
		c.Once("Len", func() any {
			n := c.Real.Len()
			return n >= 0 && n <= 2+len(c.Real.seen)
		}, func(*cacheModel, int) any { return true })
	}}
)

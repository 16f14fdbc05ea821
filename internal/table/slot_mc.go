//go:build modelcheck

package table

import (
	"fmt"
	"unsafe"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// chainMutex is the mutex of the bucket that all keys share where threads are stopped for ever, so
// that whoever holds it is in the way of as many as it can be. The real tables have many; that
// of a table in which keys do not collide is in nobody's way.
type chainMutex struct{ held int32 }

// lock is a step, if any, that is enabled while nobody holds the mutex.
func (b *chainMutex) lock() {
	if mc.Stalling() {
		b.step("lock bucket", true)
		mc.Set(&b.held, 1)
	}
}

// unlock is a step, if any.
func (b *chainMutex) unlock() {
	if mc.Stalling() {
		b.step("unlock bucket", false)
		mc.Set(&b.held, 0)
	}
}

// Safety: the address only names the word to the model.
func (b *chainMutex) step(verb string, blocks bool) {
	mc.Step(&mc.Op{
		Verb: verb, On: mc.Access{Addr: unsafe.Pointer(b), Mode: mc.Write}, Gate: &b.held, Blocks: blocks,
	})
}

// In a modelled execution one thread at a time runs, and the race detector
// must not see how: functions that touch what the table shares are norace.
// Elsewhere Table.mu keeps them apart.

//go:norace
func (t *Table[K, E]) lock() (unlock func()) {
	if mc.Modelled() {
		return func() {}
	}
	t.mu.Lock()
	return t.mu.Unlock
}

// slot returns the key's slot, made on first use. That is not a step: a slot
// without a value tells nobody anything.
//
//go:norace
func (t *Table[K, E]) slot(k K) *slot[K, E] {
	bucket := &t.index[t.hash(k, 0)%uint64(len(t.index))]
	defer t.lock()()
	for _, s := range *bucket {
		if s.key == k {
			return s
		}
	}
	s := &slot[K, E]{key: k}
	*bucket = append(*bucket, s)
	return s
}

// keys is a step that reads which keys there are. It returns those listed.
//
// Safety: the address only names the word to the model.
//
//go:norace
func (t *Table[K, E]) keys(verb string) []*slot[K, E] {
	mc.Step(&mc.Op{Verb: verb, Also: mc.Access{Addr: unsafe.Pointer(&t.listed), Mode: mc.Read}})
	mc.Count(mc.TableRead)
	defer t.lock()()
	return t.listed[:len(t.listed):len(t.listed)]
}

// slots returns all slots that have been made. One that is made later is of an operation
// that has yet to begin.
//
//go:norace
func (t *Table[K, E]) slots() (all []*slot[K, E]) {
	defer t.lock()()
	for _, bucket := range t.index {
		all = append(all, bucket...)
	}
	return all
}

// coming returns the slots without a value whose Compute is in its function.
//
//go:norace
func (t *Table[K, E]) coming() (all []*slot[K, E]) {
	for _, s := range t.slots() {
		if mc.Get(&s.held) != 0 && s.val.Load() == nil {
			all = append(all, s)
		}
	}
	return all
}

// settle is a step that waits for the mutex of the key.
//
// Safety: the address only names the word to the model.
func (s *slot[K, E]) settle() {
	mc.Step(&mc.Op{Verb: "Settled", On: mc.Access{Addr: unsafe.Pointer(s), Mode: mc.Read}, Gate: &s.held, Want: 0, Blocks: true})
}

// count is a step that reads which keys there are.
//
//go:norace
func (t *Table[K, E]) count() int {
	t.keys("Len")
	defer t.lock()()
	return t.present
}

// load is a step that reads the slot.
//
// Safety: the address only names the word to the model.
func (s *slot[K, E]) load(verb string) *E {
	mc.Step(&mc.Op{Verb: verb, On: mc.Access{Addr: unsafe.Pointer(s), Mode: mc.Read}, Gate: &s.held})
	e := s.val.Load()
	mc.Note(func() string { return fmt.Sprintf("%s(%v) = %s", verb, s.key, label(e)) })
	return e
}

// step is a step that may write the slot, and change which keys there are.
//
// Safety: the addresses only name words to the model.
func (s *slot[K, E]) step(t *Table[K, E], verb string, blocks bool) {
	mc.Step(&mc.Op{
		Verb: verb,
		On:   mc.Access{Addr: unsafe.Pointer(s), Mode: mc.Write},
		Also: mc.Access{Addr: unsafe.Pointer(&t.listed), Mode: mc.Write},
		Gate: &s.held, Want: 0, Blocks: blocks,
	})
}

// replace stores e if wants accepts what is there, which it returns. An eager
// operation takes the mutex first; the others look first.
func (s *slot[K, E]) replace(t *Table[K, E], verb string, eager bool, e *E, wants func(now *E) bool) (now *E, replaced bool) {
	if !eager {
		defer mc.Count(mc.TableRead)
	}
	if mc.Stalling() {
		if !eager {
			if s.step(t, verb, false); !wants(s.val.Load()) {
				mc.Did(mc.Read, mc.None)
				return s.val.Load(), false
			}
			mc.Did(mc.Read, mc.None)
			eager = true
		}
		t.bucket.lock()
		defer t.bucket.unlock()
	}
	for blocks := eager; ; blocks = true {
		s.step(t, verb, blocks)
		now = s.val.Load()
		if replaced = wants(now); !replaced {
			mc.Did(mc.Read, mc.None)
			break
		}
		if mc.Modelled() && mc.Get(&s.held) != 0 {
			mc.Did(mc.Read, mc.None)
			continue // waits for the mutex
		}
		s.mu.Lock()
		if now = s.val.Load(); wants(now) {
			s.publish(t, now, e)
			s.mu.Unlock()
			mc.Count(mc.TableWrite)
			break
		}
		s.mu.Unlock() // not modelled, and overtaken since the look
	}
	mc.Note(func() string {
		return fmt.Sprintf("%s(%v, %s) found %s: %v", verb, s.key, label(e), label(now), replaced)
	})
	return now, replaced
}

// publish stores e in place of now, and says what the step has done by that.
// Outside executions a key must be listed before it can be found: All has to
// yield what is there when it starts.
//
//go:norace
func (s *slot[K, E]) publish(t *Table[K, E], now, e *E) {
	if (e == nil) == (now == nil) {
		mc.Did(mc.Write, mc.None)
	} else {
		s.list(t, e != nil)
	}
	if now != e {
		s.val.Store(e)
	}
}

// list takes into account that the slot begins to have a value, or ceases to.
//
//go:norace
func (s *slot[K, E]) list(t *Table[K, E], begins bool) {
	defer t.lock()()
	if begins {
		t.present++
	} else {
		t.present--
	}
	if s.listed {
		mc.Did(mc.Write, mc.Commute)
		return
	}
	s.listed = true
	t.listed = append(t.listed, s)
	mc.Did(mc.Write, mc.Write)
}

// Safety: the pointer is named, never followed.
func label[E any](e *E) string { return mc.Label(unsafe.Pointer(e)) }

//go:build modelcheck

package table

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Table is the model of the Table in table.go, which documents it. An
// operation is one step, with two exceptions: Compute takes a second one where
// its function takes steps of its own, and then holds the key's mutex between,
// as the real one holds a bucket's; and an operation that finds that mutex
// held, and needs it, waits in a step of its own. The real mutex is shared by
// the keys of a bucket, so code that is right here must not depend on more.
//
// Load, and the operations that find nothing to do, never wait.
//
// Where threads are stopped for ever, the real mutex matters: see chainMutex.
type Table[K comparable, E any] struct {
	hash  Hash[K]
	mu    sync.Mutex // guards what follows outside modelled executions
	index [64][]*slot[K, E]

	bucket chainMutex

	present int // keys with a value

	// listed holds the slots that ever held a value, in the order in which
	// they first did. Its address names a word of the model: which keys there
	// are.
	listed []*slot[K, E]
}

// slot is a word of the model, and what is known of one key.
type slot[K comparable, E any] struct {
	key    K
	val    mc.Raw[E]
	mu     sync.Mutex
	held   int32 // the gate of mu
	listed bool
	_      atomics.CacheLinePad
}

// New returns an empty table. The model has no use for sizeHint.
func New[K comparable, E any](hash Hash[K], sizeHint int) *Table[K, E] {
	t := new(Table[K, E])
	t.Init(hash, sizeHint)
	return t
}

// Init makes t an empty table.
func (t *Table[K, E]) Init(hash Hash[K], _ int) { t.hash = hash }

// Load reads the key's word.
func (t *Table[K, E]) Load(k K) *E {
	s := t.slot(k)
	e := s.load("Load")
	mc.Count(mc.TableRead)
	return e
}

// LoadOrStore writes the key's word, or reads it if there is a value.
func (t *Table[K, E]) LoadOrStore(k K, e *E) (actual *E, loaded bool) {
	old, stored := t.slot(k).replace(t, "LoadOrStore", false, e, func(now *E) bool { return now == nil })
	if stored {
		return e, false
	}
	return old, true
}

// Swap writes the key's word.
func (t *Table[K, E]) Swap(k K, e *E) (old *E) {
	old, _ = t.slot(k).replace(t, "Swap", true, e, func(*E) bool { return true })
	return old
}

// LoadAndDelete writes the key's word, or reads it if there is no value.
func (t *Table[K, E]) LoadAndDelete(k K) (old *E) {
	old, _ = t.slot(k).replace(t, "LoadAndDelete", false, nil, func(now *E) bool { return now != nil })
	return old
}

// CompareAndSwap writes the key's word, or reads it if there is another value.
func (t *Table[K, E]) CompareAndSwap(k K, old, e *E) (swapped bool) {
	_, swapped = t.slot(k).replace(t, "CompareAndSwap", false, e, func(now *E) bool { return now == old })
	return swapped
}

// CompareAndDelete is CompareAndSwap to nil.
func (t *Table[K, E]) CompareAndDelete(k K, old *E) (deleted bool) {
	return old != nil && t.CompareAndSwap(k, old, nil)
}

// Compute writes the key's word in one step if f takes none.
func (t *Table[K, E]) Compute(k K, f func(now *E) *E) *E {
	s := t.slot(k)
	t.bucket.lock()
	s.step(t, "Compute", true)
	mc.Count(mc.TableWrite)
	s.mu.Lock()
	mc.Set(&s.held, 1)
	taken := mc.Steps()
	now := s.val.Load()
	e := f(now)
	if mc.Steps() != taken {
		s.step(t, "Compute: unlock", false)
		s.publish(t, now, e)
	} else if s.publish(t, now, e); e == now {
		mc.Did(mc.Read, mc.None)
	}
	mc.Set(&s.held, 0)
	s.mu.Unlock()
	t.bucket.unlock()
	mc.Note(func() string { return fmt.Sprintf("Compute(%v, %s → %s)", k, label(now), label(e)) })
	return e
}

// All is as weak as its promise: it reads every key once when it starts and
// once when it gets there, and where the two differ either may be what it
// yields. Keys that come meanwhile are seen or not, unless their Compute is in its
// function when it starts: it waits for those.
func (t *Table[K, E]) All() iter.Seq2[K, *E] {
	return func(yield func(K, *E) bool) {
		t.bucket.lock()
		t.bucket.unlock()
		slots := t.keys("All")
		coming := t.coming()
		started := make([]*E, len(slots))
		for i, s := range slots {
			started[i] = s.load("All")
		}
		for i, s := range slots {
			if slices.Contains(coming, s) {
				continue
			}
			e := s.load("All")
			if e != started[i] && mc.Choose(2) == 1 {
				e = started[i]
			}
			if e != nil && !yield(s.key, e) {
				return
			}
		}
		for _, s := range coming {
			if s.settle(); !mc.Modelled() {
				s.mu.Lock()
				//lint:ignore SA2001 it waits in no step
				s.mu.Unlock()
			}
			if e := s.load("All"); e != nil && !yield(s.key, e) {
				return
			}
		}
		for _, s := range t.keys("All")[len(slots):] {
			if e := s.load("All"); e != nil && !slices.Contains(coming, s) && mc.Choose(2) == 1 && !yield(s.key, e) {
				return
			}
		}
	}
}

// Len counts the keys in one step. It publishes nothing.
func (t *Table[K, E]) Len() int {
	n := t.count()
	mc.Note(func() string { return fmt.Sprintf("Len() = %d", n) })
	return n
}

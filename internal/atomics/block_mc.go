//go:build modelcheck

package atomics

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// The blocking parts keep a gate, which tells the model when their waiting
// steps are enabled. Then the real operation follows, which never waits in a
// modelled execution, and gives the race detector the edges that a program
// has. Outside executions it is all there is.

// Mutex is the twin of sync.Mutex.
type Mutex struct {
	mu   sync.Mutex
	held int32 // the gate; written under mu
}

// Safety: the address only names the word to the model.
func (m *Mutex) step(verb string, blocks bool) {
	mc.Step(&mc.Op{
		Verb: verb, Class: mc.Blocking, On: mc.Access{Addr: unsafe.Pointer(m), Mode: mc.Write},
		Gate: &m.held, Want: 0, Blocks: blocks,
	})
}

// Lock is a step that is enabled while nobody holds the mutex.
func (m *Mutex) Lock() {
	m.step("Lock", true)
	m.mu.Lock()
	mc.Set(&m.held, 1)
}

// TryLock is a step that never waits.
func (m *Mutex) TryLock() bool {
	m.step("TryLock", false)
	ok := swapped(m.mu.TryLock())
	if ok {
		mc.Set(&m.held, 1)
	}
	mc.Note(func() string { return fmt.Sprintf("TryLock() = %v", ok) })
	return ok
}

// Unlock is a step that never waits.
func (m *Mutex) Unlock() {
	m.step("Unlock", false)
	if mc.Get(&m.held) == 0 {
		panic("atomics: unlock of unlocked mutex") // the real one ends the process
	}
	mc.Set(&m.held, 0)
	m.mu.Unlock()
}

// WaitGroup is the twin of sync.WaitGroup. It has no Go: modelled threads are
// started by mc.M.Go.
type WaitGroup struct {
	wg   sync.WaitGroup
	left int32 // the gate; kept in modelled executions only
}

// Safety: the address only names the word to the model.
func (w *WaitGroup) step(verb string, mode mc.Mode, blocks bool) {
	mc.Step(&mc.Op{
		Verb: verb, Class: mc.Blocking, On: mc.Access{Addr: unsafe.Pointer(w), Mode: mode},
		Gate: &w.left, Want: 0, Blocks: blocks,
	})
}

// Add is a step that writes.
func (w *WaitGroup) Add(delta int) {
	w.step("Add", mc.Write, false)
	if mc.Modelled() {
		mc.Set(&w.left, mc.Get(&w.left)+int32(delta))
	}
	w.wg.Add(delta)
	mc.Note(func() string { return fmt.Sprintf("Add(%d)", delta) })
}

// Done is Add(-1).
func (w *WaitGroup) Done() { w.Add(-1) }

// Wait is a step that is enabled while the count is zero.
func (w *WaitGroup) Wait() {
	w.step("Wait", mc.Read, true)
	w.wg.Wait()
}

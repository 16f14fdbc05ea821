//go:build modelcheck

package atomics_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Words take the room that the real ones take, so that what the checker says
// of cache lines is true of the normal build.
func TestTwinsAreAsLarge(t *testing.T) {
	for name, s := range map[string][2]uintptr{
		"Bool":    {unsafe.Sizeof(atomics.Bool{}), unsafe.Sizeof(atomic.Bool{})},
		"Int32":   {unsafe.Sizeof(atomics.Int32{}), unsafe.Sizeof(atomic.Int32{})},
		"Int64":   {unsafe.Sizeof(atomics.Int64{}), unsafe.Sizeof(atomic.Int64{})},
		"Uint32":  {unsafe.Sizeof(atomics.Uint32{}), unsafe.Sizeof(atomic.Uint32{})},
		"Uint64":  {unsafe.Sizeof(atomics.Uint64{}), unsafe.Sizeof(atomic.Uint64{})},
		"Pointer": {unsafe.Sizeof(atomics.Pointer[int]{}), unsafe.Sizeof(atomic.Pointer[int]{})},
		"Event":   {unsafe.Sizeof(atomics.Event{}), unsafe.Sizeof(make(chan struct{}))},
	} {
		if s[0] != s[1] {
			t.Errorf("%s has %d bytes, the real one %d", name, s[0], s[1])
		}
	}
}

// Outside explorations the twins do what the real types do.
func TestTwinsWork(t *testing.T) {
	var u atomics.Uint32
	var b atomics.Bool
	var p atomics.Pointer[int]
	one, two := 1, 2
	u.Store(6)
	b.Store(true)
	p.Store(&one)
	var made atomics.Pointer[int]
	atomics.InitPointer(&made, &two)
	for name, ok := range map[string]bool{
		"Init":     made.Load() == &two,
		"And":      u.And(3) == 6 && u.Load() == 2,
		"Or":       u.Or(8) == 2 && u.Load() == 10,
		"Add":      u.Add(1) == 11,
		"Swap":     u.Swap(1) == 11,
		"CAS":      !u.CompareAndSwap(2, 3) && u.CompareAndSwap(1, 3) && u.Load() == 3,
		"Bool":     b.Load() && !b.CompareAndSwap(false, true) && b.CompareAndSwap(true, false) && !b.Swap(true),
		"Pointer":  p.Load() == &one && !p.CompareAndSwap(&two, &one) && p.CompareAndSwap(&one, &two) && p.Swap(nil) == &two,
		"no event": !new(atomics.Event).Fired() && new(atomics.Event).Done() == nil,
	} {
		if !ok {
			t.Error(name)
		}
	}
}

func TestTwinsExclude(t *testing.T) {
	var mu atomics.Mutex
	var n, tried int
	var wg atomics.WaitGroup
	var started sync.WaitGroup
	for range 4 {
		wg.Add(1)
		started.Go(func() {
			defer wg.Done()
			for range 1000 {
				mu.Lock()
				n++
				mu.Unlock()
				if mu.TryLock() {
					tried++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	started.Wait()
	if n != 4000 || tried > 4000 {
		t.Errorf("n = %d, want 4000", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("the unlock of an unlocked mutex went unnoticed")
		}
	}()
	mu.Unlock()
}

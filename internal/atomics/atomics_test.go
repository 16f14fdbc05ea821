package atomics_test

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

func TestEvent(t *testing.T) {
	e := atomics.MakeEvent()
	if e.Fired() {
		t.Fatal("a new event has fired")
	}
	data := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			e.Wait()
			if data != 1 {
				t.Error("Fire did not publish what was written before it")
			}
		})
	}
	data = 1
	e.Fire()
	wg.Wait()
	<-e.Done()
	if !e.Fired() {
		t.Fatal("a fired event says that it has not")
	}
	defer func() {
		if recover() == nil {
			t.Error("a second Fire went unnoticed")
		}
	}()
	e.Fire()
}

// 64-bit words stay aligned behind any field, on 32-bit machines too, and pads
// keep them on lines of their own.
func TestLayout(t *testing.T) {
	var s struct {
		_ atomics.NoCopy
		_ bool
		a atomics.Uint64
		_ atomics.CacheLinePad
		_ bool
		b atomics.Int64
	}
	if unsafe.Offsetof(s.a)%8 != 0 || unsafe.Offsetof(s.b)%8 != 0 {
		t.Errorf("64-bit words at offsets %d and %d", unsafe.Offsetof(s.a), unsafe.Offsetof(s.b))
	}
	if d := unsafe.Offsetof(s.b) - unsafe.Offsetof(s.a); d < atomics.CacheLineSize {
		t.Errorf("padded words are %d bytes apart", d)
	}
	s.a.Store(1)
	s.b.Store(2)
}

// InitInt64 sets all of a word, and nothing beside it.
func TestInitInt64(t *testing.T) {
	var s [3]atomics.Int64
	for _, want := range []int64{-1, 1 << 40, 0} {
		if atomics.InitInt64(&s[1], want); s[1].Load() != want || s[0].Load() != 0 || s[2].Load() != 0 {
			t.Errorf("InitInt64(%d) makes it %d, between %d and %d", want, s[1].Load(), s[0].Load(), s[2].Load())
		}
	}
}

// Stripe stays within the cells that there are, whatever stack asks.
func TestStripe(t *testing.T) {
	n := atomics.Stripes()
	if n < 1 || n > 64 || n&(n-1) != 0 {
		t.Fatalf("Stripes() = %d, want a power of two", n)
	}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for _, n := range []int{1, 2, n, 64} {
				if s := atomics.Stripe(n); s < 0 || s >= n {
					t.Errorf("Stripe(%d) = %d", n, s)
				}
			}
		})
	}
	wg.Wait()
}

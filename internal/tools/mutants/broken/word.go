package broken

import "github.com/latchfree/latchfree/internal/atomics"

// cell is a word of type V.
type cell[V any] interface {
	Load() V
	Store(V)
}

type integer interface {
	~int32 | ~int64 | ~uint32 | ~uint64
}

// TornCompareAndSwap compares and then stores.
func TornCompareAndSwap[W cell[V], V comparable](w W, old, new V) bool {
	if w.Load() != old {
		return false
	}
	w.Store(new)
	return true
}

// ForcedCompareAndSwap stores without comparing.
func ForcedCompareAndSwap[W cell[V], V any](w W, _, new V) bool {
	w.Store(new)
	return true
}

// SkippedCompareAndSwap says that it has swapped.
func SkippedCompareAndSwap[W cell[V], V any](_ W, _, _ V) bool { return true }

// FailedCompareAndSwap reads, as one that fails does.
func FailedCompareAndSwap[W cell[V], V any](w W, _, _ V) bool {
	w.Load()
	return false
}

// TornSwap reads and then stores.
func TornSwap[W cell[V], V any](w W, new V) V {
	old := w.Load()
	w.Store(new)
	return old
}

// SkippedSwap only reads.
func SkippedSwap[W cell[V], V any](w W, _ V) V { return w.Load() }

// TornAdd reads and then stores.
func TornAdd[W cell[V], V integer](w W, delta V) V {
	beforeLoad(w)
	sum := w.Load() + delta
	beforeStore(w)
	w.Store(sum)
	return sum
}

// SkippedAdd only reads.
func SkippedAdd[W cell[V], V integer](w W, delta V) V { return w.Load() + delta }

// TornAnd reads and then stores.
func TornAnd[W cell[V], V integer](w W, mask V) V {
	old := w.Load()
	w.Store(old & mask)
	return old
}

// SkippedAnd only reads.
func SkippedAnd[W cell[V], V integer](w W, _ V) V { return w.Load() }

// TornOr reads and then stores.
func TornOr[W cell[V], V integer](w W, mask V) V {
	old := w.Load()
	w.Store(old | mask)
	return old
}

// SkippedOr only reads.
func SkippedOr[W cell[V], V integer](w W, _ V) V { return w.Load() }

// TornInstall looks and then stores.
func TornInstall[T any](p *atomics.Pointer[T], fresh *T) *T {
	if now := p.Load(); now != nil {
		return now
	}
	p.Store(fresh)
	return fresh
}

// ForcedInstall stores without looking.
func ForcedInstall[T any](p *atomics.Pointer[T], fresh *T) *T {
	p.Store(fresh)
	return fresh
}

package broken

// table is an internal/table.Table that maps K to P, where nil means absent.
type table[K any, P comparable] interface {
	Load(K) P
	Swap(K, P) P
	LoadAndDelete(K) P
}

// put stores p for k, or deletes k if p is nil.
func put[T table[K, P], K any, P comparable](t T, k K, p P) {
	if p == *new(P) {
		t.LoadAndDelete(k)
	} else {
		t.Swap(k, p)
	}
}

// TornTableLoadOrStore looks and then stores.
func TornTableLoadOrStore[T table[K, P], K any, P comparable](t T, k K, p P) (P, bool) {
	if now := t.Load(k); now != *new(P) {
		return now, true
	}
	t.Swap(k, p)
	return p, false
}

// ForcedTableLoadOrStore stores without looking.
func ForcedTableLoadOrStore[T table[K, P], K any, P comparable](t T, k K, p P) (P, bool) {
	t.Swap(k, p)
	return p, false
}

// SkippedTableLoadOrStore only looks.
func SkippedTableLoadOrStore[T table[K, P], K any, P comparable](t T, k K, p P) (P, bool) {
	if now := t.Load(k); now != *new(P) {
		return now, true
	}
	return p, false
}

// TornTableSwap looks and then stores.
func TornTableSwap[T table[K, P], K any, P comparable](t T, k K, p P) P {
	old := t.Load(k)
	t.Swap(k, p)
	return old
}

// SkippedTableSwap only looks.
func SkippedTableSwap[T table[K, P], K any, P comparable](t T, k K, _ P) P { return t.Load(k) }

// TornTableLoadAndDelete looks and then deletes.
func TornTableLoadAndDelete[T table[K, P], K any, P comparable](t T, k K) P {
	old := t.Load(k)
	t.LoadAndDelete(k)
	return old
}

// SkippedTableLoadAndDelete only looks.
func SkippedTableLoadAndDelete[T table[K, P], K any, P comparable](t T, k K) P { return t.Load(k) }

// TornTableCompareAndSwap compares and then stores.
func TornTableCompareAndSwap[T table[K, P], K any, P comparable](t T, k K, old, new P) bool {
	if t.Load(k) != old {
		return false
	}
	put(t, k, new)
	return true
}

// ForcedTableCompareAndSwap stores without comparing.
func ForcedTableCompareAndSwap[T table[K, P], K any, P comparable](t T, k K, _, new P) bool {
	put(t, k, new)
	return true
}

// SkippedTableCompareAndSwap says that it has swapped.
func SkippedTableCompareAndSwap[T table[K, P], K any, P comparable](T, K, P, P) bool { return true }

// FailedTableCompareAndSwap reads, as one that fails does.
func FailedTableCompareAndSwap[T table[K, P], K any, P comparable](t T, k K, _, _ P) bool {
	t.Load(k)
	return false
}

// TornTableCompareAndDelete compares and then deletes.
func TornTableCompareAndDelete[T table[K, P], K any, P comparable](t T, k K, old P) bool {
	return TornTableCompareAndSwap(t, k, old, *new(P))
}

// ForcedTableCompareAndDelete deletes without comparing.
func ForcedTableCompareAndDelete[T table[K, P], K any, P comparable](t T, k K, _ P) bool {
	return t.LoadAndDelete(k) != *new(P)
}

// SkippedTableCompareAndDelete says that it has deleted.
func SkippedTableCompareAndDelete[T table[K, P], K any, P comparable](T, K, P) bool { return true }

// FailedTableCompareAndDelete reads, as one that fails does.
func FailedTableCompareAndDelete[T table[K, P], K any, P comparable](t T, k K, _ P) bool {
	t.Load(k)
	return false
}

// TornTableRemove compares and then deletes.
func TornTableRemove[T table[K, P], K any, P comparable](t T, k K, old P) {
	TornTableCompareAndDelete(t, k, old)
}

// ForcedTableRemove deletes without comparing.
func ForcedTableRemove[T table[K, P], K any, P comparable](t T, k K, _ P) { t.LoadAndDelete(k) }

// TornTableCompute looks, and then stores what f makes of it.
func TornTableCompute[T table[K, P], K any, P comparable](t T, k K, f func(P) P) P {
	p := f(t.Load(k))
	put(t, k, p)
	return p
}

// SkippedTableCompute does not store what f makes.
func SkippedTableCompute[T table[K, P], K any, P comparable](t T, k K, f func(P) P) P {
	return f(t.Load(k))
}

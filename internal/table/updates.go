package table

// These are common uses of Compute. Except for Swap, LoadOrStore and Remove, a call that finds
// nothing to do takes no mutex, and takes effect as Load does. All cells have the key k.

// LoadOrStore returns the cell of k if there is one, and otherwise stores e and
// returns it. Loaded tells which. Its callers have looked before.
func (t *Lines[K, E]) LoadOrStore(k Hashed[K], e *E) (actual *E, loaded bool) {
	actual = t.Compute(k, func(now *E) *E {
		if now != nil {
			return now
		}
		return e
	})
	return actual, actual != e
}

// Swap stores e and returns the cell that it replaced, or nil.
func (t *Lines[K, E]) Swap(k Hashed[K], e *E) (old *E) {
	t.Compute(k, func(now *E) *E {
		old = now
		return e
	})
	return old
}

// LoadAndDelete removes the cell of k and returns it, or nil.
func (t *Lines[K, E]) LoadAndDelete(k Hashed[K]) (old *E) {
	if t.Load(k) == nil {
		return nil
	}
	t.Compute(k, func(now *E) *E {
		old = now
		return nil
	})
	return old
}

// CompareAndSwap stores e in place of old if that is there now, and reports
// whether it did. Old must not be nil.
func (t *Lines[K, E]) CompareAndSwap(k Hashed[K], old, e *E) (swapped bool) {
	if t.Load(k) != old {
		return false
	}
	t.Compute(k, func(now *E) *E {
		if now != old {
			return now
		}
		swapped = true
		return e
	})
	return swapped
}

// Remove is CompareAndDelete for a caller that nearly always finds old there: it does not
// look before it takes the mutex.
func (t *Lines[K, E]) Remove(k Hashed[K], old *E) {
	t.Compute(k, func(now *E) *E {
		if now == old {
			return nil
		}
		return now
	})
}

// CompareAndDelete removes old and reports whether it was there.
func (t *Lines[K, E]) CompareAndDelete(k Hashed[K], old *E) (deleted bool) {
	return old != nil && t.CompareAndSwap(k, old, nil)
}

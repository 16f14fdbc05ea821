package table

// What follows is Compute for those who know what they want. What finds nothing
// to do takes no mutex, and takes effect as Load does.

// LoadOrStore returns the cell with the key of e if there is one, and otherwise
// stores e and returns it. Loaded tells which.
func (t *Lines[K, E]) LoadOrStore(e *E) (actual *E, loaded bool) {
	k := *node[K](e)
	if now := t.Load(k); now != nil {
		return now, true
	}
	actual = t.Compute(k, func(now *E) *E {
		if now != nil {
			return now
		}
		return e
	})
	return actual, actual != e
}

// Swap stores e and returns the cell that it replaced, or nil.
func (t *Lines[K, E]) Swap(e *E) (old *E) {
	t.Compute(*node[K](e), func(now *E) *E {
		old = now
		return e
	})
	return old
}

// LoadAndDelete removes the cell of k and returns it, or nil.
func (t *Lines[K, E]) LoadAndDelete(k Node[K]) (old *E) {
	if t.Load(k) == nil {
		return nil
	}
	t.Compute(k, func(now *E) *E {
		old = now
		return nil
	})
	return old
}

// CompareAndSwap stores e in place of old, which has the same key, if that is
// there now, and reports whether it did.
func (t *Lines[K, E]) CompareAndSwap(old, e *E) (swapped bool) {
	return t.replace(*node[K](old), old, e)
}

// CompareAndDelete removes e and reports whether it was there.
func (t *Lines[K, E]) CompareAndDelete(e *E) (deleted bool) {
	return t.replace(*node[K](e), e, nil)
}

func (t *Lines[K, E]) replace(k Node[K], old, e *E) (replaced bool) {
	if t.Load(k) != old {
		return false
	}
	t.Compute(k, func(now *E) *E {
		if now != old {
			return now
		}
		replaced = true
		return e
	})
	return replaced
}

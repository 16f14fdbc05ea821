package cowchangeset

import (
	"fmt"
	"iter"
	"slices"
)

// Values yields the second value of each pair: the entries of Trail.All, Final.All or
// Changeset.Entries, or the items of Slice.All. It panics if pairs is nil.
func Values[K, E any](pairs iter.Seq2[K, E]) iter.Seq[E] {
	if pairs == nil {
		panic("cowchangeset: Values called with a nil sequence")
	}
	return func(yield func(E) bool) {
		for _, e := range pairs {
			if !yield(e) {
				return
			}
		}
	}
}

// Coalesce returns the net effect of entries: for each key one entry with the effect of
// all entries of that key, or none.
//
// Merge returns the combined effect of an older and a newer entry of one key, or false
// if they cancel each other, as the creation and the deletion of a resource do.
// Coalesce merges each entry with the result for the entries of its key before. After a
// cancellation the next entry of the key stands for itself. The result of merge must
// have the key of its arguments.
//
// The net effect is in the order of keys, each at its first entry after its last
// cancellation. An entry may need a resource that earlier entries have made, as a row
// needs its table, and so stays behind them. But a merged entry stands at the place of
// its older part. If its newer part needs a resource that was made between the two, no
// order is right for all, and the two should not have the same key.
//
// A key that does not equal itself, like NaN, is a new key each time, so that its
// entries stay as they are. Coalesce calls key once for each entry, and merge at most
// once, on the caller's goroutine. It panics if one of its arguments is nil.
func Coalesce[E any, K comparable](entries iter.Seq[E], key func(E) K, merge func(older, newer E) (net E, keep bool)) []E {
	switch {
	case entries == nil:
		panic("cowchangeset: Coalesce called with a nil sequence")
	case key == nil:
		panic("cowchangeset: Coalesce called with a nil key function")
	case merge == nil:
		panic("cowchangeset: Coalesce called with a nil merge function")
	}
	var effects []effect[E]
	at := map[K]int{} // where that of a key is, unless it was cancelled
	for e := range entries {
		k := key(e)
		i, ok := at[k]
		if !ok {
			at[k] = len(effects)
			effects = append(effects, effect[E]{e, true})
			continue
		}
		f := &effects[i]
		if f.net, f.keep = merge(f.net, e); !f.keep {
			delete(at, k)
		}
	}
	var nets []E
	for _, f := range effects {
		if f.keep {
			nets = append(nets, f.net)
		}
	}
	return nets
}

// effect is the combined effect of the entries of one key, at the place of the first.
type effect[E any] struct {
	net  E
	keep bool // false: they have cancelled each other
}

// Invert returns the changes that undo the given entries: the inverse of each, in
// reverse order, so that the last change is undone first. It calls inverse in the order
// of entries. If inverse fails, Invert stops and returns an error that wraps inverse's
// error, with the index of the entry, counted from 0. It panics if one of its arguments
// is nil.
func Invert[E any](entries iter.Seq[E], inverse func(E) (E, error)) ([]E, error) {
	switch {
	case entries == nil:
		panic("cowchangeset: Invert called with a nil sequence")
	case inverse == nil:
		panic("cowchangeset: Invert called with a nil inverse function")
	}
	var undo []E
	for e := range entries {
		u, err := inverse(e)
		if err != nil {
			return nil, fmt.Errorf("cowchangeset: inverting entry %d: %w", len(undo), err)
		}
		undo = append(undo, u)
	}
	slices.Reverse(undo)
	return undo, nil
}

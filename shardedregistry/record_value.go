package shardedregistry

import "unsafe"

// boxed is a live record, with what it has besides, and its value. H is record, or
// one of those that end with it.
type boxed[H, V any] struct {
	head  H
	value V
}

// valueOf returns the value of rec, which is live. This is where the shell, which
// knows V, and the core, which does not, meet: see DESIGN.md.
func valueOf[V any](rec *record) *V {
	// Safety: the live records of a registry of V are made by the functions of this
	// file alone, and copied by streamReader[K, V], each at the end of the head of a
	// boxed[_, V]. Whatever else is in that, the value comes right after, since heads
	// are multiples of 8 bytes, and so of what any V must be aligned to.
	return &(*boxed[record, V])(unsafe.Pointer(rec)).value
}

// fresh returns a live record, which others have not seen. Its word is 0, but for the
// bit dated if a snapshot is being taken.
func fresh[V any, K comparable](rt *root[K], taking bool) *record {
	switch {
	case rt.large != nil:
		return rt.large(taking)
	case taking:
		return withDate(&new(boxed[datedRecord, V]).head.record)
	}
	return &new(boxed[record, V]).head
}

// freshLarge returns what makes records that have what a shape says besides. It is
// for the core to keep: only a registry that was made with constraints or transitions
// needs it.
func freshLarge[V any](s layout) func(taking bool) *record {
	return func(taking bool) *record {
		switch {
		case s == isIndexed && !taking:
			return &new(boxed[indexedRecord, V]).head.record
		case s == isIndexed:
			return withDate(&new(boxed[datedIndexedRecord, V]).head.record)
		case s == isLinked && !taking:
			return &new(boxed[linkedRecord, V]).head.record
		case s == isLinked:
			return withDate(&new(boxed[datedLinkedRecord, V]).head.record)
		case !taking:
			return &new(boxed[indexedLinkedRecord, V]).head.record
		}
		return withDate(&new(boxed[datedIndexedLinkedRecord, V]).head.record)
	}
}

// plain returns a copy of rec, which is live, without what it has besides.
func plain[V any](rec *record) *record {
	return &(&boxed[record, V]{record{word: rec.word &^ datedBit}, *valueOf[V](rec)}).head
}

// draft returns a record that others have not seen with what is kept of a value that
// was given. It uses spare again if it can: one that was drafted and not published,
// or nil.
func draft[V any, K comparable](rt *root[K], taking bool, spare *record, value V) *record {
	if rt.guard != nil {
		value = copied(cloneOf[V](rt.guard), value)
	}
	if spare == nil && !taking && rt.large == nil {
		return &(&boxed[record, V]{value: value}).head // what fresh returns, in one step
	}
	if spare == nil || taking || spare.word&datedBit != 0 {
		spare = fresh[V](rt, taking)
	}
	*valueOf[V](spare) = value
	return spare
}

// out returns what to hand out of rec, which k holds or held. It runs functions
// of the user's.
func out[V any, K comparable](rt *root[K], k hkey[K], rec *record) V {
	if rt.guard == nil {
		return *valueOf[V](rec)
	}
	return lent[V](rt, k, rec)
}

// lent is out where there is a guard.
func lent[V any, K comparable](rt *root[K], k hkey[K], rec *record) V {
	rt.check(k, rec)
	return copied(cloneOf[V](rt.guard), *valueOf[V](rec))
}

// entryOf returns what to hand out of rec with its key and version.
func entryOf[V any, K comparable](rt *root[K], k hkey[K], rec *record) Entry[K, V] {
	return Entry[K, V]{k.Key, out[V](rt, k, rec), rec.version()}
}

// cloneOf returns Config.Clone, or nil.
func cloneOf[V any, K comparable](g *valueGuard[K]) func(V) V {
	clone, _ := g.clone.(func(V) V)
	return clone
}

// copied returns a clone of value, or value if clone is nil.
func copied[V any](clone func(V) V, value V) V {
	if clone == nil {
		return value
	}
	return clone(value)
}

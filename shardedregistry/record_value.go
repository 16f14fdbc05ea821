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
	// file alone, and copied by tape[K, V], each at the end of the head of a
	// boxed[_, V]. Whatever else is in that, the value comes right after, since heads
	// are multiples of 8 bytes, and so of what any V must be aligned to.
	return &(*boxed[record, V])(unsafe.Pointer(rec)).value
}

// fresh returns a live record, which others have not seen. Its mark is 0, but for the
// bit dated if a snapshot is being taken.
func fresh[V any, K comparable](o *root[K], taking bool) *record {
	switch {
	case o.large != nil:
		return o.large(taking)
	case taking:
		return withDate(&new(boxed[datedRecord, V]).head.record)
	}
	return &new(boxed[record, V]).head
}

// freshLarge returns what makes records that have what a shape says besides. It is
// for the core to keep: only a registry that was made with rules or transitions
// needs it.
func freshLarge[V any](s shape) func(taking bool) *record {
	return func(taking bool) *record {
		switch {
		case s == isTermed && !taking:
			return &new(boxed[termedRecord, V]).head.record
		case s == isTermed:
			return withDate(&new(boxed[datedTermedRecord, V]).head.record)
		case s == isLinked && !taking:
			return &new(boxed[linkedRecord, V]).head.record
		case s == isLinked:
			return withDate(&new(boxed[datedLinkedRecord, V]).head.record)
		case !taking:
			return &new(boxed[termedLinkedRecord, V]).head.record
		}
		return withDate(&new(boxed[datedTermedLinkedRecord, V]).head.record)
	}
}

// plain returns a copy of rec, which is live, without what it has besides.
func plain[V any](rec *record) *record {
	return &(&boxed[record, V]{record{mark: rec.mark &^ datedBit}, *valueOf[V](rec)}).head
}

// draft returns a record that others have not seen with what is kept of a value that
// was given. It uses spare again if it can: one that was drafted and not published,
// or nil.
func draft[V any, K comparable](o *root[K], taking bool, spare *record, value V) *record {
	if o.custody != nil {
		value = copied(cloneOf[V](o.custody), value)
	}
	if spare == nil && !taking && o.large == nil {
		return &(&boxed[record, V]{value: value}).head // what fresh returns, in one step
	}
	if spare == nil || taking || spare.mark&datedBit != 0 {
		spare = fresh[V](o, taking)
	}
	*valueOf[V](spare) = value
	return spare
}

// out returns what to hand out of rec, which k holds or held. It runs functions
// of the user's.
func out[V any, K comparable](o *root[K], k hkey[K], rec *record) V {
	if o.custody == nil {
		return *valueOf[V](rec)
	}
	return lent[V](o, k, rec)
}

// lent is out where there is custody.
func lent[V any, K comparable](o *root[K], k hkey[K], rec *record) V {
	o.check(k, rec)
	return copied(cloneOf[V](o.custody), *valueOf[V](rec))
}

// entryOf returns what to hand out of rec with its key and version.
func entryOf[V any, K comparable](o *root[K], k hkey[K], rec *record) Entry[K, V] {
	return Entry[K, V]{k.Key, out[V](o, k, rec), rec.version()}
}

// cloneOf returns Config.Clone, or nil.
func cloneOf[V any, K comparable](u *custody[K]) func(V) V {
	clone, _ := u.clone.(func(V) V)
	return clone
}

// copied returns a clone of value, or value if clone is nil.
func copied[V any](clone func(V) V, value V) V {
	if clone == nil {
		return value
	}
	return clone(value)
}

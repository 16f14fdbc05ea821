package shardedregistry

import (
	"iter"
	"slices"
)

// Clear deletes all keys at one instant, and returns how many. No operation sees some of
// them deleted and others not: no Snapshot, no transaction, and no two operations of one
// goroutine. A key that another operation creates meanwhile is deleted if that has taken
// effect before the instant, and stays otherwise.
//
// Each key is deleted as [Registry.Delete] does it: its versions increase, and Watch, WatchFrom
// and Wait tell of each key by itself, when all are gone. A loop over All sees each key at
// another moment.
//
// It takes a time in proportion to the number of keys, with the memory for as many intents.
// Until the instant, operations that create a key wait for it, other calls of Clear and
// [Registry.Replace] wait until it is over, and operations that change a present key help
// Clear first, which may take as long. Transactions abort and run again. Readers never wait.
//
// Clear is blocking on other calls of Clear and Replace, and on the mutex of one hash bucket
// at a time. It takes effect when it has put an intent on each key, and commits, or, if the
// registry was never used, when that is found.
func (r *further[K, V]) Clear() (deleted int) {
	rt := r.root.Load()
	if rt == nil {
		return 0 // LP(Clear), never used: the root is read
	}
	return clearAll(rt)
}

// Replace makes the registry contain the keys that entries yields, with these values, and
// no others, at one instant. No operation sees a part of that, as with [Registry.Clear],
// which also says who waits. If entries yields a key twice, the last value counts.
//
// A key that is present and in entries is updated, also if its value is the same; one that
// is absent is created; one that is not in entries is deleted. Each gets its next version,
// and Watch, WatchFrom and Wait tell of each by itself.
//
// If a key is invalid, or its value is rejected, Replace returns a [*KeyError] that says
// which key failed, and nothing has changed. A unique value is taken as long as another key
// has it, also if Replace would take it from that key. If entries panics or calls
// runtime.Goexit, nothing has changed. No lock is held while entries runs; it may use the
// registry.
//
// Replace panics if entries is nil.
//
// Replace is blocking on other calls of Clear and Replace, and on the mutex of one hash
// bucket at a time, and with indexes on more, see [Config]. It takes effect when it has put
// an intent on each key, and commits, or, if a unique value is taken, when the record that
// has it is read, or else, if it fails, at any moment.
func (r *further[K, V]) Replace(entries iter.Seq2[K, V]) error {
	if entries == nil {
		panic("shardedregistry: Replace called with a nil iterator")
	}
	return replaceAll(r.install(), entries)
}

// clearAll runs Clear.
func clearAll[K comparable](rt *root[K]) (deleted int) {
	deleted, _ = rewrite(rt, new(contentsToBe[K]))
	return deleted
}

// replaceAll runs Replace.
func replaceAll[K comparable, V any](rt *root[K], entries iter.Seq2[K, V]) error {
	var (
		next   contentsToBe[K]
		values []V
		usual  = rt.len()
	)
	for key, value := range entries {
		var t target[K]
		if err := rt.aim(&t, key); err != nil {
			return &KeyError{key, err}
		}
		next.keys = grown(next.keys, usual)
		if i := next.add(keyToBe[K]{key: t.key, given: key}); i < len(values) {
			values[i] = value
			continue
		}
		values = append(grown(values, usual), value)
	}
	next.draft = func(i int, dated bool) *record {
		rec := fresh[V](rt, dated)
		*valueOf[V](rec) = values[i]
		return rec
	}
	_, err := rewrite(rt, &next)
	return err
}

// grown returns s with space for one more. Usual is what its length will likely be: once it is
// an eighth of that, there is space for the rest.
func grown[T any](s []T, usual int) []T {
	switch n := len(s); {
	case n < cap(s):
		return s
	case n >= usual/8:
		return slices.Grow(s, max(n, usual-n, 1))
	default:
		return slices.Grow(s, n+1)
	}
}

// contentsToBe is what a registry will contain: nothing, if it is zero. It is immutable once
// it was prepared.
type contentsToBe[K comparable] struct {
	keys  []keyToBe[K]
	table []uint32                        // a keyTable of keys
	draft func(i int, dated bool) *record // makes a record of the value of key i
}

// add returns the number of a key, which is new if it is the highest. It belongs to one
// goroutine.
func (to *contentsToBe[K]) add(k keyToBe[K]) int {
	if 2*len(to.keys) >= len(to.table) {
		to.table = make([]uint32, ceilPowerOfTwo(max(2*cap(to.keys), 1)))
		for i := range to.keys {
			to.table[to.slotOf(to.keys[i].key)] = uint32(i + 1)
		}
	}
	at := to.slotOf(k.key)
	if i := to.table[at]; i != 0 {
		return int(i - 1)
	}
	to.keys = append(to.keys, k)
	to.table[at] = uint32(len(to.keys))
	return len(to.keys) - 1
}

// find returns the number of k, or -1.
func (to *contentsToBe[K]) find(k hkey[K]) int { return int(to.table[to.slotOf(k)]) - 1 }

// slotOf is the function of that name for table.
func (to *contentsToBe[K]) slotOf(k hkey[K]) int {
	mask := len(to.table) - 1
	for at := int(k.Hash) & mask; ; at = (at + 1) & mask {
		if i := to.table[at]; i == 0 || to.keys[i-1].key == k {
			return at
		}
	}
}

// keyToBe is a key that a registry will contain.
type keyToBe[K comparable] struct {
	key       hkey[K]
	given     K
	indexKeys []indexKey // of its value
	ttl       int64      // of its value
}

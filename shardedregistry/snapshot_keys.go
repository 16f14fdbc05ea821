package shardedregistry

// keyTable finds keys in a list. It holds the numbers of the keys plus 1, each in
// the first slot that was free from that of its hash on, and 0 elsewhere. The
// count of slots is a power of two, and at least half of them are free.
type keyTable []int

// keyTableOf returns a table of different keys, with room for as many more. It
// hashes them.
func keyTableOf[K comparable](keys []K, hash func(K) uint64) keyTable {
	x := make(keyTable, ceilPowerOfTwo(4*len(keys)+2))
	for i, k := range keys {
		x[slotOf(x, keys, hkey[K]{Hash: hash(k), Key: k})] = i + 1
	}
	return x
}

// slotOf returns the slot of k in x, or the one where it belongs.
func slotOf[K comparable](x keyTable, keys []K, k hkey[K]) int {
	mask := len(x) - 1
	for at := int(k.Hash) & mask; ; at = (at + 1) & mask {
		if i := x[at]; i == 0 || keys[i-1] == k.Key {
			return at
		}
	}
}

// keyList numbers keys in the order in which they are added. It belongs to
// one goroutine.
type keyList[K comparable] struct {
	keys  []K
	table keyTable // nil until a key has been looked for
}

// append numbers k, which is new, while no key has been looked for.
func (l *keyList[K]) append(k K) { l.keys = append(l.keys, k) }

// add returns the number of k, and whether it is new.
func (l *keyList[K]) add(k K, hash func(K) uint64) (i int, isNew bool) {
	if 2*len(l.keys)+2 > len(l.table) {
		l.table = keyTableOf(l.keys, hash)
	}
	at := slotOf(l.table, l.keys, hkey[K]{Hash: hash(k), Key: k})
	if i := l.table[at]; i != 0 {
		return i - 1, false
	}
	l.keys = append(l.keys, k)
	l.table[at] = len(l.keys)
	return len(l.keys) - 1, true
}

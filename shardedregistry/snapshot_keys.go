package shardedregistry

// index finds keys in a list. It holds the numbers of the keys plus 1, each in
// the first slot that was free from that of its hash on, and 0 elsewhere. The
// count of slots is a power of two, and at least half of them are free.
type index []int

// indexOf returns an index of different keys, with room for as many more. It
// hashes them.
func indexOf[K comparable](keys []K, hash func(K) uint64) index {
	x := make(index, ceilPowerOfTwo(4*len(keys)+2))
	for i, k := range keys {
		x[slotOf(x, keys, hkey[K]{Hash: hash(k), Key: k})] = i + 1
	}
	return x
}

// slotOf returns the slot of k in x, or the one where it belongs.
func slotOf[K comparable](x index, keys []K, k hkey[K]) int {
	mask := len(x) - 1
	for at := int(k.Hash) & mask; ; at = (at + 1) & mask {
		if i := x[at]; i == 0 || keys[i-1] == k.Key {
			return at
		}
	}
}

// directory numbers keys in the order in which they are added. It belongs to
// one goroutine.
type directory[K comparable] struct {
	keys  []K
	index index // nil until a key has been looked for
}

// append numbers k, which is new, while no key has been looked for.
func (d *directory[K]) append(k K) { d.keys = append(d.keys, k) }

// add returns the number of k, and whether it is new.
func (d *directory[K]) add(k K, hash func(K) uint64) (i int, isNew bool) {
	if 2*len(d.keys)+2 > len(d.index) {
		d.index = indexOf(d.keys, hash)
	}
	at := slotOf(d.index, d.keys, hkey[K]{Hash: hash(k), Key: k})
	if i := d.index[at]; i != 0 {
		return i - 1, false
	}
	d.keys = append(d.keys, k)
	d.index[at] = len(d.keys)
	return len(d.keys) - 1, true
}

package shardedregistry

import (
	"fmt"
	"math/bits"

	"github.com/latchfree/latchfree/internal/table"
)

// hkey is a normalised key with its hash, so that a key is hashed once for
// the choice of its shard and for the table. Comparing the hash first spares
// most comparisons of keys that differ.
type hkey[K comparable] struct {
	hash uint64
	key  K
}

// root is what every operation starts from. It is immutable but for what is
// inside the shards.
type root[K comparable, V any] struct {
	hash      func(K) uint64
	normalize func(K) (K, error) // or nil
	keys      table.Keys[K]
	shift     uint8 // of a hash, to leave the index of a shard
	shards    []shard[K, V]
}

// newRoot returns an empty registry of n shards, n a power of two.
func newRoot[K comparable, V any](n int, normalize func(K) (K, error)) *root[K, V] {
	o := &root[K, V]{
		normalize: normalize,
		keys:      table.NewKeys[K](),
		shift:     uint8(64 - bits.TrailingZeros(uint(n))),
		shards:    make([]shard[K, V], n),
	}
	o.hash = o.keys.Hash
	return o
}

// hashed returns key normalised and hashed, or an error that matches
// ErrInvalidKey if it is no key or has no hash.
func (o *root[K, V]) hashed(key K) (hkey[K], error) {
	if o.normalize != nil {
		norm, err := o.normalize(key)
		if err != nil {
			return hkey[K]{}, fmt.Errorf("%w: %w", ErrInvalidKey, err)
		}
		key = norm
	}
	if !o.keys.Comparable(key) {
		return hkey[K]{}, fmt.Errorf("%w: a key of type %T cannot be compared", ErrInvalidKey, key)
	}
	return hkey[K]{o.hash(key), key}, nil
}

// spelling returns what a cell keeps of the key that it is created with.
func (o *root[K, V]) spelling(k hkey[K], given K) *K {
	if o.normalize == nil || o.keys.Comparable(given) && given == k.key {
		return nil
	}
	kept := given // so that only a spelling that is kept moves to the heap
	return &kept
}

// shard returns the shard of a key.
func (o *root[K, V]) shard(hash uint64) *shard[K, V] {
	return &o.shards[hash>>o.shift]
}

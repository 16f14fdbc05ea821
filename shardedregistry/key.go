package shardedregistry

import (
	"fmt"

	"github.com/latchfree/latchfree/internal/table"
)

// hkey is a normalised key with its hash, so that a key is hashed once for
// the choice of its shard and for the table.
type hkey[K comparable] = table.Hashed[K]

// keyCodec is how the keys of a registry are normalised and hashed. It is
// immutable. A snapshot has a copy, which does not keep the registry alive.
type keyCodec[K comparable] struct {
	hash      func(K) uint64
	normalize func(K) (K, error) // or nil
	keys      table.Keys[K]
}

func newKeyCodec[K comparable](normalize func(K) (K, error)) keyCodec[K] {
	keys := table.NewKeys[K]()
	return keyCodec[K]{hash: keys.Hash, normalize: normalize, keys: keys}
}

// hashed returns key normalised and hashed, or an error that matches
// ErrInvalidKey if it is no key or has no hash.
func (kc *keyCodec[K]) hashed(key K) (hkey[K], error) {
	if kc.normalize != nil {
		norm, err := kc.normalize(key)
		if err != nil {
			return hkey[K]{}, fmt.Errorf("%w: %w", ErrInvalidKey, err)
		}
		key = norm
	}
	if !kc.keys.Comparable(key) {
		return hkey[K]{}, fmt.Errorf("%w: a key of type %T cannot be compared", ErrInvalidKey, unscoped(key))
	}
	return hkey[K]{Hash: kc.hash(key), Key: key}, nil
}

// rehashed returns a key that a cell has with its hash.
func (kc *keyCodec[K]) rehashed(key K) hkey[K] { return hkey[K]{Hash: kc.hash(key), Key: key} }

// spelling returns what a cell keeps of the key that it is created with.
func (kc *keyCodec[K]) spelling(k hkey[K], given K) *K {
	if kc.normalize == nil || kc.keys.Comparable(given) && given == k.Key {
		return nil
	}
	kept := given // so that only a spelling that is kept moves to the heap
	return &kept
}

// keyCodecIn returns how the keys of a namespace are normalised and hashed, given
// that of the registry. It does not keep the registry alive either.
func keyCodecIn[K comparable](space string, whole keyCodec[Scoped[K]]) keyCodec[K] {
	kc := keyCodec[K]{
		hash: func(key K) uint64 { return whole.hash(Scoped[K]{space, key}) },
		keys: table.NewKeys[K](),
	}
	if whole.normalize != nil {
		kc.normalize = func(key K) (K, error) {
			norm, err := whole.normalize(Scoped[K]{space, key})
			if err == nil && norm.Space != space {
				err = errSpace
			}
			return norm.Key, err
		}
	}
	return kc
}

package shardedregistry

import (
	"fmt"
	"reflect"

	"github.com/latchfree/latchfree/internal/table"
)

// hkey is a normalised key with its hash, so that a key is hashed once for
// the choice of its shard and for the table.
type hkey[K comparable] = table.Hashed[K]

// keyCodec is how the keys of a registry are normalised and hashed. It is
// immutable. A snapshot has a copy, which does not keep the registry alive.
type keyCodec[K comparable] struct {
	hasher    func(K) uint64     // nil, but in tests that need keys of one hash
	normalize func(K) (K, error) // or nil
	keys      table.Keys[K]
}

func newKeyCodec[K comparable](normalize func(K) (K, error)) keyCodec[K] {
	return keyCodec[K]{normalize: normalize, keys: table.NewKeys[K]()}
}

// hash returns the hash of key, which is normalised.
func (kc *keyCodec[K]) hash(key K) uint64 {
	if kc.hasher != nil {
		return kc.hasher(key)
	}
	return kc.keys.Hash(key)
}

// hashed returns key normalised and hashed, or an error that matches
// ErrInvalidKey if it is no key, has no hash or could not be found again.
func (kc *keyCodec[K]) hashed(key K) (hkey[K], error) {
	if kc.normalize != nil {
		norm, err := kc.normalize(key)
		if err != nil {
			return hkey[K]{}, &invalidKeyError{err: err}
		}
		key = norm
	}
	if !kc.keys.Comparable(key) {
		return hkey[K]{}, &invalidKeyError{reason: "a key of type " + reflect.TypeOf(key).String() + " cannot be compared"}
	}
	if key != key { //nolint:staticcheck // true for NaN
		return hkey[K]{}, &invalidKeyError{reason: fmt.Sprint(key) + " is not equal to itself"}
	}
	return hkey[K]{Hash: kc.hash(key), Key: key}, nil
}

// rehashed returns a key that a cell has with its hash.
func (kc *keyCodec[K]) rehashed(key K) hkey[K] { return hkey[K]{Hash: kc.hash(key), Key: key} }

// spelling returns what a cell keeps of the key that it is created with.
func (kc *keyCodec[K]) spelling(k hkey[K], given K) *K {
	if kc.normalize == nil || given == k.Key { // k.Key can be compared, so it compares with any
		return nil
	}
	kept := given // so that only a spelling that is kept moves to the heap
	return &kept
}

// target is where an operation that is given a key works: on that key of that
// registry. It is immutable.
//
// An operation that has found a cell goes on with the cell's key, which is equal and
// need not be the same: so nothing that stays refers to the memory of the given key.
type target[K comparable, V any] struct {
	root  *root[K, V]
	key   hkey[K] // normalised
	given K       // as the caller spelled it
}

// locate returns the target for key, or an error that matches ErrInvalidKey.
func (r *Registry[K, V]) locate(key K) (t target[K, V], err error) {
	err = r.install().aim(&t, key)
	return t, err
}

// aim makes t, which is the zero target, the one for key: what locate does, but that a
// target, which is too large for registers, is not copied.
func (rt *root[K, V]) aim(t *target[K, V], key K) (err error) {
	if t.key, err = rt.hashed(key); err == nil {
		t.root, t.given = rt, key
	}
	return err
}

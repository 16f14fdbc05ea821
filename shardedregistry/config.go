package shardedregistry

import (
	"fmt"
	"math/bits"
	"runtime"
)

// maxShards bounds Config.Shards. So many pointers take 512 KB; beyond that a
// number is a mistake.
const maxShards = 1 << 16

// Bounds of the default number of shards. Four for each processor make it
// unlikely that two who create or delete count in the same word. Fewer than 8
// save nothing worth having, and beyond 256 Len takes longer than it need.
const (
	shardsPerProc    = 4
	minDefaultShards = 8
	maxDefaultShards = 256
)

// Config holds the settings of a [Registry]. Its zero value stands for the
// defaults.
//
// With Indexes, a method that stores a record blocks on the mutex of one hash
// bucket of an index if its key is the first or the last under a value there. With
// UniqueIndexes, a method by which its key gains a value also locks one of 64
// mutexes, by the hash of that value. No function of a user runs under either.
// Methods that read are what they are without indexes.
type Config[K comparable, V any] struct {
	// Shards is the number of parts in which the keys are counted, each on a
	// cache line of its own, rounded up to a power of two: who creates or deletes
	// keys writes that of the key. 0 stands for four times GOMAXPROCS, at least 8
	// and at most 256. Negative numbers and numbers above 65,536 are errors.
	Shards int

	// Normalize returns the one spelling under which a key is stored, or an
	// error if it is no key. It is called once by every method that is given a
	// key, on the caller's goroutine, outside every lock and before anything
	// else happens. It must be safe for concurrent use, depend on nothing but
	// the key, and return its own results unchanged. Nil stores keys as they
	// are.
	Normalize func(K) (K, error)

	// Clone returns a copy of a value that shares nothing with it that anybody
	// changes. The registry then keeps and gives away copies only: it clones
	// each value that is stored, and each that is returned, yielded, or given to
	// a function, also by its snapshots. So callers may change what they have
	// given and what they have got, and functions what they are given: Check and
	// each index get a copy of their own. It is called on the caller's goroutine,
	// outside every lock, and must be safe for concurrent use. If it panics over a
	// value that is to be stored, nothing has changed; if over one that is to be
	// returned, what the method does may have been done. Nil stores and gives away
	// values as they are.
	Clone func(V) V

	// Fingerprint is for tests: it finds who changes a value behind the
	// registry's back. It returns a description of all that a value consists of
	// and refers to, for example as JSON. The registry asks for it when a value
	// is stored, and again whenever it is read, replaced or deleted, and panics
	// with key, version and both descriptions if they differ. It must be safe
	// for concurrent use, and give for one value the same each time. With it,
	// each operation costs a call of it and a look-up or two, and each key the
	// memory of a description. A loop over All asks about all values. Nil asks
	// for nothing.
	Fingerprint func(V) string

	// Check is asked about everything before it is stored for a key. Its error
	// is returned as it is by the method that wanted to store. Then, and when it
	// panics or calls runtime.Goexit, nothing has changed. Nil stores everything.
	//
	// It is given the key as it is stored, and runs on the caller's goroutine,
	// outside every lock, once for each attempt to store. It must be safe for
	// concurrent use. It may read the registry, and must not change it, nor, unless
	// there is Clone, what the value refers to.
	Check func(K, V) error

	// Indexes are functions that return the values under which a key is found
	// by ByIndex while it holds what they were given: none, one or several, in
	// any order. The map's key names the index. All that is said about Check
	// holds for them too; they run after it. What one has returned counts until
	// the key holds something else, whatever it would return meanwhile. Such a
	// string may be kept for as long as any key has that value, so return a copy of
	// what is a part of something large.
	Indexes map[string]func(K, V) []string

	// UniqueIndexes are Indexes each value of which one key at most has. A method
	// that would give a value to a second one returns a [*UniqueError], and
	// nothing has changed. A value is free for others when the method returns by
	// which its key has lost it, or shortly before: two keys swap their values by
	// way of a third. No name may be in both.
	//
	// They are of the whole registry. To make a value unique in each namespace
	// only, return it with the quoted Space of the key before it.
	UniqueIndexes map[string]func(K, V) []string

	// Transitions lets loops run over Stream. Each value that is stored, and each
	// deletion, then takes 16 bytes more, and each change some loads and two or
	// three stores more, also while there is no such loop.
	Transitions bool
}

// shards returns the number of shards, a power of two.
func (c *Config[K, V]) shards() (int, error) {
	switch {
	case c.Shards < 0:
		return 0, fmt.Errorf("shardedregistry: Config.Shards %d: must not be negative", c.Shards)
	case c.Shards > maxShards:
		return 0, fmt.Errorf("shardedregistry: Config.Shards %d: must be at most %d", c.Shards, maxShards)
	case c.Shards == 0:
		return defaultShards(runtime.GOMAXPROCS(0)), nil
	}
	return ceilPowerOfTwo(c.Shards), nil
}

// defaultShards returns the number of shards for a machine of procs
// processors.
func defaultShards(procs int) int {
	return ceilPowerOfTwo(min(max(shardsPerProc*procs, minDefaultShards), maxDefaultShards))
}

// ceilPowerOfTwo returns the least power of two that is at least n, for n ≥ 1.
func ceilPowerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

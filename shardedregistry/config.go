package shardedregistry

import (
	"fmt"
	"math/bits"
	"runtime"
	"time"
)

// maxShards bounds Config.Shards. So many pointers take 512 KB; beyond that a
// number is a mistake.
const maxShards = 1 << 16

// Bounds of the default number of shards. Four for each processor make it
// unlikely that two creations or deletions count in the same word. Fewer than 8
// save nothing worth having, and beyond 256 Len takes longer than it need.
const (
	shardsPerProc    = 4
	minDefaultShards = 8
	maxDefaultShards = 256
)

// Config holds the settings of a [Registry]. Its zero value stands for the defaults.
//
// Methods that only read never wait for what follows. A method that changes a key which a
// transaction is about to change first helps to finish that transaction: then UpdateIf and DeleteIf
// are lock-free, and all may block on the hash buckets of keys that were absent.
//
// With Indexes, UpdateIf is lock-free, and a change of values blocks on a hash bucket of the index,
// or while that grows, if its key is the first or the last under a value. With UniqueIndexes, a
// change by which its key gains a value locks one of 64 mutexes. With TTL, a creation or deletion,
// and a change whose deadline comes before the timer looks at the key next, locks one of 16.
type Config[K comparable, V any] struct {
	// Shards is the number of parts in which the keys are counted, rounded up to a power of two,
	// at most 65,536. 0 stands for four times GOMAXPROCS, at least 8 and at most 256. A part takes
	// 8 bytes, and 88 more once it has had a key, or after Restore.
	Shards int

	// Normalize returns the one spelling under which a key is stored, or an error if the key is
	// invalid. Every method that takes a key calls it once. It must be safe for concurrent use,
	// depend on nothing but the key, and return its own results unchanged. Nil stores keys as they
	// are.
	Normalize func(K) (K, error)

	// Check may reject a value, by an error, before it is stored. It gets the key as it is stored,
	// runs once for each attempt to store, and must be safe for concurrent use. It may read the
	// registry, but must not change it, nor what the value refers to. Nil accepts everything.
	Check func(K, V) error

	// Indexes are functions that return the values under which ByIndex finds a key while it holds
	// the entity that they were given: none, one or several. The map's key names the index. They
	// run after Check, and all that is said about Check holds for them too. The result counts until
	// the key holds something else. The registry keeps such a string as long as any key has that
	// value: clone a substring of a large string.
	Indexes map[string]func(K, V) []string

	// UniqueIndexes are Indexes in which each value has at most one key. A method that would give a
	// value to a second key returns a [*UniqueError]. A value is free for others by the time that
	// the method returns by which its key loses it. To swap the values of two keys, use a
	// transaction. No name may be in both maps.
	UniqueIndexes map[string]func(K, V) []string

	// TTL says how long an entity lives: when that time has passed and the key still has the same
	// version, the registry deletes it, and watchers get an Event with Expired. Zero or less
	// expires immediately, [math.MaxInt64] never. Nil expires nothing. All that is said about Check
	// holds for TTL.
	//
	// Reads look at no clock: an entity is present, and can be changed and renewed, until a timer
	// has deleted it, on a busy machine some milliseconds late, and later if many expire at once.
	// No entity expires early: deadlines are rounded up to milliseconds. No timer keeps a registry
	// alive.
	//
	// An entity takes some 120 bytes more, or 95 if it never expires.
	TTL func(K, V) time.Duration

	// History is how many changes are remembered for WatchFrom, rounded up to a power of two, at
	// most 16,777,216. Each takes 8 bytes at once, and later its key, what was stored, and 32
	// bytes. Each change of a key then writes one counter, which writers contend for, and
	// UpdateIf and DeleteIf are lock-free.
	History int
}

// history returns the number of changes that are remembered: 0 or a power of two.
func (c *Config[K, V]) history() (int, error) {
	switch {
	case c.History < 0:
		return 0, fmt.Errorf("shardedregistry: Config.History %d: must not be negative", c.History)
	case c.History > maxHistory:
		return 0, fmt.Errorf("shardedregistry: Config.History %d: must be at most %d", c.History, maxHistory)
	case c.History == 0:
		return 0, nil
	}
	return ceilPowerOfTwo(c.History), nil
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

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

// Config holds the settings of a [Registry]. Its zero value stands for the
// defaults.
//
// With Indexes, a method that stores or deletes may block, and UpdateIf is
// lock-free instead of wait-free. A change that moves a key to or from a value
// repeats a compare-and-swap while other keys come to the same value or leave
// it. It blocks on the mutex of one hash bucket of the index, or while the
// table of that index grows, if its key is the first or the last under the
// value. With UniqueIndexes, a change by which its key gains a value also locks
// one of 64 mutexes, chosen by the hash of the value.
//
// A method that is to change a key which a transaction is about to change helps it
// first, and UpdateIf and DeleteIf are lock-free then. It blocks, as that does, on
// the mutexes of the hash buckets of keys that were absent. For TTL see there.
//
// No function that a caller supplies runs under any of these mutexes. Methods
// that only read are not affected: they neither help nor wait.
type Config[K comparable, V any] struct {
	// Shards is the number of parts in which the keys are counted, rounded up to
	// a power of two. A creation or deletion writes the counters of its key's
	// part, which have a cache line of their own. 0 stands for four times
	// GOMAXPROCS, at least 8 and at most 256. Negative numbers and numbers above
	// 65,536 are errors. A part takes 8 bytes, and 88 more once it has had a key,
	// or once Restore was called.
	Shards int

	// Normalize returns the one spelling under which a key is stored, or an
	// error if the key is invalid. Every method that is given a key calls it
	// once, on the caller's goroutine, outside every lock and before anything
	// else. It must be safe for concurrent use, depend on nothing but the key,
	// and return its own results unchanged. So a caller that wants to know under
	// which key Create, Put or UpdateIf has stored a value may call it too; methods
	// that return an Entry have that key in it. Nil stores keys as they are.
	Normalize func(K) (K, error)

	// Check may reject a value before it is stored for a key. The method that
	// was to store the value returns the error of Check as it is. Then, and when
	// Check panics or calls runtime.Goexit, nothing has changed. Nil accepts
	// everything.
	//
	// Check is given the key as it is stored. It runs on the caller's goroutine,
	// outside every lock, once for each attempt to store, and must be safe for
	// concurrent use. It may read the registry. It must change neither that nor
	// what the value refers to.
	Check func(K, V) error

	// Indexes are functions that return the values under which ByIndex finds a
	// key while it holds the entity that they were given: none, one or several,
	// in any order. The map's key names the index. They run after Check, and all
	// that is said about Check holds for them too. The result of a function
	// counts until the key holds something else, whatever the function would
	// return later. The registry may keep such a string as long as any key has
	// that value, so return a copy of a part of a large string.
	Indexes map[string]func(K, V) []string

	// UniqueIndexes are Indexes in which each value has at most one key. A
	// method that would give a value to a second key returns a [*UniqueError],
	// and nothing has changed. A value becomes free for others when the method
	// by which its key loses it returns, or shortly before. So two keys swap
	// their values by way of a third. No name may be in both maps.
	//
	// The values are unique in the whole registry. To make a value unique for
	// each tenant only, return it with the quoted tenant of the key before it.
	UniqueIndexes map[string]func(K, V) []string

	// TTL says how long an entity lives: when that time has passed since TTL returned, and
	// the key still has the version that was stored then, the registry deletes it. Watch and
	// all that tells of changes show such a deletion as Expired. Each change of a key has a
	// deadline of its own, and Renew gives a version another one. Zero or less means at once,
	// so time.Until of a deadline will do; [math.MaxInt64] means never. Nil means that
	// entities live until they are deleted.
	//
	// An entity is never deleted before its deadline, which is rounded up to whole
	// milliseconds since the registry was made. The clock is monotonic. Reads look at no
	// clock: an entity is present, and can be changed and renewed, until a timer of the
	// registry has deleted it. That is later than the deadline by as much as the timer is
	// late, on a busy machine some milliseconds, and by the time that the deletions take
	// whose deadlines come first. They take place one after the other in each of 16 parts
	// of the keys, on a goroutine that ends with them. There is no other goroutine. No
	// timer keeps a registry alive that nobody uses any more: its timers are stopped when the
	// garbage collector finds it.
	//
	// TTL is given the key as it is stored. It runs on the caller's goroutine, outside every lock, once for each attempt to store, after Check and
	// the indexes, and must be safe for concurrent use. If it panics or calls runtime.Goexit,
	// nothing has changed.
	//
	// Each entity takes some 60 bytes more, or 30 if it never expires. What is said above about methods that block with
	// Indexes holds with TTL too: a creation or deletion, and a change whose deadline comes
	// before the time at which the timer looks at the key next, locks one of 16 mutexes,
	// chosen by the hash of the key.
	TTL func(K, V) time.Duration

	// History is how many changes are remembered for WatchFrom, rounded up to a
	// power of two. 0 remembers none. Negative numbers and numbers above
	// 16,777,216 are errors. A change that is remembered keeps its key and what was
	// stored, or, of a deletion, what was there before; it takes 32 bytes besides, in
	// blocks of Go's allocator, and 8 bytes more from the beginning. Each entity takes
	// 16 bytes more. Each change of any key then writes one counter, which writers of
	// different keys contend for, and wakes the loops over WatchFrom that sleep.
	// UpdateIf and DeleteIf are lock-free then.
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

package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// shard is what creations and deletions of a part of the keys write, beside the
// table: one cache line. The top bits of a key's hash name its shard; the table
// uses the low ones. Reads and updates need no shard.
type shard struct {
	// cells is a part of the number of cells in the table, which the table keeps.
	cells atomics.Int64

	// live is at least the number of live cells in the table, and more only by
	// the creations and deletions in progress: a creator adds one before it
	// publishes a cell, the one whose CAS killed a cell subtracts one after.
	live atomics.Int64

	// floor is at least the version of every dead record whose cell has left
	// the table. It only grows. Deleters raise it before they unlink; creators
	// read it under the mutex of the key's bucket.
	floor atomics.Uint64

	_ atomics.CacheLinePad
}

// shard returns the shard of a key that has been created.
func (rt *root[K, V]) shard(hash uint64) *shard { return rt.shardAt(hash).Load() }

// shardAt returns where the shard of a key is. It is nil until the first key of the
// shard is created; then a creator installs it by CAS and it stays.
func (rt *root[K, V]) shardAt(hash uint64) *atomics.Pointer[shard] {
	return &rt.shards[hash>>1>>(rt.shift&63)]
}

// installShard returns the shard of a key, which it makes if there is none.
func (rt *root[K, V]) installShard(hash uint64) *shard {
	at := rt.shardAt(hash)
	if s := at.Load(); s != nil {
		return s
	}
	return at.Install(new(shard))
}

// hashIn returns a hash of a key in shard i.
func (rt *root[K, V]) hashIn(i int) uint64 { return uint64(i) << (rt.shift & 63) << 1 }

package shardedregistry

import (
	"math/bits"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// root is what every operation starts from. It is immutable but for the table, the atomic pointers,
// and what is inside the shards, the constraints, the history and the expiry. The pointers that
// every change reads are in one cache line.
type root[K comparable, V any] struct {
	keyCodec[K]
	shift uint8 // of a hash, to leave the index of a shard

	// open says that keys are stored as they are given, plain that records have no ext unless
	// a snapshot is being taken, and light both, and that there is no check: then operations
	// take their fast paths.
	open, plain, light bool

	// cells has the cell of each key, for a while also after the key's deletion. It
	// begins with what every operation reads, and ends with a cache line that some
	// creations and deletions write.
	cells table.Cells[K, cell[K, V]]
	_     atomics.CacheLinePad

	check       func(K, V) error   // Config.Check, or nil
	constraints *constraints[K, V] // nil if there are no indexes
	shards      []atomics.Pointer[shard]

	// clock says which snapshots are being taken, and is nil until the first.
	// Snapshot replaces it, three times or a few more; each operation that changes a
	// key reads it.
	clock atomics.Pointer[snapshotClock]

	// subscribers has the watchers and the calls of Wait, and is nil while there are
	// none. Each replaces it by CAS as it comes and as it goes; each operation that has
	// changed a key reads it.
	subscribers atomics.Pointer[subscribers[K, V]]

	// waitlists holds, by key, where calls of Wait sleep. It is nil until the first
	// does, which installs it by CAS, and then stays. An operation that has changed a
	// key reads it while a call waits.
	waitlists atomics.Pointer[table.Table[hkey[K], waitlist]]

	history *changelog[K, V] // nil without Config.History
	expiry  *expiry[K, V]    // nil without Config.TTL
}

// newRoot returns an empty registry of n shards, n a power of two.
func newRoot[K comparable, V any](n int, normalize func(K) (K, error)) *root[K, V] {
	rt := &root[K, V]{
		keyCodec: newKeyCodec(normalize),
		shift:    uint8(63 - bits.TrailingZeros(uint(n))),
		shards:   make([]atomics.Pointer[shard], n),
	}
	rt.cells.Init(func(k K, _ uint64) uint64 { return rt.hash(k) }, 0)
	rt.cells.Spread(n, func(hash uint64) *atomics.Int64 { return &rt.installShard(hash).cells })
	rt.ease()
	return rt
}

// ease sets open, plain and light, by which operations choose their paths. It is called
// when all that they depend on was set.
func (rt *root[K, V]) ease() {
	rt.open = rt.normalize == nil && !rt.keys.Dynamic()
	rt.plain = rt.constraints == nil && rt.history == nil && rt.expiry == nil
	rt.light = rt.open && rt.plain && rt.check == nil
}

// snapshotting reports whether a snapshot is being taken. Each writer of a key asks,
// and stores a dated record if so.
func (rt *root[K, V]) snapshotting() bool {
	now := rt.clock.Load()
	return now != nil && now.collectors > 0
}

// len adds the counters of the shards.
func (rt *root[K, V]) len() int {
	n := int64(0)
	for i := range rt.shards {
		// LP(Len), a shard that was never used: the pointer is read.
		if s := rt.shards[i].Load(); s != nil {
			// LP(Len): the counter is read.
			n += s.live.Load()
		}
	}
	return int(n)
}

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

var _ = inlined

// inlined makes the methods of the words that this package uses inlinable in
// the packages that instantiate it; see internal/atomics/inline.go. It is never
// called.
func inlined(i *atomics.Int64, s *atomics.Uint32, u *atomics.Uint64) {
	atomics.InlineInt64(i)
	atomics.InlineUint32(s)
	atomics.InlineUint64(u)
	table.InlineTags(u.Load())
	table.InlineHash(nil, "")
}

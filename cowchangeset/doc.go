// Package cowchangeset records which change belongs to which changeset, and shares
// slices with readers that take no lock.
//
// The module has four packages. Choose by what your goroutines share:
//   - atomicbreaker: a dependency that fails. It stops the calls to it until it has recovered.
//   - cowchangeset: changes. It records who changed what, and shares slices that are mostly read.
//   - oncecache: resources (meters, engines, clients). It creates one per key, and closes it after its last use.
//   - shardedregistry: data with versions. It compares, updates, indexes and watches entities.
//
// A [Tracker] is a sequence of changesets. Many goroutines record entries; now and
// then one of them starts the next changeset, which seals the one before it:
//
//	var tracker cowchangeset.Tracker[Change] // ready to use
//
//	plan, err := tracker.Start(ctx)         // the current changeset from now on
//	receipt, err := tracker.Record(change)  // into the current one; the receipt names it
//	final, err := plan.Seal(ctx)            // no entry comes after this
//	for seq, change := range final.All() { … }
//
// A [Slice] is a copy-on-write slice: Load returns a real slice, which never
// changes, and Append takes amortised constant time.
//
// # Guarantees
//
// A Record that succeeds puts its entry into exactly one changeset: the one that was
// current when it took effect. Its [Receipt] names that. Record does not fail while one
// Start follows another.
//
// Reads see a cut: a prefix of the order in which entries took effect. It contains the
// caller's own earlier entries, has all entries of a batch or none, and never changes.
//
// A stalled goroutine delays no other: others do its work or go past it. A cut voids the
// slot of a Record that stalls, which takes a later one; so Seq, which numbers the entries
// of a changeset, may skip numbers. Only Follow and the channel of Sealed wait for others.
//
// In the terms of the Go memory model, a Record that returned synchronizes before each
// read that yields its entry, and each Seal of its changeset. A Start synchronizes before
// each Record that returns its changeset's ordinal, and an Append or Update before each
// Load that returns its items.
//
// # Durability
//
// With [Config].Store, entries outlive the process: Record returns when the store has the entry,
// and Records that wait at the same time share one call of the store. When the store fails or hangs,
// the tracker in memory goes on, returns a [StoreError], and calls the store again later. [Resume]
// makes a tracker of what a store holds. Package journal is a store in files, and the module
// integrations/sqlstore one in SQLite or PostgreSQL. A tracker needs no closing; call Flush before
// you close its store.
//
// # Costs
//
// Record is two atomic read-modify-writes, one of them on a word that all recording
// goroutines share, and allocates only slots. Slice.Load is two atomic loads. A tracker
// keeps every changeset in memory until [Tracker.Prune] forgets it. Set and Delete copy a
// Slice: if items are mostly replaced one by one, use a map.
package cowchangeset

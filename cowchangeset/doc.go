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
// A Record that succeeds puts its entry into exactly one changeset: the one that
// was current when the Record took effect. Its [Receipt] names that changeset. A
// sealed changeset gets no more entries, and its [Final] has all entries whose
// Record succeeded. Record does not fail while one Start follows another: there is
// no moment without a current changeset.
//
// Reads see a cut: Entries, Len and [Tracker.Trail] see a prefix of the order in
// which entries took effect. The prefix contains the caller's own earlier entries. A
// cut stays the same whenever it is read, and has all entries of a batch or none.
//
// A stalled goroutine, anywhere in this package, delays no other: others do its work
// or go past it. In particular, a cut waits only a moment for a Record that is under
// way. Then it voids that Record's slot, and the Record takes a later one. Only two
// operations wait for others and cannot do their work: a receive from the channel of
// [Changeset.Sealed] waits for the sealer, or for any other operation that sees the
// seal; a [Changeset.Follow] or [Tracker.Follow] that sleeps waits to be woken after a
// Record, a seal or a Start.
//
// Entries are numbered by Seq and changesets by Ordinal. Of two Records of one
// goroutine, the earlier one has the smaller pair. Seq may skip numbers: those of
// voided slots, like those of aborted transactions in a database sequence.
//
// # Memory model
//
// In the terms of the Go memory model, a Record that returned synchronizes before
// each read that yields its entry. A Start synchronizes before each Record that
// returns its changeset's ordinal. A Record into a changeset synchronizes before the
// return of each Seal of it. An Append or Update synchronizes before each Load that
// returns its items.
//
// # Durability
//
// With [Config].Store, entries outlive the process. Record returns when the store has
// the entry; Records that wait at the same time share one call of the store, and so
// its cost. With Config.Async, Record returns at once, and [Tracker.Flush] waits;
// [Receipt] says what a crash can lose. The tracker holds no lock while it calls the
// store. When the store fails or hangs, the tracker in memory goes on, returns a
// [StoreError], and calls the store again later. [Resume] makes a tracker of the
// contents of a store. Package journal is a store in files, and
// the module integrations/sqlstore one in SQLite or PostgreSQL. Package storetest checks
// others. A tracker needs no closing; before a store is closed, call Flush.
//
// [Changeset.Apply] hands the entries of a sealed changeset to a function, once; or
// again, if the process ends before the store knows of it. [Tracker.Pending] yields
// the changesets that are left to be applied. [Changeset.Follow] yields the entries of
// an open changeset as they come, and [Tracker.Follow] those of all.
// [Trail.WriteJSONLines] writes everything recorded, while recording goes on. An example
// computes the net effect of entries, and the entries that undo them.
//
// # Costs
//
// Record is two atomic read-modify-writes, one of them on a word that all recording
// goroutines share. It allocates only slots: an entry and one word each, in chunks of
// up to 256. A cut visits the slots reserved since the last cut, each entry and each
// batch once, and none before them. Slice.Load is two atomic loads; an Append in
// place is two read-modify-writes on one word.
//
// # When not to use it
//
// A tracker keeps every changeset in memory until [Tracker.Prune] forgets it. A Slice
// whose items are mostly replaced one by one copies all of them each time; use a map or
// a registry. A single goroutine needs neither: a plain slice will do.
//
// DESIGN.md, beside this file, has the words' layouts, the invariants and the
// instruction at which each operation takes effect.
package cowchangeset

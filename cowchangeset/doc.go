// Package cowchangeset tracks which change belongs to which changeset, and
// shares slices with readers that take no lock.
//
// A [Tracker] is a sequence of changesets. Many goroutines record entries; now
// and then one starts the next changeset, which seals the one before it:
//
//	var tracker cowchangeset.Tracker[Change] // ready to use
//
//	plan, err := tracker.Start(ctx)         // the current changeset from now on
//	receipt, err := tracker.Record(change)  // into whichever is current; says which
//	final, err := plan.Seal(ctx)            // no entry comes after this
//	for seq, change := range final.All() { … }
//
// A [Slice] is a copy-on-write slice: Load returns a real slice, which never
// changes, and Append costs amortised constant time.
//
// # Guarantees
//
// A Record that succeeds puts its entry into exactly one changeset, the one
// that was current when it took effect, and its [Receipt] says which. No entry
// enters a changeset after its seal, and all that succeeded before are in the
// [Final]. While one Start follows another, Record never fails: there is no
// moment without a current changeset.
//
// What is read is a cut: Entries, Len and [Tracker.Trail] see a prefix of the
// order in which entries took effect, which contains the caller's own. A cut
// stays the same whenever it is read. A batch is in a cut whole or not at all.
//
// A goroutine that stalls, anywhere in this package, delays nobody: others do
// its work or go past it. In particular, a cut does not wait for a Record that
// is under way. It voids that Record's place, and the Record takes a later one.
// Only a receive from the channel of [Changeset.Sealed], and a [Changeset.Tail] or
// [Tracker.Tail] that sleeps, can do no work: they wait for the sealer, or any other
// operation that sees the seal, and for whoever has recorded something, or started a
// changeset, to wake them.
//
// Entries are numbered by Seq and changesets by Ordinal, and an earlier Record
// of the same goroutine has the smaller pair. Seq may skip numbers: places that
// were voided, like those of aborted transactions in a database sequence.
//
// # Memory model
//
// In the terms of the Go memory model, a Record that returned synchronizes
// before each read that yields its entry; Start, before each Record that
// returns its changeset's ordinal; a Record into a changeset, before the
// return of each Seal of it; an Append or Update, before each Load that returns
// its items.
//
// # Durability
//
// With [Config].Store, what is recorded outlives the process. Record returns when
// the store has the entry; those that wait at the same time share one call of
// the store, so that its cost is divided among them. With Config.Async it returns
// at once, and [Tracker.Flush] waits; [Receipt] says what a crash leaves. The store
// is called with nothing held: when it fails or hangs, the tracker in memory goes on,
// says so by a [StoreError], and asks it again. [Resume] makes a tracker of what a
// store has. Package journal is a store in files.
//
// [Changeset.Apply] hands the entries of a sealed changeset to a function, once, or
// again if the process ends before the store knows of it; [Tracker.Pending] says which
// are left to be applied. [Changeset.Tail] follows the entries of an open one, and
// [Tracker.Tail] those of all. [Coalesce] and [Invert] make net effects and undoing
// changes of entries, and [Trail.WriteJSONLines] writes everything recorded, while
// recording goes on.
//
// # Costs
//
// Record is two atomic read-modify-writes, one of them on a word that all
// recording goroutines share, and no allocation but for the slots: one word
// beside each entry, in chunks of up to 256. A cut visits what was reserved since
// the last one, each entry and each batch once, however much there is before
// that. Slice.Load is two atomic loads; Append in place is two
// read-modify-writes on one word.
//
// # When not to use it
//
// A tracker keeps every changeset until [Tracker.Prune] forgets it. A Slice
// whose items are mostly replaced one by one copies all of them each time; use
// a map or a registry. One goroutine alone needs neither: a plain slice will do.
//
// DESIGN.md, beside this file, has the words' layouts, the invariants and the
// instruction at which each operation takes effect.
package cowchangeset

package cowchangeset

import (
	"context"
	"iter"
	"math"
)

// Store keeps changesets where they outlive the process. A tracker with a store
// calls it outside everything that Record does in memory: never two methods at a
// time for one changeset, never two Starts at a time, and each changeset's
// methods in the order Start, Append, …, Append, Seal, then maybe Applied, and
// then maybe Abort. Methods for several changesets may run at once. Package
// journal, in the folder below, is a store.
//
// A method that fails may have done its work, or a part of it: it is called again
// with the same arguments, or more entries. So all of them must be idempotent. A
// method that returns nil promises that its work is durable.
//
// Methods run on goroutines of their own. They should return soon after ctx has
// ended, whose deadline is what Config.StoreTimeout leaves. One that panics or calls
// runtime.Goexit has failed. A method must not wait for what waits for the store: a
// Record, Flush, Seal or Start in it would wait for the method itself, and get a
// StoreError when StoreTimeout has passed, or hang if there is none.
type Store[E any] interface {
	// Start is told of a changeset before it becomes the latest one. If it
	// fails, the changeset does not come into being, and the next Start has the
	// same ordinal and maybe another ID: that replaces it.
	Start(ctx context.Context, h Header) error

	// Append adds entries, one at least, in the order of their Seq. After an
	// error it is called again with the same first entry, and maybe more behind
	// the others: what the store has by Seq, it must not add twice. Entries
	// recorded by one RecordBatch come in one call, and all or none of what a
	// call brings must survive a crash. It must not keep the slice. An entry
	// that a store refuses for good keeps all later ones of its changeset out,
	// unless it is a Validator and has refused it before.
	Append(ctx context.Context, id string, entries []Entry[E]) error

	// Seal says that the changeset is complete.
	Seal(ctx context.Context, id string, m Manifest) error

	// Abort says that the changeset, of which Seal was told, will not be
	// applied, or not further than Applied says, and why. The reason may be
	// empty.
	Abort(ctx context.Context, id, reason string) error
}

// Header says which changeset a Store is told of.
type Header struct {
	ID       string
	Ordinal  uint64
	Previous string // the ID of the changeset before it; empty for the first
}

// Entry is an entry with its place in a changeset.
type Entry[E any] struct {
	Seq   uint64
	Value E
}

// Manifest is how a Store can tell that it has all of a changeset.
type Manifest struct {
	Len  int    // the number of entries
	Last uint64 // the Seq of the last one; 0 if there is none
}

// Applier is a Store that also remembers how far changesets have been applied,
// so that Resume knows it.
type Applier interface {
	// Applied says that all entries with a Seq below next are applied; with
	// AllApplied, the whole changeset. It is called after Seal, and not more
	// than once at a time for a changeset.
	Applied(ctx context.Context, id string, next uint64) error
}

// Validator is a Store that can tell beforehand that it would never take an entry.
type Validator[E any] interface {
	// Validate returns why the store cannot keep e, or nil. It is called by those
	// who record, on their goroutines and many at once, before e is accepted: so a
	// bad entry is the error of its own Record, and keeps no others out. It looks
	// at nothing but e.
	Validate(e E) error
}

// Claimer is a Store that serves one tracker.
type Claimer interface {
	// Claim is called by New and Resume before anything else. It returns an error
	// if the store was claimed before and not released.
	Claim() error

	// Release is called by a Resume that fails after its Claim.
	Release()
}

// Pruner is a Store that can forget changesets.
type Pruner interface {
	// Prune says that the tracker has forgotten the changesets with an ordinal
	// below before. The store may forget those of them, from the oldest on, that
	// are of no more use to anyone: which these are, the store says. After that
	// Load begins with a later ordinal. Prune may be called while other methods
	// run, and out of order: then the largest number counts.
	Prune(ctx context.Context, before uint64) error
}

// AllApplied is what Applier.Applied is told when a changeset has been applied.
const AllApplied uint64 = math.MaxUint64

// Loader is a Store that can tell Resume what it has.
type Loader[E any] interface {
	Store[E]

	// Load yields the changesets in the order of their ordinals, which have no
	// gaps, or an error, after which it ends. The first one has ordinal 1 unless
	// the store is a Pruner.
	Load(ctx context.Context) iter.Seq2[Saved[E], error]
}

// Saved is a changeset as a Loader has it.
type Saved[E any] struct {
	Header
	Entries []Entry[E] // in the order of Seq
	Sealed  bool
	Aborted bool
	Reason  string // of Abort
	Applied uint64 // as told to Applier
}

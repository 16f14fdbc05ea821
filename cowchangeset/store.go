package cowchangeset

import (
	"context"
	"iter"
	"math"
)

// Store keeps changesets where they outlive the process. For one changeset, a tracker
// calls Start, Append, …, Append, Seal, then perhaps Applied, and then perhaps Abort, one
// at a time; those of several changesets may run at once, but for Start. Package storetest
// checks a store.
//
// A method that returns nil promises that its work is durable. One that fails may have
// done its work: the tracker calls it again with the same arguments, or with more entries,
// so methods must be idempotent. They should return soon after ctx has ended, and must not
// call what waits for the store. They run on goroutines of their own, and one that panics or
// calls runtime.Goexit has failed. Validate, Claim, Load and LoadEntries run on the
// caller's.
type Store[E any] interface {
	// Start announces a changeset before it becomes the latest one. If Start fails, the
	// changeset does not come into being: the next Start has the same ordinal, perhaps
	// another ID, and replaces it.
	//
	// A store must accept each ID that is UTF-8 text without NUL, not empty, at most 1,024
	// bytes long, and not yet that of another changeset. It may refuse others.
	Start(ctx context.Context, h Header) error

	// Append adds entries, at least one, in the order of their Seq. After an error it comes
	// again with the same first entry, and perhaps more: a store must not add a Seq twice.
	// All or none of a call's entries must survive a crash; a batch comes in one call.
	// Append must not keep the slice. An entry that is refused for good keeps all later
	// ones out: see Validator.
	Append(ctx context.Context, id string, entries []Entry[E]) error

	// Seal says that the changeset is complete.
	Seal(ctx context.Context, id string, m Manifest) error

	// Abort says that the changeset, which is sealed, will not be applied any further, and
	// why. The reason may be empty.
	Abort(ctx context.Context, id, reason string) error
}

// Header describes a changeset to Store.Start.
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

// Manifest lets a Store check that it has all of a changeset.
type Manifest struct {
	Len  int    // the number of entries
	Last uint64 // the Seq of the last one; 0 if there is none
}

// Applier is a Store that also remembers how far changesets have been applied.
type Applier interface {
	// Applied says that all entries with a Seq below next are applied; with AllApplied, the
	// whole changeset. It comes after Seal.
	Applied(ctx context.Context, id string, next uint64) error
}

// Validator is a Store that can say beforehand that it will never accept an entry.
type Validator[E any] interface {
	// Validate returns why the store cannot keep e, or nil. Record calls it before it
	// accepts e, on many goroutines at once. Validate must look at nothing but e.
	Validate(e E) error
}

// Claimer is a Store that serves one tracker.
type Claimer interface {
	// Claim reserves the store for one tracker, or returns an error if it was claimed and
	// not released. New and Resume call it first, on the caller's goroutine.
	Claim(ctx context.Context) error

	// Release undoes Claim. A Resume that fails calls it, and nobody else should: two
	// trackers of one store give the same receipts.
	Release()
}

// Pruner is a Store that can forget changesets.
type Pruner interface {
	// Prune says that the tracker has forgotten the changesets with an ordinal below
	// before. The store may forget those of them that are sealed, from the oldest on, but
	// not the latest. Prune may be called while other methods run, and out of order: then
	// the largest number counts.
	Prune(ctx context.Context, before uint64) error
}

// AllApplied is the argument of Applier.Applied for a changeset that has been applied
// to the end.
const AllApplied uint64 = math.MaxUint64

// Loader is a Store that can return its contents to Resume.
type Loader[E any] interface {
	Store[E]

	// Load yields the changesets in the order of their ordinals, which have no gaps. If it
	// fails, it yields the error and ends. The first ordinal is 1 unless the store is a
	// Pruner.
	Load(ctx context.Context) iter.Seq2[Saved[E], error]
}

// EntryLoader is a Loader whose Load may leave out the entries of changesets that are
// applied to the end or aborted. Those are read when somebody asks for them.
type EntryLoader[E any] interface {
	// LoadEntries yields the entries of a changeset in the order of their Seq. If it fails,
	// or there is no such changeset any more, it yields an error and ends. It runs beside
	// other methods, on the goroutine of whoever asks.
	LoadEntries(ctx context.Context, id string) iter.Seq2[Entry[E], error]
}

// Saved is a changeset as a Loader yields it.
type Saved[E any] struct {
	Header
	Entries  []Entry[E] // in the order of Seq
	Manifest Manifest   // of entries that Load has left out: see EntryLoader; else zero
	Sealed   bool
	Aborted  bool
	Reason   string // of Abort
	Applied  uint64 // as told to Applier
}

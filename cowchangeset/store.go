package cowchangeset

import (
	"context"
	"iter"
	"math"
)

// Store keeps changesets where they outlive the process. A tracker calls its store
// outside everything that Record does in memory. It never calls two methods at a time
// for one changeset, and never two Starts at a time. It calls the methods for a
// changeset in the order Start, Append, …, Append, Seal, then perhaps Applied, and then
// perhaps Abort. Methods for several changesets may run at once. Packages journal
// and integrations/sqlstore have stores; package storetest checks any other.
//
// A method that fails may have done its work, or a part of it: the tracker calls it
// again with the same arguments, or with more entries. So all methods must be
// idempotent. A method that returns nil promises that its work is durable.
//
// Methods run on goroutines of their own. They should return soon after ctx has ended;
// its deadline follows from Config.StoreTimeout. A method that panics or calls
// runtime.Goexit has failed. A method must not call an operation that waits for the
// store: a Record, Flush, Seal or Start in it would wait for the method itself, and get
// a StoreError when StoreTimeout has passed, or hang if there is none.
type Store[E any] interface {
	// Start announces a changeset to the store before it becomes the latest one. If
	// Start fails, the changeset does not come into being. Then the next Start has the
	// same ordinal and perhaps another ID, and replaces it.
	//
	// Start gets no empty ID. A store must accept each ID that is UTF-8 text without
	// NUL, has at most 1,024 bytes, and is not the ID of another changeset in it. It may
	// refuse all others: a refusal is an error as any other.
	Start(ctx context.Context, h Header) error

	// Append adds entries, at least one, in the order of their Seq. After an error the
	// tracker calls it again with the same first entry, and perhaps more behind the
	// others: the store must not add a Seq twice. Entries recorded by one RecordBatch
	// come in one call, and all or none of a call's entries must survive a crash.
	// Append must not keep the slice. An entry that a store refuses for good keeps all
	// later ones of its changeset out, unless the store is a Validator and has refused
	// it before.
	Append(ctx context.Context, id string, entries []Entry[E]) error

	// Seal says that the changeset is complete.
	Seal(ctx context.Context, id string, m Manifest) error

	// Abort says that the changeset, which is sealed, will not be applied, or not
	// further than Applied says, and why. The reason may be empty.
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

// Applier is a Store that also remembers how far changesets have been applied, so that
// Resume knows it.
type Applier interface {
	// Applied says that all entries with a Seq below next are applied; with AllApplied,
	// the whole changeset. It is called after Seal, and for one changeset not more than
	// once at a time.
	Applied(ctx context.Context, id string, next uint64) error
}

// Validator is a Store that can say beforehand that it would never take an entry.
type Validator[E any] interface {
	// Validate returns the reason why the store cannot keep e, or nil. Record calls it
	// before it accepts e, on the goroutines of its callers and many at once: a bad
	// entry is the error of its own Record, and keeps no others out. Validate must look
	// at nothing but e.
	Validate(e E) error
}

// Claimer is a Store that serves one tracker.
type Claimer interface {
	// Claim reserves the store for one tracker. New and Resume call it before anything
	// else, on the caller's goroutine. Its context is that of Resume, or never ends by
	// itself in New; Config.StoreTimeout bounds it. Claim returns an error if the store
	// was claimed before and not released, and then changes nothing.
	Claim(ctx context.Context) error

	// Release undoes Claim. A Resume that fails after its Claim calls it, and nobody else
	// should: a tracker that Resume or New has returned may go on, and two trackers of one
	// store give the same receipts.
	Release()
}

// Pruner is a Store that can forget changesets.
type Pruner interface {
	// Prune says that the tracker has forgotten the changesets with an ordinal below
	// before. The store may forget those of them that are sealed, from the oldest on, but
	// not the latest. After that Load begins with a later ordinal. Prune may be called
	// while other methods run, and out of order: then the largest number counts.
	Prune(ctx context.Context, before uint64) error
}

// AllApplied is the argument of Applier.Applied for a changeset that has been applied
// to the end.
const AllApplied uint64 = math.MaxUint64

// Loader is a Store that can return its contents to Resume.
type Loader[E any] interface {
	Store[E]

	// Load yields the changesets in the order of their ordinals, which have no gaps. If
	// it fails, it yields the error and ends. The first changeset has ordinal 1 unless
	// the store is a Pruner.
	Load(ctx context.Context) iter.Seq2[Saved[E], error]
}

// EntryLoader is a Loader whose Load may leave out the entries of changesets that are
// applied to the end or aborted. So Resume takes no longer the more of these there are.
type EntryLoader[E any] interface {
	// LoadEntries yields the entries of a changeset in the order of their Seq. If it fails,
	// it yields the error and ends. A tracker calls it beside other methods, each time that
	// somebody reads the changeset.
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

package cowchangeset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Config holds a Tracker's settings. The zero Config is valid.
type Config[E any] struct {
	// NewID returns the ID of a new changeset; nil means crypto/rand.Text. It gets the
	// context of the Start or StartAfter that calls it, so an ID can carry what the
	// changeset belongs to; the store keeps both in one call. Start calls NewID before
	// anything changes, from many goroutines at once. It may panic or block. Start
	// returns its error unchanged, and an error of its own for an empty ID. The tracker
	// does not compare IDs: they are as unique as NewID makes them. A Store can refuse
	// some: see Store.Start.
	NewID func(ctx context.Context) (string, error)

	// Store keeps the changesets where they outlive the process; see Resume. Nil means
	// that everything is in memory only.
	Store Store[E]

	// Async lets Record and RecordBatch return when the entry is in memory. The tracker
	// tells the store soon afterwards, on goroutines that end when the store knows
	// everything or has failed. After a failure the next Record, Start or Prune makes
	// them try again, each for the changeset that it is about. Only callers that wait
	// get errors, as those of Tracker.Flush do for all changesets.
	//
	// Entries that the store does not have yet are the changeset's backlog: see
	// MaxBacklog.
	//
	// Without Async, Record and RecordBatch return when the store has the entry. Calls
	// that wait at the same time share one call of the store. Entries that are not
	// durable when the process ends are lost, and their receipts with them; see
	// Receipt.
	Async bool

	// MaxBacklog bounds, for each changeset, how many entries Async takes ahead of the
	// store: zero means 65,536, and a negative value no bound. At the bound a Record waits
	// until the store has caught up. If that fails, or the Record's context ends, it
	// records nothing, and its error matches ErrBacklogFull and the StoreError. Each
	// goroutine that records may exceed the bound by one entry or batch.
	MaxBacklog int

	// RejectWhenFull makes a Record at MaxBacklog return ErrBacklogFull at once, instead
	// of waiting.
	RejectWhenFull bool

	// StoreTimeout bounds each call of the store, by the deadline of its context. It
	// also bounds how long a caller waits for a call that does not return, or for the
	// Starts that came before: the error then matches ErrStoreTimeout. Zero means a minute,
	// and a negative value no bound.
	StoreTimeout time.Duration

	// PruneUnapplied lets Prune, and thus the Store, forget changesets that are sealed,
	// and neither applied nor aborted: for trails that nobody applies.
	PruneUnapplied bool
}

// What zero settings mean.
const (
	defaultStoreTimeout = time.Minute
	defaultMaxBacklog   = 1 << 16 // a second of a fast recorder, and a few megabytes
)

// New returns a tracker with the given settings, or an error that names the wrong
// setting. It fails if the Store is a Claimer that serves another tracker.
func New[E any](config Config[E]) (*Tracker[E], error) {
	return newTracker(context.Background(), config)
}

// newTracker is New for a caller that claims the store no longer than ctx.
func newTracker[E any](ctx context.Context, config Config[E]) (*Tracker[E], error) {
	t := &Tracker[E]{newID: config.NewID, pruneUnapplied: config.PruneUnapplied}
	switch {
	case config.Async && config.Store == nil:
		return nil, errors.New("cowchangeset: Config.Async true: must be false without Config.Store")
	case config.MaxBacklog != 0 && !config.Async:
		return nil, fmt.Errorf("cowchangeset: Config.MaxBacklog %d: must be 0 without Config.Async", config.MaxBacklog)
	case config.RejectWhenFull && (!config.Async || config.MaxBacklog < 0):
		return nil, errors.New("cowchangeset: Config.RejectWhenFull true: must be false without Config.Async, or without a bound")
	case config.Store == nil:
		return t, nil
	}
	timeout := max(0, cmp.Or(config.StoreTimeout, defaultStoreTimeout))
	if err := claim(ctx, config.Store, timeout); err != nil {
		return nil, fmt.Errorf("cowchangeset: Config.Store: %w", err)
	}
	s := &storage[E]{store: config.Store, async: config.Async, calls: calls{timeout: timeout}}
	s.validator, _ = config.Store.(Validator[E])
	if config.Async {
		s.maxBacklog, s.reject = uint64(max(0, cmp.Or(config.MaxBacklog, defaultMaxBacklog))), config.RejectWhenFull
	}
	if _, ok := config.Store.(Pruner); ok {
		p := &pruning[E]{tracker: t}
		p.calls, p.backlog = &s.calls, p
		p.pruned.Store(1)
		s.pruning = p
	}
	t.storage = s
	return t, nil
}

// claim reserves the store, if it is a Claimer.
func claim(ctx context.Context, store any, timeout time.Duration) error {
	c, ok := store.(Claimer)
	if !ok {
		return nil
	}
	if timeout == 0 {
		return c.Claim(ctx)
	}
	bounded, cancel := atomics.WithTimeoutCause(ctx, timeout, ErrStoreTimeout)
	defer cancel()
	err := c.Claim(bounded)
	if err != nil && context.Cause(bounded) == ErrStoreTimeout && !errors.Is(err, ErrStoreTimeout) {
		return fmt.Errorf("%w: %v", ErrStoreTimeout, err) // whose context was not the caller's
	}
	return err
}

// MustNew is New for settings that are known to be valid; it panics on others.
func MustNew[E any](config Config[E]) *Tracker[E] {
	t, err := New(config)
	if err != nil {
		panic(err)
	}
	return t
}

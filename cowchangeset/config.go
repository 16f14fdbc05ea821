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
	// context of the Start that calls it, and runs before anything changes, on many
	// goroutines at once. It may panic or block. Start returns its error, and one of its
	// own for an empty ID. The tracker does not compare IDs.
	NewID func(ctx context.Context) (string, error)

	// Store keeps the changesets where they outlive the process. Use Resume unless the
	// store is empty: a tracker of New begins with the first changeset. Nil means in memory
	// only.
	Store Store[E]

	// Async lets Record return when the entry is in memory. Entries that are not durable when the
	// process ends are lost, and their receipts with them. The tracker writes to the store soon
	// afterwards, on goroutines of its own. After a failure the next Record, Start or Prune makes
	// it try again, one changeset after the other; only callers that wait, as in Flush, get errors.
	Async bool

	// MaxBacklog bounds, for each changeset, how many entries Async may be ahead of the store: zero
	// means 65,536, a negative value no bound. At the bound a Record waits for the store. If the
	// store fails, or the Record's context ends, nothing is recorded, and the error matches
	// ErrBacklogFull and the StoreError. Each goroutine that records may exceed the bound by one
	// entry or batch.
	MaxBacklog int

	// RejectWhenFull makes a Record at MaxBacklog return ErrBacklogFull at once.
	RejectWhenFull bool

	// StoreTimeout bounds each call of the store but Load and Validate, by its context, and how
	// long callers wait for those that are made in the background; a Record may wait for several. The
	// error then matches ErrStoreTimeout. Zero means a minute, a negative value no bound.
	StoreTimeout time.Duration

	// PruneUnapplied lets Prune, and thus the Store, also forget changesets that are sealed but
	// neither applied nor aborted: for trails that nobody applies.
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
	if c, ok := config.Store.(Claimer); ok {
		if err := bounded(ctx, timeout, c.Claim); err != nil {
			return nil, fmt.Errorf("cowchangeset: Config.Store: %w", err)
		}
	}
	s := &storage[E]{store: config.Store, async: config.Async, timeout: timeout}
	s.validator, _ = config.Store.(Validator[E])
	if config.Async {
		s.maxBacklog, s.reject = uint64(max(0, cmp.Or(config.MaxBacklog, defaultMaxBacklog))), config.RejectWhenFull
	}
	if _, ok := config.Store.(Pruner); ok {
		s.pruner = &flusher[E]{storage: s, tracker: t}
		s.pruner.durable.Store(1)
	}
	t.storage = s
	return t, nil
}

// bounded calls a store on the caller's goroutine, with a context that ends after the
// timeout; zero is none.
func bounded(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	if timeout == 0 {
		return call(ctx)
	}
	bounded, cancel := atomics.WithTimeoutCause(ctx, timeout, ErrStoreTimeout)
	defer cancel()
	err := call(bounded)
	if err != nil && context.Cause(bounded) == ErrStoreTimeout && !errors.Is(err, ErrStoreTimeout) {
		return fmt.Errorf("%w: %v", ErrStoreTimeout, err) // whose context was not the caller's
	}
	return err
}

// MustNew is like New but panics if a setting is wrong.
func MustNew[E any](config Config[E]) *Tracker[E] {
	t, err := New(config)
	if err != nil {
		panic(err)
	}
	return t
}

package cowchangeset

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Config holds a Tracker's settings. The zero Config is valid.
type Config[E any] struct {
	// NewID returns the ID of a new changeset; nil means crypto/rand.Text. It
	// is called from Start, by many goroutines at once, before anything
	// changes; it may panic or block. The tracker does not compare IDs: they
	// are as unique as NewID makes them. An empty ID makes Start fail.
	NewID func() string

	// Store keeps what is recorded where it outlives the process; see Resume.
	// Nil means that everything is in memory only.
	Store Store[E]

	// Async lets Record and RecordBatch return when the entry is in memory. The
	// store is told soon afterwards, on goroutines that end when it knows all, or
	// has failed. Then the next Record, Start or Prune makes them try again, each
	// for the changeset that it is about. Errors reach only callers that wait, as
	// Tracker.Flush does for all changesets. Without Async they return when the store
	// has the entry. Those that wait at the same time share one call of the store.
	// What was not durable when the process ends is lost, and its receipts with it;
	// see Receipt.
	Async bool

	// StoreTimeout bounds each call of the store, by the deadline of its context,
	// and how long anyone waits for one that does not return, or for the Starts
	// that have come before. Zero means a minute, and less than zero no bound.
	StoreTimeout time.Duration
}

// defaultStoreTimeout is what Config.StoreTimeout says.
const defaultStoreTimeout = time.Minute

// New returns a tracker with the given settings, or an error that names the one
// at fault: a Store that is a Claimer may serve another tracker.
func New[E any](config Config[E]) (*Tracker[E], error) {
	t := &Tracker[E]{newID: config.NewID}
	if config.Store == nil {
		if config.Async {
			return nil, errors.New("cowchangeset: Config.Async true: must be false without Config.Store")
		}
		return t, nil
	}
	if c, ok := config.Store.(Claimer); ok {
		if err := c.Claim(); err != nil {
			return nil, fmt.Errorf("cowchangeset: Config.Store: %w", err)
		}
	}
	s := &storage[E]{store: config.Store, async: config.Async, calls: calls{timeout: max(0, config.StoreTimeout)}}
	if config.StoreTimeout == 0 {
		s.timeout = defaultStoreTimeout
	}
	s.validator, _ = config.Store.(Validator[E])
	if _, ok := config.Store.(Pruner); ok {
		p := &pruning[E]{of: t}
		p.calls, p.backlog = &s.calls, p
		p.pruned.Store(1)
		s.pruning = p
	}
	t.storage = s
	return t, nil
}

// MustNew is New for settings that are known to be valid; it panics on others.
func MustNew[E any](config Config[E]) *Tracker[E] {
	t, err := New(config)
	if err != nil {
		panic(err)
	}
	return t
}

// id returns the ID of a new changeset. It runs user code.
func (t *Tracker[E]) id() (string, error) {
	newID := t.newID
	if newID == nil {
		newID = rand.Text
	}
	id := newID()
	if id == "" {
		return "", errEmptyID
	}
	return id, nil
}

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

type (
	item  = cowchangeset.Entry[int]
	saved = cowchangeset.Saved[int]
)

var errDisk = errors.New("disk full")

// memory is a store that notes what it is told, and whether it may be told that.
type memory struct {
	mu       sync.Mutex
	sets     map[string]*saved
	order    []string // by ordinal
	busy     map[string]bool
	thanked  map[string]uint64 // the Seq after those of which Append has returned nil
	calls    []string          // method, ID and arguments
	mistakes []string          // of the tracker

	// fault is called before a method does its work, on the method's goroutine,
	// and its error is the method's. Late is the same when the work is done.
	fault, late func(ctx context.Context, method, id string) error
}

// kept returns a tracker with numbers for IDs, and its store.
func kept(config cowchangeset.Config[int]) (*cowchangeset.Tracker[int], *memory) {
	m := newMemory()
	config.Store = m
	return inOrder(config), m
}

// inOrder returns a tracker with numbers for IDs, which forgets what nobody has applied.
func inOrder(config cowchangeset.Config[int]) *cowchangeset.Tracker[int] {
	var n atomic.Int32
	config.PruneUnapplied = true
	config.NewID = func(context.Context) (string, error) { return fmt.Sprint(n.Add(1)), nil }
	return cowchangeset.MustNew(config)
}

// forgetful is a memory that is a Pruner, and forgets all that it may.
type forgetful struct {
	*memory
	before uint64 // as it was told when Prune returned nil
}

// forgetting is kept, for a store that is a Pruner.
func forgetting(config cowchangeset.Config[int]) (*cowchangeset.Tracker[int], *forgetful) {
	f := &forgetful{memory: newMemory()}
	config.Store = f
	return inOrder(config), f
}

func (f *forgetful) Prune(ctx context.Context, before uint64) error {
	err := f.call(ctx, "Prune", "", fmt.Sprint(" ", before), func() error {
		if before <= f.before {
			f.mistake("Prune of %d after %d", before, f.before)
		}
		for len(f.order) > 0 && f.sets[f.order[0]].Ordinal < before {
			if s := f.sets[f.order[0]]; !s.Sealed {
				f.mistake("Prune of %d, which has %+v", before, s)
			}
			f.order = f.order[1:]
		}
		return nil
	})
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.before = before
	}
	return err
}

func newMemory() *memory {
	return &memory{sets: map[string]*saved{}, busy: map[string]bool{}, thanked: map[string]uint64{}}
}

// call runs a method. Start is the method of no changeset, and excludes itself.
func (m *memory) call(ctx context.Context, method, id, args string, do func() error) (err error) {
	key := id
	if method == "Start" {
		key = "Start"
	}
	m.mu.Lock()
	m.calls = append(m.calls, fmt.Sprint(method, " ", id, args))
	if m.busy[key] {
		m.mistake("%s of %s while another call is under way", method, key)
	}
	m.busy[key] = true
	fault, late := m.fault, m.late
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.busy[key] = false
		m.mu.Unlock()
	}()
	if fault != nil {
		if err := fault(ctx, method, id); err != nil {
			return err
		}
	}
	m.mu.Lock()
	err = do()
	m.mu.Unlock()
	if late != nil && err == nil {
		err = late(ctx, method, id)
	}
	return err
}

func (m *memory) mistake(format string, args ...any) {
	m.mistakes = append(m.mistakes, fmt.Sprintf(format, args...))
}

func (m *memory) Start(ctx context.Context, h cowchangeset.Header) error {
	return m.call(ctx, "Start", h.ID, fmt.Sprint(" ", h.Ordinal), func() error {
		n := int(h.Ordinal)
		if len(m.order) > 0 {
			n -= int(m.sets[m.order[0]].Ordinal) - 1 // it may have forgotten some
		}
		if n == len(m.order) && len(m.sets[m.order[n-1]].Entries) == 0 && !m.sets[m.order[n-1]].Sealed { // never came into being
			delete(m.sets, m.order[n-1])
			m.order = m.order[:n-1]
		}
		previous := ""
		if len(m.order) > 0 {
			previous = m.order[len(m.order)-1]
		}
		if n != len(m.order)+1 || h.Previous != previous {
			m.mistake("Start of %+v after %v", h, m.order)
		}
		m.order = append(m.order, h.ID)
		m.sets[h.ID] = &saved{Header: h}
		return nil
	})
}

func (m *memory) Append(ctx context.Context, id string, entries []item) error {
	err := m.call(ctx, "Append", id, fmt.Sprint(" ", entries), func() error {
		s := m.sets[id]
		if s == nil || s.Sealed || len(entries) == 0 {
			m.mistake("Append of %v to %+v", entries, s)
			return nil
		}
		if entries[0].Seq < m.thanked[id] {
			m.mistake("entries %v come again without a failure", entries)
		}
		for i, e := range entries {
			if i > 0 && e.Seq <= entries[i-1].Seq {
				m.mistake("entries %v", entries)
			}
			if n := len(s.Entries); n == 0 || e.Seq > s.Entries[n-1].Seq {
				s.Entries = append(s.Entries, e)
			} else if !slices.Contains(s.Entries, e) {
				m.mistake("entry %v comes late, or anew", e)
			}
		}
		return nil
	})
	if err == nil && len(entries) > 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.thanked[id] = entries[len(entries)-1].Seq + 1
	}
	return err
}

func (m *memory) Seal(ctx context.Context, id string, manifest cowchangeset.Manifest) error {
	return m.call(ctx, "Seal", id, fmt.Sprint(" ", manifest.Len), func() error {
		s := m.sets[id]
		last := uint64(0)
		if n := len(s.Entries); n > 0 {
			last = s.Entries[n-1].Seq
		}
		if manifest != (cowchangeset.Manifest{Len: len(s.Entries), Last: last}) {
			m.mistake("%+v with the manifest %+v", s, manifest)
		}
		s.Sealed = true
		return nil
	})
}

func (m *memory) Abort(ctx context.Context, id, reason string) error {
	return m.call(ctx, "Abort", id, " "+reason, func() error {
		s := m.sets[id]
		if !s.Sealed || s.Aborted && s.Reason != reason {
			m.mistake("Abort of %+v", s)
		}
		s.Aborted, s.Reason = true, reason
		return nil
	})
}

func (m *memory) Applied(ctx context.Context, id string, next uint64) error {
	return m.call(ctx, "Applied", id, fmt.Sprint(" ", int64(next)), func() error {
		s := m.sets[id]
		if !s.Sealed || s.Aborted || next < s.Applied {
			m.mistake("Applied %d of %+v", next, s)
		}
		s.Applied = next
		return nil
	})
}

func (m *memory) Load(context.Context) iter.Seq2[saved, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []saved
	for _, id := range m.order {
		all = append(all, *m.sets[id])
	}
	return func(yield func(saved, error) bool) {
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// values returns what the store has of a changeset.
func (m *memory) values(id string) (vs []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sets[id]; s != nil {
		for _, e := range s.Entries {
			vs = append(vs, e.Value)
		}
	}
	return vs
}

// has returns what the store has of a changeset.
func (m *memory) has(id string) saved {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.sets[id]
}

func (m *memory) ids() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.order)
}

// faults sets what fails from now on.
func (m *memory) faults(f func(ctx context.Context, method, id string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

// lateFaults sets what fails although it has done its work.
func (m *memory) lateFaults(f func(ctx context.Context, method, id string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.late = f
}

func (m *memory) called() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// together runs f(0) to f(n-1), each on a goroutine of its own, which all start
// when the last one is there.
func together(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	done.Wait()
}

// blunders returns the mistakes of the tracker.
func (m *memory) blunders() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mistakes)
}

func (m *memory) check(t *testing.T) {
	t.Helper()
	for _, s := range m.blunders() {
		t.Error("the tracker's mistake:", s)
	}
}

func wantValues(t *testing.T, m *memory, id string, want ...int) {
	t.Helper()
	if got := m.values(id); !slices.Equal(got, want) {
		t.Errorf("the store has %v of %s, want %v", got, id, want)
	}
}

func wantStoreError(t *testing.T, err error, method string, cause error) {
	t.Helper()
	var s *cowchangeset.StoreError
	if !errors.As(err, &s) || s.Method != method || !errors.Is(err, cowchangeset.ErrStore) || !errors.Is(err, cause) {
		t.Errorf("%v, want a StoreError of %s, %v", err, method, cause)
	}
}

// Package history lets goroutines work on a shared value, notes when each of
// their operations began and ended, and asks porcupine whether the operations
// can have taken effect one at a time, each between its begin and its end.
//
// The value is the real one: nothing is instrumented, and interleavings are
// those that the scheduler and the processors happen to produce. What was
// found is proven, what was not is not: for that there is internal/tools/mc.
package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// An Event is an operation that took place, with its arguments and results. S
// is a state of the sequential model, and comparable.
type Event[S comparable] interface {
	// After returns the state that follows s, and whether the operation, in
	// s, has the results that it had.
	After(s S) (S, bool)

	// Kind names the operation and its outcome, of which a test may require
	// that it was reached.
	Kind() string

	// String describes the operation with arguments and results.
	String() string
}

// A WholeEvent is one on all keys at once; see Trial.Whole.
type WholeEvent[S comparable] interface {
	Event[S]
	// AfterAll is After for the states of all keys.
	AfterAll(Whole[S]) (Whole[S], bool)
}

// Whole is the states of all keys.
type Whole[S comparable] [maxKeys]S

const (
	maxKeys = 3

	// AllKeys is the key of a WholeEvent.
	AllKeys = -1
)

// clock numbers the begins and ends of a history's operations.
//
// It is a counter and no time of day: whatever returned before something else
// was called has the smaller number, on every machine, and no two numbers are
// equal. So it does not matter that porcupine's intervals are closed, and no
// two operations that follow each other pass for concurrent, as those within
// one tick of a coarse clock would.
//
// All goroutines meet at its cache line, between operations and not within
// them. To the race detector that orders more than the operations do, which
// is why data races are for the packages' own stress tests to find.
type clock struct{ ticks atomic.Int64 }

func (c *clock) now() int64 { return c.ticks.Add(1) }

// record is an event with its place in the history.
type record[S comparable] struct {
	key      int
	whole    bool // it is in a history of all keys
	client   int
	second   bool  // the second half of an operation, which may overlap the first
	from, to int64 // it took effect after from and before to
	event    Event[S]
}

// overlap reports whether operations of different clients overlap in a history,
// which is sorted.
func overlap[S comparable](history []record[S]) bool {
	end, client := int64(-1), -1 // of the latest end so far
	for _, r := range history {
		if r.from < end && r.client != client {
			return true
		}
		if r.to > end {
			end, client = r.to, r.client
		}
	}
	return false
}

// parts splits a history into those of each key, unless it is to be checked as
// a whole, and sorts them by begins.
func parts[S comparable](all []record[S], whole bool) map[int][]record[S] {
	keys := map[int][]record[S]{}
	for _, r := range all {
		k := r.key
		if r.whole = whole; whole {
			k = AllKeys
		}
		keys[k] = append(keys[k], r)
	}
	for _, h := range keys {
		slices.SortFunc(h, func(a, b record[S]) int { return cmp.Compare(a.from, b.from) })
	}
	return keys
}

// describe describes the operation, and its key if it is one of several.
func (r record[S]) describe() string {
	if r.whole && r.key != AllKeys {
		return fmt.Sprintf("key %d: %v", r.key, r.event)
	}
	return r.event.String()
}

// text describes a history, one operation a line: the client, the times, and
// what it was.
func text[S comparable](history []record[S]) string {
	var b strings.Builder
	for _, r := range history {
		fmt.Fprintf(&b, "\t%d [%4d, %4d] %s\n", r.client, r.from, r.to, r.describe())
	}
	return b.String()
}

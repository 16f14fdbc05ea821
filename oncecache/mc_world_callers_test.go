//go:build modelcheck

package oncecache_test

import "testing"

// Callers of one creation come and go. Nobody gets the end of another's
// context, or an error that may come from a cancellation; create functions do
// not overlap; nobody waits for ever. A caller is written with its context: a
// and b can end, ∞ cannot.
func TestProtocolsOfCallers(t *testing.T) {
	type threads = [][]deed
	none := []deed(nil)
	for _, tt := range []struct {
		name    string
		rule    rule
		first   []deed
		threads threads
	}{
		{"all endings", rule{}, none, threads{{askFor(0, 1, inError, inPanic, inGoexit)}, {askFor(1, 2, inError)}}},
		{"on the caller's goroutine", rule{}, none, threads{{askFor(never, 1, inError, inPanic, inGoexit)}, {askFor(0, 2, inError)}, {leaves(0)}}},
		{"the only one leaves", rule{}, none, threads{{askFor(0, 1, inError, inPanic, inGoexit)}, {leaves(0)}}},
		{"one of two leaves", rule{}, none, threads{{askFor(0, 1, inError)}, {askFor(1, 2)}, {leaves(0)}}},
		{"both leave", rule{}, none, threads{{askFor(0, 1, inError)}, {askFor(1, 2)}, {leaves(0), leaves(1)}}},
		{"an heir", rule{}, none, threads{{askFor(0, 1, inError, inPanic, inGoexit)}, {leaves(0), askFor(1, 2)}}},
		{"an heir who leaves", rule{}, none, threads{{askFor(0, 1, inError)}, {leaves(0), askFor(1, 2)}, {leaves(1)}}},
		{"a plain heir", rule{}, none, threads{{askFor(0, 1, inError)}, {leaves(0)}, {plain(2, inError)}}},
		{"a plain creator", rule{}, none, threads{{plain(1, inError)}, {askFor(0, 2, inError)}, {leaves(0)}}},
		{"Set", rule{overlap: true}, none, threads{{askFor(0, 1, inError, inPanic)}, {sets(5)}, {leaves(0)}}},
		{"Set and a waiter", rule{overlap: true}, none, threads{{askFor(0, 1, inError)}, {askFor(1, 2)}, {sets(5)}}},
		{"Delete", rule{overlap: true}, none, threads{{askFor(0, 1, inError, inPanic)}, {deletes}, {leaves(0)}}},
		{"Delete and an heir", rule{overlap: true}, none, threads{{askFor(0, 1, inError), deletes}, {leaves(0), askFor(1, 2)}}},
		{"Delete and then an heir", rule{overlap: true}, none, threads{{askFor(0, 1, inError)}, {deletes, leaves(0), askFor(1, 2)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { inhabit(t, tt.rule, tt.first, tt.threads...) })
	}
}

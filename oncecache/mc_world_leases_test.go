//go:build modelcheck

package oncecache_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// Values are held and removed: each is closed once, never while a lease is
// held, and none is left open when the cache is closed in the end.
func TestProtocolsOfLeases(t *testing.T) {
	type threads = [][]deed
	var (
		none   = []deed(nil)
		seven  = []deed{sets(7)}
		closes = rule{closes: true}
		ended  = rule{closes: true, overlap: true}

		replaces = rule{closes: true, replaces: true}
		exits    = rule{closes: true, overlap: true, exits: true}
	)
	for _, tt := range []struct {
		name    string
		rule    rule
		first   []deed
		threads threads
	}{
		{"two users", closes, seven, threads{{hold(never, 1)}, {hold(never, 2)}}},
		{"two users and Delete", closes, seven, threads{{hold(never, 1)}, {hold(never, 2)}, {deletes}}},
		{"a user and Set", closes, seven, threads{{hold(never, 1)}, {sets(5)}, {sets(6)}}},
		{"two discard", replaces, seven, threads{{discard(never, 1)}, {discard(never, 2)}}},
		{"two discard, one goes on", replaces, seven, threads{{discard(never, 1), hold(never, 2)}, {discard(never, 3)}}},
		{"Discard where nothing is closed", rule{replaces: true}, seven, threads{{discard(never, 1), hold(never, 2)}, {discard(never, 3), hold(never, 4)}}},
		{"one discards, one uses", closes, seven, threads{{discard(never, 1)}, {hold(never, 2), deletes}}},
		{"three users", closes, seven, threads{{hold(never, 1)}, {hold(never, 2)}, {hold(never, 3)}}},
		{"two users, and one discards", closes, seven, threads{{hold(never, 1)}, {hold(never, 2)}, {discard(never, 3)}}},
		{"creation", closes, none, threads{{hold(never, 1, inError)}, {hold(never, 2)}}},
		{"creation and Delete", ended, none, threads{{hold(never, 1, inError)}, {hold(never, 2)}, {deletes}}},
		{"creation and Set", ended, none, threads{{hold(never, 1, inError)}, {hold(never, 2)}, {sets(5)}}},
		{"creation without leases and Delete", ended, none, threads{{plain(1, inError)}, {hold(never, 2)}, {deletes}}},
		{"creation left", closes, none, threads{{hold(0, 1, inError)}, {leaves(0)}}},
		{"creation left by one", closes, none, threads{{hold(0, 1)}, {hold(1, 2)}, {leaves(0)}}},
		{"creation left and Delete", ended, none, threads{{hold(0, 1)}, {leaves(0)}, {deletes}}},
		{"creation left and Set", ended, none, threads{{hold(0, 1)}, {leaves(0)}, {sets(5)}}},
		{"SetIfAbsent and Delete", closes, none, threads{{setsIfAbsent(5)}, {hold(never, 1)}, {deletes}}},
		{"CompareAndDelete", closes, seven, threads{{drops(7)}, {hold(never, 1)}, {sets(5)}}},
		{"creation and Delete, and Goexit", exits, none, threads{{plain(1)}, {plain(2)}, {deletes}}},
	} {
		t.Run(tt.name, func(t *testing.T) { inhabit(t, tt.rule, tt.first, tt.threads...) })
	}
}

// The cache is closed while others use it. When Close has returned, no create
// function runs, and every value that one made is closed.
func TestProtocolsOfClose(t *testing.T) {
	type threads = [][]deed
	var (
		none   = []deed(nil)
		seven  = []deed{sets(7)}
		opened = rule{shutdown: true}
		closes = rule{shutdown: true, closes: true}
		ended  = rule{shutdown: true, closes: true, overlap: true}
		wide   = rule{shutdown: true, closes: true, explore: twice}
		exits  = rule{shutdown: true, closes: true, overlap: true, exits: true, explore: twice}
	)
	for _, tt := range []struct {
		name    string
		rule    rule
		first   []deed
		threads threads
	}{
		{"two Close", closes, seven, threads{{shuts}, {shuts}}},
		{"two Close and a user", wide, seven, threads{{hold(never, 1)}, {shuts}, {shuts}}},
		{"a user", closes, seven, threads{{hold(never, 1)}, {shuts}}},
		{"a user, and no patience", wide, seven, threads{{hold(never, 1)}, {shutsSoon, shuts}, {leaves(1)}}},
		{"two users", wide, seven, threads{{hold(never, 1)}, {hold(never, 2)}, {shuts}}},
		{"creation", closes, none, threads{{hold(never, 1, inError, inPanic, inGoexit)}, {shuts}}},
		{"creation where nothing is closed", opened, none, threads{{plain(1, inError, inPanic)}, {shuts}}},
		{"creation and a waiter", wide, none, threads{{plain(1)}, {hold(never, 2)}, {shuts}}},
		{"creation of its own", closes, none, threads{{askFor(0, 1, inError, inPanic)}, {shuts}}},
		{"creation left", closes, none, threads{{hold(0, 1)}, {shuts}, {leaves(0)}}},
		{"creation left, and a panic", opened, none, threads{{askFor(0, 1, inPanic)}, {shuts}, {leaves(0)}}},
		{"Set", closes, seven, threads{{sets(5)}, {shuts}}},
		{"Set and Set", wide, none, threads{{sets(5)}, {sets(6)}, {shuts}}},
		{"Set and a user", closes, none, threads{{sets(5), hold(never, 1)}, {shuts}}},
		{"Set where nothing is closed", opened, none, threads{{sets(5)}, {plain(1)}, {shuts}}},
		{"SetIfAbsent", closes, none, threads{{setsIfAbsent(5)}, {setsIfAbsent(6)}, {shuts}}},
		{"Delete", wide, seven, threads{{deletes}, {hold(never, 1)}, {shuts}}},
		{"Delete of a creation", ended, none, threads{{hold(0, 1, inError)}, {deletes}, {shuts}}},
		{"Delete of a creation that is left", ended, none, threads{{hold(0, 1)}, {deletes, shuts}, {leaves(0)}}},
		{"Discard", closes, seven, threads{{discard(never, 1)}, {shuts}}},
		{"Set, and Goexit", exits, seven, threads{{sets(5)}, {shuts}}},
		{"Set and a creation, and Goexit", exits, none, threads{{plain(1)}, {sets(5)}, {shuts}}},
	} {
		t.Run(tt.name, func(t *testing.T) { inhabit(t, tt.rule, tt.first, tt.threads...) })
	}
}

// A lease that is copied, released and released again by its copies, each of
// which panics: the count is what it was.
func TestLeaseReleasedThreeTimes(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "after Acquire, Release: Release of a copy ∥ Release of another"}, func(m *mc.M) {
		closed := 0
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { closed++; return nil }})
		c.Set(key, 7)
		acquire := func() *oncecache.Lease[string, int] {
			l, _ := c.Acquire(context.Background(), key, func(context.Context, string) (int, error) { return failing() })
			return &l
		}
		l := acquire()
		for _, again := range []*oncecache.Lease[string, int]{oncecache.CopyLease(l), oncecache.CopyLease(l)} {
			m.Go(func() {
				defer func() {
					if recover() == nil {
						m.Failf("a lease is released again, and that does not panic")
					}
				}()
				again.Release()
			})
		}
		l.Release()
		m.Final(func() {
			l := acquire()
			c.Delete(key)
			if closed != 0 {
				m.Failf("the value is in use, and closed")
			}
			l.Release()
			if closed != 1 {
				m.Failf("the value is closed %d times", closed)
			}
		})
	})
}

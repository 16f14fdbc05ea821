package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// gate lets operations of a kind through one by one, once shut.
type gate struct {
	op   string
	shut bool
	next chan error // what the operation returns
}

func (g *gate) Fault(op string) (int, error) {
	if op != g.op || !g.shut {
		return 0, nil
	}
	return 0, <-g.next
}

// gated returns a journal with so many changesets, called 1 and so on.
func gated(t *testing.T, op string, n int) (*journal.Journal[any], *memory, *gate) {
	m := &memory{}
	g := &gate{op: op, next: make(chan error)}
	m.Fault = g.Fault
	j := on(t, m)
	for i := range n {
		previous := ""
		if i > 0 {
			previous = fmt.Sprint(i)
		}
		must(t, j.Start(background, header{ID: fmt.Sprint(i + 1), Ordinal: uint64(i + 1), Previous: previous}))
	}
	g.shut = true
	return j, m, g
}

// appends starts a call for each changeset from one to another, and returns where
// their errors come.
func appends(ctx context.Context, j *journal.Journal[any], from, to int) chan error {
	errs := make(chan error, to-from+1)
	for i := from; i <= to; i++ {
		go func() { errs <- j.Append(ctx, fmt.Sprint(i), []entry{item(0, "x")}) }()
		synctest.Wait()
	}
	return errs
}

// Calls that come while one is being written wait, and are then written at once,
// in the order in which they came, with one fsync.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, m, g := gated(t, "sync", 20)
		writes, syncs := m.Count("write"), m.Count("sync")
		first := appends(background, j, 1, 1)
		others := appends(background, j, 2, 20)
		if n := j.Stats().Waiting; n != 19 || len(first)+len(others) != 0 {
			t.Fatalf("%d wait", n)
		}
		g.next <- nil
		synctest.Wait()
		if len(first) != 1 || len(others) != 0 || j.Stats().Waiting != 0 {
			t.Fatalf("%d and %d have returned", len(first), len(others))
		}
		g.next <- nil
		synctest.Wait()
		for range 19 {
			must(t, <-others)
		}
		must(t, <-first)
		if w, s := m.Count("write")-writes, m.Count("sync")-syncs; w != 2 || s != 2 {
			t.Errorf("%d writes and %d fsyncs for 20 calls", w, s)
		}
		for i, s := range load(t, j) {
			equal(t, s.Entries, []entry{item(0, "x")})
			at := bytes.Index(m.Text(), fmt.Appendf(nil, `"append","id":"%d"`, i+1))
			if i > 0 && at < bytes.Index(m.Text(), fmt.Appendf(nil, `"append","id":"%d"`, i)) {
				t.Errorf("the line of %d is not in order", i+1)
			}
		}
		g.shut = false
		must(t, j.Close())
	})
}

// A write or fsync that fails, fails all calls that it was for, and the latter
// those that wait too.
func TestGroupFails(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		synctest.Test(t, func(t *testing.T) {
			j, m, g := gated(t, op, 9)
			first := appends(background, j, 1, 1)
			group := appends(background, j, 2, 8)
			g.next <- nil
			synctest.Wait()
			must(t, <-first)
			later := appends(background, j, 9, 9)
			size := len(m.Text())
			g.next <- errBoom
			synctest.Wait()
			for range 7 {
				if err := <-group; !errors.Is(err, errBoom) {
					t.Error(err)
				}
			}
			g.shut = false
			if op == "sync" {
				if err := <-later; !errors.Is(err, errBoom) || !errors.Is(err, journal.ErrBroken) {
					t.Error(err)
				}
				return
			}
			g.next <- nil
			must(t, <-later)
			if !bytes.Contains(m.Text()[size:], []byte(`"append","id":"9"`)) {
				t.Errorf("%s", m.Text()[size:])
			}
			must(t, journalIs(m, load(t, j), nil))
			for i, s := range load(t, j) {
				if (len(s.Entries) == 1) != (i == 0 || i == 8) {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// A call that waits for its turn may leave, also the first of several; the others are
// written. A call that is being written may not.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, _, g := gated(t, "sync", 5)
		leave, cancel := context.WithCancelCause(background)
		first := appends(leave, j, 1, 1)
		gone := appends(leave, j, 2, 2)
		stays := appends(background, j, 3, 3)
		gone2 := appends(leave, j, 4, 4)
		cancel(errBoom)
		synctest.Wait()
		if err := <-gone; err != errBoom {
			t.Error(err)
		}
		if err := <-gone2; err != errBoom {
			t.Error(err)
		}
		if j.Stats().Waiting != 1 || len(first) != 0 {
			t.Errorf("%d wait", j.Stats().Waiting)
		}
		g.next <- nil
		must(t, <-first)
		g.next <- nil
		must(t, <-stays)
		g.shut = false
		var got []int
		for _, s := range load(t, j) {
			got = append(got, len(s.Entries))
		}
		equal(t, got, []int{1, 0, 1, 0, 0})
	})
}

// A call in a group that is being written stays, and gets its outcome.
func TestStay(t *testing.T) {
	for _, outcome := range []error{nil, errBoom} {
		synctest.Test(t, func(t *testing.T) {
			j, _, g := gated(t, "sync", 3)
			leave, cancel := context.WithCancelCause(background)
			first := appends(background, j, 1, 1)
			second := appends(background, j, 2, 2)
			third := appends(leave, j, 3, 3)
			g.next <- nil
			must(t, <-first)
			synctest.Wait()
			cancel(errors.New("too late"))
			synctest.Wait()
			if len(third) != 0 {
				t.Fatalf("returned %v", <-third)
			}
			g.next <- outcome
			for _, errs := range []chan error{second, third} {
				if err := <-errs; !errors.Is(err, outcome) {
					t.Error(err)
				}
			}
		})
	}
}

// A caller that stalls in its own context delays nobody, and is written.
func TestStalledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, _, g := gated(t, "sync", 3)
		stall := make(chan struct{})
		first := appends(background, j, 1, 1)
		second := appends(&hostileContext{background, func() { <-stall }}, j, 2, 2)
		third := appends(background, j, 3, 3)
		g.next <- nil
		must(t, <-first)
		g.next <- nil
		must(t, <-third)
		g.shut = false
		equal(t, load(t, j)[1].Entries, []entry{item(0, "x")})
		must(t, j.Close())
		close(stall)
		must(t, <-second)
	})
}

// A context that panics, or ends its goroutine, leaves the queue in order.
func TestHostileContext(t *testing.T) {
	for _, how := range []func(){func() { panic(errBoom) }, runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			j, _, g := gated(t, "sync", 3)
			first := appends(background, j, 1, 1)
			over := make(chan any)
			go func() {
				defer func() { over <- recover() }()
				j.Append(&hostileContext{background, how}, "2", []entry{item(0, "x")})
			}()
			<-over
			third := appends(background, j, 3, 3)
			g.next <- nil
			must(t, <-first)
			g.next <- nil
			must(t, <-third)
			g.shut = false
			equal(t, load(t, j)[1].Entries, []entry(nil))
			must(t, j.Close())
		})
	}
}

type hostileContext struct {
	context.Context
	how func()
}

func (c *hostileContext) Done() <-chan struct{} {
	c.how()
	return nil
}

// Close waits for the group that is being written, and calls that wait for their turn
// get ErrClosed.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, m, g := gated(t, "sync", 3)
		first := appends(background, j, 1, 1)
		others := appends(background, j, 2, 3)
		closed := make(chan error, 2)
		go func() { closed <- j.Close() }()
		synctest.Wait()
		if len(closed) != 0 || m.Closed() {
			t.Fatal("Close did not wait")
		}
		if err := j.Close(); err != journal.ErrClosed {
			t.Error(err)
		}
		if err := j.Append(background, "3", []entry{item(0, "x")}); err != journal.ErrClosed {
			t.Error(err)
		}
		g.next <- nil
		must(t, <-first)
		for range 2 {
			if err := <-others; err != journal.ErrClosed {
				t.Error(err)
			}
		}
		must(t, <-closed)
		if err := j.Seal(background, "1", cowchangeset.Manifest{Len: 1}); err != journal.ErrClosed {
			t.Error(err)
		}
		if !m.Closed() {
			t.Error("the file is open")
		}
	})
}

// Calls for one changeset, and Starts, that come at the same time, as no tracker
// makes them, are judged one after the other.
func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, m, g := gated(t, "sync", 1)
		first := appends(background, j, 1, 1)
		appended, started := make(chan error, 3), make(chan error, 6)
		for range 3 {
			go func() { appended <- j.Append(background, "1", []entry{item(1, "y"), item(2, "z")}) }()
			synctest.Wait()
		}
		for range 3 {
			go func() { started <- j.Start(background, header{ID: "2", Ordinal: 2, Previous: "1"}) }()
			synctest.Wait()
			go func() { started <- j.Start(background, header{ID: "3", Ordinal: 3, Previous: "2"}) }()
			synctest.Wait()
		}
		g.shut = false
		g.next <- nil
		must(t, <-first)
		for range 6 {
			must(t, <-started)
		}
		for range 3 {
			must(t, <-appended)
		}
		report, err := verifyFolder(m, journal.Anchor{})
		must(t, err)
		if report.Lines != 6 || report.Entries != 3 || report.Changesets != 3 {
			t.Errorf("%+v", report)
		}
	})
}

// A group has 1 MiB of entries, or one call.
func TestLargeGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, m, g := gated(t, "sync", 6)
		writes := m.Count("write")
		first := appends(background, j, 1, 1)
		big := make(chan error, 5)
		for i, size := range []int{3 << 20, 600 << 10, 300 << 10, 600 << 10, 1} {
			go func() { big <- j.Append(background, fmt.Sprint(i+2), []entry{item(0, strings.Repeat("x", size))}) }()
			synctest.Wait()
		}
		for i, waiting := range []int{4, 2, 0} { // the first alone, then two, and then two
			g.next <- nil
			synctest.Wait()
			if n := j.Stats().Waiting; n != waiting {
				t.Errorf("%d wait in round %d, want %d", n, i, waiting)
			}
		}
		g.next <- nil
		must(t, <-first)
		for range 5 {
			must(t, <-big)
		}
		if n := m.Count("write") - writes; n != 4 {
			t.Errorf("%d writes", n)
		}
	})
}

package journal_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// Calls of one group that contradict each other are judged one after the other,
// each by what the calls before it leave.
func TestContradictions(t *testing.T) {
	ops := map[string]func(*journal.Journal[any]) error{
		"append 2":  add("2", item(0, "acknowledged")).Call,
		"seal 2":    seal("2", 0, 0).Call,
		"start 2":   start("2", 2, "1").Call,
		"start B 2": start("B", 2, "1").Call,
		"start 3":   start("3", 3, "2").Call,
		"append B":  add("B", item(0, "acknowledged")).Call,
	}
	for first := range ops {
		for second := range ops {
			for third := range ops {
				synctest.Test(t, func(t *testing.T) {
					j, m, g := gated(t, "sync", 2)
					leader := appends(background, j, 1, 1)
					errs := map[string]chan error{}
					for _, op := range []string{first, second, third} {
						e := make(chan error, 1)
						errs[op] = e
						go func() { e <- ops[op](j) }()
						synctest.Wait()
					}
					g.shut = false
					g.next <- nil
					must(t, <-leader)
					synctest.Wait()
					for op, e := range errs {
						if err := <-e; err != nil && !errors.Is(err, journal.ErrConflict) {
							t.Errorf("%s, %s, %s: %s: %v", first, second, third, op, err)
						}
					}
					must(t, journalIs(m, load(t, j), nil))
					must(t, j.Close())
				})
			}
		}
	}
}

// A panic of the file, as a bug of the journal would be, and one that ends the
// goroutine, break the journal, and nobody waits for ever: neither behind the call
// that writes itself nor behind the goroutine that goes on.
func TestPanics(t *testing.T) {
	for name, how := range map[string]func(){"panic: boom": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for _, alone := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) { panics(t, name, how, alone) })
		}
	}
}

func panics(t *testing.T, name string, how func(), alone bool) {
	j, m, g := gated(t, "sync", 4)
	var first chan error
	if !alone {
		first = appends(background, j, 1, 1)
	}
	fault := func(op string) (int, error) {
		if op == "write" {
			how()
		}
		return 0, nil
	}
	if alone {
		g.op = "write"
	}
	gate := m.Fault
	m.SetFault(func(op string) (int, error) {
		gate(op)
		return fault(op)
	})
	if !alone {
		m.Fault = fault
	}
	left := make(chan struct{})
	go func() { // it may not come back
		defer close(left)
		j.Append(background, "2", []entry{item(0, "x")})
	}()
	synctest.Wait()
	group := appends(background, j, 3, 4)
	g.shut = false
	g.next <- nil
	<-left
	if !alone {
		must(t, <-first)
	}
	for range 2 {
		if err := <-group; !errors.Is(err, journal.ErrBroken) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s, alone %v: %v", name, alone, err)
		}
	}
	if err := j.Sync(background); !errors.Is(err, journal.ErrBroken) {
		t.Error(err)
	}
	if err := j.Close(); !errors.Is(err, journal.ErrBroken) {
		t.Error(err)
	}
}

// A call that is known by a line of its own group fails with that line.
func TestKnownByItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, m, g := gated(t, "write", 1)
		first := appends(background, j, 1, 1)
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- j.Start(background, header{ID: "2", Ordinal: 2, Previous: "1"}) }()
			synctest.Wait()
		}
		g.next <- nil
		must(t, <-first)
		g.next <- errBoom
		for range 2 {
			if err := <-errs; !errors.Is(err, errBoom) {
				t.Error(err)
			}
		}
		g.shut = false
		must(t, journalIs(m, load(t, j), nil))
		equal(t, len(load(t, j)), 1)
	})
}

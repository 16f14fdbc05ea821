//go:build modelcheck

package mc

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Main is what a package's TestMain calls. It runs the tests, and if all of
// them ran and passed, compares what they explored and measured with the
// package's CHECKS.md. With MC_UPDATE=1 it writes that file instead.
//
// From then on everything is entered in the book: an exploration by any other
// way than Check, Linearizable and Refute fails the run.
func Main(m *testing.M) {
	current = newBook()
	code := m.Run()
	if code == 0 {
		if err := current.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// current is the book that is kept; nil: none.
var current *book

// book is what the tests of a package have explored and measured.
type book struct {
	mu       sync.Mutex
	checks   map[string]check // by test
	paths    map[string][]path
	busy     map[testing.TB]bool
	problems []string

	// What the run is compared with, and whether that is to be rewritten. Both
	// are read by the first test that enters something: go test notes for its
	// cache what is read while tests run, and not what is read after them.
	read      bool
	committed []byte
	update    bool
}

// begin is called whenever something is entered. It locks the book, and reports false if
// none is kept.
func (b *book) begin() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	if !b.read {
		b.read = true
		b.update = os.Getenv(updateVariable) != ""
		b.committed, _ = os.ReadFile(pageName) // none: all is new
	}
	return true
}

func newBook() *book {
	return &book{checks: map[string]check{}, paths: map[string][]path{}, busy: map[testing.TB]bool{}}
}

// check is one exploration.
type check struct {
	threads, schedules int
	operations         string // of the threads
	extent             string // which executions were explored
	failure, trace     string // if any
	refuted            bool   // it had to fail
	cut                bool   // more are to be explored
}

// complain notes what fails the run.
func (b *book) complain(format string, args ...any) {
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

// enter enters an exploration of t. A test that runs again, because of -count
// or -cpu, must find the same again.
func (b *book) enter(t testing.TB, c check) {
	if !b.begin() {
		return
	}
	defer b.mu.Unlock()
	name := t.Name()
	if c.cut && !testing.Short() {
		c = b.promised(name, c)
	}
	switch before, again := b.checks[name]; {
	case b.busy[t]:
		b.complain("%s explores more than once: give each exploration a t.Run", name)
	case c.failure != "" && !c.refuted:
		b.complain("%s failed, and nobody heard of it: what must fail goes through Refute", name)
	case again && before != c:
		b.complain("%s is not deterministic: it found\n\t%+v\nand then\n\t%+v", name, before, c)
	case c.operations == "":
		b.complain("%s does not say what its threads do: set Config.Operations", name)
	}
	b.busy[t] = true
	b.checks[name] = c
}

// unbooked notes an exploration that nobody would enter.
func (b *book) unbooked() {
	if !b.begin() {
		return
	}
	defer b.mu.Unlock()
	b.complain("an exploration is not entered in the book: use Check, Linearizable or Refute")
}

// close ends the run: everything was as the committed page says, or is now.
func (b *book) close() error {
	if len(b.problems) > 0 {
		return fmt.Errorf("mc: %s", b.problems[0])
	}
	if !everythingRan() {
		return nil
	}
	p, err := b.page()
	if err != nil {
		return err
	}
	return p.settle(b.committed, b.update)
}

const (
	pageName       = "CHECKS.md"
	updateVariable = "MC_UPDATE"
)

// everythingRan reports whether this process has run all tests in full.
func everythingRan() bool {
	for _, name := range []string{"run", "skip", "fuzz", "list"} {
		if f := flag.Lookup("test." + name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return !testing.Short() && flag.Lookup("test.count").Value.String() != "0" && os.Getenv(replayVariable) == ""
}

package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/folder/foldertest"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// failAt makes the n-th operation that changes something fail, and no other. If it is a write,
// so many bytes of it are done before; with short, it does not even say so.
func failAt(m *memory, n, done int, short bool, also string) {
	err := errBoom
	if short {
		err = foldertest.ErrShort
	}
	failed := false
	m.Fault = func(op string) (int, error) {
		if op == "check" {
			return 0, nil
		}
		if n--; n == -1 {
			failed = true
			if op == "write" {
				return done, err
			}
			return 0, errBoom
		}
		if failed && op == also {
			also = ""
			return 0, errBoom
		}
		return 1 << 30, nil
	}
}

// Whatever operation of the file fails, once, and whether or not what it left can
// be removed: the call fails, what returned before is there, and when the call is
// made again, on this journal or, if it is broken, the file opened again, all
// goes on as if nothing had happened.
func TestEveryFault(t *testing.T) {
	for _, o := range []journal.Options{{}, {SegmentSize: 1000}} {
		t.Run(fmt.Sprint("segments of ", o.SegmentSize), func(t *testing.T) { everyFault(t, o) })
	}
}

func everyFault(t *testing.T, o journal.Options) {
	calls := append(story(), prune(3), start("E", 5, "D"), add("E", item(0, "last")))
	good := &memory{}
	j := with(t, good, o)
	states := tell(t, j, calls)
	total := good.Changes()

	faults := 0
	for n := range total {
		for _, done := range []int{0, 1, 100, 200, 1 << 20} {
			if testing.Short() && (n+done)%3 != 0 {
				continue
			}
			for _, short := range []bool{false, true} {
				if short && done == 1<<20 {
					continue // nothing fails
				}
				for _, also := range []string{"", "truncate"} {
					name := fmt.Sprintf("operation %d, %d bytes done, short %v, also %q", n, done, short, also)
					m := &memory{}
					failAt(m, n, done, short, also)
					j, err := journaltest.Open[any](m, o)
					for err != nil {
						faults++
						j, err = journaltest.Open[any](m, o)
					}
					for i, s := range calls {
						err := s.Call(j)
						for err != nil {
							faults++
							if !errors.Is(err, errBoom) && !(short && strings.Contains(err.Error(), "short write")) {
								t.Fatalf("%s: %s: %v", name, s.Name, err)
							}
							if errors.Is(err, journal.ErrBroken) {
								checkBroken(t, j, err)
								m.Fault = nil
								must(t, journalIs(m, states[i], states[i+1]))
								j = with(t, m, o)
							} else {
								if !strings.HasPrefix(s.Name, "prune") { // which is, though its segments could not be removed
									equal(t, load(t, j), states[i])
								}
								must(t, journalIs(m, states[i], states[i+1]))
							}
							err = s.Call(j)
						}
					}
					equal(t, load(t, j), states[len(states)-1])
					must(t, j.Close())
					if o.SegmentSize != 0 { // a segment may have begun later
						must(t, journalIs(m, states[len(states)-1], nil))
					} else if !bytes.Equal(m.Text(), good.Text()) {
						t.Fatalf("%s: the segments have\n%s\nand not\n%s", name, m.Text(), good.Text())
					}
				}
			}
		}
	}
	if faults < total {
		t.Errorf("only %d faults", faults)
	}
}

// journalIs checks, without changing the file, that it has one of two states,
// the second only if it is not nil.
func journalIs(m *memory, one, other []saved) error {
	c := m.Clone()
	j, err := journaltest.Open[any](c, journal.Options{})
	if err != nil {
		return err
	}
	got, err := journaltest.Everything(j)
	if err != nil {
		return err
	}
	if text := fmt.Sprint(got); text != fmt.Sprint(one) && (other == nil || text != fmt.Sprint(other)) {
		return fmt.Errorf("the file has %v, want %v or %v", got, one, other)
	}
	return nil
}

// checkBroken checks that a journal does nothing any more.
func checkBroken(t *testing.T, j *journal.Journal[any], first error) {
	t.Helper()
	for _, s := range story() {
		if err := s.Call(j); err != first {
			t.Fatalf("%s: %v, want %v", s.Name, err, first)
		}
	}
	if err := j.Sync(background); err != first {
		t.Fatal(err)
	}
	for _, err := range j.Load(background) {
		if err != first {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != first {
		t.Fatal(err)
	}
	if err := j.Close(); err != journal.ErrClosed {
		t.Fatal(err)
	}
}

// A disk that is full for a while fails calls for a while. What they left is
// removed at once, to have the room back.
func TestDiskFull(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, story()[:1])
	size := len(m.Text())
	full := true
	m.Fault = func(op string) (int, error) {
		if full && op == "write" {
			return 90, errBoom
		}
		return 0, nil
	}
	for range 3 {
		if err := story()[1].Call(j); !errors.Is(err, errBoom) || errors.Is(err, journal.ErrBroken) {
			t.Error(err)
		}
		if len(m.Text()) != size {
			t.Errorf("%d bytes were left", len(m.Text())-size)
		}
	}
	full = false
	states := tell(t, j, story())
	equal(t, load(t, on(t, m)), states[len(states)-1])
}

// With SyncNever, only Sync and Close call fsync, if there is anything new.
func TestSyncNever(t *testing.T) {
	m := &memory{}
	j, err := journaltest.Open[any](m, journal.Options{Sync: journal.SyncNever})
	must(t, err)
	want := func(n int) {
		t.Helper()
		if got := m.Count("sync"); got != n {
			t.Errorf("%d fsyncs, want %d", got, n)
		}
	}
	want(1) // of the header
	must(t, j.Sync(background))
	want(1)
	tell(t, j, story())
	want(1)
	must(t, j.Sync(background))
	want(2)
	if !m.Durable() {
		t.Error("not all was synced")
	}
	must(t, j.Sync(background))
	want(2)
	must(t, j.Close())
	want(2)

	j, err = journaltest.Open[any](m, journal.Options{Sync: journal.SyncNever})
	must(t, err)
	want(3) // what the process before had not synced
	must(t, add("D", item(0, "x")).Call(j))
	must(t, j.Close())
	want(4)
}

// With SyncNever, a crash of the machine may bring back what a failed write has left, until the
// next Sync: that calls fsync though no call has written anything since the last one.
func TestSyncAfterAFailedWrite(t *testing.T) {
	m := &memory{}
	j, err := journaltest.Open[any](m, journal.Options{Sync: journal.SyncNever})
	must(t, err)
	tell(t, j, story())
	must(t, j.Sync(background))
	m.Fault = func(op string) (int, error) {
		if op == "write" {
			return 1, errBoom
		}
		return 0, nil
	}
	if err := add("D", item(0, "x")).Call(j); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	m.Fault = nil
	before := m.Count("sync")
	must(t, j.Sync(background))
	if n := m.Count("sync") - before; n != 1 || !m.Durable() {
		t.Errorf("%d fsyncs, want 1", n)
	}
}

// A Sync that fails breaks the journal, and so does the fsync of Close.
func TestSyncFails(t *testing.T) {
	for _, end := range []func(*journal.Journal[any]) error{
		func(j *journal.Journal[any]) error { return j.Sync(background) },
		(*journal.Journal[any]).Close,
	} {
		m := &memory{}
		j, err := journaltest.Open[any](m, journal.Options{Sync: journal.SyncNever})
		must(t, err)
		tell(t, j, story())
		m.Fault = func(op string) (int, error) {
			if op == "sync" {
				return 0, errBoom
			}
			return 0, nil
		}
		first := end(j)
		if !errors.Is(first, errBoom) || !strings.HasPrefix(first.Error(), "journal: ") {
			t.Error(first)
		}
		if errors.Is(first, journal.ErrBroken) {
			checkBroken(t, j, first)
		} else if err := j.Close(); err != journal.ErrClosed {
			t.Error(err)
		}
	}
}

// What fails while a file is opened fails Open, and leaves what the next one
// needs.
func TestOpenFails(t *testing.T) {
	text, _, states := storyFile(t)
	for n := range 4 { // open to write, remove the torn tail, fsync, fsync of the folder
		m := holding(append(bytes.Clone(text), "{"...))
		failAt(m, n, 0, false, "")
		if _, err := journaltest.Open[any](m, journal.Options{}); !errors.Is(err, errBoom) || !strings.HasPrefix(err.Error(), "journal: ") {
			t.Errorf("operation %d: %v", n, err)
		}
		equal(t, load(t, on(t, m)), states[len(states)-1])
		if !bytes.Equal(m.Text(), text) {
			t.Errorf("operation %d: the file has %s", n, m.Text())
		}
	}
}

// What a failed write has left is gone for good when its calls fail: a crash of the
// machine does not bring their lines back. If that fails, the journal is broken.
func TestFailedWriteStaysGone(t *testing.T) {
	for _, fails := range []string{"", "truncate", "sync"} {
		m := &memory{}
		j := on(t, m)
		states := tell(t, j, story())
		var ops []string
		m.Fault = func(op string) (int, error) {
			ops = append(ops, op)
			if op == "write" || op == fails {
				return 1 << 20, errBoom
			}
			return 0, nil
		}
		err := add("D", item(0, "x")).Call(j)
		if !errors.Is(err, errBoom) || errors.Is(err, journal.ErrBroken) != (fails != "") {
			t.Errorf("Append = %v, when %q fails", err, fails)
		}
		if fails != "" {
			continue
		}
		if got := fmt.Sprint(ops); got != "[write truncate sync check]" {
			t.Errorf("Append does %v", got)
		}
		must(t, journalIs(m, states[len(states)-1], nil))
	}
}

// A rename that reports an error may have happened, as on a network file system whose
// answer was lost. The journal does not go on in the segment before: nobody could open
// it afterwards.
func TestRenamedNevertheless(t *testing.T) {
	m := &lossy{memory: &memory{}}
	j, err := journaltest.Open[any](m, journal.Options{})
	must(t, err)
	states := tell(t, j, story())
	m.lost = true
	if err := j.Rotate(background); !errors.Is(err, journal.ErrBroken) || !errors.Is(err, errBoom) {
		t.Errorf("Rotate = %v", err)
	}
	if err := add("D", item(0, "x")).Call(j); !errors.Is(err, journal.ErrBroken) {
		t.Errorf("Append = %v", err)
	}
	must(t, journalIs(m.memory, states[len(states)-1], nil))
}

// A lossy folder renames, and reports an error.
type lossy struct {
	*memory
	lost bool
}

func (l *lossy) Rename(from, to string) error {
	if err := l.memory.Rename(from, to); err != nil || !l.lost {
		return err
	}
	return errBoom
}

// When a write has failed, calls of its group that were known already are acknowledged
// only if the file is still there.
func TestKnownBesideFailedWrite(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, story())
	writing, next := make(chan bool), make(chan bool)
	writes := 0
	m.Fault = func(op string) (int, error) {
		switch op {
		case "write":
			if writes++; writes == 1 {
				writing <- true
				<-next
				return 0, nil
			}
			return 10, errBoom
		case "check":
			if writes > 1 {
				return 0, errors.New("another file")
			}
		}
		return 0, nil
	}
	errs := make(chan error, 3)
	call := func(s step) {
		waiting := j.Stats().Waiting
		go func() { errs <- s.Call(j) }()
		for s.Name != "append \"D\"" && j.Stats().Waiting == waiting {
			runtime.Gosched()
		}
	}
	call(add("D", item(0, "first")))
	<-writing
	call(seal("A", 3, 7)) // known
	call(seal("D", 1, 0))
	next <- true
	must(t, <-errs)
	for range 2 {
		if err := <-errs; !errors.Is(err, journal.ErrBroken) {
			t.Errorf("a call of the group = %v, want ErrBroken", err)
		}
	}
}

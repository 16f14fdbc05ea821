package journal_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// compressed returns the names of compressed segments.
func compressed(m *memory) []string {
	return slices.DeleteFunc(m.Segments(), func(name string) bool { return !strings.HasSuffix(name, ".journal.gz") })
}

// Compressed segments are gzip files of the same lines. Everything reads them: the open
// journal, one that is opened again, readers and Verify. The last segment is not compressed.
func TestCompress(t *testing.T) {
	m, states := three(t)
	plain := m.Clone()
	want := states[len(states)-1]
	j := on(t, m)
	must(t, j.Compress(background))
	equal(t, compressed(m), []string{"0000000001.journal.gz", "0000000002.journal.gz"})
	if len(m.Segments()) != 3 {
		t.Fatal(m.Segments())
	}
	for i, name := range compressed(m) {
		z, err := gzip.NewReader(bytes.NewReader(m.File(name).Data))
		must(t, err)
		text, err := io.ReadAll(z)
		must(t, err)
		if !bytes.Equal(text, plain.Segment(i+1).Data) || len(m.File(name).Data) >= len(text) {
			t.Errorf("%s has other lines, or is no shorter", name)
		}
	}
	equal(t, load(t, j), want)
	files := m.Count("create")
	must(t, j.Compress(background))
	if m.Count("create") != files {
		t.Error("they are compressed again")
	}
	must(t, j.Rotate(background))
	must(t, j.Compress(background))
	if n := len(compressed(m)); n != 3 {
		t.Errorf("%d segments are compressed", n)
	}
	must(t, j.Close())
	if err := j.Compress(background); err != journal.ErrClosed {
		t.Error(err)
	}
	equal(t, load(t, on(t, m)), want)
	one, err := verifyFolder(m, journal.Anchor{})
	must(t, err)
	if one.Lines != bytes.Count(plain.Text(), []byte("\n"))+1 || one.Segments != 4 {
		t.Errorf("%+v", one)
	}
	equal(t, journaltest.Collect(t, readerOf(t, m).Changesets(background)), want)
}

// A compressed segment is dropped, or archived, as another is; and whatever stops
// Compress, the segment is there in one form.
func TestCompressIsDropped(t *testing.T) {
	for _, archive := range []string{"", "archive"} {
		m := &memory{}
		j := with(t, m, journal.Options{Archive: archive})
		tell(t, j, []step{start("A", 1, ""), add("A", item(0, "a")), seal("A", 1, 0), applied("A", whole)})
		must(t, j.Rotate(background))
		must(t, start("B", 2, "A").Call(j))
		must(t, j.Rotate(background))
		must(t, j.Compress(background))
		must(t, j.Prune(background, 2))
		if names := compressed(m); len(names) != 1 || names[0] != "0000000002.journal.gz" {
			t.Error(names)
		}
		if moved := m.Moved["0000000001.journal.gz"] != nil; moved != (archive != "") {
			t.Error(m.Moved)
		}
	}
}

// Whatever operation of the disk fails, Compress returns that, and the journal is as it
// was; the next Compress succeeds.
func TestCompressFails(t *testing.T) {
	m, states := three(t)
	want := states[len(states)-1]
	for n := 0; ; n++ {
		c := m.Clone()
		j := on(t, c)
		at, failed := n, false
		c.SetFault(func(op string) (int, error) {
			if op == "check" {
				return 0, nil
			}
			if at--; at == -1 {
				failed = true
				return 10, errBoom
			}
			return 1 << 30, nil
		})
		err := j.Compress(background)
		if !failed {
			must(t, err)
			break
		}
		if !errors.Is(err, errBoom) && err != nil { // nothing depends on the removal of what is not there
			t.Fatalf("operation %d: %v", n, err)
		}
		equal(t, load(t, j), want)
		equal(t, load(t, on(t, c.Clone())), want)
		must(t, j.Compress(background))
		if len(compressed(c)) != 2 || len(c.Segments()) != 3 {
			t.Fatal(c.Segments())
		}
		must(t, j.Close())
		equal(t, load(t, on(t, c)), want)
	}
}

// Compress ends with its context and with the journal, and panics without a context.
func TestCompressEnds(t *testing.T) {
	m, _ := three(t)
	j := on(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Compress(ctx); !errors.Is(err, context.Canceled) || len(compressed(m)) > 0 {
		t.Error(err)
	}
	done := make(chan error)
	closing := false
	m.SetFault(func(op string) (int, error) {
		if op == "create" && !closing {
			closing = true
			go func() { done <- j.Close() }()
			for j.Sync(background) != journal.ErrClosed {
			}
		}
		return 1 << 30, nil
	})
	if err := j.Compress(background); !errors.Is(err, journal.ErrClosed) {
		t.Error(err)
	}
	must(t, <-done)
	for _, name := range m.Segments() {
		if strings.HasSuffix(name, ".gz") {
			t.Errorf("it has left %s", name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	j.Compress(noContext)
}

// A Prune that has decided to remove a segment when Compress begins removes it for good.
func TestCompressBesideAPrune(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, []step{start("A", 1, ""), seal("A", 0, 0), applied("A", whole)})
	must(t, j.Rotate(background))
	tell(t, j, []step{start("B", 2, "A"), seal("B", 0, 0), applied("B", whole)})
	must(t, j.Rotate(background))
	must(t, start("C", 3, "B").Call(j))
	must(t, j.Rotate(background))
	var removals int
	var created atomic.Bool
	compressing, removed, done := make(chan bool), make(chan bool), make(chan error, 1)
	m.SetFault(func(op string) (int, error) {
		switch op {
		case "remove":
			if removals++; removals == 2 { // of the segment itself
				go func() { done <- j.Compress(background) }()
				<-compressing
			}
		case "create":
			if created.CompareAndSwap(false, true) {
				close(compressing)
				<-removed
			}
		}
		return 1 << 30, nil
	})
	must(t, j.Prune(background, 2))
	close(removed)
	must(t, <-done)
	for _, name := range m.Segments() {
		if strings.HasPrefix(name, "0000000001") {
			t.Errorf("%s is there again", name)
		}
	}
	must(t, j.Prune(background, 3))
	must(t, j.Close())
	must(t, on(t, m).Close())
}

// On a disk as in memory: all is there, also what others have compressed, and a journal
// whose segments are all compressed is one.
func TestCompressOnDisk(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	var want []saved
	for i, s := range story() {
		must(t, s.Call(j))
		if want = s.Then(want); i%4 == 3 {
			must(t, j.Rotate(background))
		}
	}
	must(t, j.Compress(background))
	equal(t, load(t, j), want)
	must(t, j.Close())
	names, err := filepath.Glob(filepath.Join(path, "*.journal"))
	must(t, err)
	if len(names) != 1 {
		t.Fatal(names)
	}
	text, err := os.ReadFile(names[0])
	must(t, err)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err = w.Write(text)
	must(t, err)
	must(t, w.Close())
	must(t, os.WriteFile(names[0]+".gz", z.Bytes(), 0o600))
	must(t, os.Remove(names[0]))
	again, err := journal.Open[any](path, journal.Options{MustExist: true})
	must(t, err)
	equal(t, load(t, again), want)
	must(t, start("next", 5, "D").Call(again))
	must(t, again.Close())
}

// A context that panics, at whatever question, leaves no file open and nothing locked.
func TestCompressWithAContextThatPanics(t *testing.T) {
	m, states := three(t)
	for n := 0; ; n++ {
		c := m.Clone()
		j := on(t, c)
		open := c.Opened
		ctx := &panicking{Context: background, left: n}
		thrown := func() (thrown any) {
			defer func() { thrown = recover() }()
			must(t, j.Compress(ctx))
			return nil
		}()
		if c.Opened != open {
			t.Fatalf("question %d: %d files are open", n, c.Opened-open)
		}
		must(t, j.Compress(background))
		equal(t, load(t, j), states[len(states)-1])
		must(t, j.Prune(background, 2))
		must(t, j.Close())
		if thrown == nil {
			if n < 5 {
				t.Errorf("%d questions", n)
			}
			return
		}
	}
}

type panicking struct {
	context.Context
	left int
}

func (p *panicking) Err() error {
	if p.left--; p.left < 0 {
		panic("context")
	}
	return nil
}

package journal_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// A model is what a journal should have, in the plainest words.
type model struct {
	ids   []string // of all ordinals from 1 on, also of those that were pruned
	first uint64
	all   map[string]*saved // those that were not pruned
}

func (m *model) latest() uint64 { return uint64(len(m.ids)) }

func (m *model) id(ordinal uint64) string {
	if ordinal == 0 || ordinal > m.latest() {
		return ""
	}
	return m.ids[ordinal-1]
}

func last(s *saved) (seq uint64) {
	if n := len(s.Entries); n > 0 {
		seq = s.Entries[n-1].Seq
	}
	return seq
}

func (m *model) start(h header) bool {
	if c := m.all[h.ID]; c != nil {
		return c.Header == h
	}
	latest := m.all[m.id(m.latest())]
	replaces := latest != nil && h.Ordinal == m.latest() && !latest.Sealed && len(latest.Entries) == 0
	if h.ID == "" || h.Ordinal != m.latest()+1 && !replaces || h.Previous != m.id(h.Ordinal-1) {
		return false
	}
	if replaces {
		delete(m.all, latest.ID)
		m.ids = m.ids[:h.Ordinal-1]
	}
	m.ids = append(m.ids, h.ID)
	m.all[h.ID] = &saved{Header: h}
	return true
}

// remaining returns the entries that an Append still has to write.
func (m *model) remaining(id string, all []entry) []entry {
	if c := m.all[id]; c != nil && len(c.Entries) > 0 {
		return slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return e.Seq <= last(c) })
	}
	return all
}

func (m *model) append(id string, all []entry) bool {
	c := m.all[id]
	if len(all) == 0 {
		return true
	}
	if c != nil && len(c.Entries) > 0 && all[len(all)-1].Seq <= last(c) {
		return true
	}
	if c == nil || c.Sealed || len(c.Entries) > 0 && all[0].Seq <= last(c) {
		return false
	}
	c.Entries = slices.Concat(c.Entries, all)
	return true
}

func (m *model) seal(id string, n int, seq uint64) bool {
	c := m.all[id]
	if c == nil && m.first > 1 && id != "" {
		return true // it may have been pruned
	}
	if c == nil || n != len(c.Entries) || seq != last(c) {
		return false
	}
	c.Sealed = true
	return true
}

func (m *model) abort(id, reason string) bool {
	c := m.all[id]
	if c == nil && m.first > 1 && id != "" {
		return true
	}
	if c == nil || !c.Sealed || c.Aborted && c.Reason != reason || !c.Aborted && c.Applied == whole {
		return false
	}
	c.Aborted, c.Reason = true, reason
	return true
}

func (m *model) applied(id string, next uint64) bool {
	c := m.all[id]
	if c == nil && m.first > 1 && id != "" {
		return true
	}
	if c == nil || !c.Sealed || c.Aborted && next > c.Applied {
		return false
	}
	c.Applied = max(c.Applied, next)
	return true
}

func (m *model) prune(before uint64) bool {
	for m.first < min(before, m.latest()) {
		c := m.all[m.id(m.first)]
		if !c.Sealed {
			break
		}
		delete(m.all, c.ID)
		m.first++
	}
	return true
}

func (m *model) load() (all []saved) {
	for n := m.first; n <= m.latest(); n++ {
		all = append(all, *m.all[m.id(n)])
	}
	return unnamed(all)
}

// FuzzCalls makes calls, one by one and in groups, on a journal of small segments
// that is opened again now and then: each does what the model says, and so does what
// there is to load.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 8, 0, 16, 2, 1, 24, 0, 3, 255, 9, 40})
	f.Add(bytes.Repeat([]byte{0, 9, 17, 33, 2, 41, 64, 128}, 8))
	f.Add(bytes.Repeat([]byte{5, 0, 1, 13, 20, 21, 28, 44, 6}, 12))
	f.Fuzz(func(t *testing.T, program []byte) {
		synctest.Test(t, func(t *testing.T) { calls(t, program[:min(len(program), 200)]) })
	})
}

func calls(t *testing.T, program []byte) {
	m := &model{first: 1, all: map[string]*saved{}}
	disk := &memory{}
	o := journal.Options{SegmentSize: 700, Sync: journal.SyncNever}
	j := with(t, disk, o)
	arg := func(n int) int {
		if len(program) == 0 {
			return 0
		}
		b := program[0]
		program = program[1:]
		return int(b) % n
	}
	names := []string{"a", "b", "c", "d", "e"}
	// next returns a call, and then what the model says of it.
	next := func() (call func() error, allowed func() bool) {
		kind := arg(8)
		id := names[arg(len(names))]
		if kind < 6 && arg(4) > 0 { // mostly of those that there are
			id = m.id(m.latest() - uint64(arg(2)))
		}
		switch kind {
		case 0, 1:
			h := header{ID: names[arg(len(names))], Ordinal: m.latest() + 1}
			if arg(5) == 0 {
				h.Ordinal--
			}
			if h.Previous = m.id(h.Ordinal - 1); arg(9) == 1 {
				h.Previous = "a"
			}
			return func() error { return j.Start(background, h) }, func() bool { return m.start(h) }
		case 2, 3:
			seq, es := uint64(0), []entry(nil)
			if c := m.all[id]; c != nil {
				seq = last(c)
			}
			for range 1 + arg(3) {
				seq += uint64(arg(3))
				es = append(es, item(seq, id))
				seq++
			}
			left := m.remaining(id, es)
			return func() error { return j.Append(background, id, es) }, func() bool { return m.append(id, left) }
		case 4:
			n, seq := arg(3), uint64(0)
			if c := m.all[id]; c != nil && n > 0 {
				n, seq = len(c.Entries), last(c)
			}
			return func() error { return j.Seal(background, id, cowchangeset.Manifest{Len: n, Last: seq}) }, func() bool { return m.seal(id, n, seq) }
		case 5:
			upTo := []uint64{1, whole, whole}[arg(3)]
			if arg(2) == 0 {
				return func() error { return j.Abort(background, id, id) }, func() bool { return m.abort(id, id) }
			}
			return func() error { return j.Applied(background, id, upTo) }, func() bool { return m.applied(id, upTo) }
		case 6:
			before := m.latest() - min(m.latest(), uint64(arg(3)))
			return func() error { return j.Prune(background, before) }, func() bool { return m.prune(before) }
		default:
			return func() error { return j.Rotate(background) }, func() bool { return true }
		}
	}
	for len(program) > 0 {
		size := 1 + arg(5)
		group := make([]func() error, size)
		allowed := make([]func() bool, size)
		for i := range group {
			group[i], allowed[i] = next()
		}
		errs := together(j, disk, group)
		for i, err := range errs {
			if ok := allowed[i](); ok != (err == nil) || err != nil && !errors.Is(err, journal.ErrConflict) {
				t.Fatalf("call %d of %d: %v, allowed: %v", i, size, err, ok)
			}
		}
		equal(t, load(t, j), m.load())
		if arg(4) == 0 {
			must(t, j.Close())
			j = with(t, disk, o)
			equal(t, load(t, j), m.load())
		}
	}
	must(t, j.Close())
	if _, err := verifyFolder(disk, journal.Anchor{}); err != nil {
		t.Fatal(err)
	}
}

// together makes calls that come, in their order, while the journal is busy: so that
// they are one group.
func together(j *journal.Journal[any], disk *memory, group []func() error) []error {
	busy := make(chan struct{})
	disk.SetFault(func(string) (int, error) {
		<-busy
		return 0, nil
	})
	first := make(chan error, 1)
	go func() { first <- j.Sync(context.Background()) }()
	synctest.Wait()
	results := make([]chan error, len(group))
	for i, call := range group {
		results[i] = make(chan error, 1)
		go func() { results[i] <- call() }()
		synctest.Wait()
	}
	close(busy)
	synctest.Wait()
	errs := []error{<-first}
	for _, r := range results {
		errs = append(errs, <-r)
	}
	return errs[1:]
}

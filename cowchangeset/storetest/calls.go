package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Calls makes n random calls, right and wrong ones, repeats some, and opens the store
// again now and then. The store must accept the right ones, refuse the wrong ones, and
// then have what the calls say.
func Calls(seed uint64, n int, open Opener) error {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &model{first: 1}
	s, err := opened(open)
	if err != nil {
		return err
	}
	applier, ok := s.(cowchangeset.Applier)
	if !ok {
		return errors.New("storetest: the store is no Applier")
	}
	for i := range n {
		c := call(r, m, s, applier)
		for range 1 + r.IntN(2) {
			err := c.do()
			if c.before > 0 {
				if err == nil {
					err = pruned(m, s, c.before)
				}
				if err != nil {
					return fmt.Errorf("storetest: call %d of seed %d: %s: %w", i, seed, c.text, err)
				}
			} else if want := c.want(); want != (err == nil) {
				return fmt.Errorf("storetest: call %d of seed %d: %s: error %v, should be accepted: %v", i, seed, c.text, err, want)
			}
		}
		if r.IntN(6) == 0 {
			if s, err = opened(open); err != nil {
				return fmt.Errorf("storetest: open, after call %d of seed %d: %w", i, seed, err)
			}
			applier = s.(cowchangeset.Applier)
		}
		if err := m.load(s); err != nil {
			return fmt.Errorf("storetest: after call %d of seed %d, %s: %w", i, seed, c.text, err)
		}
	}
	return nil
}

// maxID is how many bytes of an ID a store must accept.
const maxID = 1024

// called is a call of a store, and what the model says of it.
type called struct {
	text   string
	do     func() error
	want   func() bool
	before uint64 // of Prune
}

func call(r *rand.Rand, m *model, s cowchangeset.Loader[string], applier cowchangeset.Applier) called {
	ctx := context.Background()
	names := []string{"a", "b", "c", "d", "e", "an ID with ' and \" and \\ and ? and $1 and ü", ""}
	id := names[r.IntN(len(names))]
	if r.IntN(4) > 0 && m.latest() > 0 { // mostly of those that there are
		id = m.id(m.latest() - min(m.latest()-1, uint64(r.IntN(2))))
	}
	kind := r.IntN(8)
	if m.latest() == 0 {
		kind = 0
	}
	switch kind {
	case 0, 1:
		h := cowchangeset.Header{ID: names[r.IntN(len(names))], Ordinal: m.latest() + 1}
		if r.IntN(2) == 0 {
			h.ID = fmt.Sprint("changeset ", r.Uint64())
		}
		if r.IntN(5) == 0 && h.Ordinal > 1 {
			h.Ordinal--
		}
		if h.Previous = m.id(h.Ordinal - 1); r.IntN(9) == 0 {
			h.Previous = "a"
		}
		return called{text: fmt.Sprintf("Start(%+v)", h), do: func() error { return s.Start(ctx, h) }, want: func() bool { return m.start(h) }}
	case 2, 3:
		seq, entries := uint64(0), []cowchangeset.Entry[string](nil)
		if c := m.find(id); c != nil {
			seq = last(c)
		}
		for range 1 + r.IntN(4) {
			seq += uint64(r.IntN(3))
			entries = append(entries, cowchangeset.Entry[string]{Seq: seq, Value: strings.Repeat("é'\x00", r.IntN(3))})
			seq++
		}
		return called{text: fmt.Sprintf("Append(%q, %v)", id, entries), do: func() error { return s.Append(ctx, id, entries) }, want: func() bool { return m.append(id, entries) }}
	case 4, 5:
		manifest := cowchangeset.Manifest{Len: r.IntN(3)}
		if c := m.find(id); c != nil && r.IntN(4) > 0 {
			manifest = cowchangeset.Manifest{Len: len(c.Entries), Last: last(c)}
		}
		return called{text: fmt.Sprintf("Seal(%q, %v)", id, manifest), do: func() error { return s.Seal(ctx, id, manifest) }, want: func() bool { return m.seal(id, manifest) }}
	case 6:
		c := m.find(id)
		if c != nil && c.Applied == cowchangeset.AllApplied && !c.Aborted { // no store need say what an Abort is then
			return called{text: "Applied again", do: func() error { return applier.Applied(ctx, id, c.Applied) }, want: func() bool { return true }}
		}
		if r.IntN(2) == 0 {
			reason := []string{"", "because", "it's \"so\" ? $1"}[r.IntN(3)]
			return called{text: fmt.Sprintf("Abort(%q, %q)", id, reason), do: func() error { return s.Abort(ctx, id, reason) }, want: func() bool { return m.abort(id, reason) }}
		}
		next := []uint64{0, 1, 1<<62 - 1, cowchangeset.AllApplied}[r.IntN(4)]
		if c != nil && c.Aborted { // nor an Applied
			next = c.Applied
		}
		return called{text: fmt.Sprintf("Applied(%q, %d)", id, next), do: func() error { return applier.Applied(ctx, id, next) }, want: func() bool { return m.applied(id, next) }}
	}
	pruner, ok := s.(cowchangeset.Pruner)
	if !ok {
		return called{text: "nothing", do: func() error { return nil }, want: func() bool { return true }}
	}
	before := 1 + m.latest() - min(m.latest(), uint64(r.IntN(4)))
	return called{text: fmt.Sprintf("Prune(%d)", before), do: func() error { return pruner.Prune(ctx, before) }, before: before}
}

// pruned notes what the store has forgotten, and returns an error if it must not.
func pruned(m *model, s cowchangeset.Loader[string], before uint64) error {
	all, err := load(s)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("storetest: Prune has forgotten the latest changeset")
	}
	if !m.pruned(all[0].Ordinal, before) {
		return fmt.Errorf("storetest: Prune has forgotten what is below %d", all[0].Ordinal)
	}
	return nil
}

// Long appends long batches, with a retry that has more entries behind the first ones.
func Long(open Opener) error {
	ctx := context.Background()
	s, err := opened(open)
	if err != nil {
		return err
	}
	m := &model{first: 1}
	h := cowchangeset.Header{ID: "long", Ordinal: 1}
	if err := s.Start(ctx, h); err != nil {
		return err
	}
	m.start(h)
	entries := make([]cowchangeset.Entry[string], 1234)
	for i := range entries {
		entries[i] = cowchangeset.Entry[string]{Seq: uint64(3 * i), Value: strings.Repeat("x", i)}
	}
	for _, n := range []int{1, 999, 500, 1234, 1234} {
		if err := s.Append(ctx, "long", entries[:n]); err != nil {
			return fmt.Errorf("storetest: Append of %d entries: %w", n, err)
		}
		m.append("long", entries[:n])
	}
	if s, err = opened(open); err != nil {
		return err
	}
	if err := m.load(s); err != nil {
		return errors.New("storetest: after long Appends, Load yields other entries")
	}
	return s.Seal(ctx, "long", cowchangeset.Manifest{Len: 1234, Last: 3 * 1233})
}

// IDs starts a changeset with each of some IDs that a store must accept. Some of them
// differ in case, white space or the composition of a letter alone.
func IDs(open Opener) error {
	ctx := context.Background()
	s, err := opened(open)
	if err != nil {
		return err
	}
	long := strings.Repeat("x", maxID)
	m := &model{first: 1}
	for _, id := range []string{"a", "A", "a ", " a", "a\n", " ", "\t", "\u00e9", "e\u0301", "\u00df", "ss", "../a", "%00", "*", "\U0010ffff",
		long, long[1:], long[1:] + "X", strings.Repeat("\U0001f600", maxID/4)} {
		h := cowchangeset.Header{ID: id, Ordinal: m.latest() + 1, Previous: m.id(m.latest())}
		if err := s.Start(ctx, h); err != nil {
			return fmt.Errorf("storetest: Start(%+v): %w", h, err)
		}
		if err := s.Append(ctx, id, []cowchangeset.Entry[string]{{Value: id}}); err != nil {
			return fmt.Errorf("storetest: Append to %q: %w", id, err)
		}
		if err := s.Seal(ctx, id, cowchangeset.Manifest{Len: 1}); err != nil {
			return fmt.Errorf("storetest: Seal of %q: %w", id, err)
		}
		m.start(h)
		m.append(id, []cowchangeset.Entry[string]{{Value: id}})
		m.seal(id, cowchangeset.Manifest{Len: 1})
	}
	if s, err = opened(open); err != nil {
		return err
	}
	return m.load(s)
}

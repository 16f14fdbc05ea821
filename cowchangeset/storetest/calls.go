package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
)

// calls makes n random calls, right and wrong ones, repeats some, and opens the store
// again now and then. Before some it makes the same call with a context that has ended,
// which may fail or not. The store must accept the right ones, refuse the wrong ones, and
// then have what the calls say.
func calls(seed uint64, n int, open Opener) error {
	r := rand.New(rand.NewPCG(seed, 1))
	p, err := newPair(open)
	if err != nil {
		return err
	}
	ended, cancel := atomics.WithCancel(context.Background())
	cancel()
	for i := range n {
		call := randomCall(r, p)
		if r.IntN(4) == 0 {
			p.ctx = ended
			call()
			p.ctx = context.Background()
		}
		for range 1 + r.IntN(2) {
			if err := call(); err != nil {
				return fmt.Errorf("call %d of seed %d: %w", i, seed, err)
			}
		}
		if r.IntN(6) == 0 {
			err = p.reopen()
		}
		if err == nil {
			err = p.compare()
		}
		if err != nil {
			return fmt.Errorf("after call %d of seed %d, %s: %w", i, seed, p.last, err)
		}
	}
	return nil
}

func randomCall(r *rand.Rand, p *pair) func() error {
	m := &p.model
	names := []string{"a", "b", "c", "d", "e", "an ID with ' and \" and \\ and ? and $1 and ü", ""}
	id := names[r.IntN(len(names))]
	if r.IntN(4) > 0 && m.latest() > 0 { // mostly of those that there are
		id = m.id(m.latest() - min(m.latest()-1, uint64(r.IntN(2))))
	}
	kind := r.IntN(8)
	if m.latest() == 0 {
		kind = 0
	}
	switch c := m.find(id); kind {
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
		return func() error { return p.start(h) }
	case 2, 3:
		seq, entries := uint64(0), []cowchangeset.Entry[string](nil)
		if c != nil {
			seq = last(c)
		}
		n, size := 1+r.IntN(4), 3
		if r.IntN(15) == 0 {
			n, size = 1000, 50
		}
		for range n {
			seq += uint64(r.IntN(3))
			entries = append(entries, cowchangeset.Entry[string]{Seq: seq, Value: strings.Repeat("é'\x00", r.IntN(size))})
			seq++
		}
		return func() error { return p.append(id, entries) }
	case 4, 5:
		manifest := cowchangeset.Manifest{Len: r.IntN(3)}
		if c != nil && r.IntN(4) > 0 {
			manifest = cowchangeset.Manifest{Len: len(c.Entries), Last: last(c)}
		}
		return func() error { return p.seal(id, manifest) }
	case 6:
		switch { // no store need say what an Abort is after AllApplied, nor an Applied after an Abort
		case c != nil && (c.Aborted || c.Applied == cowchangeset.AllApplied):
			return func() error { return p.applied(id, c.Applied) }
		case r.IntN(2) == 0:
			reason := []string{"", "because", "it's \"so\" ? $1"}[r.IntN(3)]
			return func() error { return p.abort(id, reason) }
		}
		next := []uint64{0, 1, 1<<62 - 1, cowchangeset.AllApplied}[r.IntN(4)]
		return func() error { return p.applied(id, next) }
	}
	before := 1 + m.latest() - min(m.latest(), uint64(r.IntN(4)))
	return func() error { return p.prune(before) }
}

// maxID is how many bytes of an ID a store must accept.
const maxID = 1024

// ids starts a changeset with each of some IDs that a store must accept. Some of them
// differ in case, white space or the composition of a letter alone.
func ids(open Opener) error {
	p, err := newPair(open)
	if err != nil {
		return err
	}
	x := strings.Repeat("x", maxID)
	for _, id := range []string{"a", "A", "a ", " a", "a\n", " ", "\t", "\u00e9", "e\u0301", "\u00df", "ss", "../a", "%00", "*", "\U0010ffff",
		x, x[1:], x[1:] + "X", strings.Repeat("\U0001f600", maxID/4)} {
		err := errors.Join(
			p.start(cowchangeset.Header{ID: id, Ordinal: p.model.latest() + 1, Previous: p.model.id(p.model.latest())}),
			p.append(id, []cowchangeset.Entry[string]{{Value: id}}),
			p.seal(id, cowchangeset.Manifest{Len: 1}),
		)
		if err != nil {
			return err
		}
	}
	if err := p.reopen(); err != nil {
		return err
	}
	return p.compare()
}

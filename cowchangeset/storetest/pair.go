package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
)

// pair is a store, and the model of what it should have. Each call goes to both, and is
// an error if only one of them accepts it, unless its context has ended.
type pair struct {
	open    Opener
	store   cowchangeset.Loader[string]
	applier cowchangeset.Applier // the store
	model   model
	ctx     context.Context // of the calls
	last    string          // what was called
}

func newPair(open Opener) (*pair, error) {
	p := &pair{open: open, model: model{first: 1}, ctx: context.Background()}
	return p, p.reopen()
}

// reopen opens the store and claims it, as a tracker would.
func (p *pair) reopen() (err error) {
	if p.store, err = p.open(); err != nil {
		return err
	}
	var ok bool
	if p.applier, ok = p.store.(cowchangeset.Applier); !ok {
		return errors.New("the store is no Applier")
	}
	if c, ok := p.store.(cowchangeset.Claimer); ok {
		return c.Claim(context.Background())
	}
	return nil
}

func (p *pair) start(h cowchangeset.Header) error {
	return p.agree(p.model.start(h), p.store.Start(p.ctx, h), "Start(%+v)", h)
}

func (p *pair) append(id string, entries []cowchangeset.Entry[string]) error {
	return p.agree(p.model.append(id, entries), p.store.Append(p.ctx, id, entries), "Append(%q, %.200v)", id, entries)
}

func (p *pair) seal(id string, m cowchangeset.Manifest) error {
	return p.agree(p.model.seal(id, m), p.store.Seal(p.ctx, id, m), "Seal(%q, %v)", id, m)
}

func (p *pair) applied(id string, next uint64) error {
	return p.agree(p.model.applied(id, next), p.applier.Applied(p.ctx, id, next), "Applied(%q, %d)", id, next)
}

func (p *pair) abort(id, reason string) error {
	return p.agree(p.model.abort(id, reason), p.store.Abort(p.ctx, id, reason), "Abort(%q, %q)", id, reason)
}

// prune may forget less than it is allowed to.
func (p *pair) prune(before uint64) error {
	pruner, ok := p.store.(cowchangeset.Pruner)
	if !ok {
		return nil
	}
	if err := p.agree(true, pruner.Prune(p.ctx, before), "Prune(%d)", before); err != nil || p.ctx.Err() != nil {
		return err
	}
	all, err := load(p.store)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return errors.New("the latest changeset is gone after Prune")
	case !p.model.pruned(all[0].Ordinal, before):
		return fmt.Errorf("Prune(%d) has forgotten what is below %d", before, all[0].Ordinal)
	}
	return nil
}

func (p *pair) agree(want bool, err error, format string, args ...any) error {
	p.last = fmt.Sprintf(format, args...)
	if want != (err == nil) && p.ctx.Err() == nil {
		return fmt.Errorf("%s: error %v, should be accepted: %v", p.last, err, want)
	}
	return nil
}

// compare returns an error if the store has anything else than the model.
func (p *pair) compare() error {
	got, err := load(p.store)
	if err != nil {
		return err
	}
	var want []cowchangeset.Saved[string]
	for _, c := range p.model.sets[p.model.first-1:] {
		want = append(want, *c)
	}
	if p.model.first > 1 && len(got) > 0 {
		got[0].Previous, want[0].Previous = "", "" // nobody needs it
	}
	if !slices.EqualFunc(got, want, func(g, w cowchangeset.Saved[string]) bool {
		same := slices.Equal(g.Entries, w.Entries)
		g.Entries, w.Entries = nil, nil
		return same && reflect.DeepEqual(g, w)
	}) {
		return fmt.Errorf("yielded by Load:\n%.2000s\nwant\n%.2000s", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
	}
	return nil
}

// load returns what the store has, with the entries that Load leaves out.
func load(s cowchangeset.Loader[string]) (all []cowchangeset.Saved[string], err error) {
	for saved, err := range s.Load(context.Background()) {
		if err != nil {
			return nil, fmt.Errorf("error of Load: %w", err)
		}
		if m := saved.Manifest; m.Len > 0 {
			loader, ok := s.(cowchangeset.EntryLoader[string])
			if !ok || !saved.Aborted && saved.Applied != cowchangeset.AllApplied || len(saved.Entries) > 0 {
				return nil, fmt.Errorf("entries are left out by Load of %+v", saved)
			}
			for e, err := range loader.LoadEntries(context.Background(), saved.ID) {
				if err != nil {
					return nil, fmt.Errorf("LoadEntries: %w", err)
				}
				saved.Entries = append(saved.Entries, e)
			}
			if n := len(saved.Entries); n != m.Len || last(&saved) != m.Last {
				return nil, fmt.Errorf("LoadEntries of %q yields %d entries, and the manifest is %+v", saved.ID, n, m)
			}
			saved.Manifest = cowchangeset.Manifest{}
		}
		all = append(all, saved)
	}
	return all, nil
}

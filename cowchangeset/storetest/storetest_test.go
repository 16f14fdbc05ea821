package storetest_test

import (
	"context"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/storetest"
)

// journals returns what opens a journal.
func journals(t *testing.T) func() (*journal.Journal[string], error) {
	path := filepath.Join(t.TempDir(), "journal")
	var open *journal.Journal[string]
	t.Cleanup(func() { open.Close() })
	return func() (*journal.Journal[string], error) {
		if open != nil {
			if err := open.Close(); err != nil {
				return nil, err
			}
		}
		j, err := journal.Open[string](path, journal.Options{Sync: journal.SyncNever})
		open = j
		return j, err
	}
}

// broken is a journal that breaks one promise.
type broken struct {
	*journal.Journal[string]
	fault string
}

func (b broken) Start(ctx context.Context, h cowchangeset.Header) error {
	switch b.fault {
	case "the case of IDs is lost":
		h.ID = strings.ToLower(h.ID)
	case "white space of IDs is lost":
		h.ID = strings.TrimSpace(h.ID)
	case "long IDs are cut off":
		h.ID = h.ID[:min(len(h.ID), 1023)]
	case "starts twice are refused":
		for s := range b.Journal.Load(ctx) {
			if s.ID == h.ID {
				return journal.ErrConflict
			}
		}
	}
	return b.Journal.Start(ctx, h)
}

func (b broken) Append(ctx context.Context, id string, entries []cowchangeset.Entry[string]) error {
	switch b.fault {
	case "one entry is lost":
		entries = entries[:max(1, len(entries)-1)]
	case "errors are swallowed":
		b.Journal.Append(ctx, id, entries)
		return nil
	case "an ended context loses the work":
		if ctx.Err() != nil {
			b.Journal.Append(context.Background(), id, entries[:1])
			return b.Journal.Seal(context.Background(), id, cowchangeset.Manifest{Len: 1})
		}
	}
	return b.Journal.Append(ctx, id, entries)
}

func (b broken) Applied(ctx context.Context, id string, next uint64) error {
	if b.fault == "applied is lost" {
		return nil
	}
	return b.Journal.Applied(ctx, id, next)
}

func (b broken) Claim(ctx context.Context) error {
	switch {
	case b.fault == "claims are not kept":
		return nil
	case b.fault == "a claim that fails is kept" && ctx.Err() != nil:
		b.Journal.Claim(context.Background())
		return ctx.Err()
	}
	return b.Journal.Claim(ctx)
}

func (b broken) Release() {
	if b.fault != "releases are not kept" {
		b.Journal.Release()
	}
}

func (b broken) Prune(ctx context.Context, before uint64) error {
	if b.fault == "nothing is forgotten" {
		return nil
	}
	return b.Journal.Prune(ctx, before)
}

func (b broken) Load(ctx context.Context) iter.Seq2[cowchangeset.Saved[string], error] {
	return func(yield func(cowchangeset.Saved[string], error) bool) {
		for s, err := range b.Journal.Load(ctx) {
			if b.fault == "the reason is lost" {
				s.Reason = ""
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

func (b broken) LoadEntries(ctx context.Context, id string) iter.Seq2[cowchangeset.Entry[string], error] {
	return func(yield func(cowchangeset.Entry[string], error) bool) {
		for e, err := range b.Journal.LoadEntries(ctx, id) {
			if err != nil && b.fault == "what is forgotten is empty" || !yield(e, err) {
				return
			}
		}
	}
}

// Each broken promise fails a check.
func TestChecksFail(t *testing.T) {
	calls := func(open storetest.Opener) error {
		for seed := range uint64(8) {
			again := journals(t)
			s, err := open()
			if err != nil {
				return err
			}
			fault := s.(broken).fault
			if err := storetest.Calls(seed, 60, func() (cowchangeset.Loader[string], error) {
				j, err := again()
				return broken{j, fault}, err
			}); err != nil {
				return err
			}
		}
		return nil
	}
	for fault, check := range map[string]func(storetest.Opener) error{
		"starts twice are refused":        calls,
		"the case of IDs is lost":         storetest.IDs,
		"white space of IDs is lost":      storetest.IDs,
		"long IDs are cut off":            storetest.IDs,
		"one entry is lost":               calls,
		"errors are swallowed":            calls,
		"an ended context loses the work": calls,
		"applied is lost":                 storetest.Trackers,
		"the reason is lost":              calls,
		"claims are not kept":             storetest.Claims,
		"releases are not kept":           storetest.Claims,
		"a claim that fails is kept":      storetest.Claims,
		"nothing is forgotten":            storetest.Trackers,
		"what is forgotten is empty":      storetest.Trackers,
	} {
		t.Run(fault, func(t *testing.T) {
			open := journals(t)
			err := check(func() (cowchangeset.Loader[string], error) {
				j, err := open()
				return broken{j, fault}, err
			})
			if err == nil {
				t.Error("not found")
			}
		})
	}
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
)

// errStop is why a function of ours stops.
var errStop = errors.New("storetest: stop")

// Tracker records from many goroutines, through Starts, seals, batches, Apply, ApplyEach
// and Abort. A tracker that is resumed must have what the one before it had.
func Tracker(open Opener) error {
	ctx := context.Background()
	var ids, trail []string
	for process := range 3 {
		s, err := open()
		if err != nil {
			return err
		}
		tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[string]{Store: s})
		if err != nil {
			return err
		}
		if got := trailOf(tracker); !slices.Equal(got, trail) || !slices.Equal(tracker.IDs(), ids) {
			return fmt.Errorf("storetest: process %d begins with\n%v\nwant\n%v", process, got, trail)
		}
		for n := range 4 {
			if err := work(ctx, tracker, n); err != nil {
				return fmt.Errorf("storetest: process %d: %w", process, err)
			}
		}
		if err := tracker.Flush(ctx); err != nil {
			return err
		}
		ids, trail = tracker.IDs(), trailOf(tracker)
	}
	return nil
}

// trailOf returns everything that a tracker shows, as text.
func trailOf(tracker *cowchangeset.Tracker[string]) (all []string) {
	for r, e := range tracker.Trail().All() {
		all = append(all, fmt.Sprint(r, e))
	}
	for _, c := range tracker.All() {
		all = append(all, fmt.Sprint(c.Ordinal(), c.Applied(), c.Reason()))
	}
	return all
}

// work is one changeset, from its Start to one of four ends.
func work(ctx context.Context, tracker *cowchangeset.Tracker[string], n int) error {
	c, err := tracker.Start(ctx)
	if err != nil {
		return err
	}
	ended, errs := make([]atomics.Event, 4), make([]error, 4)
	for g := range ended {
		ended[g] = atomics.MakeEvent()
		atomics.Go(func() {
			defer ended[g].Fire()
			errs[g] = records(tracker, g)
		})
	}
	for g := range ended {
		ended[g].Wait()
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	switch n % 4 {
	case 1:
		return c.Abort(ctx, errStop)
	case 2:
		return c.Apply(ctx, func(context.Context, cowchangeset.Final[string]) error { return nil })
	case 3:
		calls := 0
		err := c.ApplyEach(ctx, func(context.Context, uint64, string) error {
			if calls++; calls > 3 {
				return errStop
			}
			return nil
		})
		if !errors.Is(err, errStop) {
			return fmt.Errorf("storetest: ApplyEach returns %v", err)
		}
	}
	return nil
}

// records records entries and batches.
func records(tracker *cowchangeset.Tracker[string], g int) error {
	for i := range 5 {
		if _, err := tracker.Record(fmt.Sprint("entry ", g, i)); err != nil {
			return err
		}
		if _, err := tracker.RecordBatch([]string{"batch", fmt.Sprint(g), fmt.Sprint(i)}); err != nil {
			return err
		}
	}
	return nil
}

// Claims checks that a Claimer serves one tracker, until Release. A Claim that fails,
// because its context has ended, claims nothing.
func Claims(open Opener) error {
	s, err := open()
	if err != nil {
		return err
	}
	c, ok := s.(cowchangeset.Claimer)
	if !ok {
		return nil
	}
	ended, cancel := atomics.WithCancel(context.Background())
	cancel()
	if c.Claim(ended) == nil {
		c.Release()
	}
	config := cowchangeset.Config[string]{Store: s}
	if _, err := cowchangeset.New(config); err != nil {
		return err
	}
	if _, err := cowchangeset.New(config); err == nil {
		return errors.New("storetest: two trackers have the store")
	}
	c.Release()
	if _, err := cowchangeset.Resume(context.Background(), config); err != nil {
		return fmt.Errorf("storetest: after Release: %w", err)
	}
	if c.Claim(context.Background()) == nil {
		return errors.New("storetest: Claim of a claimed store succeeds")
	}
	return nil
}

// Contexts makes each call with a context that has ended, and then again. The first one
// may fail or not; the second one must succeed, and the work must be done once.
func Contexts(open Opener) error {
	s, err := opened(open)
	if err != nil {
		return err
	}
	ended, cancel := atomics.WithCancel(context.Background())
	cancel()
	entries := []cowchangeset.Entry[string]{{Seq: 0, Value: "a"}, {Seq: 1, Value: "b"}}
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error { return s.Start(ctx, cowchangeset.Header{ID: "1", Ordinal: 1}) },
		func(ctx context.Context) error { return s.Append(ctx, "1", entries) },
		func(ctx context.Context) error { return s.Seal(ctx, "1", cowchangeset.Manifest{Len: 2, Last: 1}) },
		func(ctx context.Context) error { return s.(cowchangeset.Applier).Applied(ctx, "1", 1) },
		func(ctx context.Context) error { return s.Abort(ctx, "1", "because") },
	} {
		call(ended)
		if err := call(context.Background()); err != nil {
			return fmt.Errorf("storetest: after a call whose context had ended: %w", err)
		}
	}
	m := &model{first: 1, sets: []*cowchangeset.Saved[string]{{
		Header: cowchangeset.Header{ID: "1", Ordinal: 1}, Entries: entries, Sealed: true, Aborted: true, Reason: "because", Applied: 1,
	}}}
	return m.load(s)
}

// Prunes checks that a Pruner forgets, keeps the rest, and goes on from there.
func Prunes(open Opener) error {
	ctx := context.Background()
	s, err := open()
	if err != nil {
		return err
	}
	if _, ok := s.(cowchangeset.Pruner); !ok {
		return nil
	}
	for process := range 3 {
		tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[string]{Store: s})
		if err != nil {
			return err
		}
		if c, _ := tracker.Current(); process > 0 && (len(tracker.IDs()) != 3 || c.Ordinal() != uint64(70*process) || c.Len() != 1) {
			return fmt.Errorf("storetest: process %d begins with changesets %v", process, tracker.IDs())
		}
		forgotten := ""
		for n := range 70 {
			c, err := tracker.Start(ctx)
			if err != nil {
				return err
			}
			if n == 0 {
				forgotten = c.ID()
			}
			if _, err := tracker.Record(fmt.Sprint(process, n)); err != nil {
				return err
			}
			if err := c.Apply(ctx, func(context.Context, cowchangeset.Final[string]) error { return nil }); err != nil {
				return err
			}
		}
		tracker.Prune(3)
		if err := tracker.Flush(ctx); err != nil {
			return err
		}
		all, err := load(s)
		if err != nil {
			return err
		}
		if len(all) != 3 {
			return fmt.Errorf("storetest: %d changesets remain of those that the tracker has forgotten all but 3", len(all))
		}
		if loader, ok := s.(cowchangeset.EntryLoader[string]); ok {
			for _, err = range loader.LoadEntries(ctx, forgotten) {
			}
			if err == nil {
				return errors.New("storetest: LoadEntries of a changeset that was forgotten yields no error")
			}
		}
		if s, err = open(); err != nil {
			return err
		}
	}
	return nil
}

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
var errStop = errors.New("stop")

// trackers records from many goroutines, through Starts, seals, batches, Apply, ApplyEach
// and Abort, and prunes. A tracker that is resumed must have what the one before it had.
func trackers(open Opener) error {
	var before []string
	for process := range 3 {
		s, err := open()
		if err != nil {
			return err
		}
		tracker, err := cowchangeset.Resume(context.Background(), cowchangeset.Config[string]{Store: s, PruneUnapplied: true})
		if err != nil {
			return err
		}
		if now := trailOf(tracker); !slices.Equal(now, before) {
			return fmt.Errorf("process %d begins with\n%v\nwant\n%v", process, now, before)
		}
		for n := range 4 {
			if err := work(context.Background(), tracker, n); err != nil {
				return fmt.Errorf("process %d: %w", process, err)
			}
		}
		if _, ok := s.(cowchangeset.Pruner); ok && process > 0 {
			if err := prune(tracker, s); err != nil {
				return err
			}
		}
		if err := tracker.Flush(context.Background()); err != nil {
			return err
		}
		before = trailOf(tracker)
	}
	return nil
}

// prune has the store forget changesets, among others some that end the files of a
// store that forgets whole files.
func prune(tracker *cowchangeset.Tracker[string], s cowchangeset.Loader[string]) error {
	for n := range 70 {
		if _, err := tracker.Start(context.Background()); err != nil {
			return err
		}
		if _, err := tracker.Record(fmt.Sprint(n)); err != nil {
			return err
		}
	}
	forgotten := tracker.IDs()[0]
	err := tracker.Flush(context.Background())
	tracker.Prune(3)
	if err = errors.Join(err, tracker.Flush(context.Background())); err != nil {
		return err
	}
	all, err := load(s)
	if err != nil {
		return err
	}
	if len(all) != 3 {
		return fmt.Errorf("%d changesets remain of those that the tracker has forgotten all but 3", len(all))
	}
	if loader, ok := s.(cowchangeset.EntryLoader[string]); ok {
		for _, err = range loader.LoadEntries(context.Background(), forgotten) {
		}
		if err == nil {
			return errors.New("LoadEntries of a changeset that was forgotten yields no error")
		}
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
			return fmt.Errorf("ApplyEach returns %v", err)
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

// claims checks that a Claimer serves one tracker, until Release. A Claim that fails,
// because its context has ended, claims nothing.
func claims(open Opener) error {
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
		return errors.New("two trackers have the store")
	}
	c.Release()
	if _, err := cowchangeset.Resume(context.Background(), config); err != nil {
		return fmt.Errorf("after Release: %w", err)
	}
	if c.Claim(context.Background()) == nil {
		return errors.New("a claimed store can be claimed again")
	}
	return nil
}

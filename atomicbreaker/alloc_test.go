//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"testing"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// What each operation allocates, exactly. Only the first failure of a key that
// was healthy, and its recovery from open, may allocate at all.
func TestAllocations(t *testing.T) {
	ctx := t.Context()
	type pair struct{ a, b int32 }
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(2)})
	open := ab.MustNew(ab.Config{Policy: ab.Consecutive(1)})
	open.Allow()
	p, _ := open.Allow()
	p.Failure()
	strings, ints, pairs := new(ab.Group[string]), new(ab.Group[uint64]), new(ab.Group[pair])
	for range 5 {
		strings.RecordFailure("open")
		ints.RecordFailure(1)
	}
	strings.RecordFailure("failing")
	notified := ab.MustNew(ab.Config{Policy: ab.Consecutive(2), OnStateChange: func(ab.Event) {}})
	notifiedKeys := ab.MustNewGroup(ab.GroupConfig[string]{OnStateChange: func(string, ab.Event) {}})
	notifiedKeys.RecordFailure("failing")
	again := 0
	var nested *ab.Breaker
	nested = ab.MustNew(ab.Config{OnStateChange: func(ab.Event) {
		if again > 0 {
			again--
			nested.Reset()
		}
	}})
	n := 0
	for _, tt := range []struct {
		name string
		want float64
		op   func()
	}{
		{"Allow, Success", 0, func() { p, _ := b.Allow(); p.Success() }},
		{"Allow, Failure, Allow, Success", 0, func() { p, _ := b.Allow(); p.Failure(); p, _ = b.Allow(); p.Success() }},
		{"Allow, Done, Success", 0, func() { p, _ := b.Allow(); p.Done(errBoom); p, _ = b.Allow(); p.Done(nil) }},
		{"trip and reset", 0, func() { p, _ := b.Allow(); q, _ := b.Allow(); p.Failure(); q.Failure(); b.Reset() }},
		{"rejection", 0, func() { open.Allow() }},
		{"State, Snapshot", 0, func() { open.State(); open.Snapshot() }},
		{"ExecuteResult with closures", 0, func() {
			ab.ExecuteResult(ctx, b, func(context.Context) (int, error) { n++; return n, nil }, func(int, error) ab.Outcome { n++; return ab.Success })
		}},
		{"Execute with a closure", 0, func() { ab.Execute(b, func() (int, error) { n++; return n, nil }) }},
		{"Do with a closure", 0, func() { b.Do(ctx, func(context.Context) error { n++; return nil }) }},
		{"Group.Allow, Success", 0, func() { p, _ := strings.Allow("healthy"); p.Success() }},
		{"Group.Allow, Report", 0, func() { p, _ := strings.Allow("healthy"); p.Report(ab.Success) }},
		{"Group.Allow, Success of an int", 0, func() { p, _ := ints.Allow(1 << 40); p.Success() }},
		{"Group.Allow, Success of a struct", 0, func() { p, _ := pairs.Allow(pair{1, 2}); p.Success() }},
		{"Group.Allow, rejection", 0, func() { strings.Allow("open") }},
		{"Group failure of a failing key", 0, func() { p, _ := strings.Allow("failing"); p.Cancel(); strings.IsOpen("failing") }},
		{"Group.IsOpen, RecordSuccess", 0, func() { strings.IsOpen("healthy"); strings.RecordSuccess("healthy") }},
		{"Allow, Success, with a listener", 0, func() { p, _ := notified.Allow(); p.Success() }},
		{"Allow, Failure, Allow, Success, with a listener", 0, func() { p, _ := notified.Allow(); p.Failure(); p, _ = notified.Allow(); p.Success() }},
		{"Group.Allow, Success, with a listener", 0, func() { p, _ := notifiedKeys.Allow("healthy"); p.Success() }},
		{"Reset with a listener", 0, notified.Reset},
		{"Group.ForceOpen, Disable with a listener", 0, func() { notifiedKeys.ForceOpen("k"); notifiedKeys.Disable("k") }},
		// The event that waits until the listener has returned.
		{"Reset by the listener", 1, func() { again = 1; nested.Reset() }},
		// The cell, the table's entry, and a copy of the key.
		{"Group failure and success", 3, func() { strings.RecordFailure("k"); strings.RecordSuccess("k") }},
	} {
		if got := testing.AllocsPerRun(100, tt.op); got != tt.want {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.want)
		}
	}
}

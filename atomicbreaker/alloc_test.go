//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"math"
	"testing"
	"time"
	"unsafe"

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
	full := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}, MaxOpen: 1, ForgetAfter: -1})
	full.Trip("open", -1)
	full.RecordFailure("failing")
	timed := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.SlowRate(1, time.Hour, math.MaxInt, time.Minute)}})
	lasting := func() ab.GroupPermit[string] { // long enough for the clock to see
		p, _ := timed.Allow("healthy")
		for begun := time.Now(); time.Since(begun) < 5*time.Microsecond; {
		}
		return p
	}
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
		{"Group.Allow, Success of a timed call", 0, func() { lasting().Success() }},
		{"Group.Allow, Cancel of a timed call", 0, func() { lasting().Cancel() }},
		{"Group.Allow, Success of an int", 0, func() { p, _ := ints.Allow(1 << 40); p.Success() }},
		{"Group.Allow, Success of a struct", 0, func() { p, _ := pairs.Allow(pair{1, 2}); p.Success() }},
		{"Group.Allow, rejection", 0, func() { strings.Allow("open") }},
		{"Group failure of a failing key", 0, func() { p, _ := strings.Allow("failing"); p.Cancel(); strings.IsOpen("failing") }},
		{"Group failure that is withheld, and nothing is forgotten", 0, func() { full.RecordFailure("failing") }},
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

// Whatever the policy, calls of a breaker, and of a key that has its place,
// allocate nothing once there is a window. Neither do rejections.
func TestAllocationsOfPolicies(t *testing.T) {
	for _, p := range []ab.Policy{
		ab.Consecutive(math.MaxInt32),
		ab.KOfN(32, 32),
		ab.KOfN(1000, 1000),
		ab.AnyOf(ab.Consecutive(1000), ab.KOfN(1024, 1024), ab.KOfN(500, 600), ab.FailureRate(1, math.MaxInt, time.Minute)),
		ab.FailureRate(1, math.MaxInt, time.Second),
		ab.FailureCount(500_000, time.Second),
		ab.SlowRate(1, time.Hour, math.MaxInt, time.Second),
		ab.AnyOf(ab.Consecutive(32), ab.KOfN(32, 32), ab.FailureRate(1, math.MaxInt, time.Minute), ab.SlowRate(1, time.Hour, math.MaxInt, time.Second)),
	} {
		for _, c := range []ab.Config{{Policy: p}, {Policy: p, Shadow: true, Jitter: 0.5}, {Policy: p, OnStateChange: func(ab.Event) {}}} {
			b, rejecting := ab.MustNew(c), ab.MustNew(c)
			rejecting.Trip(-1)
			notified := c.OnStateChange != nil
			c.OnStateChange = nil
			g := ab.MustNewGroup(ab.GroupConfig[string]{Default: c})
			g.RecordFailure("failing")
			g.Trip("open", -1)
			g.Disable("disabled")
			both := func(key string, report func(ab.Permit), reportKeyed func(ab.GroupPermit[string])) func() {
				return func() {
					p, _ := b.Allow()
					report(p)
					q, _ := g.Allow(key)
					reportKeyed(q)
				}
			}
			type keyed = ab.GroupPermit[string]
			success, failure, cancel := func(p ab.Permit) { p.Success() }, func(p ab.Permit) { p.Failure() }, func(p ab.Permit) { p.Cancel() }
			keyedSuccess, keyedFailure, keyedCancel := func(p keyed) { p.Success() }, func(p keyed) { p.Failure() }, func(p keyed) { p.Cancel() }
			for name, op := range map[string]func(){
				"Success":          both("healthy", success, keyedSuccess),
				"Failure":          both("failing", failure, keyedFailure),
				"Failure, Success": func() { p, _ := b.Allow(); p.Failure(); p.Success(); p.Failure() },
				"Cancel":           both("failing", cancel, keyedCancel),
				"Done":             both("failing", func(p ab.Permit) { p.Done(errBoom) }, func(p keyed) { p.Done(errBoom) }),
				"Done(nil)":        both("healthy", func(p ab.Permit) { p.Done(nil) }, func(p keyed) { p.Done(nil) }),
				"Disabled":         both("disabled", func(p ab.Permit) { p.Success(); p.Failure() }, func(p keyed) { p.Success(); p.Failure() }),
				"rejection":        func() { rejecting.Allow(); g.Allow("open") },
				"late":             func() { p, _ := rejecting.Allow(); p.Failure() },
				"looking": func() {
					b.State()
					b.Snapshot()
					b.Stats()
					g.State("failing")
					g.Snapshot("open")
					g.Stats()
				},
				"by hand, in vain":  func() { rejecting.Trip(time.Second); g.Trip("open", 0); g.Disable("disabled") },
				"RecordX":           func() { g.RecordFailure("failing"); g.RecordSuccess("healthy") },
				"Trip and the like": func() { b.Trip(0); b.ForceOpen(); b.Disable(); b.Reset() },
			} {
				if got := testing.AllocsPerRun(50, op); got != 0 {
					t.Errorf("%v, shadow %v, listener %v: %s: %v allocations", p, c.Shadow, notified, name, got)
				}
				b.Reset()
				g.Reset("failing")
				both("failing", failure, keyedFailure)()
			}
		}
	}
}

// A rejection with details is one allocation.
func TestAllocationsOfDetailedErrors(t *testing.T) {
	b := ab.MustNew(ab.Config{DetailedErrors: true})
	b.ForceOpen()
	if got := testing.AllocsPerRun(50, func() { b.Allow() }); got != 1 {
		t.Errorf("%v allocations, want 1", got)
	}
}

// A million keys without a failure take no memory, whatever the policy, though
// another one is open.
func TestHealthyKeysTakeNoMemory(t *testing.T) {
	for name, p := range map[string]ab.Policy{
		"Consecutive": ab.Consecutive(5), "KOfN": ab.KOfN(3, 10), "a long KOfN": ab.KOfN(3, 1000),
		"FailureRate": ab.FailureRate(0.5, 10, time.Minute), "SlowRate": ab.SlowRate(0.5, time.Hour, 10, time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: p}})
			g.ForceOpen("open")
			key := []byte("user-0000000")
			call := func() {
				// Safety: nobody keeps a key that stays healthy.
				k := unsafe.String(&key[0], len(key))
				p, err := g.Allow(k)
				if err != nil || p.Success() != ab.Counted {
					t.Fatal(k, err)
				}
				for i := len(key) - 1; ; i-- { // the next key
					if key[i]++; key[i] <= '9' {
						break
					}
					key[i] = '0'
				}
			}
			if got := testing.AllocsPerRun(1_000_000, call); got != 0 {
				t.Errorf("%v allocations for each", got)
			}
			if n := g.Len(); n != 1 {
				t.Errorf("%d keys are held, want the one that is open", n)
			}
		})
	}
}

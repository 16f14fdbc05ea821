//go:build !modelcheck

package atomicbreaker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

func update(t *testing.T, b *ab.Breaker, c ab.Config) {
	t.Helper()
	if err := b.Update(c); err != nil {
		t.Fatal(err)
	}
}

// Checks I14, I15, I16: all tests of this file.

// What was counted counts on under the new settings, unless these count in another way.
func TestUpdateKeepsTheCount(t *testing.T) {
	for _, tt := range []struct {
		name     string
		from     ab.Policy
		calls    string // f fails, s succeeds
		to       ab.Policy
		failures int // after Update
		then     string
		trips    bool // with the last call
	}{
		{"higher", ab.Consecutive(3), "ff", ab.Consecutive(4), 2, "ff", true},
		{"higher still", ab.Consecutive(3), "ff", ab.Consecutive(4), 2, "f", false},
		{"lower", ab.Consecutive(9), "fff", ab.Consecutive(5), 3, "ff", true},
		{"lower than the count", ab.Consecutive(9), "fffffff", ab.Consecutive(3), 7, "f", true},
		{"lower, and a success", ab.Consecutive(9), "fffffff", ab.Consecutive(3), 7, "sff", false},
		{"to a history", ab.Consecutive(9), "sff", ab.KOfN(4, 8), 0, "fsfff", true},
		{"from a history", ab.KOfN(9, 20), "ffsfff", ab.Consecutive(5), 0, "fffff", true},
		{"to a longer history", ab.KOfN(4, 5), "fsf", ab.KOfN(3, 9), 2, "ssssf", true},
		{"to a shorter history", ab.KOfN(4, 9), "ffssf", ab.KOfN(3, 4), 2, "sf", false},
		{"to a shorter history that trips", ab.KOfN(4, 9), "fsfsf", ab.KOfN(3, 4), 2, "f", true},
		{"to both", ab.Consecutive(9), "ff", ab.AnyOf(ab.Consecutive(4), ab.KOfN(6, 9)), 0, "ffff", true},
		{"from both", ab.AnyOf(ab.Consecutive(9), ab.KOfN(6, 9)), "fsff", ab.Consecutive(3), 0, "fff", true},
		{"the default", ab.Consecutive(9), "ffff", nil, 4, "f", true},

		{"from a long history to a short one", ab.KOfN(9, 200), "ffsfsf", ab.KOfN(4, 7), 4, "f", true},
		{"from a long one with a success", ab.KOfN(9, 200), "ffsfsf", ab.KOfN(4, 7), 4, "sf", true},
		{"from a long one that forgets", ab.KOfN(9, 200), "ffsfsf", ab.KOfN(4, 7), 4, "sssff", false},
		{"from one of long ago", ab.KOfN(9, 200), "ff" + strings.Repeat("s", 100), ab.KOfN(2, 32), 0, "f", false},
		{"to a longer one", ab.KOfN(4, 50), "fsf", ab.KOfN(3, 90), 2, strings.Repeat("s", 86) + "f", true},
		{"to one that is too short", ab.KOfN(4, 90), "fsf", ab.KOfN(3, 50), 2, strings.Repeat("s", 47) + "f", false},
		{"to one that is just long enough", ab.KOfN(4, 90), "fsf", ab.KOfN(3, 50), 2, strings.Repeat("s", 46) + "f", true},
		{"to windows", ab.Consecutive(9), "ff", ab.FailureCount(2, time.Hour), 0, "ff", true},
		{"from both to a long one", ab.AnyOf(ab.Consecutive(9), ab.KOfN(8, 9)), "fff", ab.AnyOf(ab.Consecutive(4), ab.KOfN(100, 100)), 3, "f", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := ab.MustNew(ab.Config{Policy: tt.from})
			old := admit(t, b.Allow)
			for _, c := range tt.calls {
				wantVerdict(t, reportOp(admit(t, b.Allow), c == 'f'), ab.Counted)
			}
			generation := b.Snapshot().Generation
			update(t, b, ab.Config{Name: "new", Policy: tt.to})
			if s := b.Snapshot(); s.Failures != tt.failures || s.Generation != generation || s.Name != "new" {
				t.Fatalf("%+v", s)
			}
			wantVerdict(t, old.Cancel(), ab.Counted) // still good
			for i, c := range tt.then {
				want := ab.Counted
				if i == len(tt.then)-1 && tt.trips {
					want = ab.Tripped
				}
				wantVerdict(t, reportOp(admit(t, b.Allow), c == 'f'), want)
			}
		})
	}
}

// An open breaker stays open until its time, however that compares with the new
// settings; the next opening goes by those.
func TestUpdateKeepsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Hour, MaxOpenTimeout: time.Hour}
		short := ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second, MaxOpenTimeout: time.Second}
		b := ab.MustNew(long)
		for range 3 {
			fail(t, b.Allow, 1)
			update(t, b, short)
			time.Sleep(time.Hour - time.Millisecond)
			reject(t, b.Allow, ab.ErrOpen)
			wantState(t, b.State(), ab.Open)
			if left := b.Snapshot().RetryAfter; left != time.Millisecond {
				t.Fatalf("RetryAfter %v, want 1ms", left)
			}
			b.Trip(time.Minute) // at most a second, but longer than what is left
			if left := b.Snapshot().RetryAfter; left != time.Second {
				t.Fatalf("RetryAfter %v, want 1s", left)
			}
			time.Sleep(time.Second)
			wantVerdict(t, admit(t, b.Allow).Success(), ab.Recovered)
			fail(t, b.Allow, 1)
			update(t, b, long)
			time.Sleep(time.Second)
			wantVerdict(t, admit(t, b.Allow).Success(), ab.Recovered)
		}
		// Until Reset stays until Reset, and other times do not become so.
		b.Trip(-1)
		update(t, b, short)
		time.Sleep(1000 * time.Hour)
		reject(t, b.Allow, ab.ErrOpen)
		b.Reset()
		fail(t, b.Allow, 1)
		update(t, b, ab.Config{OpenTimeout: -1})
		time.Sleep(time.Second + time.Millisecond)
		wantVerdict(t, admit(t, b.Allow).Success(), ab.Recovered)
	})
}

// Probes in flight stay so, with their time; numbers and times of those that
// come are the new ones.
func TestUpdateKeepsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second, MaxOpenTimeout: time.Second, Probes: 3, CloseAfter: 9, ProbeTimeout: time.Hour}
		b := ab.MustNew(c)
		open(t, allow(b))
		p, q, r := admit(t, b.Allow), admit(t, b.Allow), admit(t, b.Allow)
		c.Probes, c.ProbeTimeout = 2, time.Second
		update(t, b, c)
		wantVerdict(t, p.Success(), ab.Counted)
		if s := b.Snapshot(); s.State != ab.HalfOpen || s.InFlight != 2 || s.Successes != 1 {
			t.Fatalf("%+v", s)
		}
		reject(t, b.Allow, ab.ErrTooManyProbes) // two are in flight
		time.Sleep(time.Hour - time.Second)
		reject(t, b.Allow, ab.ErrTooManyProbes) // and have an hour
		wantVerdict(t, q.Success(), ab.Counted)
		c.CloseAfter = 2 // is over already
		update(t, b, c)
		wantVerdict(t, r.Success(), ab.Recovered)

		open(t, allow(b))
		p = admit(t, b.Allow)
		admit(t, b.Allow)
		c.ProbeTimeout = time.Hour
		update(t, b, c)
		time.Sleep(time.Second + 256*time.Millisecond)
		q = admit(t, b.Allow)                  // in the place of both
		wantVerdict(t, p.Cancel(), ab.Counted) // and gives back none
		admit(t, b.Allow)
		time.Sleep(time.Hour / 2)
		reject(t, b.Allow, ab.ErrTooManyProbes)
		wantVerdict(t, q.Failure(), ab.Tripped)
	})
}

// The streak and what is set by hand stay.
func TestUpdateKeepsModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		b := ab.MustNew(ab.Config{OnStateChange: l.add})
		for _, set := range []func(){b.ForceOpen, b.Disable, func() { b.Trip(0); b.Trip(-1) }} {
			set()
			before := b.Snapshot()
			l = nil
			update(t, b, ab.Config{Policy: ab.FailureCount(1, time.Second), OnStateChange: l.add})
			update(t, b, ab.Config{OnStateChange: l.add})
			if after := b.Snapshot(); after != before {
				t.Fatalf("%+v, before %+v", after, before)
			}
			l.want(t) // it is no change of state
		}
	})
}

// Windows that are the same go on, whatever else changes; others begin anew.
func TestUpdateKeepsWindows(t *testing.T) {
	count, slow := ab.FailureCount(4, time.Minute), ab.SlowRate(1, time.Second, 99, time.Minute)
	for _, tt := range []struct {
		name     string
		from, to ab.Policy
		again    bool // whether they begin anew
	}{
		{"the same", count, ab.FailureCount(4, time.Minute), false},
		{"the same ones", ab.AnyOf(count, slow), ab.AnyOf(count, ab.AnyOf(slow)), false},
		{"and another count", ab.AnyOf(count, ab.Consecutive(9)), ab.AnyOf(ab.Consecutive(19), count), false},
		{"and a history", count, ab.AnyOf(count, ab.KOfN(20, 30)), false},
		{"another number", count, ab.FailureCount(5, time.Minute), true},
		{"another length", count, ab.FailureCount(4, time.Hour), true},
		{"one more", count, ab.AnyOf(count, slow), true},
		{"none", count, ab.Consecutive(9), true},
		{"the first", ab.Consecutive(9), count, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ab.MustNew(ab.Config{Policy: tt.from})
				fail(t, b.Allow, 3)
				update(t, b, ab.Config{Name: "other", Policy: tt.to})
				want := ab.Tripped
				if tt.again {
					want = ab.Counted
				}
				wantVerdict(t, fail(t, b.Allow, 1), want)
			})
		})
	}
	// What changed back begins anew as well.
	b := ab.MustNew(ab.Config{Policy: count})
	fail(t, b.Allow, 3)
	update(t, b, ab.Config{})
	update(t, b, ab.Config{Policy: count})
	wantVerdict(t, fail(t, b.Allow, 3), ab.Counted)
	wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
}

// Successes count in a window from the Update on that brings it, in whatever
// state that finds the breaker.
func TestUpdateBringsWindows(t *testing.T) {
	rate := ab.Config{Policy: ab.FailureRate(0.5, 4, time.Minute), OpenTimeout: time.Second}
	for name, before := range map[string]func(b *ab.Breaker){
		"closed":   func(b *ab.Breaker) {},
		"failed":   func(b *ab.Breaker) { fail(t, b.Allow, 2) },
		"open":     func(b *ab.Breaker) { b.Trip(0) },
		"disabled": (*ab.Breaker).Disable,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b ab.Breaker // a zero one can be updated too
				before(&b)
				early, err := b.Allow()
				update(t, &b, rate)
				closed := b.State() == ab.Closed
				if !closed {
					b.Reset()
				}
				n := 5
				if err == nil && early.Success() == ab.Counted && closed {
					n-- // it ended after the Update
				}
				for range n {
					wantVerdict(t, admit(t, b.Allow).Success(), ab.Counted)
				}
				wantVerdict(t, fail(t, b.Allow, 4), ab.Counted) // four of nine
				wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
				b.Reset()
				update(t, &b, ab.Config{Policy: ab.Consecutive(2)})
				wantVerdict(t, admit(t, b.Allow).Success(), ab.Counted)
				wantVerdict(t, fail(t, b.Allow, 1), ab.Counted)
				wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
			})
		})
	}
}

// A listener can be replaced and silenced, and comes back; what there never was
// cannot come.
func TestUpdateOfListeners(t *testing.T) {
	var first, second log
	b := ab.MustNew(ab.Config{Name: "a", OnStateChange: first.add})
	b.Reset()
	update(t, b, ab.Config{Name: "b", OnStateChange: second.add})
	b.Reset()
	update(t, b, ab.Config{})
	b.Reset()
	update(t, b, ab.Config{OnStateChange: second.add})
	b.Reset()
	first.want(t, ab.Event{Name: "a", Reason: ab.ReasonReset})
	if len(second) != 2 || second[0].Generation != 2 || second[0].Name != "b" || second[1].Generation != 4 {
		t.Fatalf("told %v", second)
	}
	const text = "atomicbreaker: Config.OnStateChange: must be nil: Update cannot add a listener after New"
	var zero ab.Breaker
	for _, b := range []*ab.Breaker{&zero, ab.MustNew(ab.Config{})} {
		if err := b.Update(ab.Config{Name: "c", OnStateChange: first.add}); err == nil || err.Error() != text {
			t.Fatalf("Update: %v, want %q", err, text)
		}
		if b.Reset(); b.Snapshot().Name != "" {
			t.Fatal("an Update that failed has changed something")
		}
	}
	first.want(t)
	// From within it too.
	var c *ab.Breaker
	c = ab.MustNew(ab.Config{OnStateChange: func(ab.Event) { c.Update(ab.Config{OnStateChange: second.add}) }})
	second = nil
	c.Reset()
	c.Reset()
	if len(second) != 1 || second[0].Generation != 2 {
		t.Fatalf("told %v", second)
	}
}

// An Update with a wrong setting says which and changes nothing.
func TestWrongUpdate(t *testing.T) {
	b := ab.MustNew(ab.Config{Name: "right", Policy: ab.Consecutive(2)})
	fail(t, b.Allow, 1)
	before := b.Snapshot()
	for want, c := range map[string]ab.Config{
		"Config.Probes 32":               {Name: "wrong", Probes: 32},
		"Config.Policy: Consecutive(-1)": {Name: "wrong", Policy: ab.Consecutive(-1)},
		"Config.Jitter 2":                {Name: "wrong", Policy: ab.Consecutive(1), Jitter: 2},
	} {
		if err := b.Update(c); err == nil || !strings.HasPrefix(err.Error(), "atomicbreaker: "+want) {
			t.Errorf("Update: %v, want %q", err, want)
		}
	}
	if after := b.Snapshot(); after != before {
		t.Fatalf("%+v, before %+v", after, before)
	}
	wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
}

// Counts of what a breaker has done survive an Update.
func TestUpdateKeepsStats(t *testing.T) {
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: -1})
	for i := range uint64(3) {
		late := admit(t, b.Allow)
		fail(t, b.Allow, 1)
		late.Success()
		reject(t, b.Allow, ab.ErrOpen)
		b.Reset()
		if s, want := b.Stats(), (ab.Stats{Opened: i + 1, Closed: i + 1, Rejected: i + 1, Late: i + 1}); s != want {
			t.Fatalf("%+v, want %+v", s, want)
		}
		update(t, b, ab.Config{Policy: ab.Consecutive(1), OpenTimeout: -1})
	}
}

// Calls that were admitted when nobody asked how long they take are not slow after Update,
// even if their permits are marked because all calls are counted.
func TestUpdateMakesNoCallSlow(t *testing.T) {
	for _, totals := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := ab.MustNew(ab.Config{Policy: ab.Consecutive(5), RecordTotals: totals})
			p, err := b.Allow()
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if err := b.Update(ab.Config{Policy: ab.SlowRate(0.5, time.Second, 1, time.Hour), RecordTotals: totals}); err != nil {
				t.Fatal(err)
			}
			if v := p.Failure(); v != ab.Counted || b.State() != ab.Closed {
				t.Errorf("totals %t: the verdict is %v, and the breaker %v", totals, v, b.State())
			}
		})
	}
}

//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

const (
	longestOpen  = 365 * 24 * time.Hour // the longest OpenTimeout, MaxOpenTimeout and ForgetAfter
	longestProbe = 37 * time.Hour       // the longest ProbeTimeout
)

// Every setting that is wrong is an error that names it and its value, wherever
// a Config is given, and changes nothing.
func TestWrongSettings(t *testing.T) {
	tests := map[string]ab.Config{
		"Policy: Consecutive(0)":                                            {Policy: ab.Consecutive(0)},
		"Policy: Consecutive(-3)":                                           {Policy: ab.Consecutive(-3)},
		"Probes -1: must be in 0..31":                                       {Probes: -1},
		"Probes 32:":                                                        {Probes: 32},
		"CloseAfter -1: must be in 0..31":                                   {CloseAfter: -1},
		"CloseAfter 32:":                                                    {CloseAfter: 32},
		"ProbeFailureRate -0.1: must be in 0..1":                            {ProbeFailureRate: -0.1},
		"ProbeFailureRate 1.1: must be in 0..1":                             {ProbeFailureRate: 1.1},
		"ProbeFailureRate NaN: must be in 0..1":                             {ProbeFailureRate: math.NaN()},
		"ProbeTimeout -1ns: must be in 0..37h":                              {ProbeTimeout: -1},
		"ProbeTimeout 37h0m0.000000001s:":                                   {ProbeTimeout: longestProbe + 1},
		"ProbeTimeout 2562047h47m16.854775807s:":                            {ProbeTimeout: math.MaxInt64},
		"OpenTimeout 8760h0m0.000000001s: must be at most 8760h0m0s":        {OpenTimeout: longestOpen + 1},
		"OpenTimeout 2562047h47m16.854775807s:":                             {OpenTimeout: math.MaxInt64, MaxOpenTimeout: longestOpen},
		"MaxOpenTimeout -1ns: must be 0 or in 1m0s":                         {MaxOpenTimeout: -1},
		"MaxOpenTimeout 8760h0m0.000000001s: must be 0 or in 0s..8760h0m0s": {OpenTimeout: -1, MaxOpenTimeout: longestOpen + 1},
		"MaxOpenTimeout -2ns:":                                              {OpenTimeout: -1, MaxOpenTimeout: -2},
		"MaxOpenTimeout 1s: must be 0 or in 2s..8760h0m0s":                  {OpenTimeout: 2 * time.Second, MaxOpenTimeout: time.Second},
		"MaxOpenTimeout 59s:":                                               {MaxOpenTimeout: 59 * time.Second},
		"Jitter -0.1: must be in 0..1":                                      {Jitter: -0.1},
		"Jitter 1.0000000000000002:":                                        {Jitter: math.Nextafter(1, 2)},
		"Jitter NaN:":                                                       {Jitter: math.NaN()},
		"Jitter +Inf:":                                                      {Jitter: math.Inf(1)},
		"Jitter -Inf:":                                                      {Jitter: math.Inf(-1)},
		fmt.Sprintf("Probes %d:", math.MaxInt):                              {Probes: math.MaxInt},
		fmt.Sprintf("Probes %d:", math.MinInt):                              {Probes: math.MinInt},
		fmt.Sprintf("CloseAfter %d:", math.MaxInt):                          {CloseAfter: math.MaxInt},
		fmt.Sprintf("CloseAfter %d:", math.MinInt):                          {CloseAfter: math.MinInt},
	}
	for want, c := range tests {
		want = "atomicbreaker: Config." + want
		b, err := ab.New(c)
		if b != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("New: %v, want it to start with %q", err, want)
		}
		g, err := ab.NewGroup(ab.GroupConfig[string]{Default: c})
		if g != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("NewGroup: %v, want it to start with %q", err, want)
		}
		right := ab.MustNew(ab.Config{Policy: ab.Consecutive(2)})
		fail(t, right.Allow, 1)
		before := right.Snapshot()
		if err := right.Update(c); err == nil || !strings.HasPrefix(err.Error(), want) || right.Snapshot() != before {
			t.Errorf("Update: %v, want it to start with %q", err, want)
		}
		wantVerdict(t, fail(t, right.Allow, 1), ab.Tripped)
		panics(t, want, func() { ab.MustNew(c) })
		panics(t, want, func() { ab.MustNewGroup(ab.GroupConfig[int]{Default: c}) })
		perKey := ab.MustNewGroup(ab.GroupConfig[int]{PerKey: func(int) ab.Config { return c }})
		fallsBack(t, perKey, want)
	}
}

// fallsBack fails the test unless a group takes Default for the wrong settings that
// PerKey returns, counts that, and says by Config what is wrong.
func fallsBack(t *testing.T, g *ab.Group[int], want string) {
	t.Helper()
	for i := range 5 {
		wantState(t, g.State(1), ab.Closed)
		if wantVerdict(t, g.RecordFailure(1), map[bool]ab.Verdict{true: ab.Tripped}[i == 4]); g.Stats().WrongSettings != 1 {
			t.Errorf("%+v", g.Stats())
		}
	}
	c := g.Config(1)
	c.OnStateChange = nil // is the group's
	if _, err := ab.New(c); want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
		t.Errorf("New: %v, want it to start with %q", err, want)
	}
}

// Settings from PerKey that are wrong reach no caller as a panic, in whatever operation
// they are first needed: the key has those of Default, also after Update.
func TestWrongPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := func(string) ab.Config { return ab.Config{Name: "wrong", Policy: ab.Consecutive(1), Probes: 99} }
		c := ab.GroupConfig[string]{Default: ab.Config{Name: "default", Policy: ab.Consecutive(2), OpenTimeout: time.Second}}
		g := ab.MustNewGroup(c)
		fail(t, keyed(g, "stored"), 1)
		inFlight := admit(t, keyed(g, "stored"))
		c.PerKey = wrong
		updateGroup(t, g, c)
		if n := g.Stats().WrongSettings; n != 1 {
			t.Errorf("%d wrong settings of one stored key", n)
		}
		wantVerdict(t, inFlight.Cancel(), ab.Counted)
		wantVerdict(t, admit(t, keyed(g, "absent")).Done(errBoom), ab.Counted)
		wantVerdict(t, admit(t, keyed(g, "absent")).Done(errBoom), ab.Tripped)
		wantVerdict(t, fail(t, keyed(g, "stored"), 1), ab.Tripped)
		g.Trip("command", time.Second)
		time.Sleep(time.Second)
		for _, k := range []string{"stored", "absent", "command"} {
			if s := g.Snapshot(k); s.Name != "default" || s.State != ab.HalfOpen {
				t.Errorf("%s: %+v", k, s)
			}
			wantVerdict(t, admit(t, keyed(g, k)).Success(), ab.Recovered)
		}
		// Once to classify and to store, and for each of the others.
		if s := g.Stats(); s.WrongSettings < 3 || s.WrongSettings > 5 || !strings.Contains(s.LogValue().String(), "wrong_settings") {
			t.Errorf("%+v", s)
		}
		c.PerKey = nil
		updateGroup(t, g, c)
		before := g.Stats().WrongSettings
		fail(t, keyed(g, "stored"), 1)
		if n := g.Stats().WrongSettings; n != before {
			t.Errorf("%d more without PerKey", n-before)
		}
	})
}

func TestWrongGroupSettings(t *testing.T) {
	for want, c := range map[string]ab.GroupConfig[string]{
		"MaxOpen -1: must not be negative": {MaxOpen: -1},
		"MaxOpen -":                        {MaxOpen: math.MinInt},
		"ForgetAfter 8760h0m0.000000001s: must be at most 8760h": {ForgetAfter: longestOpen + 1},
		"ForgetAfter 2562047h47m16.854775807s:":                  {ForgetAfter: math.MaxInt64},
	} {
		want = "atomicbreaker: GroupConfig." + want
		g, err := ab.NewGroup(c)
		if g != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("NewGroup: %v, want it to start with %q", err, want)
		}
		panics(t, want, func() { ab.MustNewGroup(c) })
	}
}

// What is at the edge of being wrong is right: the breaker opens, is open for
// exactly as long as it should be, and recovers with as many probes as it should
// take; also if it had other settings before.
func TestExtremeSettings(t *testing.T) {
	const most = math.MaxInt64
	longest := func(int) time.Duration { return most }
	shortest := func(int) time.Duration { return math.MinInt64 }
	for _, tt := range []struct {
		config ab.Config
		open   time.Duration // of the first opening; negative: until Reset
	}{
		{ab.Config{}, time.Minute},
		{ab.Config{OpenTimeout: time.Millisecond, MaxOpenTimeout: time.Millisecond, ProbeTimeout: 1}, time.Millisecond},
		{ab.Config{OpenTimeout: time.Millisecond, MaxOpenTimeout: longestOpen, Probes: 31, CloseAfter: 31}, time.Millisecond},
		{ab.Config{OpenTimeout: time.Second, MaxOpenTimeout: longestOpen, Probes: 31, ProbeTimeout: longestProbe}, time.Second},
		{ab.Config{OpenTimeout: longestOpen - time.Millisecond, MaxOpenTimeout: longestOpen, CloseAfter: 31}, longestOpen - time.Millisecond},
		{ab.Config{OpenTimeout: longestOpen}, longestOpen},
		{ab.Config{OpenTimeout: longestOpen, MaxOpenTimeout: longestOpen}, longestOpen},
		{ab.Config{OpenTimeout: math.MinInt64, MaxOpenTimeout: longestOpen, Jitter: 1}, -1},
		{ab.Config{OpenTimeout: -1, MaxOpenTimeout: 1, Backoff: shortest}, -1},
		{ab.Config{OpenTimeout: -1, MaxOpenTimeout: time.Hour, Backoff: longest}, time.Hour},
		{ab.Config{OpenTimeout: -1, Backoff: longest}, longestOpen},
		{ab.Config{OpenTimeout: time.Second, Backoff: longest}, 10 * time.Second},
		{ab.Config{OpenTimeout: time.Second, MaxOpenTimeout: longestOpen, Backoff: longest}, longestOpen},
		{ab.Config{OpenTimeout: time.Second, MaxOpenTimeout: longestOpen, Backoff: shortest}, time.Second},
		{ab.Config{OpenTimeout: time.Second, Jitter: math.SmallestNonzeroFloat64}, time.Second},
	} {
		tt.config.Policy = ab.Consecutive(1)
		cycle := func(t *testing.T, allow allower, reset func()) {
			for range 3 {
				wantVerdict(t, fail(t, allow, 1), ab.Tripped)
				reject(t, allow, ab.ErrOpen)
				if tt.open < 0 {
					time.Sleep(3 * longestOpen)
					reject(t, allow, ab.ErrOpen)
					reset()
					continue
				}
				time.Sleep(tt.open - 1)
				reject(t, allow, ab.ErrOpen)
				time.Sleep(time.Nanosecond)
				probes := []permit{}
				for range max(tt.config.Probes, 1) {
					probes = append(probes, admit(t, allow))
				}
				reject(t, allow, ab.ErrTooManyProbes)
				for i := range max(tt.config.CloseAfter, 1) {
					if i >= len(probes) {
						probes = append(probes, admit(t, allow))
					}
					want := ab.Counted
					if i+1 == max(tt.config.CloseAfter, 1) {
						want = ab.Recovered
					}
					wantVerdict(t, probes[i].Success(), want)
				}
			}
		}
		t.Run(fmt.Sprintf("%+v", tt.config), func(t *testing.T) {
			subjects(t, tt.config, cycle)
			synctest.Test(t, func(t *testing.T) {
				b := ab.MustNew(ab.Config{Policy: ab.KOfN(31, 32), OpenTimeout: time.Millisecond, MaxOpenTimeout: time.Millisecond, Probes: 17, ProbeTimeout: 1})
				if err := b.Update(tt.config); err != nil {
					t.Fatal(err)
				}
				cycle(t, allow(b), b.Reset)
				for _, most := range []int{1, math.MaxInt} {
					g := ab.MustNewGroup(ab.GroupConfig[int]{Default: tt.config, MaxOpen: most})
					cycle(t, keyed(g, 1), func() { g.Reset(1) })
					if g.Len() != 0 {
						t.Errorf("a healthy key has not left")
					}
				}
			})
		})
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{ab.Closed.String() + ab.Open.String() + ab.HalfOpen.String() + ab.State(9).String(), "ClosedOpenHalfOpenState(9)"},
		{ab.Success.String() + ab.Failure.String() + ab.Ignored.String() + ab.Outcome(9).String(), "SuccessFailureIgnoredOutcome(9)"},
		{ab.Counted.String() + ab.Late.String() + ab.Tripped.String() + ab.Recovered.String() + ab.Verdict(9).String(), "CountedLateTrippedRecoveredVerdict(9)"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

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
		{"from a history beside a window", ab.AnyOf(ab.KOfN(9, 20), ab.FailureRate(1, 9, time.Hour)), "s", ab.Consecutive(2), 0, "ff", true},
		{"to a function", ab.Consecutive(9), "ff", ab.TripFunc(time.Hour, 0, func(c ab.Counts) bool { return c.Consecutive >= 4 }), 2, "ff", true},
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

// Without a ProbeTimeout, a probe that is lost keeps its slot for OpenTimeout, and for ten seconds at least.
func TestProbeTimeoutByDefault(t *testing.T) {
	for open, want := range map[time.Duration]time.Duration{time.Second: 10 * time.Second, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: open})
			b.RecordFailure()
			admitted := func() bool { _, err := b.Allow(); return err == nil }
			for !admitted() {
				time.Sleep(10 * time.Millisecond)
			}
			lost := time.Now()
			for !admitted() {
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(lost); took < want || took > want+200*time.Millisecond {
				t.Errorf("with an OpenTimeout of %v, the slot is free after %v, want %v", open, took, want)
			}
		})
	}
}

// Totals count the calls that Shadow lets through as well: the outage is among them.
func TestTotalsCountWhatAShadowLetsThrough(t *testing.T) {
	b := ab.MustNew(ab.Config{Shadow: true, RecordTotals: true, Policy: ab.Consecutive(1)})
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Shadow: true, RecordTotals: true, Policy: ab.Consecutive(1)}})
	for range 10 {
		b.Do(t.Context(), func(context.Context) error { return errBoom })
		g.Do(t.Context(), "k", func(context.Context) error { return errBoom })
	}
	if s := b.Stats(); s.TotalFailures != 10 {
		t.Errorf("Breaker: 10 calls failed, TotalFailures is %d: %+v", s.TotalFailures, s)
	}
	if s := g.Stats(); s.TotalFailures != 10 {
		t.Errorf("Group: 10 calls failed, TotalFailures is %d: %+v", s.TotalFailures, s)
	}
}

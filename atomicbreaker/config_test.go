//go:build !modelcheck

package atomicbreaker_test

import (
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

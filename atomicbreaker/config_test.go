package atomicbreaker_test

import (
	"math"
	"strings"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

func TestWrongSettings(t *testing.T) {
	tests := map[string]ab.Config{
		"Config.Trip: Consecutive(0)":                  {Trip: ab.Consecutive(0)},
		"Config.Trip: Consecutive(-3)":                 {Trip: ab.Consecutive(-3)},
		"Config.Probes -1":                             {Probes: -1},
		"Config.Probes 32":                             {Probes: 32},
		"Config.CloseAfter -1":                         {CloseAfter: -1},
		"Config.CloseAfter 32":                         {CloseAfter: 32},
		"Config.ProbeTimeout -1ns":                     {ProbeTimeout: -1},
		"Config.ProbeTimeout 1200h0m0s":                {ProbeTimeout: 50 * 24 * time.Hour},
		"Config.MaxOpenTimeout -1ns":                   {MaxOpenTimeout: -1},
		"Config.MaxOpenTimeout 1s: must be 0 or at le": {OpenTimeout: 2 * time.Second, MaxOpenTimeout: time.Second},
		"Config.MaxOpenTimeout 59s":                    {MaxOpenTimeout: 59 * time.Second},
	}
	for want, c := range tests {
		b, err := ab.New(c)
		if b != nil || err == nil || !strings.HasPrefix(err.Error(), "atomicbreaker: "+want) {
			t.Errorf("New: %v, want it to start with %q", err, want)
		}
		g, err := ab.NewGroup(ab.GroupConfig[string]{Default: c})
		if g != nil || err == nil || !strings.HasPrefix(err.Error(), "atomicbreaker: "+want) {
			t.Errorf("NewGroup: %v, want it to start with %q", err, want)
		}
		panics(t, "atomicbreaker: "+want, func() { ab.MustNew(c) })
		panics(t, "atomicbreaker: "+want, func() { ab.MustNewGroup(ab.GroupConfig[int]{Default: c}) })
	}
	_, err := ab.NewGroup(ab.GroupConfig[string]{IdleTimeout: -time.Second})
	if err == nil || !strings.Contains(err.Error(), "GroupConfig.IdleTimeout -1s") {
		t.Errorf("NewGroup: %v", err)
	}
}

func TestLargestSettings(t *testing.T) {
	for _, c := range []ab.Config{
		{},
		{Trip: ab.Consecutive(math.MaxInt32), Probes: 31, CloseAfter: 31, ProbeTimeout: 49 * 24 * time.Hour},
		{OpenTimeout: math.MaxInt64, MaxOpenTimeout: math.MaxInt64},
		{OpenTimeout: -1, MaxOpenTimeout: time.Hour},
		{OpenTimeout: math.MinInt64},
		{OpenTimeout: time.Hour, MaxOpenTimeout: math.MaxInt64},
	} {
		if _, err := ab.New(c); err != nil {
			t.Error(err)
		}
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

//go:build modelcheck

package atomicbreaker

import (
	"math"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Checks I14, I15, I16: all tests of this file.

// The settings of a group change at one moment, whatever else is done to it. What
// permits look like changes with a SlowRate, and no result is lost by that.
func TestGroupUpdates(t *testing.T) {
	var (
		one   = Config{Policy: Consecutive(1)}
		three = Config{Policy: Consecutive(3)}
		timed = Config{Policy: AnyOf(Consecutive(2), SlowRate(1, time.Hour, math.MaxInt32, time.Minute))}
	)
	for name, p := range map[string]protocol{
		"and a failure":            {before: held, threads: threads{{update(one)}, {reportOp(0, Failure)}}},
		"and a failing one's":      {before: failing, threads: threads{{update(three)}, {reportOp(2, Failure)}}},
		"and a call":               {threads: threads{{update(one)}, {allow(0, k), reportOp(0, Failure)}}},
		"and ResetAll":             {before: failing, threads: threads{{update(one)}, {resetAll, allow(0, k)}}},
		"and ResetAll, a failure":  {threads: threads{{update(one), record(k, Failure)}, {resetAll}}},
		"twice":                    {before: held, threads: threads{{update(one), reportOp(0, Failure)}, {update(three)}}},
		"and a probe":              {settings: Config{CloseAfter: 2}, before: probing, threads: threads{{update(Config{Policy: Consecutive(2), CloseAfter: 1})}, {reportOp(3, Success)}}},
		"and two failures":         {settings: three, threads: threads{{update(one), record(k, Failure)}, {record(k, Failure)}}},
		"to time calls, and one":   {before: held, threads: threads{{update(timed)}, {reportOp(0, Failure)}}},
		"to time calls, and a new": {threads: threads{{update(timed)}, {allow(0, k), reportOp(0, Failure)}}},
		"to time no more":          {settings: timed, before: held, threads: threads{{update(three)}, {reportOp(0, Failure), allow(0, k)}}},
		"to time, and not":         {threads: threads{{update(timed), allow(0, k)}, {update(three)}}},
		"of what is open":          {before: opened, threads: threads{{update(three)}, {allow(0, k)}, {state(k)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 3}) })
	}
}

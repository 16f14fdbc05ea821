//go:build modelcheck

package atomicbreaker

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// What comes before: calls in flight, and then some that have ended.
var (
	inFlight = []order{ask(0), ask(1), ask(2)}
	oneOf    = append(inFlight[:3:3], ask(3), ends(3, Failure))
	twoOf    = append(oneOf[:5:5], ask(3), ends(3, Failure))
	thenOK   = append(oneOf[:5:5], ask(3), ends(3, Success))
)

// Results count one by one, in some order, in what the word remembers of the
// last calls, and one of them opens the breaker.
func TestLastCalls(t *testing.T) {
	anyOf := Config{Policy: AnyOf(Consecutive(2), KOfN(2, 3))}
	both := orders{{ends(0, Failure)}, {ends(1, Failure)}, {ends(2, Success)}}
	for name, r := range map[string]regime{
		"two of three":             {settings: Config{Policy: KOfN(2, 3)}, before: inFlight, threads: both},
		"two of two":               {settings: Config{Policy: KOfN(2, 2)}, before: inFlight, threads: both},
		"one of one":               {settings: Config{Policy: KOfN(1, 1)}, before: inFlight, threads: both},
		"two of three after one":   {settings: Config{Policy: KOfN(2, 3)}, before: oneOf, threads: both},
		"three of four after one":  {settings: Config{Policy: KOfN(3, 4)}, before: thenOK, threads: both},
		"one is forgotten":         {settings: Config{Policy: KOfN(2, 2)}, before: thenOK, threads: orders{{ends(0, Success), observes}, {ends(1, Failure)}}},
		"32 of 32":                 {settings: Config{Policy: KOfN(3, 32)}, before: thenOK, threads: both},
		"in a row, or two of four": {settings: Config{Policy: AnyOf(Consecutive(2), KOfN(3, 4))}, before: inFlight, threads: both},
		"in a row or among three":  {settings: anyOf, before: oneOf, threads: orders{{ends(0, Success), ends(1, Failure)}, {ends(2, Success)}}},
		"Reset":                    {settings: Config{Policy: KOfN(2, 3)}, before: oneOf, threads: orders{{resets, ask(3), ends(3, Failure)}, {ends(0, Failure)}}},
		"Cancel is not a call":     {settings: Config{Policy: KOfN(2, 2)}, before: oneOf, threads: orders{{ends(0, Ignored), ends(1, Failure)}, {ends(2, Ignored)}}},
	} {
		r.listens = true
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{}) })
	}
}

// The same in a group, where a key is absent once none of its last calls has
// failed.
func TestLastCallsOfKeys(t *testing.T) {
	settings := Config{Policy: KOfN(2, 2)}
	for name, p := range map[string]protocol{
		"two failures of an absent key": {before: held, threads: threads{{reportOp(0, Failure)}, {reportOp(1, Failure)}}},
		"a failure, and a departure":    {before: after(failing, record(k, Success)), threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
		"a late success, and one":       {before: failing, threads: threads{{reportOp(0, Success)}, {reportOp(2, Success)}}},
		"a failure and a success":       {before: failing, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
	} {
		p.settings, p.listens = settings, true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// Failures that were counted by other settings count on by the new ones, as
// far as both know what they are.
func TestUpdateTakesOver(t *testing.T) {
	to := func(p Policy) order { return updates(Config{Policy: p}) }
	for name, r := range map[string]regime{
		"a lower threshold":           {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(Consecutive(2))}, {ends(0, Failure), observes}}},
		"a lower one, and a success":  {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(Consecutive(1))}, {ends(0, Success), ends(1, Failure)}}},
		"a higher threshold":          {settings: Config{Policy: Consecutive(3)}, before: twoOf, threads: orders{{to(Consecutive(4))}, {ends(0, Failure)}, {ends(1, Failure)}}},
		"from a row to the last":      {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(KOfN(3, 4))}, {ends(0, Failure)}}},
		"from the last to a row":      {settings: Config{Policy: KOfN(3, 4)}, before: twoOf, threads: orders{{to(Consecutive(3))}, {ends(0, Failure), observes}}},
		"the same with a success":     {settings: Config{Policy: KOfN(3, 4)}, before: twoOf, threads: orders{{to(Consecutive(2))}, {ends(0, Success), ends(1, Failure)}}},
		"two Updates":                 {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(Consecutive(2))}, {to(Consecutive(4))}}},
		"two Updates, and a failure":  {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(Consecutive(2)), to(Consecutive(5))}, {ends(0, Failure)}}},
		"more probes":                 {before: trying, threads: orders{{updates(Config{Probes: 2})}, {ask(0), ask(1)}}},
		"fewer successes are enough":  {settings: Config{CloseAfter: 2, Probes: 2}, before: append(trying[:5:5], ask(0)), threads: orders{{updates(Config{Probes: 2})}, {ends(2, Success)}, {ends(0, Success)}}},
		"a shorter time while open":   {before: tripped, threads: orders{{updates(Config{OpenTimeout: 1})}, {ask(2), observes}}},
		"a shadow becomes what it is": {settings: Config{Shadow: true}, before: tripped, threads: orders{{updates(Config{})}, {ask(2), ends(2, Failure)}}},
	} {
		r.listens = true
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{}) })
	}
}

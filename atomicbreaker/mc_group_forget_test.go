//go:build modelcheck

package atomicbreaker

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
)

// What comes before a protocol about keys that nobody has called for long.
var (
	failedLong  = after(failing, age(k))
	openLong    = after(opened, age(k))
	probingLong = after(probing, age(k))
)

// Checks I8, I9: all tests of this file.

// A key is forgotten at one moment, by its next call or by a sweep, and what
// comes at the same time counts before it or after.
func TestForgottenKeys(t *testing.T) {
	for name, p := range map[string]protocol{
		"two calls of an open one":             {before: openLong, threads: threads{{allow(0, k)}, {allow(1, k), reportOp(1, Failure)}}},
		"a call of an open one and a sweep":    {before: openLong, threads: threads{{allow(0, k), reportOp(0, Failure)}, {sweep}}},
		"a failure of an open one, a sweep":    {before: openLong, threads: threads{{record(k, Failure)}, {sweep}}},
		"a success of an open one, a call":     {before: openLong, threads: threads{{record(k, Success)}, {allow(0, k)}}},
		"an old result and a sweep":            {before: openLong, threads: threads{{reportOp(2, Failure)}, {sweep}}},
		"State of an open one and a sweep":     {before: openLong, threads: threads{{state(k), state(k)}, {sweep}}},
		"State of an open one and a failure":   {before: openLong, threads: threads{{state(k), state(k)}, {record(k, Failure), record(k, Failure)}}},
		"two sweeps of an open one":            {before: openLong, threads: threads{{sweep}, {sweep, allow(0, k)}}},
		"a sweep and Reset":                    {before: openLong, threads: threads{{sweep}, {reset(k)}}},
		"a sweep and ResetAll":                 {before: openLong, threads: threads{{sweep}, {resetAll}}},
		"a probe's success and a sweep":        {before: probingLong, threads: threads{{reportOp(3, Success)}, {sweep}}},
		"a probe's failure and a call":         {before: probingLong, threads: threads{{reportOp(3, Failure)}, {allow(0, k)}}},
		"State of a half-open one, a sweep":    {before: probingLong, threads: threads{{state(k)}, {sweep}}},
		"a failing one's failure, a sweep":     {before: failedLong, threads: threads{{reportOp(2, Failure)}, {sweep}}},
		"a failing one's success, a sweep":     {before: failedLong, threads: threads{{reportOp(2, Success)}, {sweep}}},
		"failing, a call and a sweep":          {before: failedLong, threads: threads{{allow(3, k), reportOp(3, Failure)}, {sweep}}},
		"failing, from before, and a sweep":    {before: failedLong, threads: threads{{reportOp(0, Failure)}, {sweep}}},
		"two sweeps of a failing one":          {before: failedLong, threads: threads{{sweep}, {sweep, record(k, Failure)}}},
		"two failures of a failing one":        {before: failedLong, threads: threads{{reportOp(2, Failure)}, {record(k, Failure)}}},
		"failures one by one of a failing one": {before: failedLong, threads: threads{{record(k, Failure)}, {record(k, Failure), record(k, Failure)}}},
		"a failing one, failure and success":   {before: failedLong, threads: threads{{reportOp(2, Failure)}, {record(k, Success), record(k, Failure)}}},
		"a failing one's history":              {settings: Config{Policy: KOfN(2, 3)}, before: failedLong, threads: threads{{reportOp(2, Success)}, {record(k, Failure)}}},
		"a failing one, ForceOpen":             {before: failedLong, threads: threads{{reportOp(2, Failure)}, {forceK}}},
		"an open one, ForceOpen and a call":    {before: openLong, threads: threads{{forceK}, {allow(0, k)}}},
		"a probe's result and ForceOpen":       {before: probingLong, threads: threads{{reportOp(3, Success)}, {forceK}}},
		"a probe's failure and a failure":      {before: probingLong, threads: threads{{reportOp(3, Failure)}, {record(k, Failure), record(k, Failure)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// Of three who find a key forgotten, none loses the failure of another.
func TestForgottenKeysOfThree(t *testing.T) {
	three := threads{{reportOp(2, Failure)}, {record(k, Failure)}, {record(k, Failure)}}
	for name, policy := range map[string]Policy{"a row": Consecutive(3), "a history": KOfN(3, 5), "both": AnyOf(Consecutive(3), KOfN(3, 4))} {
		t.Run(name, func(t *testing.T) {
			p := protocol{settings: Config{Policy: policy}, before: failedLong, threads: three}
			p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2})
		})
	}
}

// The same with a listener, which is told in order.
func TestForgottenKeysAreNotified(t *testing.T) {
	for name, p := range map[string]protocol{
		"a call and a sweep":      {before: openLong, threads: threads{{allow(0, k)}, {sweep}}},
		"a failure and a sweep":   {before: openLong, threads: threads{{record(k, Failure)}, {sweep}}},
		"two failures":            {before: openLong, threads: threads{{record(k, Failure)}, {record(k, Failure)}}},
		"two of a failing one":    {before: failedLong, threads: threads{{record(k, Failure)}, {record(k, Failure)}}},
		"a probe's failure":       {before: probingLong, threads: threads{{reportOp(3, Failure)}, {record(k, Failure), record(k, Failure)}}},
		"a command and a call":    {before: openLong, threads: threads{{forceK}, {allow(0, k)}}},
		"a sweep and ResetAll":    {before: openLong, threads: threads{{sweep}, {resetAll}}},
		"a call and ResetAll":     {before: openLong, threads: threads{{allow(0, k)}, {resetAll}}},
		"a sweep of two and Trip": {before: after(openLong, record(another, Failure), record(another, Failure), age(another)), threads: threads{{sweep}, {record(another, Failure)}}},
	} {
		p.listens = true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}) })
	}
}

// Probes that have lost their slots, in every order with those who have got
// them, and with what ends the period.
func TestOverdueProbes(t *testing.T) {
	twoLost := after(overdue, allow(0, k), expire(k), allow(1, k))
	three := Config{CloseAfter: 3}
	for name, p := range map[string]protocol{
		"two voices":             {settings: three, before: twoLost, threads: threads{{reportOp(3, Success)}, {reportOp(0, Success), reportOp(1, Success)}}},
		"a failure and a voice":  {settings: three, before: twoLost, threads: threads{{reportOp(3, Failure)}, {reportOp(0, Success)}}},
		"a voice and the next":   {before: twoLost, threads: threads{{reportOp(3, Success), allow(3, k)}, {reportOp(1, Failure)}}},
		"nothing to say":         {settings: three, before: twoLost, threads: threads{{reportOp(3, Ignored), allow(3, k)}, {reportOp(1, Success)}}},
		"a voice and Reset":      {before: twoLost, threads: threads{{reportOp(3, Success)}, {reset(k), record(k, Failure)}}},
		"nothing, and Reset":     {before: twoLost, threads: threads{{reportOp(3, Ignored)}, {reset(k)}}},
		"a voice, and a period":  {before: after(twoLost, reportOp(1, Failure), expire(k)), threads: threads{{reportOp(3, Success)}, {allow(1, k), reportOp(1, Success)}}},
		"a failure, and so":      {before: after(twoLost, reportOp(1, Failure), expire(k)), threads: threads{{reportOp(0, Failure)}, {allow(1, k), reportOp(1, Success)}}},
		"nothing, and so":        {before: after(twoLost, reportOp(1, Failure), expire(k)), threads: threads{{reportOp(0, Ignored)}, {allow(1, k)}}},
		"two begin a period":     {before: after(twoLost, reportOp(1, Failure), expire(k)), threads: threads{{allow(1, k), reportOp(3, Success)}, {allow(2, k), reportOp(0, Ignored)}}},
		"a share of them":        {settings: Config{CloseAfter: 2, ProbeFailureRate: 1}, before: twoLost, threads: threads{{reportOp(3, Failure)}, {reportOp(0, Success)}}},
		"a share of them is all": {settings: Config{CloseAfter: 2, ProbeFailureRate: 1}, before: twoLost, threads: threads{{reportOp(3, Failure)}, {reportOp(0, Failure)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

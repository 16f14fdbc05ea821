//go:build modelcheck

package atomicbreaker

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Checks I19, I20, I21, I22: all tests of this file.

// What a group's listener is told is what happened, in every order.
func TestProtocolsWithAListener(t *testing.T) {
	for name, p := range map[string]protocol{
		"a trip of an absent key":         {before: held, threads: threads{{reportOp(0, Failure)}, {record(k, Failure)}}},
		"a trip and a recovery":           {before: failing, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
		"a recovery and a failure":        {before: opened, threads: threads{{record(k, Success)}, {record(k, Failure)}}},
		"a lost probe and its heir":       {before: overdue, threads: threads{{reportOp(3, Success)}, {allow(0, k)}}},
		"a trip and ResetAll":             {before: failing, threads: threads{{reportOp(0, Failure)}, {resetAll}}},
		"a first failure and ResetAll":    {threads: threads{{record(k, Failure), record(k, Failure)}, {resetAll}}},
		"a recovery and ResetAll":         {before: opened, threads: threads{{record(k, Success)}, {resetAll}}},
		"a call, a trip and a departure":  {before: failing, threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Failure), record(k, Success)}}},
		"ResetAll twice":                  {before: opened, threads: threads{{resetAll}, {resetAll}}},
		"ResetAll as the key leaves":      {before: closed2, threads: threads{{reportOp(2, Failure)}, {resetAll}}},
		"a sweep and a trip":              {before: closed2, threads: threads{{sweep}, {record(k, Failure), record(k, Failure)}}},
		"a dead cell, gone, and ResetAll": {before: dead, threads: threads{{reportOp(2, Success)}, {sweep}, {resetAll}}},
	} {
		p.listens = true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// The same for what is too long for all orders: two callers in those with at
// most two preemptions, and three with at most one.
func TestLongProtocolsWithAListener(t *testing.T) {
	for name, p := range map[string]protocol{
		"a recovery, a trip and another": {before: opened, threads: threads{{record(k, Success)}, {record(k, Failure), record(k, Failure)}}},
		"a probe and Reset":              {before: probing, threads: threads{{reportOp(3, Success)}, {reset(k)}}},
		"a departure and ResetAll":       {before: opened, threads: threads{{resetAll}, {record(k, Success), reset(k)}}},
		"ResetAll and new trips":         {before: opened, threads: threads{{resetAll}, {record(k, Failure), record(k, Failure)}}},
		"ResetAll with a twin":           {before: after(opened, twinOpen...), threads: threads{{resetAll}, {reset(twin)}}},
		"Reset and ResetAll":             {before: failing, threads: threads{{reset(k)}, {resetAll}}},

		"a lost probe, its heir and Reset": {before: overdue, threads: threads{{reportOp(3, Success)}, {allow(0, k)}, {reset(k)}}},
		"a departure, and the key is back": {before: opened, threads: threads{{record(k, Success)}, {reset(k)}, {record(k, Failure), record(k, Failure)}}},
		"ResetAll twice, and new trips":    {before: opened, threads: threads{{resetAll}, {resetAll}, {record(k, Failure), record(k, Failure)}}},
	} {
		p.listens = true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 4 - len(p.threads)}) })
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stunts are children that end in ways that a case may end in.
var stunts = map[string]func() int{
	"stunt/pass":   func() int { _ = json.NewEncoder(os.Stdout).Encode(outcome{Status: pass, Rounds: 7}); return 0 },
	"stunt/silent": func() int { return 0 },
	"stunt/broken": func() int { fmt.Fprintln(os.Stderr, "panic: not the cache's"); return exitBroken },
	"stunt/exit":   func() int { return 1 },
	"stunt/panic":  func() int { panic("boom") },
	"stunt/thread": func() int { go func() { panic("elsewhere") }(); select {} },
	"stunt/busy": func() int {
		for {
			fmt.Fprintln(os.Stderr, "panic: said but not done")
		}
	},
	"stunt/fatal": func() int {
		debug.SetMaxStack(1 << 16)
		return deep(1)
	},
}

// deep exhausts the stack.
func deep(n int) int {
	if n == 0 {
		return 0
	}
	return deep(n+1) + n
}

// TestMain is a child if it was started as one, like main.
func TestMain(m *testing.M) {
	name := os.Getenv(childKey)
	if stunt := stunts[name]; stunt != nil {
		os.Exit(stunt())
	}
	if name != "" {
		os.Exit(child(name, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func testRunner(t *testing.T) runner {
	self, err := os.Executable()
	require.NoError(t, err)
	return runner{command: []string{self}, deadline: 30 * time.Second, parallel: 2, progress: io.Discard}
}

func TestRunnerTellsHowAChildEnds(t *testing.T) {
	for name, want := range map[string]outcome{
		"pass":   {Status: pass, Rounds: 7},
		"panic":  {Status: crash, Note: "the process dies: panic: boom"},
		"thread": {Status: crash, Note: "the process dies: panic: elsewhere"},
		"fatal":  {Status: crash, Note: "the process dies: fatal error: stack overflow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := testRunner(t).observe(t.Context(), "stunt/"+name)
			require.NoError(t, err)
			assert.Equal(t, want, o)
		})
	}
	for _, name := range []string{"silent", "broken", "exit", "no such"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := testRunner(t).observe(t.Context(), "stunt/"+name)
			assert.Error(t, err, "that says nothing about a cache")
		})
	}
	t.Run("asleep", func(t *testing.T) { // a program with cgo, as this one may be, does not notice
		err := exec.Command("false").Run()
		o, err := classify(err, nil, "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1")
		require.NoError(t, err)
		assert.Equal(t, outcome{Status: hang, Note: "all goroutines are asleep"}, o)
	})
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		r := testRunner(t)
		r.deadline = 300 * time.Millisecond
		o, err := r.observe(t.Context(), "stunt/busy")
		require.NoError(t, err)
		assert.Equal(t, outcome{Status: hang, Note: "the process still runs after 300ms"}, o)
	})
}

func TestRunnerStops(t *testing.T) {
	r := testRunner(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.run(ctx, []job{{cases()[0], peers[0]}})
	assert.ErrorIs(t, err, context.Canceled)

	_, err = r.run(t.Context(), []job{{&testCase{name: "none"}, peers[0]}, {cases()[0], peers[0]}})
	assert.ErrorContains(t, err, "none/"+peers[0].name)
}

// Some cells, one of each kind, run as the command runs them.
func TestRunnerRunsCases(t *testing.T) {
	want := map[string]status{
		"once/oncecache":                        pass,
		"pairsThatPrintAlike/ttlcache":          wrong,
		"publication/sturdyc":                   fail,
		"panicWaiters/singleflight, with care":  crash,
		"goexitWaiters/singleflight, with care": hang,
		"newcomer/ttlcache":                     na,
		"hit/oncecache":                         count,
	}
	var jobs []job
	for _, c := range cases() {
		for _, p := range peers {
			if j := (job{c, p}); want[j.String()] != "" {
				jobs = append(jobs, j)
			}
		}
	}
	require.Len(t, jobs, len(want))
	results, err := testRunner(t).run(t.Context(), jobs)
	require.NoError(t, err)
	for j, o := range results {
		assert.Equal(t, want[j.String()], o.Status, "%v: %v", j, o)
	}
	assert.Len(t, results, len(want))
}

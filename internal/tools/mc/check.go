//go:build modelcheck

package mc

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Check explores for a test: it fails the test if an execution fails, or if
// there are more executions than cfg.MaxSchedules.
//
// With -short it only looks at some of a large body's executions, and with
// MC_LONG=n at up to n more than cfg asks for, of what that bounds. With MC_MOST=n it
// explores at most n, see mostVariable.
func Check(t testing.TB, cfg Config, body func(*M)) Result {
	t.Helper()
	cfg.booked = true
	part := cfg.most().shortened()
	r := Explore(part, body)
	cut := r.Failure == "" && !r.Complete && part != cfg
	if cut && testing.Short() {
		r = Explore(cfg.sample(part.MaxSchedules), body)
	}
	switch {
	case r.Failure != "":
		report(t, r)
	case cfg.Replay == "" && os.Getenv(replayVariable) != "":
		t.Logf("the replayed schedule passes: %v", r)
	case !r.Complete && !cut && cfg.Replay == "":
		t.Errorf("not everything was explored: %v; make the body smaller, or use Bounded or PCT", r)
	default:
		t.Log(r)
		further(t, cfg, body)
	}
	current.enter(t, check{
		threads: r.Threads, schedules: r.Schedules,
		operations: cfg.Operations, extent: cfg.extent(), failure: r.Failure, cut: cut,
	})
	return r
}

// report fails t by what r shows.
func report(t testing.TB, r Result) {
	t.Helper()
	t.Errorf("%s\nafter %v\nreplay with %s=%s go test -tags modelcheck -run '^%s$'\n\n%s",
		r.Failure, r, replayVariable, r.Replay, regexp.QuoteMeta(t.Name()), r.Trace)
}

// shortSchedules is how many executions a body may have under -short to be
// explored as always. Of larger bodies as many are drawn at random.
const shortSchedules = 600

func (cfg Config) shortened() Config {
	if testing.Short() && (cfg.MaxSchedules == 0 || cfg.MaxSchedules > shortSchedules) {
		cfg.MaxSchedules = shortSchedules
	}
	return cfg
}

func (cfg Config) sample(runs int) Config {
	cfg.Mode, cfg.Runs = PCT, runs
	return cfg
}

// Refute explores what must not work: the algorithm that the one under test
// replaces. It fails the test unless an execution fails with a message that
// begins with want.
func Refute(t testing.TB, cfg Config, want string, body func(*M)) Result {
	t.Helper()
	cfg.booked = true
	r := Explore(cfg, body)
	if r.Failure == "" || !strings.HasPrefix(r.Failure, want) {
		t.Errorf("%q after %v, want %q: what must fail passes, or fails otherwise", r.Failure, r, want)
	}
	t.Logf("%s\nafter %v\n\n%s", r.Failure, r, r.Trace)
	current.enter(t, check{
		threads: r.Threads, schedules: r.Schedules, operations: cfg.Operations, extent: cfg.extent(),
		refuted: true, failure: r.Failure, trace: position.ReplaceAllString(r.Trace, ""),
	})
	return r
}

const everything = "yes"

// extent says which executions cfg asks for.
func (cfg *Config) extent() string {
	switch cfg.Mode {
	case Bounded:
		if cfg.Preemptions == Unbounded {
			return everything
		}
		return fmt.Sprintf("≤ %d preemptions", cfg.Preemptions)
	case PCT:
		return "no: drawn at random"
	}
	return everything
}

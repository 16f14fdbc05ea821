package history

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Settings from the environment.
const (
	timeVariable = "HISTORY_TIME" // how long each Check searches: 30s
	seedVariable = "HISTORY_SEED" // the one seed that Check uses, over and over
)

const (
	defaultTime = 300 * time.Millisecond
	shortTime   = 100 * time.Millisecond
	leastTrials = 40 // however slow the machine is, so that Coverage means something

	// patience is how many times as long to go on for what has not happened
	// yet: which events there are depends on when goroutines run, and the rare
	// ones are not in the trials of every moment.
	patience = 60

	// decides is how long porcupine may think about one key. It takes
	// less than a millisecond for nearly all histories, but the problem is
	// NP-complete.
	decides = 5 * time.Second
)

// Coverage is what the trials of a Check have reached.
type Coverage struct {
	Trials, Events int
	Undecided      int            // trials, which count for nothing
	Overlapping    int            // trials in which operations on one key overlapped
	Kinds          map[string]int // events
	Grown, Shrunk  int64          // tables
}

// Check runs the trials that fresh makes, each of another seed, and fails at
// the first that no sequential order explains, or if more than four and one in a hundred
// cannot be decided, or if some of these kinds of events are never reached.
//
// The seed determines what the clients do, if fresh and the clients take all
// that is random from their generators. It does not determine when.
func Check[S comparable](t *testing.T, fresh func(*rand.Rand) Trial[S], kinds ...string) Coverage {
	t.Helper()
	budget, next := settings(t)
	cover := Coverage{Kinds: map[string]int{}}
	for start := time.Now(); !cover.enough(kinds, time.Since(start), budget); {
		o := run(t, next(), fresh)
		f := o.judge()
		add(&cover, &o)
		if f == nil {
			continue
		}
		cover.Undecided++
		if f.illegal || len(f.wrong) > 0 || cover.Undecided > 4+cover.Trials/100 {
			t.Fatal(f.describe(t, o.seed, o.procs, artifacts(t)))
		}
	}
	t.Logf("%d trials, %d with overlapping operations, %d undecided; %d operations; %d growths and %d shrinks of tables",
		cover.Trials, cover.Overlapping, cover.Undecided, cover.Events, cover.Grown, cover.Shrunk)
	if k := cover.lacks(kinds); k != "" {
		t.Errorf("no %q among %v", k, cover.Kinds)
	}
	return cover
}

// settings returns how long to search, and the seeds.
func settings(t *testing.T) (budget time.Duration, next func() uint64) {
	t.Helper()
	budget, next = defaultTime, rand.Uint64
	if testing.Short() {
		budget = shortTime
	}
	if s := os.Getenv(timeVariable); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("%s: %v", timeVariable, err)
		}
		budget = d
	}
	if s := os.Getenv(seedVariable); s != "" {
		seed, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
		next = func() uint64 { return seed }
	}
	return budget, next
}

// add takes a trial into account.
func add[S comparable](c *Coverage, o *outcome[S]) {
	c.Trials++
	c.Grown += o.grown
	c.Shrunk += o.shrunk
	together := false
	for _, h := range o.parts {
		together = together || overlap(h)
		for _, r := range h {
			c.Events++
			c.Kinds[r.event.Kind()]++
		}
	}
	if together {
		c.Overlapping++
	}
}

// enough reports whether to stop: after the budget and some trials if every kind
// of event was reached, and otherwise after patience times as much of both.
func (c *Coverage) enough(kinds []string, spent, budget time.Duration) bool {
	times := 1
	if c.lacks(kinds) != "" {
		times = patience
	}
	return c.Trials >= times*leastTrials && spent >= time.Duration(times)*budget
}

// lacks returns a kind of events that was not reached, or "".
func (c *Coverage) lacks(kinds []string) string {
	for _, k := range kinds {
		if c.Kinds[k] == 0 {
			return k
		}
	}
	return ""
}

// RequireResizes fails the test unless tables have grown and shrunk.
func (c Coverage) RequireResizes(t *testing.T) {
	t.Helper()
	if c.Grown == 0 || c.Shrunk == 0 {
		t.Errorf("tables have grown %d times and shrunk %d times, want both", c.Grown, c.Shrunk)
	}
}

// Reject runs trials of something broken and fails unless one of them is found
// out by porcupine, and drawn.
func Reject[S comparable](t *testing.T, fresh func(*rand.Rand) Trial[S]) {
	t.Helper()
	f := find(t, fresh, func(f *failure) bool { return f.illegal })
	if f == nil {
		return
	}
	if page, err := os.ReadFile(f.drawing); err != nil || len(page) < 1000 {
		t.Errorf("the drawing has %d bytes: %v", len(page), err)
	}
}

// Expose runs trials of something broken and fails unless a client reports an
// error that contains want.
func Expose[S comparable](t *testing.T, want string, fresh func(*rand.Rand) Trial[S]) {
	t.Helper()
	find(t, fresh, func(f *failure) bool {
		return slices.ContainsFunc(f.wrong, func(w string) bool { return strings.Contains(w, want) })
	})
}

// find runs trials until one fails as expected, and returns that.
func find[S comparable](t *testing.T, fresh func(*rand.Rand) Trial[S], expected func(*failure) bool) *failure {
	t.Helper()
	const limit = 20 * time.Second
	start := time.Now()
	for n := 1; n <= leastTrials || time.Since(start) < limit; n++ {
		o := run(t, rand.Uint64(), fresh)
		f := o.judge()
		if f == nil || !expected(f) {
			continue
		}
		t.Logf("found in trial %d, after %v:\n%s", n, time.Since(start), f.describe(t, o.seed, o.procs, t.TempDir()))
		return f
	}
	t.Error("nothing was found in what is broken")
	return nil
}

//go:build modelcheck

package mc

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// longVariable names the environment variable that says up to how many
// executions of each kind are explored beyond a bound.
const longVariable = "MC_LONG"

// further explores what Check has explored to a bound, if it is asked to: in
// full, and if that is too much, with one more preemption, and one more. It
// prints what it finds as it goes, because it takes long.
func further(t testing.TB, cfg Config, body func(*M)) {
	n, _ := strconv.Atoi(os.Getenv(longVariable))
	if n == 0 || cfg.Mode != Bounded || cfg.Preemptions == Unbounded || cfg.NoFurther {
		return
	}
	t.Helper()
	preemptions := cfg.Preemptions
	cfg.Mode, cfg.MaxSchedules = DPOR, n
	for {
		start := time.Now()
		r := Explore(cfg, body)
		verdict := "and that is all"
		switch {
		case r.Failure != "":
			verdict = "one fails: " + r.Failure
			report(t, r)
		case !r.Complete:
			verdict = "and there are more"
		}
		extent := "all orders"
		if cfg.Mode == Bounded {
			extent = cfg.extent()
		}
		fmt.Printf("mc: %s, %s: %s executions in %v, %s\n", t.Name(), extent, grouped(r.Schedules),
			time.Since(start).Round(time.Second/10), verdict)
		if r.Failure != "" || cfg.Mode == DPOR && r.Complete || cfg.Mode == Bounded && !r.Complete {
			return
		}
		preemptions++
		cfg.Mode, cfg.Preemptions = Bounded, preemptions
	}
}

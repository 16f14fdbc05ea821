//go:build modelcheck

package mc_test

import (
	"flag"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// watched fails if a thread is watched at two moments of its run, which takes
// more than one preemption.
func watched(m *mc.M) {
	var n atomics.Uint64
	m.Go(func() { n.Store(1); n.Store(2); n.Store(3) })
	m.Go(func() {
		if first, second := n.Load(), n.Load(); first == 1 && second == 2 {
			m.Failf("seen twice")
		}
	})
}

// What a bound hides comes out when more is asked for.
func TestFurther(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 1}
	mc.Check(t, cfg, watched)
	for _, n := range []string{"2", "100"} { // the first is not enough for all, and more preemptions are tried
		t.Setenv("MC_LONG", n)
		probe := &recorder{TB: t}
		if r := mc.Check(probe, cfg, watched); r.Failure != "" || r.Schedules != 5 {
			t.Errorf("MC_LONG changes what is explored anyhow: %v", r)
		}
		if want := map[string]int{"2": 0, "100": 1}[n]; len(probe.errors) != want {
			t.Errorf("MC_LONG=%s: %d errors, want %d", n, len(probe.errors), want)
		}
	}
}

// Under -short a small body is explored as always, and a large one is sampled.
func TestShort(t *testing.T) {
	before := flag.Lookup("test.short").Value.String()
	flag.Set("test.short", "true")
	defer flag.Set("test.short", before)
	small := func(m *mc.M) { m.Go(func() { new(atomics.Bool).Load() }) }
	large := func(m *mc.M) {
		var n atomics.Uint64
		for range 4 {
			m.Go(func() { n.Add(1); n.Add(1); n.Add(1) })
		}
	}
	if r := mc.Check(t, mc.Config{}, small); r.Schedules != 1 {
		t.Errorf("a small body: %v", r)
	}
	if r := mc.Check(t, mc.Config{}, large); r.Schedules != 600 {
		t.Errorf("a large body: %v", r)
	}
	t.Setenv("MC_MOST", "50")
	if r := mc.Check(t, mc.Config{}, large); r.Schedules != 50 {
		t.Errorf("a large body, with MC_MOST: %v", r)
	}
}

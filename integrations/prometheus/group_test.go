package latchprom_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGroupLabels(t *testing.T) {
	var g atomicbreaker.Group[string]
	fail := func(key string, times int) {
		for range times {
			g.RecordFailure(key)
		}
	}
	fail("open", 5) // opens
	fail("three", 3)
	fail("two", 2)
	fail("also two", 2)
	fail("one", 1)
	fail("_other", 1)
	_, body := scrape(t, latchprom.Group("g", &g, latchprom.GroupOptions[string]{MaxKeys: 3}))()
	for _, line := range []string{
		`latchfree_breaker_group_keys{group="g",state="Open"} 1`,
		`latchfree_breaker_group_keys{group="g",state="Closed"} 5`,
		`latchfree_breaker_group_key_open{group="g",key="open"} 1`,
		`latchfree_breaker_group_key_failures{group="g",key="three"} 3`,
		`latchfree_breaker_group_key_failures{group="g",key="also two"} 2`,
		`latchfree_breaker_group_key_failures{group="g",key="_other"} 4`, // two + one + _other
		`latchfree_breaker_group_key_open{group="g",key="_other"} 0`,
	} {
		assert.Contains(t, body, line+"\n")
	}
	assert.Equal(t, 4, strings.Count(body, "\nlatchfree_breaker_group_key_failures{"))

	// By classes, with labels that are not UTF-8.
	label := func(k string) string { return k[:1] + "\xff" }
	_, body = scrape(t, latchprom.Group("g", &g, latchprom.GroupOptions[string]{Label: label}))()
	assert.Contains(t, body, "latchfree_breaker_group_key_failures{group=\"g\",key=\"t\uFFFD\"} 5\n")

	_, body = scrape(t, latchprom.Group("g", &g, latchprom.GroupOptions[string]{MaxKeys: -1}))()
	assert.Contains(t, body, `latchfree_breaker_group_key_open{group="g",key="_other"} 1`)
	assert.Equal(t, 1, strings.Count(body, "\nlatchfree_breaker_group_key_open{"))
}

func TestGroupDefaultMaxKeys(t *testing.T) {
	var g atomicbreaker.Group[int]
	for k := range latchprom.DefaultMaxKeys + 7 {
		g.Trip(k, 0)
	}
	_, body := scrape(t, latchprom.Group("g", &g, latchprom.GroupOptions[int]{}))()
	assert.Equal(t, latchprom.DefaultMaxKeys+1, strings.Count(body, "\nlatchfree_breaker_group_key_open{"))
	assert.Contains(t, body, `latchfree_breaker_group_key_open{group="g",key="_other"} 7`)
}

// TestGroupCounters checks that counters stay when keys and tables go.
func TestGroupCounters(t *testing.T) {
	transitions := latchprom.NewGroupTransitions("g")
	g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[int]{OnStateChange: latchprom.CountKey[int](transitions)})
	get := scrape(t, latchprom.Group("g", g, latchprom.GroupOptions[int]{}), transitions)
	permit, err := g.Allow(2)
	require.NoError(t, err)
	g.Trip(1, 0)
	g.Trip(2, 0)
	_, err = g.Allow(1)
	assert.ErrorIs(t, err, atomicbreaker.ErrOpen)
	assert.Equal(t, atomicbreaker.Late, permit.Failure())
	g.Reset(1)
	g.Sweep()
	g.ResetAll()
	_, body := get()
	for _, line := range []string{
		`latchfree_breaker_group_keys{group="g",state="Open"} 0`,
		`latchfree_breaker_group_openings_total{group="g"} 2`,
		`latchfree_breaker_group_rejected_total{group="g"} 1`,
		`latchfree_breaker_group_late_total{group="g"} 1`,
		`latchfree_breaker_group_withheld_total{group="g"} 0`,
		`latchfree_breaker_group_wrong_settings_total{group="g"} 0`,
		`latchfree_breaker_group_transitions_total{from="Closed",group="g",reason="Trip",to="Open"} 2`,
	} {
		assert.Contains(t, body, line+"\n")
	}
	assert.Regexp(t, `latchfree_breaker_group_closings_total\{group="g"\} [12]\n`, body)
}

func TestGroupWrongSettings(t *testing.T) {
	g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{PerKey: func(string) atomicbreaker.Config {
		return atomicbreaker.Config{Probes: 99}
	}})
	g.RecordFailure("a")
	g.RecordFailure("b")
	_, body := scrape(t, latchprom.Group("g", g, latchprom.GroupOptions[string]{}))()
	assert.Contains(t, body, `latchfree_breaker_group_wrong_settings_total{group="g"} 2`)
}

func TestGroupWithheld(t *testing.T) {
	g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[int]{MaxOpen: 1, Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)}})
	g.RecordFailure(1)
	g.RecordFailure(2)
	_, body := scrape(t, latchprom.Group("g", g, latchprom.GroupOptions[int]{}))()
	assert.Contains(t, body, `latchfree_breaker_group_withheld_total{group="g"} 1`)
}

// Open keys come before failures, and failures before labels. Each count has its own number.
func TestGroupCounts(t *testing.T) {
	g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{MaxOpen: 1})
	late, err := g.Allow("late")
	require.NoError(t, err)
	for _, k := range []string{"late", "x", "y", "z"} {
		g.Trip(k, 0)
	}
	late.Failure()
	for range 3 {
		_, err := g.Allow("z")
		require.ErrorIs(t, err, atomicbreaker.ErrOpen)
	}
	g.Reset("late")
	g.Reset("y")
	for key, failures := range map[string]int{"a": 1, "b": 3, "c": 2, "d": 2, "_other": 4, "w": 10} {
		for range failures {
			g.RecordFailure(key)
		}
	}
	s := g.Stats()
	different(t, s.Opened, s.Closed, s.Rejected, s.Late, s.Withheld)
	_, body := scrape(t, latchprom.Group("g", g, latchprom.GroupOptions[string]{MaxKeys: 5}))()
	for name, n := range map[string]uint64{"openings": 4, "closings": 2, "rejected": 3, "late": 1, "withheld": s.Withheld} {
		assert.Contains(t, body, fmt.Sprintf("latchfree_breaker_group_%s_total{group=\"g\"} %d\n", name, n))
	}
	w := g.Snapshot("w").Failures
	for label, n := range map[string]int{"x": 0, "z": 0, "w": w, "b": 3, "c": 2, "_other": 4 + 2 + 1} {
		assert.Contains(t, body, fmt.Sprintf("latchfree_breaker_group_key_failures{group=\"g\",key=%q} %d\n", label, n))
	}
}

package latchprom_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// families gathers everything.
func families(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(everything(t)...)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
	families, err := registry.Gather()
	require.NoError(t, err)
	return families
}

// TestREADME checks that the table of metrics has what the collectors emit. With
// MC_UPDATE=1 it writes the table.
func TestREADME(t *testing.T) {
	var want strings.Builder
	want.WriteString("| metric | type | labels | what it is |\n|---|---|---|---|\n")
	for _, f := range families(t) {
		labels := make([]string, 0, 3)
		for _, l := range f.Metric[0].Label {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, " "), f.GetHelp())
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	const begin, end = "<!-- metrics -->\n", "<!-- end of metrics -->"
	before, rest, ok := strings.Cut(string(readme), begin)
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if os.Getenv("MC_UPDATE") != "" {
		require.NoError(t, os.WriteFile("README.md", []byte(before+begin+want.String()+end+after), 0o644))
		return
	}
	assert.Equal(t, want.String(), table)
}

// TestDashboard checks that the dashboard queries metrics and labels that there are, and
// each of them that exists.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Title, UID    string
		SchemaVersion int
		Panels        []struct {
			ID      int
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &dashboard))
	assert.NotEmpty(t, dashboard.Title)
	assert.NotEmpty(t, dashboard.UID)

	known := make(map[string][]string)
	for _, f := range families(t) {
		names := []string{f.GetName()}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			names = []string{f.GetName() + "_bucket"}
		}
		labels := []string{"le", "instance", "job"}
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		for _, name := range names {
			known[name] = labels
		}
	}
	metric := regexp.MustCompile(`latchfree_\w+`)
	grouping := regexp.MustCompile(`(?:by|without) \(([^)]*)\)`)
	queried, ids := make(map[string]bool), make(map[int]bool)
	for _, p := range dashboard.Panels {
		assert.False(t, ids[p.ID], "panel %d", p.ID)
		ids[p.ID] = true
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for _, target := range p.Targets {
			names := metric.FindAllString(target.Expr, -1)
			assert.NotEmpty(t, names, target.Expr)
			for _, name := range names {
				queried[name] = true
				require.Contains(t, known, name)
				for _, by := range grouping.FindAllStringSubmatch(target.Expr, -1) {
					for label := range strings.SplitSeq(by[1], ",") {
						assert.Contains(t, known[name], strings.TrimSpace(label), target.Expr)
					}
				}
				if strings.HasSuffix(name, "_total") {
					assert.Contains(t, target.Expr, "rate(", "a counter: %s", target.Expr)
				}
			}
		}
	}
	var missing []string
	for name := range known {
		if !queried[name] {
			missing = append(missing, name)
		}
	}
	sort.Strings(missing)
	assert.Empty(t, missing)
}

func TestNamesAreUnique(t *testing.T) {
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(latchprom.Breaker("a", new(atomicbreaker.Breaker))))
	require.NoError(t, registry.Register(latchprom.Breaker("b", new(atomicbreaker.Breaker))))
	require.Error(t, registry.Register(latchprom.Breaker("a", new(atomicbreaker.Breaker))))
	require.NoError(t, registry.Register(latchprom.Breaker("\xff", new(atomicbreaker.Breaker))))
	_, err := registry.Gather()
	require.NoError(t, err)
}

func TestNilPanics(t *testing.T) {
	for text, call := range map[string]func(){
		"latchprom: Breaker: nil breaker":     func() { latchprom.Breaker("", nil) },
		"latchprom: Group: nil group":         func() { latchprom.Group("", nil, latchprom.GroupOptions[int]{}) },
		"latchprom: Throttle: nil throttle":   func() { latchprom.Throttle("", nil) },
		"latchprom: RetryBudget: nil budget":  func() { latchprom.RetryBudget("", nil) },
		"latchprom: Cache: nil cache":         func() { latchprom.Cache[int, int]("", nil, latchprom.CacheOptions{}) },
		"latchprom: Registry: nil registry":   func() { latchprom.Registry("", (*shardedregistry.Registry[int, int])(nil)) },
		"latchprom: Tracker: nil tracker":     func() { latchprom.Tracker("", (*cowchangeset.Tracker[int])(nil)) },
		"latchprom: Journal: nil journal":     func() { latchprom.Journal("", (*journal.Journal[int])(nil)) },
		"latchprom: OnCreate: zero Creations": func() { latchprom.OnCreate[int](latchprom.Creations{}) },
		"latchprom: CountKey: zero GroupTransitions": func() {
			latchprom.CountKey[int](latchprom.GroupTransitions{})
		},
	} {
		assert.PanicsWithValue(t, text, call)
	}
}

// TestZeroValues checks that each zero value can be collected.
func TestZeroValues(t *testing.T) {
	get := scrape(t,
		latchprom.Breaker("", new(atomicbreaker.Breaker)), latchprom.Group("", new(atomicbreaker.Group[int]), latchprom.GroupOptions[int]{}),
		latchprom.Cache("", new(oncecache.Cache[int, int]), latchprom.CacheOptions{}), latchprom.Registry("", new(shardedregistry.Registry[int, int])),
		latchprom.Tracker("", new(cowchangeset.Tracker[int])))
	status, body := get()
	assert.Equal(t, 200, status)
	assert.Contains(t, body, `latchfree_tracker_changesets_total{tracker=""} 0`)
	assert.NotContains(t, body, "latchfree_cache_hits_total")
	assert.NotContains(t, body, "latchfree_cache_create_in_flight")
}

// TestBadLabels checks that functions that do not return give an error, and no scrape
// hangs or ends the program.
func TestBadLabels(t *testing.T) {
	for text, label := range map[string]func(int) string{
		"a function panicked: boom":        func(int) string { panic("boom") },
		"a function called runtime.Goexit": func(int) string { runtime.Goexit(); return "" },
	} {
		var group atomicbreaker.Group[int]
		group.Trip(1, 0)
		status, body := scrape(t, latchprom.Group("g", &group, latchprom.GroupOptions[int]{Label: label}))()
		assert.Equal(t, 500, status)
		assert.Contains(t, body, text)
		assert.Equal(t, atomicbreaker.Open, group.State(1), "no lock is held")
		group.Reset(1)
	}
}

package latchotel_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	latchotel "github.com/latchfree/latchfree/integrations/otel"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// everything registers one used instance of each type.
func everything(t *testing.T) func() (metricdata.ResourceMetrics, error) {
	t.Helper()
	meter, collect := reader(t)
	onChange, err := latchotel.Transitions(meter, "b")
	require.NoError(t, err)
	breaker := atomicbreaker.MustNew(atomicbreaker.Config{RecordTotals: true, OnStateChange: onChange})
	breaker.Trip(0)
	onKeyChange, err := latchotel.KeyTransitions[string](meter, "g")
	require.NoError(t, err)
	group := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{RecordTotals: true}, OnStateChange: onKeyChange,
	})
	group.Trip("a", 0)
	onCreate, err := latchotel.Creations[string](meter, "c")
	require.NoError(t, err)
	cache := oncecache.MustNew(oncecache.Config[string, int]{RecordStats: true, OnCreate: onCreate})
	_, err = cache.GetOrCreate("k", func() (int, error) { return 1, nil })
	require.NoError(t, err)
	tracker := new(cowchangeset.Tracker[int])
	_, err = tracker.Start(context.Background())
	require.NoError(t, err)
	j, err := journal.Open[int](t.TempDir(), journal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	for _, register := range []func() error{
		func() error { _, err := latchotel.Breaker(meter, "b", breaker); return err },
		func() error {
			_, err := latchotel.Group(meter, "g", group, latchotel.GroupOptions[string]{})
			return err
		},
		func() error { _, err := latchotel.Throttle(meter, "t", new(throttle.Throttle)); return err },
		func() error { _, err := latchotel.RetryBudget(meter, "r", new(retrybudget.Budget)); return err },
		func() error {
			_, err := latchotel.Cache(meter, "c", cache, latchotel.CacheOptions{Flights: true})
			return err
		},
		func() error {
			_, err := latchotel.Registry(meter, "r", new(shardedregistry.Registry[string, int]))
			return err
		},
		func() error { _, err := latchotel.Tracker(meter, "t", tracker); return err },
		func() error { _, err := latchotel.Journal(meter, "j", j); return err },
	} {
		require.NoError(t, register())
	}
	return collect
}

// TestREADME checks that the table of metrics has what is collected. With MC_UPDATE=1 it
// writes the table.
func TestREADME(t *testing.T) {
	m, err := everything(t)()
	require.NoError(t, err)
	var lines []string
	for _, one := range m.ScopeMetrics[0].Metrics {
		var kind string
		var set attribute.Set
		switch data := one.Data.(type) {
		case metricdata.Sum[int64]:
			kind, set = "up-down counter", data.DataPoints[0].Attributes
			if data.IsMonotonic {
				kind = "counter"
			}
		case metricdata.Gauge[float64]:
			kind, set = "gauge", data.DataPoints[0].Attributes
		case metricdata.Histogram[float64]:
			kind, set = "histogram", data.DataPoints[0].Attributes
		}
		var labels []string
		for _, kv := range set.ToSlice() {
			labels = append(labels, "`"+strings.TrimPrefix(string(kv.Key), "latchfree.")+"`")
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | `%s` | %s | %s |\n", strings.TrimPrefix(one.Name, "latchfree."), kind, one.Unit, strings.Join(labels, " "), one.Description))
	}
	sort.Strings(lines)
	require.Len(t, slices.Compact(slices.Clone(lines)), len(lines))
	want := "| metric | instrument | unit | attributes | what it is |\n|---|---|---|---|---|\n" + strings.Join(lines, "")

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	const begin, end = "<!-- metrics -->\n", "<!-- end of metrics -->"
	before, rest, ok := strings.Cut(string(readme), begin)
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if os.Getenv("MC_UPDATE") != "" {
		require.NoError(t, os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o644))
		return
	}
	assert.Equal(t, want, table)
}

func TestUnregister(t *testing.T) {
	meter, collect := reader(t)
	a := first(latchotel.Breaker(meter, "a", new(atomicbreaker.Breaker)))
	first(latchotel.Breaker(meter, "b", new(atomicbreaker.Breaker)))
	require.NoError(t, a.Unregister())
	all := samples(t, first(collect()))
	assert.Contains(t, all, "breaker.open breaker.name=b")
	assert.NotContains(t, all, "breaker.open breaker.name=a")
}

// TestBadLabels checks that functions that do not return give an error, that others are
// collected all the same, and that no collection hangs.
func TestBadLabels(t *testing.T) {
	for text, label := range map[string]func(int) string{
		"a function panicked: boom":        func(int) string { panic("boom") },
		"a function called runtime.Goexit": func(int) string { runtime.Goexit(); return "" },
	} {
		meter, collect := reader(t)
		var group atomicbreaker.Group[int]
		group.Trip(1, 0)
		first(latchotel.Group(meter, "g", &group, latchotel.GroupOptions[int]{Label: label}))
		first(latchotel.Breaker(meter, "b\xff", new(atomicbreaker.Breaker)))
		m, err := collect()
		assert.ErrorContains(t, err, text)
		all := samples(t, m)
		assert.Contains(t, all, "breaker.open breaker.name=b\uFFFD")
		assert.NotContains(t, all, "breaker_group.openings breaker_group.name=g")
	}
}

// The goroutine of a label that blocks ends when the label returns.
func TestLabelThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine remains
		r := sdk.NewManualReader()
		provider := sdk.NewMeterProvider(sdk.WithReader(r))
		var group atomicbreaker.Group[int]
		group.Trip(1, 0)
		release, blocked := make(chan struct{}), make(chan struct{})
		first(latchotel.Group(provider.Meter("test"), "g", &group, latchotel.GroupOptions[int]{Label: func(int) string {
			close(blocked)
			<-release
			return ""
		}}))
		ctx, cancel := context.WithCancel(context.Background())
		collected := make(chan error)
		go func() { collected <- r.Collect(ctx, new(metricdata.ResourceMetrics)) }()
		<-blocked
		cancel()
		assert.ErrorIs(t, <-collected, context.Canceled)
		close(release)
	})
}

func TestNilPanics(t *testing.T) {
	meter := noop.NewMeterProvider().Meter("")
	for text, call := range map[string]func(){
		"latchotel: Breaker: nil meter":        func() { _, _ = latchotel.Breaker(nil, "", nil) },
		"latchotel: Breaker: nil breaker":      func() { _, _ = latchotel.Breaker(meter, "", nil) },
		"latchotel: Group: nil meter":          func() { _, _ = latchotel.Group(nil, "", nil, latchotel.GroupOptions[int]{}) },
		"latchotel: Group: nil group":          func() { _, _ = latchotel.Group(meter, "", nil, latchotel.GroupOptions[int]{}) },
		"latchotel: Throttle: nil meter":       func() { _, _ = latchotel.Throttle(nil, "", nil) },
		"latchotel: Throttle: nil throttle":    func() { _, _ = latchotel.Throttle(meter, "", nil) },
		"latchotel: RetryBudget: nil meter":    func() { _, _ = latchotel.RetryBudget(nil, "", nil) },
		"latchotel: RetryBudget: nil budget":   func() { _, _ = latchotel.RetryBudget(meter, "", nil) },
		"latchotel: Cache: nil meter":          func() { _, _ = latchotel.Cache[int, int](nil, "", nil, latchotel.CacheOptions{}) },
		"latchotel: Cache: nil cache":          func() { _, _ = latchotel.Cache[int, int](meter, "", nil, latchotel.CacheOptions{}) },
		"latchotel: Creations: nil meter":      func() { _, _ = latchotel.Creations[int](nil, "") },
		"latchotel: Transitions: nil meter":    func() { _, _ = latchotel.Transitions(nil, "") },
		"latchotel: KeyTransitions: nil meter": func() { _, _ = latchotel.KeyTransitions[int](nil, "") },
		"latchotel: Registry: nil meter":       func() { _, _ = latchotel.Registry[int, int](nil, "", nil) },
		"latchotel: Registry: nil registry":    func() { _, _ = latchotel.Registry[int, int](meter, "", nil) },
		"latchotel: Tracker: nil meter":        func() { _, _ = latchotel.Tracker[int](nil, "", nil) },
		"latchotel: Tracker: nil tracker":      func() { _, _ = latchotel.Tracker[int](meter, "", nil) },
		"latchotel: Journal: nil meter":        func() { _, _ = latchotel.Journal[int](nil, "", nil) },
		"latchotel: Journal: nil journal":      func() { _, _ = latchotel.Journal[int](meter, "", nil) },
	} {
		assert.PanicsWithValue(t, text, call)
	}
}

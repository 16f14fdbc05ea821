package latchotel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/oncecache"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

var errDown = errors.New("down")

// reader returns a meter, and a function that collects its metrics.
func reader(t *testing.T) (metric.Meter, func() (metricdata.ResourceMetrics, error)) {
	t.Helper()
	r := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(r))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	return provider.Meter("test"), func() (m metricdata.ResourceMetrics, err error) {
		err = r.Collect(context.Background(), &m)
		return m, err
	}
}

// samples returns the values by name and attributes, without their common prefix; of
// histograms it returns the counts.
func samples(t *testing.T, m metricdata.ResourceMetrics) map[string]float64 {
	t.Helper()
	values := make(map[string]float64)
	add := func(name string, set attribute.Set, value float64) {
		var labels []string
		for _, kv := range set.ToSlice() {
			labels = append(labels, strings.TrimPrefix(string(kv.Key), "latchfree.")+"="+kv.Value.String())
		}
		id := fmt.Sprintf("%s %s", strings.TrimPrefix(name, "latchfree."), strings.Join(labels, " "))
		require.NotContains(t, values, id)
		values[id] = value
	}
	for _, scope := range m.ScopeMetrics {
		for _, one := range scope.Metrics {
			switch data := one.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(one.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(one.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(one.Name, p.Attributes, float64(p.Count))
				}
			default:
				t.Fatalf("%s: %T", one.Name, one.Data)
			}
		}
	}
	return values
}

func includes(t *testing.T, all, some map[string]float64) {
	t.Helper()
	for id, want := range some {
		got, ok := all[id]
		require.True(t, ok, "%s is not among %v", id, all)
		require.Equal(t, want, got, id)
	}
}

// first returns value if there is no error.
func first[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// different checks that numbers which a test tells apart are different.
func different(t *testing.T, numbers ...uint64) {
	t.Helper()
	slices.Sort(numbers)
	require.Len(t, slices.Compact(slices.Clone(numbers)), len(numbers), "%v", numbers)
}

// waiting returns how many calls wait for creations.
func waiting(c *oncecache.Cache[int, int]) (n int) {
	for f := range c.InFlight() {
		n += f.Waiting
	}
	return n
}

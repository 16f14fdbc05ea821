package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quantiles makes six raw results of one window each, with a tenth between
// the shortest and the longest of each quantile.
func quantiles(name string, p50, p99, longest float64) string {
	var b strings.Builder
	for i := range 6 {
		f := 1 + float64(i)/50
		fmt.Fprintf(&b, "BenchmarkLatency%s-2 1 20000000 ns/op %v max-ns %v p50-ns %v p99-ns 5000000 ops/s\n",
			name, longest*f, p50*f, p99*f)
	}
	return b.String()
}

func readLatency(t *testing.T) *Report {
	t.Helper()
	const load = "CacheSlowKey/load=paced/threads=4x/impl="
	return read(t,
		quantiles(load+"mutex", 100, 50e6, 51e6),
		quantiles(load+"latchfree", 50, 60, 4e6),
		quantiles(load+"idle", 20, 25, 4e6),
		lines("CacheHit/impl=mutex", 10, 10, 10, 10, 10, 10),
		lines("CacheHit/impl=latchfree", 5, 5, 5, 5, 5, 5),
	)
}

// longLegend has as many implementations as any benchmark of latency.
func longLegend(t *testing.T) *Report {
	var raw []string
	for _, impl := range []string{"latchfree", "mutex", "rwmutex", "oncevalues", "syncmap", "idle"} {
		raw = append(raw, quantiles("CacheSlowKey/load=paced/threads=4x/impl="+impl, 100, 50e6, 51e6),
			quantiles("CacheSlowKey/load=closed/threads=1x/impl="+impl, 1e3, 1e9, 2e9))
	}
	return read(t, raw...)
}

func TestRead_Latency(t *testing.T) {
	r := readLatency(t)
	require.Len(t, r.Comparisons(), 1, "a window is no operation, and is compared with nothing")
	require.Empty(t, r.Warnings)
	require.Len(t, r.Latencies, 1)
	l := r.Latencies[0]
	require.Equal(t, "Cache slow key load=paced threads=4x", l.Name())
	require.Equal(t, 2, l.CPU)
	var impls []string
	for _, row := range l.Rows {
		impls = append(impls, row.Impl)
	}
	require.Equal(t, []string{"latchfree", "mutex", "idle"}, impls)
	mutex := l.Row("mutex")
	require.Len(t, mutex.Times, len(Quantiles))
	require.InEpsilon(t, 50e-3*1.05, mutex.Times[2].Center, 1e-9)
	require.InEpsilon(t, 51e-3*1.1, mutex.Times[5].Hi, 1e-9)
	require.False(t, mutex.Times[3].Known(), "p99.9 was not known")
	require.Nil(t, l.Row("rwmutex"))
}

func TestAtFloor(t *testing.T) {
	l := readLatency(t).Latencies[0]
	ours, mutex := l.Row("latchfree"), l.Row("mutex")
	require.False(t, l.AtFloor(ours, 0), "50 ns are more than 20 ns")
	require.True(t, l.AtFloor(ours, 5), "nothing waits for 4 ms as well")
	require.False(t, l.AtFloor(mutex, 5))
	require.False(t, l.AtFloor(mutex, 3), "not known")
	require.False(t, l.AtFloor(l.Row("idle"), 5), "that is the floor")
}

func TestWithin(t *testing.T) {
	require.Equal(t, "–", Within(Measure{}))
	require.Equal(t, "2.00 ns (too few)", Within(measure([]float64{2e-9})))
	require.Equal(t, "100 ns (98.0–102)", Within(measure([]float64{98e-9, 99e-9, 100e-9, 100e-9, 101e-9, 102e-9})))
	require.Equal(t, "1.00 µs (900 ns–1.10 µs)", Within(measure([]float64{900e-9, 950e-9, 1e-6, 1e-6, 1.05e-6, 1.1e-6})))
}

func TestLatency_IsShown(t *testing.T) {
	r := readLatency(t)
	page := pageOf(t, r)
	require.Contains(t, page, `<section id="latency">`)
	require.Contains(t, page, `floored" data-label="max">4.20 ms (4.00–4.40)</td>`)
	require.Contains(t, page, `<td class="num" data-label="p99">52.5 ms (50.0–55.0)</td>`)
	drawings := svgElement.FindAllString(page, -1)
	requireWellFormed(t, drawings)
	require.Contains(t, strings.Join(drawings, ""), "mutex, p99: 52.5 ms (50.0–55.0)")

	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Regexp(t, `Cache slow key load=paced threads=4x, 2 CPUs\n +p50 .*max *\n +latchfree +52\.5 ns +– +63\.0 ns +– +– +\(4\.20 ms\)`, text.String())

	require.NotContains(t, text.String(), "The report has the latency", "all that there is was shown")

	require.NotContains(t, pageOf(t, readFile(t)), `id="latency"`, "nothing is said of what was not measured")
}

// Each structure has one sentence: gains, losses against anybody, and the rarest wait that
// differs.
func TestAnswers(t *testing.T) {
	r := read(t,
		lines("CacheHit/keys=100/order=uniform/impl=mutex-2", 20, 20, 20, 20, 20, 20),
		lines("CacheHit/keys=100/order=uniform/impl=xsync-2", 5, 5, 5, 5, 5, 5),
		lines("CacheHit/keys=100/order=uniform/impl=latchfree-2", 10, 10, 10, 10, 10, 10),
		lines("CacheCreate/keys=1000/impl=mutex-2", 10, 10, 10, 10, 10, 10),
		lines("CacheCreate/keys=1000/impl=latchfree-2", 20, 20, 20, 20, 20, 20),
		quantiles("CacheSlowKey/load=paced/threads=4x/impl=mutex", 100, 50e6, 51e6),
		quantiles("CacheSlowKey/load=paced/threads=4x/impl=latchfree", 50, 60, 4e6),
		quantiles("CacheSlowKey/load=paced/threads=4x/impl=idle", 20, 25, 4e6),
		quantiles("CacheHit/load=closed/threads=4x/impl=mutex", 50, 60, 4e6),
		quantiles("CacheHit/load=closed/threads=4x/impl=latchfree", 50, 60, 4e6),
		quantiles("CacheHit/load=closed/threads=4x/impl=idle", 50, 60, 4e6))
	require.Equal(t, []Answer{{"Cache", "A cache hit: no wait differs. A cache hit while another key is created for 50 ms: longest 4.20 ms, with mutex 53.5 ms. " +
		"Faster than mutex on 2 CPUs: a cache hit among 100 keys (2.00×). " +
		"Takes longer: creating a value and deleting it (2.00× of mutex). " +
		"Of all cases, faster than mutex in 1 of 2 on 2 CPUs (1 slower)."}}, r.Answers())
}

// A wait that is longer than under the lock is said as plainly.
func TestAnswers_SaysWhoWaitsMore(t *testing.T) {
	r := read(t,
		lines("TrackerRecord/perset=1000/impl=mutex-2", 20, 20, 20, 20, 20, 20),
		lines("TrackerRecord/perset=1000/impl=latchfree-2", 10, 10, 10, 10, 10, 10),
		lines("TrackerRecord/perset=1000/impl=mutex", 10, 10, 10, 10, 10, 10),
		lines("TrackerRecord/perset=1000/impl=latchfree", 20, 20, 20, 20, 20, 20),
		quantiles("TrackerRecord/load=closed/threads=4x/impl=mutex", 50, 60, 4e6),
		quantiles("TrackerRecord/load=closed/threads=4x/impl=latchfree", 50, 600, 4e6),
		quantiles("TrackerRecord/load=closed/threads=4x/impl=idle", 20, 20, 4e6))
	require.Equal(t, []Answer{{"Tracker", "Recording a change: p99 630 ns, with mutex 63.0 ns. Faster than mutex on 2 CPUs: recording a change (2.00×). " +
		"Of all cases, faster than mutex in 1 of 1 on 2 CPUs (0 slower), 0 of 1 on 1 CPU (1 slower)."}}, r.Answers())

	page, at := pageOf(t, r), -1
	for _, part := range []string{`class="answers"`, "Waiting</h2>", "Speed on 2 CPUs</h2>", "<details>", "<nav", `id="losses"`} {
		i := strings.Index(page, part)
		require.Greater(t, i, at, part)
		at = i
	}
}

// What is too noisy may differ.
func TestAnswers_SaysWhereNoWaitCanBeToldApart(t *testing.T) {
	noisy := func(impl string) string {
		const name = "BenchmarkLatencyCacheHit/load=closed/threads=4x/impl="
		return strings.Repeat(name+impl+" 1 20 ns/op 50 p50-ns 9 max-ns\n", 3) + strings.Repeat(name+impl+" 1 20 ns/op 50 p50-ns 9000 max-ns\n", 3)
	}
	all := noisy("mutex") + noisy("latchfree")
	one := strings.ReplaceAll(all, "p50-ns", "p50-ns 60 p90-ns")
	none := strings.ReplaceAll(one, " 9 max", " 9000 max")
	for raw, want := range map[string]string{all: "no wait can be told apart", one: "no wait can be told apart", none: "no wait differs"} {
		r := read(t, lines("CacheHit/impl=latchfree-2", 1), raw) // a structure has cases of speed
		require.Equal(t, []Answer{{"Cache", "A cache hit: " + want + "."}}, r.Answers())
	}
}

func TestLossGroups(t *testing.T) {
	raw := []string{}
	for _, name := range []string{"CacheHit/impl=%s-2", "CacheHit/impl=%s", "CacheCreate/impl=%s-2", "RegistryUpdateHot/impl=%s-2", "XGet/impl=%s-2"} {
		for impl, ns := range map[string]float64{"latchfree": 20, "mutex": 10} {
			raw = append(raw, lines(fmt.Sprintf(name, impl), ns, ns, ns, ns, ns, ns))
		}
	}
	raw = append(raw, lines("CacheHit/impl=xsync-2", 5, 5, 5, 5, 5, 5))
	got := make(map[string]int)
	for _, g := range read(t, raw...).LossGroups() {
		require.NotEmpty(t, g.Reason)
		got[g.Title] = len(g.Lost)
	}
	require.Equal(t, map[string]int{"Against less": 1, "At one CPU": 1, "Creating and deleting keys": 1, "All change one word": 1, "Other": 2}, got)
}

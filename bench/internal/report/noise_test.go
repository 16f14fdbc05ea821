package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nonsense is what no number of a report looks like.
var nonsense = regexp.MustCompile(`∞|NaN|Inf\b|[0-9]e\+|± ?[0-9]{4,}|[0-9]{7,} ?%`)

func readNoisy(t *testing.T) *Report {
	t.Helper()
	return read(t,
		lines("CacheHit/keys=100/order=uniform/impl=mutex-2", 20, 20, 21, 21, 22, 22),
		lines("CacheHit/keys=100/order=uniform/impl=rwmutex-2", 20, 25, 30, 1e6, 2e6, 3e8),
		lines("CacheHit/keys=100/order=uniform/impl=latchfree-2", 10, 10, 10, 10, 11, 11),
		lines("CacheMix/impl=mutex-2", 20, 20, 21, 21, 22, 22),
		lines("CacheMix/impl=latchfree-2", 10, 25, 30, 1e6, 2e6, 3e8),
		quantiles("CacheSlowKey/load=paced/threads=4x/impl=mutex", 100, 50e6, 51e6),
		"BenchmarkLatencyCacheSlowKey/load=paced/threads=4x/impl=latchfree-2 1 20 ns/op 50 p50-ns 9 max-ns\n",
		strings.Repeat("BenchmarkLatencyCacheSlowKey/load=paced/threads=4x/impl=latchfree-2 1 20 ns/op 50 p50-ns 9000 max-ns\n", 5),
	)
}

func TestNoisy_IsSaidAndNotCompared(t *testing.T) {
	r := readNoisy(t)
	require.Equal(t, []string{"CacheHit/keys=100/order=uniform/impl=rwmutex-2", "CacheMix/impl=latchfree-2"}, r.Noisy())
	require.Len(t, r.Comparisons(), 1)
	require.Equal(t, "mutex", r.Comparisons()[0].Other.Impl)

	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Regexp(t, `2 CPUs +latchfree 10\.0 ns +mutex 21\.0 ns \(2\.10×\) +rwmutex too noisy`, text.String())
	require.Contains(t, text.String(), "compared: 2 rows.", "a case has several")
	require.Contains(t, text.String(), "Too noisy to be compared (2 rows): CacheHit")
	require.Equal(t, "1 row", rows(1))
	require.Regexp(t, `latchfree +50\.0 ns +– +– +– +– +too noisy`, text.String())
	require.NotRegexp(t, nonsense, text.String())

	page := pageOf(t, r)
	require.Contains(t, page, "Too noisy to be compared")
	require.Contains(t, page, `rwmutex</td><td class="num" data-label="">too noisy</td>`)
	require.NotRegexp(t, nonsense, page)
	requireWellFormed(t, svgElement.FindAllString(page, -1))
}

func TestQuiet_KeepsWhatBenchstatMaySee(t *testing.T) {
	const raw = "goos: linux\nmachine: cpus=2\n\nBenchmarkCacheMix/impl=mutex-2 \t 1 2 ns/op\nBenchmarkCacheMix/impl=latchfree-2 \t 1 2 ns/op\n" +
		"BenchmarkLatencyCacheHit/impl=mutex-2 \t 1 2 ns/op\n"
	require.Equal(t, "goos: linux\n\nBenchmarkCacheMix/impl=mutex-2 \t 1 2 ns/op\n", readNoisy(t).Quiet(raw))
}

func TestHeadlines(t *testing.T) {
	hs := readNoisy(t).Headlines()
	require.Len(t, hs, 2)
	require.Equal(t, "CacheHit/keys=100/order=uniform", hs[0].Name)
	require.NotNil(t, hs[0].Speed)
	require.Equal(t, "LatencyCacheSlowKey/load=paced/threads=4x", hs[1].Name)
	require.NotNil(t, hs[1].Latency)
}

func TestBusy(t *testing.T) {
	machine := func(before string, rounds ...string) string {
		raw := "cpu: x\n" + before + "\n"
		for _, round := range rounds {
			raw += round + "\n\n" + lines("CacheHit/impl=mutex", 1, 2)
		}
		r, err := Read(strings.NewReader(raw), "raw", "")
		require.NoError(t, err)
		require.NotContains(t, r.Warnings, "machine")
		require.Empty(t, r.Get("machine"))
		return r.Machine.Busy()
	}
	require.Empty(t, machine("", "goos: linux"), "not known")
	require.Empty(t, machine("queue-before: 1.0", "machine: cpus=2 others=0.10 probe=10ms", "machine: cpus=2 others=0.30 probe=11ms"))
	require.Contains(t, machine("queue-before: 5.2", "machine: cpus=2 others=0.05 probe=10ms"),
		"This machine was busy: 5.2 threads wanted its 2 processors before the run began.")
	require.Contains(t, machine("", "machine: cpus=1 others=0.20 probe=10ms", "machine: cpus=1 others=0.60 probe=20ms"),
		"busy: others took 0.4 of its 1 processor during the run, up to 0.6 in a round; a fixed piece of work took up to 2.0 times its shortest time.")
}

func TestWriteText_BeginsWithABusyMachine(t *testing.T) {
	r := readNoisy(t)
	r.Machine = Machine{CPUs: 2, Before: 7}
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.True(t, strings.HasPrefix(text.String(), "!! This machine was busy: 7.0 threads"))
	page := pageOf(t, r)
	require.Less(t, strings.Index(page, "This machine was busy"), strings.Index(page, "Of 1 comparisons"))
}

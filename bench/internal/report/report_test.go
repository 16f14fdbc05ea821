package report

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func readFile(t *testing.T) *Report {
	t.Helper()
	f, err := os.Open("testdata/raw.txt")
	require.NoError(t, err)
	defer f.Close()
	r, err := Read(f, "raw.txt", "")
	require.NoError(t, err)
	return r
}

// lines makes raw results of the given times in ns.
func lines(name string, ns ...float64) string {
	var b strings.Builder
	for _, v := range ns {
		fmt.Fprintf(&b, "Benchmark%s 1000 %v ns/op 8 B/op 1 allocs/op\n", name, v)
	}
	return b.String()
}

func read(t *testing.T, raw ...string) *Report {
	t.Helper()
	r, err := Read(strings.NewReader("goos: linux\npkg: p\n\n"+strings.Join(raw, "")), "raw", "")
	require.NoError(t, err)
	return r
}

func TestRead_Golden(t *testing.T) {
	r := readFile(t)
	var b strings.Builder
	for _, s := range r.Structures {
		for _, op := range s.Ops {
			for _, c := range op.Cases {
				fmt.Fprintf(&b, "%s (%s | %s | %s | %s) at %d\n", c.Name, s.Name, op.Title, op.Shared, c.Label, c.CPU)
				for _, row := range c.Rows {
					fmt.Fprintf(&b, "\t%s n=%d %.5g [%.5g %.5g] ns, %s B, %s allocs", row.Impl, len(row.Time.Values),
						row.Time.Center*1e9, row.Time.Lo*1e9, row.Time.Hi*1e9, Count(row.Bytes), Count(row.Allocs))
					if row.Impl != Subject {
						x := Speedup(c.Row(Subject), row)
						fmt.Fprintf(&b, ": %.4g [%.4g %.4g] p=%.3f %s", x.Center, x.Lo, x.Hi, x.P, x.Verdict)
					}
					b.WriteString("\n")
				}
			}
		}
	}
	golden(t, "model.golden", b.String())
}

func TestWriteText_Golden(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, readFile(t).WriteText(&b))
	golden(t, "text.golden", b.String())
}

func TestRead_Meta(t *testing.T) {
	r := readFile(t)
	require.Equal(t, "0123456789ab", r.Get("commit"))
	require.Equal(t, "go run ./bench/cmd/bench", r.Get("command"))
	require.Empty(t, r.Get("nothing"))
	require.Equal(t, []int{2, 1}, r.CPUs)
	require.Equal(t, 8, r.MinSamples)
	require.Equal(t, 8, r.MaxSamples)
	require.Empty(t, r.Warnings)
}

// The numbers below were worked out by hand: the 95 % interval of the median
// of six samples is their range.
func TestSpeedup_ByHand(t *testing.T) {
	r := read(t,
		lines("XGet/impl=latchfree", 1, 2, 3, 4, 5, 6),
		lines("XGet/impl=mutex", 10, 11, 12, 13, 14, 15))
	c := r.Structures[0].Ops[0].Cases[0]
	ours, other := c.Row("latchfree"), c.Row("mutex")
	require.InDelta(t, 3.5e-9, ours.Time.Center, 1e-15)
	require.InDelta(t, 1e-9, ours.Time.Lo, 1e-15)
	require.InDelta(t, 6e-9, ours.Time.Hi, 1e-15)
	x := Speedup(ours, other)
	require.InDelta(t, 12.5/3.5, x.Center, 1e-9)
	require.InDelta(t, 10.0/6, x.Lo, 1e-9)
	require.InDelta(t, 15.0, x.Hi, 1e-9)
	require.Equal(t, Faster, x.Verdict)
	require.Equal(t, Slower, Speedup(other, ours).Verdict)
}

func TestSpeedup_OverlapThatTheTestDecidesIsALoss(t *testing.T) {
	r := read(t,
		lines("XGet/impl=latchfree", 10, 11, 12, 13, 14, 15, 16, 17),
		lines("XGet/impl=mutex", 7, 8, 9, 9.5, 9.8, 9.9, 10.5, 13.5))
	x := r.Comparisons()[0].Ratio
	require.Greater(t, x.Hi, 1.0, "the intervals overlap")
	require.Less(t, x.P, 0.05)
	require.Equal(t, Slower, x.Verdict)
	require.Len(t, r.Losses(), 1)
}

func TestSpeedup_NoiseIsUndecided(t *testing.T) {
	r := read(t,
		lines("XGet/impl=latchfree", 10, 12, 14, 16, 18, 20),
		lines("XGet/impl=mutex", 9, 11, 13, 15, 17, 19))
	require.Equal(t, Undecided, r.Comparisons()[0].Ratio.Verdict)
	require.Empty(t, r.Losses())
	require.Equal(t, 1, r.Count(Undecided))
}

func TestSpeedup_TooFewSamplesAreUndecidedAndSaid(t *testing.T) {
	r := read(t, lines("XGet/impl=latchfree", 10, 12), lines("XGet/impl=mutex", 1, 2))
	x := r.Comparisons()[0].Ratio
	require.Equal(t, Undecided, x.Verdict)
	require.True(t, math.IsInf(x.Hi, 1))
	require.Equal(t, "unknown", Range(x))
	require.Equal(t, "too few samples", Spread(r.Structures[0].Ops[0].Cases[0].Rows[0].Time))
	require.Len(t, r.Warnings, 1)
}

func TestRead_LinesUpWhateverTheOrder(t *testing.T) {
	r := read(t,
		lines("XGet/keys=1/impl=syncmap", 5), lines("XGet/keys=1/impl=mutex", 5), lines("XGet/keys=1/impl=latchfree", 5),
		lines("XGet/keys=1/impl=latchfree-2", 5), lines("YPut/impl=latchfree", 5))
	require.Len(t, r.Structures, 2)
	op := r.Structures[0].Ops[0]
	require.Len(t, op.Cases, 2, "one at each CPU count")
	var impls []string
	for _, row := range op.Cases[0].Rows {
		impls = append(impls, row.Impl)
	}
	require.Equal(t, []string{"latchfree", "mutex", "syncmap"}, impls)
	require.Equal(t, "keys=1", op.Shared)
	require.Empty(t, op.Cases[0].Label)
	require.Nil(t, op.Cases[1].Row("mutex"))
}

// Three samples whose only iteration waited for the processor made a row look
// a million times slower than it is.
func TestRead_LeavesOutSamplesThatWereCutShort(t *testing.T) {
	stalled := "BenchmarkXGet/keys=1/impl=latchfree-2 1 25000000 ns/op\n"
	r := read(t, lines("XGet/keys=1/impl=latchfree-2", 10, 10, 10, 10, 10, 10), stalled, stalled, stalled,
		lines("XGet/keys=1/impl=mutex-2", 20, 20, 20, 20, 20, 20),
		strings.Repeat("BenchmarkXGrow/impl=latchfree 1 3000000000 ns/op\n", 6),
		strings.Repeat("BenchmarkXGrow/impl=mutex 60 5000 ns/op\nBenchmarkXGrow/impl=mutex 1 9000 ns/op\n", 3))
	row := r.Structures[0].Ops[0].Cases[0].Rows[0]
	require.Equal(t, 3, row.CutShort)
	require.Equal(t, "latchfree †", row.Label())
	require.Len(t, row.Time.Values, 6)
	require.InDelta(t, 2, r.Comparisons()[0].Ratio.Center, 1e-9)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "marked †: XGet/keys=1 of latchfree on 2 CPUs (3 of 9).")
	for _, row := range r.Structures[1].Ops[0].Cases[0].Rows {
		require.Zero(t, row.CutShort, "operations of %s may be long", row.Impl)
		require.Equal(t, row.Impl, row.Label())
		require.Len(t, row.Time.Values, 6)
	}
}

func TestRead_TwoCPUsComeFirst(t *testing.T) {
	r := read(t, lines("XGet/impl=mutex", 1), lines("XGet/impl=mutex-8", 1), lines("XGet/impl=mutex-4", 1), lines("XGet/impl=mutex-2", 1))
	require.Equal(t, []int{2, 1, 4, 8}, r.CPUs)
}

func TestRead_WarnsOfMixedRuns(t *testing.T) {
	r := read(t, lines("XGet/impl=latchfree", 1), "commit: a\n", lines("XGet/impl=mutex", 1))
	require.Contains(t, strings.Join(r.Warnings, " "), "commit")
}

func TestRead_Errors(t *testing.T) {
	for name, raw := range map[string]string{
		"empty":    "",
		"no impl":  "BenchmarkXGet 1 1 ns/op\n",
		"no value": "BenchmarkXGet/impl=mutex 1 x ns/op\n",
	} {
		_, err := Read(strings.NewReader(raw), "raw.txt", "")
		require.ErrorContains(t, err, "bench: ", name)
		require.ErrorContains(t, err, "raw.txt", name)
	}
}

func TestLosses_LargestFirst(t *testing.T) {
	var got []string
	for _, c := range readFile(t).Losses() {
		got = append(got, fmt.Sprintf("%s %d %s", c.Case.Name, c.Case.CPU, c.Other.Impl))
	}
	require.Equal(t, []string{
		"RegistryCreateDelete/keys=100 1 mutex",
		"RegistryCreateDelete/keys=100 1 rwmutex",
		"RegistryMix/read=50/keys=100000 1 mutex",
		"RegistryMix/read=50/keys=100 1 mutex",
	}, got)
}

// Another way to use the subject is measured beside it, and is no loss.
func TestComparisons_NotWithItself(t *testing.T) {
	r := read(t, lines("XGet/impl=latchfree", 9, 9, 9, 9, 9, 9), lines("XGet/impl=mutex", 2, 2, 2, 2, 2, 2),
		lines("XGet/impl=latchfreefast", 1, 1, 1, 1, 1, 1))
	require.Len(t, r.Structures[0].Ops[0].Cases[0].Rows, 3)
	require.Len(t, r.Comparisons(), 1)
	require.Len(t, r.Losses(), 1)
	require.Equal(t, "mutex", r.Losses()[0].Other.Impl)
}

func TestHeavier_MergesEqualLines(t *testing.T) {
	heavy := readFile(t).Heavier()
	require.Len(t, heavy, 1)
	h := heavy[0]
	require.Equal(t, "RegistryCreateDelete/keys=100", h.Case.Name)
	require.Equal(t, "3 allocs, 120 B", h.Ours)
	require.Equal(t, "1 alloc, 48 B", h.Other)
	require.Equal(t, []string{"mutex", "rwmutex"}, h.Impls)
	require.Equal(t, []int{1, 2}, h.CPUs)
}

func TestSummaries(t *testing.T) {
	r := read(t,
		lines("XGet/keys=1/impl=latchfree", 1, 1, 1, 1, 1, 1), lines("XGet/keys=1/impl=mutex", 2, 2, 2, 2, 2, 2),
		lines("XGet/keys=2/impl=latchfree", 1, 1, 1, 1, 1, 1), lines("XGet/keys=2/impl=mutex", 8, 8, 8, 8, 8, 8),
		lines("XPut/impl=latchfree", 1, 1, 1, 1, 1, 1), lines("XPut/impl=other", 4, 4, 4, 4, 4, 4))
	sums := r.Summaries()
	require.Len(t, sums, 2)
	require.Equal(t, "mutex", sums[0].Other)
	require.InDelta(t, 4, sums[0].Geomean, 1e-9)
	require.InDelta(t, 5, sums[0].Median, 1e-9)
	require.InDelta(t, 2, sums[0].Worst.Ratio.Center, 1e-9)
	require.InDelta(t, 8, sums[0].Best.Ratio.Center, 1e-9)
	require.Equal(t, 2, sums[0].Cases())
	require.Equal(t, "other", sums[1].Other)
}

func TestSplit(t *testing.T) {
	for name, want := range map[string][2]string{
		"RegistryMix":         {"Registry", "mix"},
		"RegistryUpdateIf":    {"Registry", "update if"},
		"Slice":               {"Slice", ""},
		"CacheHit100Keys":     {"Cache", "hit100 keys"},
		"RegistryUpdateCAS":   {"Registry", "update CAS"},
		"BreakerGroupAllow99": {"Breaker", "group allow99"},
	} {
		structure, title := split(name)
		require.Equal(t, want, [2]string{structure, title}, name)
	}
}

func TestWrap(t *testing.T) {
	require.Equal(t, []string{""}, wrap("", 10))
	require.Equal(t, []string{"keys=100 a"}, wrap("keys=100 a", 10))
	require.Equal(t, []string{"keys=100", "read=99 x"}, wrap("keys=100 read=99 x", 10))
	require.Equal(t, []string{"a", "anotherverylongword", "b"}, wrap("a anotherverylongword b", 10))
}

func TestFormat(t *testing.T) {
	for sec, want := range map[float64]string{
		0: "0 ns", 1.234e-9: "1.23 ns", 12.34e-9: "12.3 ns", 123.4e-9: "123 ns", 999.6e-9: "1.00 µs",
		1.5e-3: "1.50 ms", 2: "2.00 s", math.Inf(1): "unknown",
	} {
		require.Equal(t, want, Duration(sec))
	}
	for x, want := range map[float64]string{0.984: "0.98×", 1.02: "1.02×", 12.34: "12.3×", 123.4: "123×", 2782: "2782×", 3e7: "over 100000×"} {
		require.Equal(t, want, Times(x))
	}
	require.Equal(t, "1 CPU", CPUs(1))
	require.Equal(t, "8 CPUs", CPUs(8))
	require.Equal(t, "–", Count(Measure{}))
	require.Equal(t, "20 ns", tickDuration(20e-9))
	require.Equal(t, "1 µs", tickDuration(1e-6))
}

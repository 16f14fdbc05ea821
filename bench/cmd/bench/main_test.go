package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/headline"
	"github.com/latchfree/latchfree/bench/internal/report"
)

const sample = "../../internal/report/testdata/raw.txt"

func TestParse_Defaults(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "./bench", o.pkg)
	require.Equal(t, "bench/results", o.out)
	require.Equal(t, "mutex", o.baseline)
	require.Equal(t, 10, o.plan.Rounds)
	require.Equal(t, 310*time.Second, o.plan.Budget)
	require.Empty(t, o.plan.Skip)
}

func TestParse_KeepsReportsApart(t *testing.T) {
	for want, args := range map[string][]string{
		"bench/results":       {"-package", "./bench"},
		"bench/results/peers": {"-package", "./bench/peers/"},
		"old":                 {"-from", "old/raw.txt"},
		"here":                {"-from", "old/raw.txt", "-out", "here"},
	} {
		o, err := parse(args, io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, filepath.ToSlash(o.out))
	}
}

func TestParse_QuickYieldsToWhatIsGiven(t *testing.T) {
	o, err := parse([]string{"-quick"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, quickRounds, o.plan.Rounds)
	require.Equal(t, quickBudget, o.plan.Budget)
	require.Equal(t, big+"|"+fewer, o.plan.Skip)
	require.Equal(t, []int{runtime.NumCPU()}, o.plan.CPUs)

	o, err = parse([]string{"-quick", "-rounds", "8", "-skip", "", "-budget", "1m"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 8, o.plan.Rounds)
	require.Equal(t, time.Minute, o.plan.Budget)
	require.Empty(t, o.plan.Skip)
}

// The headline cases come first, and nothing leaves them out.
func TestParts(t *testing.T) {
	named := func(args ...string) (names []string) {
		o, err := parse(args, io.Discard)
		require.NoError(t, err)
		for _, p := range parts(o) {
			require.True(t, p.plan.Never("CacheHit/keys=100/order=uniform"))
			require.True(t, p.plan.Never("RegistryMix/keys=100000/read=50/order=uniform"), "which we lose")
			names = append(names, p.name)
		}
		return names
	}
	require.Equal(t, []string{"headline cases, latency", "headline cases, speed", "latency", "speed"}, named())
	require.Equal(t, []string{"headline cases, latency", "headline cases, speed"}, named("-quick"))
	require.Equal(t, []string{"latency", "speed"}, named("-quick", "-bench", "Registry"), "what the caller chose")
	require.Equal(t, []string{"latency", "speed"}, named("-quick", "-package", "./bench/peers"))

	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	all := parts(o)
	for _, name := range []string{"BenchmarkLatencyCacheHit/load=closed/threads=1x/impl=mutex", "BenchmarkLatencyCacheHit/load=closed/threads=4x/impl=mutex"} {
		require.Equal(t, !headline.Has(name), all[2].keep(name), "measured once")
	}
	require.False(t, all[3].keep("BenchmarkCacheHit/keys=100/order=uniform/impl=mutex"), "measured before")
	require.True(t, all[3].keep("BenchmarkCacheHit/keys=1/order=uniform/impl=mutex"))
}

func TestParse_Errors(t *testing.T) {
	for want, args := range map[string][]string{
		"rounds is 3":         {"-rounds", "3"},
		"cpu is":              {"-cpu", "none"},
		"unexpected argument": {"Registry"},
		"not defined":         {"-nothing"},
	} {
		_, err := parse(args, io.Discard)
		require.ErrorContains(t, err, want)
	}
}

func TestQuote(t *testing.T) {
	require.Equal(t, []string{"-bench", "'A|B'", "''", `'it'\''s'`, "-cpu=1,2"},
		quote([]string{"-bench", "A|B", "", "it's", "-cpu=1,2"}))
}

func TestBenchstatArgs(t *testing.T) {
	f, err := os.Open(sample)
	require.NoError(t, err)
	defer f.Close()
	r, err := report.Read(f, sample, "")
	require.NoError(t, err)
	cache := r.Structures[2]
	require.Equal(t, []string{"mutex", "rwmutex", "syncmap"}, cache.Others("mutex"))
	require.Equal(t, []string{"rwmutex", "mutex", "syncmap"}, cache.Others("rwmutex"))
	args := benchstatArgs(cache, "rwmutex", "raw.txt")
	require.Contains(t, args, ".unit:sec/op .name:(CacheHit)", "only operations that have both")
	require.Contains(t, args, "/impl@(rwmutex latchfree)")
}

// The command's second half, with the real benchstat.
func TestRun_From(t *testing.T) {
	out := filepath.Join(t.TempDir(), "results")
	o, err := parse([]string{"-from", sample, "-tables", "-out", out}, io.Discard)
	require.NoError(t, err)
	var stdout bytes.Buffer
	require.NoError(t, run(t.Context(), o, nil, &stdout, io.Discard))
	text := stdout.String()
	require.Contains(t, text, "Registry: latchfree against syncmap\n/gomaxprocs: 1\n")
	require.Contains(t, text, "-88.12% (p=0.000 n=8)", "benchstat's own comparison")
	require.NotContains(t, text, "benchmarks vary in", "nothing was averaged over what differs")
	require.Contains(t, text, "Where latchfree is slower (4 of 64 comparisons)")
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "</html>")
	for _, picture := range []string{"speed-light.svg", "speed-dark.svg"} {
		require.Contains(t, text, picture)
		require.FileExists(t, filepath.Join(out, picture))
	}
}

func TestRun_FromErrors(t *testing.T) {
	o, err := parse([]string{"-from", filepath.Join(t.TempDir(), "none.txt")}, io.Discard)
	require.NoError(t, err)
	require.ErrorContains(t, run(t.Context(), o, nil, io.Discard, io.Discard), "bench: ")
}

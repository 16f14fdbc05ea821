package runner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests run this very test binary as if it were a package's benchmarks.
// The variable, passed on to that process, makes one of them misbehave.
const behave = "LATCHFREE_BENCH_SAMPLE"

func BenchmarkSampleGet(b *testing.B) {
	for _, keys := range []string{"keys=10", "keys=100000"} {
		b.Run(keys, func(b *testing.B) {
			b.Run("impl=latchfree", func(b *testing.B) { spin(b, 10) })
			b.Run("impl=mutex", func(b *testing.B) {
				switch os.Getenv(behave) {
				case "fail":
					b.Fatal("the value was lost")
				case "panic":
					panic("index out of range")
				}
				spin(b, 20)
			})
		})
	}
}

func BenchmarkSamplePut(b *testing.B) {
	if os.Getenv(behave) == "waver" && strings.HasPrefix(flagValue("-test.cpu="), "1,") {
		return // what there is differs between calibration and round
	}
	b.Run("impl=latchfree", func(b *testing.B) { spin(b, 10) })
}

func flagValue(prefix string) string {
	for _, arg := range os.Args {
		if v, ok := strings.CutPrefix(arg, prefix); ok {
			return v
		}
	}
	return ""
}

var sink int

func spin(b *testing.B, n int) {
	for range b.N {
		for i := range n {
			sink += i
		}
	}
}

func self(t *testing.T) *Binary {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return at(path, t.TempDir())
}

func quickPlan() Plan {
	return Plan{Bench: "Sample", CPUs: []int{1, 2}, Rounds: MinRounds, BenchTime: 100 * time.Microsecond, Budget: time.Minute}
}

func quiet() *Progress { return &Progress{w: io.Discard} }

func TestRounds(t *testing.T) {
	b, p := self(t), quickPlan()
	c, err := b.Calibrate(t.Context(), p, time.Now())
	require.NoError(t, err)
	require.Equal(t, "SampleGet: latchfree 2, mutex 2; SamplePut: latchfree 1", outline(c))
	require.Contains(t, strings.Join(c.Header, "\n"), "goos: ")

	var raw bytes.Buffer
	done, err := b.Rounds(t.Context(), p, c, &raw, quiet())
	require.NoError(t, err)
	require.Equal(t, MinRounds, done)
	count := make(map[string]int)
	for line := range strings.Lines(raw.String()) {
		r, ok := parseResult(line)
		require.True(t, ok, line)
		require.Contains(t, line, "allocs/op")
		count[r.name]++
	}
	require.Len(t, count, 10)
	for name, n := range count {
		require.Equal(t, MinRounds, n, name)
	}
	first, _ := parseResult(raw.String())
	require.Equal(t, "BenchmarkSampleGet/keys=10/impl=latchfree", first.name, "the first round has the order of the source")
}

func TestRounds_SkipReachesEveryDepth(t *testing.T) {
	b, p := self(t), quickPlan()
	p.Skip = `=\d{5,}$`
	c, err := b.Calibrate(t.Context(), p, time.Now())
	require.NoError(t, err)
	require.Equal(t, 3, c.Leaves())
	var raw bytes.Buffer
	_, err = b.Rounds(t.Context(), p, c, &raw, quiet())
	require.NoError(t, err, "rounds run what calibration counted")
	require.NotContains(t, raw.String(), "keys=100000")
}

func TestRounds_StopsAtTheBudgetButNotBeforeMinRounds(t *testing.T) {
	b, p := self(t), quickPlan()
	p.Bench, p.Rounds, p.Budget = "SamplePut", 50, time.Nanosecond
	c, err := b.Calibrate(t.Context(), p, time.Now())
	require.NoError(t, err)
	done, err := b.Rounds(t.Context(), p, c, io.Discard, quiet())
	require.NoError(t, err)
	require.Equal(t, MinRounds, done)
}

func TestCalibrate_NamesTheBenchmarkThatFails(t *testing.T) {
	t.Setenv(behave, "fail")
	_, err := self(t).Calibrate(t.Context(), quickPlan(), time.Now())
	require.ErrorContains(t, err, "bench: BenchmarkSampleGet/keys=10/impl=mutex failed")
	require.ErrorContains(t, err, "the value was lost")
}

func TestCalibrate_ShowsAPanic(t *testing.T) {
	t.Setenv(behave, "panic")
	_, err := self(t).Calibrate(t.Context(), quickPlan(), time.Now())
	require.ErrorContains(t, err, "bench: ")
	require.ErrorContains(t, err, "panic: index out of range")
	require.ErrorContains(t, err, "BenchmarkSampleGet")
}

func TestRounds_ReportsAFailureAndKeepsOnlyWholeRounds(t *testing.T) {
	b, p := self(t), quickPlan()
	c, err := b.Calibrate(t.Context(), p, time.Now())
	require.NoError(t, err)
	t.Setenv(behave, "fail")
	var raw bytes.Buffer
	done, err := b.Rounds(t.Context(), p, c, &raw, quiet())
	require.ErrorContains(t, err, "impl=mutex failed")
	require.Zero(t, done)
	require.Empty(t, raw.String())
}

func TestRounds_RefusesNamesThatChange(t *testing.T) {
	b, p := self(t), quickPlan()
	t.Setenv(behave, "waver")
	c, err := b.Calibrate(t.Context(), p, time.Now())
	require.NoError(t, err)
	_, err = b.Rounds(t.Context(), p, c, io.Discard, quiet())
	require.ErrorContains(t, err, "BenchmarkSamplePut gave 0 results for impl=latchfree, want 2")
}

func TestCalibrate_NothingMatches(t *testing.T) {
	p := quickPlan()
	p.Bench = "NoSuchThing"
	_, err := self(t).Calibrate(t.Context(), p, time.Now())
	require.ErrorContains(t, err, `matches "NoSuchThing"`)
}

func TestRun_StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	_, err := self(t).Calibrate(ctx, quickPlan(), time.Now())
	require.ErrorIs(t, err, why)
}

func TestBuild_Errors(t *testing.T) {
	_, err := Build(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "bench: building")
}

func TestWriteHeader(t *testing.T) {
	b, p := self(t), quickPlan()
	p.Skip, p.LeftOut = "=big$", []string{"XGet/k=1", "XPut"}
	c := &Calibration{Header: []string{"goos: linux", "cpu: Some CPU"}}
	var w bytes.Buffer
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, WriteHeader(t.Context(), &w, b, c, p, "go run x", at))
	require.NoError(t, WritePart(&w, p))
	text := w.String()
	for _, want := range []string{
		"goos: linux\n", "cpu: Some CPU\n", "go: 1.", "host: Some CPU, ", "logical CPUs",
		"date: 2026-01-02T03:04:05Z\n", "command: go run x\n", "skip: =big$\n", "benchtime: 100µs\nleft-out: XGet/k=1, XPut\n\n",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "commit:", "the folder is in no repository")
	if name, err := os.Hostname(); err == nil && len(name) > 3 {
		require.NotContains(t, text, name)
	}
}

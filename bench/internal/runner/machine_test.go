package runner

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseRunnable(t *testing.T) {
	n, ok := parseRunnable("cpu 1 2 3\nprocs_running 5\nprocs_blocked 0\n")
	require.True(t, ok)
	require.Equal(t, 4, n, "one of them reads the file")
	_, ok = parseRunnable("cpu 1 2 3\n")
	require.False(t, ok)
}

func TestParseTicks(t *testing.T) {
	const all = "cpu 100 1 50 1000 20 2 3 7 40 0\ncpu0 1 2 3\n"
	const self = "12 (a (strange) name) S 1 2 3 4 5 6 7 8 9 10 60 20 30 5 20 0 9\n"
	got, ok := parseTicks(all, self)
	require.True(t, ok)
	require.Equal(t, ticks{all: 1183, busy: 163, ours: 115}, got, "a guest's 40 are in the first 100")
	for _, bad := range [][2]string{{"", self}, {"intr 1 2 3 4 5 6 7 8\n", self}, {all, ""}, {all, "12 (x) S 1\n"}, {"cpu a 1 50 1000 20 2 3 7\n", self}} {
		_, ok := parseTicks(bad[0], bad[1])
		require.False(t, ok, "%q", bad)
	}
}

func TestQueue(t *testing.T) {
	threads, known := Queue(t.Context(), 2*queueEvery)
	require.Equal(t, runtime.GOOS == "linux", known)
	require.GreaterOrEqual(t, threads, 0.0)
}

func TestOthers_NoteEachRound(t *testing.T) {
	o := WatchOthers()
	var w bytes.Buffer
	noted := o.Noted(&w)
	for range 2 {
		n, err := noted.Write([]byte("BenchmarkX 1 2 ns/op\n"))
		require.NoError(t, err)
		require.Equal(t, 21, n)
	}
	require.Regexp(t, `^(machine: cpus=\d+( others=\d+\.\d\d)? probe=[\d.]+m?s\n\nBenchmarkX 1 2 ns/op\n){2}$`, w.String())
}

func TestTicks_OthersLeaveOutWhatIsOurs(t *testing.T) {
	for _, c := range []struct {
		passed ticks
		cpus   int
		want   float64
	}{
		{ticks{all: 200, busy: 150, ours: 100}, 2, 0.5},
		{ticks{all: 200, busy: 200, ours: 0}, 2, 2},
		{ticks{all: 800, busy: 150, ours: 50}, 8, 1},
		{ticks{all: 200, busy: 100, ours: 100}, 2, 0},
		{ticks{all: 200, busy: 99, ours: 100}, 2, 0}, // the system counts ours first
	} {
		got, known := c.passed.others(c.cpus)
		require.True(t, known, "%v", c)
		require.InDelta(t, c.want, got, 1e-9, "%v", c)
	}
	_, known := ticks{}.others(2)
	require.False(t, known, "no time has passed")
}

// Take compares with the last Take: here, with the start of the machine.
func TestOthers_Take(t *testing.T) {
	now, ok := readTicks()
	if !ok {
		t.Skip("the system does not say")
	}
	want, _ := now.others(runtime.NumCPU())
	var o Others
	got, known := o.Take()
	require.True(t, known)
	require.InDelta(t, want, got, 0.1)
	require.GreaterOrEqual(t, o.last.all, now.all, "the next begins here")
}

func TestReadTicks_CountsWhatIsOurs(t *testing.T) {
	before, ok := readTicks()
	if !ok {
		t.Skip("the system does not say")
	}
	require.Eventually(t, func() bool {
		probe()
		now, _ := readTicks()
		return now.ours > before.ours
	}, 10*time.Second, time.Millisecond)
}

func TestState(t *testing.T) {
	require.Regexp(t, `^clock read \d+ns, memory read [\d.]+(ns|µs), first use of a page [\d.]+(ns|µs|ms)$`, State())
}

package runner

import (
	"bytes"
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

func TestMachine_NotesEachRound(t *testing.T) {
	m := WatchMachine()
	defer m.Stop()
	var w bytes.Buffer
	noted := m.Noted(&w)
	for range 2 {
		n, err := noted.Write([]byte("BenchmarkX 1 2 ns/op\n"))
		require.NoError(t, err)
		require.Equal(t, 21, n)
	}
	require.Regexp(t, `^(machine: cpus=\d+( queue=\d+\.\d)? probe=[\d.]+m?s\n\nBenchmarkX 1 2 ns/op\n){2}$`, w.String())
}

func TestMachine_TakesWhatCameSince(t *testing.T) {
	if _, ok := runnable(); !ok {
		t.Skip("the system does not say")
	}
	m := WatchMachine()
	defer m.Stop()
	require.Eventually(t, func() bool { _, known := m.Take(); return known }, 10*time.Second, queueEvery)
	m.Take()
	_, known := m.Take()
	require.False(t, known, "nothing was read since")
}

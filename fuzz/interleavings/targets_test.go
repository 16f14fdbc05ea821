//go:build modelcheck

package interleavings

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
)

// errInjected is how functions given to operations fail.
var errInjected = errors.New("injected")

// A decoder makes a concurrent program of bytes; see interleave.Decode.
type decoder[R, S any] func(program []byte) (interleave.Program[R, S], bool)

// fuzzInterleavings explores the programs of a target, seeds more thoroughly
// than those of a search and than with -short, and logs how many, with how much of each.
func fuzzInterleavings[R, S any](f *testing.F, decode decoder[R, S]) {
	limit := interleave.Thorough
	if flag.Lookup("test.fuzz").Value.String() != "" || testing.Short() {
		limit = interleave.Quick
	}
	executions, programs := 0, map[interleave.Coverage]int{}
	f.Cleanup(func() { f.Logf("%d executions; programs: %v", executions, programs) })
	f.Fuzz(func(t *testing.T, program []byte) {
		if p, ok := decode(program); ok {
			r := p.Check(t, limit)
			executions += r.Schedules
			programs[r.Coverage]++
		}
	})
}

// samples is how many orders are enough for a seed to show what it is for.
const samples = 200

// seedsReach fails a test unless the seeds of a target are programs that reach
// all that is wanted.
func seedsReach[R, S any](t *testing.T, target string, decode decoder[R, S], want ...string) {
	t.Helper()
	reached := interleave.Reached{}
	for _, seed := range seeds(t, target) {
		p, ok := decode(seed.program)
		require.True(t, ok, "%s is no program", seed.name)
		p.Sample(samples, reached)
	}
	reached.Require(t, want...)
}

// seedsReject fails a test unless some seed of a target is right for what it
// runs on as long as threads come one after the other, and wrong otherwise.
func seedsReject[R, S any](t *testing.T, target string, decode decoder[R, S]) {
	t.Helper()
	for _, seed := range seeds(t, target) {
		p, _ := decode(seed.program)
		one := p.Sequential()
		r := p.Sample(samples, nil)
		if r.Failure != "" && one.Explore(interleave.Quick).Failure == "" {
			t.Logf("%s: %s", seed.name, r.Failure)
			return
		}
	}
	t.Errorf("no seed of %s finds what is broken", target)
}

// seed is a committed input.
type seed struct {
	name    string
	program []byte
}

// seeds returns the committed inputs of a target.
func seeds(t *testing.T, target string) (all []seed) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "fuzz", target, "*"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 8, "seeds of %s", target)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		quoted, found := strings.CutPrefix(string(text), "go test fuzz v1\n[]byte(")
		require.True(t, found, file)
		program, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(quoted), ")"))
		require.NoError(t, err)
		all = append(all, seed{filepath.Base(file), []byte(program)})
	}
	return all
}

package sequences

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCacheOpsSeeds checks that the seeds reach every operation and every kind
// of outcome.
func TestCacheOpsSeeds(t *testing.T) {
	reachOutcomes(t, "testdata/fuzz/FuzzCacheOps/*", cacheOps, cacheOutcomes)
}

// TestCacheWeightsSeeds checks that seeds of FuzzCacheWeights do what there is about weights.
func TestCacheWeightsSeeds(t *testing.T) {
	reachOutcomes(t, "testdata/fuzz/FuzzCacheWeights/*", cacheWeights, map[string][]string{
		"SetMaxWeight":        {"1", "2", "3", "4", "5", "6"},
		"weight":              {"0", "1", "2", "3", "4", "5", "6"},
		"more than MaxWeight": {"true", "false"}, "evicted": {"0", "1", "2"}, "removed": {"Deleted", "Replaced", "Evicted", "Discarded", "Closed"},
		"Set": {"true", "false"}, "a renewal replaces": {"true", "false"}, "SetIfAbsent": {"true", "false"}, "GetOrCreateMany": {"made"},
	})
}

// TestCacheExpirySeeds checks that seeds of FuzzCacheExpiry do what there is about expiry.
func TestCacheExpirySeeds(t *testing.T) {
	reachOutcomes(t, "testdata/fuzz/FuzzCacheExpiry/*", cacheExpiry, map[string][]string{
		"expired": {"0", "1", "2"}, "removed": {"Deleted", "Replaced", "Expired", "Evicted", "Discarded", "Closed"},
		"weight": {"0", "1", "2"}, "Set": {"true", "false"}, "Get": {"true", "false"}, "SetIfAbsent": {"true", "false"},
		"a renewal replaces": {"true", "false"}, "GetOrCreateMany": {"made", "found"},
	})
}

func reachOutcomes(t *testing.T, seeds string, run func(*testing.T, []byte, map[string]int), outcomes map[string][]string) {
	reached := map[string]int{}
	files, err := filepath.Glob(seeds)
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		quoted := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(text)), "go test fuzz v1\n[]byte("), ")")
		ops, err := strconv.Unquote(quoted)
		require.NoError(t, err, file)
		synctest.Test(t, func(t *testing.T) { run(t, []byte(ops), reached) })
	}
	for op, all := range outcomes {
		for _, want := range all {
			assert.NotZero(t, reached[op+" = "+want], "nobody reaches %q", op+" = "+want)
		}
	}
	t.Logf("%v", reached)
}

const (
	ofNone    = "oncecache: no such key"
	ofClosed  = "oncecache: cache is closed"
	ofGoexit  = "oncecache: create function called runtime.Goexit"
	ofTimeout = "oncecache: create timed out"
	ofLeaving = "context canceled"
	ofError   = "connection refused"
	ofPanic   = "disk full"
	ofKept    = "the error that is kept"
)

var cacheOutcomes = map[string][]string{
	"GetOrCreate":        {"made", "found", "panics", "exits", ofError, ofPanic, ofGoexit, ofClosed, ofTimeout, ofKept},
	"GetOrCreateContext": {"made", "found", "panics", "exits", ofError, ofPanic, ofGoexit, ofClosed, ofTimeout, ofKept, ofLeaving},
	"Acquire":            {"made", "found", "panics", "exits", ofError, ofPanic, ofGoexit, ofClosed, ofTimeout, ofKept, ofLeaving, "creates again"},
	"Wait":               {"found", ofError, ofPanic, ofGoexit, ofClosed, ofTimeout, ofKept, ofLeaving, ofNone},
	"Refresh":            {"made", "found", "panics", "exits", ofError, ofPanic, ofGoexit, ofClosed, ofTimeout, ofKept, ofLeaving},
	"GetOrCreateMany": {"made", "found", "panics", "exits", "nothing", ofError, ofPanic, ofGoexit, ofClosed, ofTimeout, ofKept, ofLeaving,
		"creates again"},

	"Load":              {"made", "found", "panics", "exits", ofError, ofLeaving},
	"Refresh by Create": {"made", "found", "panics", "exits", ofError, ofClosed, ofLeaving},

	"Clear": {"0", "1", "2"}, "SetMaxEntries": {"1", "2", "3"},

	"a renewal replaces": {"true", "false"},
	"Get":                {"true", "false"}, "Set": {"true", "false"}, "Delete": {"true", "false"}, "CompareAndDelete": {"true", "false"},
	"SetIfAbsent": {"true", "false"}, "SetIfAbsent in the place of an error": {"true", "false"},
	"Release": {"true", "false"}, "Discard": {"true", "false"},
	"Close while something is pending": {"true", "false"}, "Close tells a panic": {"true", "false"},
	"removed": {"Deleted", "Replaced", "Idle", "Evicted", "Discarded", "Closed"},
	"evicted": {"0", "1", "2"}, "timed out": {"0", "1", "2"}, "more than MaxEntries": {"true", "false"},
}

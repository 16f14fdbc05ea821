package fuzz

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
	reached := map[string]int{}
	files, err := filepath.Glob("testdata/fuzz/FuzzCacheOps/*")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		quoted := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(text)), "go test fuzz v1\n[]byte("), ")")
		ops, err := strconv.Unquote(quoted)
		require.NoError(t, err, file)
		synctest.Test(t, func(t *testing.T) { cacheOps(t, []byte(ops), reached) })
	}
	for op, outcomes := range cacheOutcomes {
		for _, want := range outcomes {
			assert.NotZero(t, reached[op+" = "+want], "nobody reaches %q", op+" = "+want)
		}
	}
	t.Logf("%v", reached)
}

const (
	ofNone    = "oncecache: no such key"
	ofClosed  = "oncecache: cache is closed"
	ofGoexit  = "oncecache: create function called runtime.Goexit"
	ofTimeout = "oncecache: create function takes too long"
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

	"LoadOrCreate": {"made", "found", "panics", "exits", ofError, ofLeaving},
	"Reload":       {"made", "found", "panics", "exits", ofError, ofClosed, ofLeaving},

	"a creation": {"waits for a renewal"}, "a creation that waits is called off, given a value": {"true", "false"}, "Clear": {"0", "1", "2"},

	"a renewal replaces": {"true", "false"},
	"Get":                {"true", "false"}, "Set": {"true", "false"}, "Delete": {"true", "false"}, "CompareAndDelete": {"true", "false"},
	"SetIfAbsent": {"true", "false"}, "SetIfAbsent in the place of an error": {"true", "false"},
	"Release": {"true", "false"}, "Discard": {"true", "false"}, "Sweep": {"true", "false"},
	"Close while something is pending": {"true", "false"}, "Close tells a panic": {"true", "false"},
	"evicted": {"0", "1", "2"}, "expired": {"0", "1", "2"}, "timed out": {"0", "1", "2"}, "more than MaxEntries": {"true", "false"},
}

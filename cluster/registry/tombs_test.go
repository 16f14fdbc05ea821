package registry

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// No more deletions are remembered than maxTombs, whatever their keys held before, and the last half as many are.
func TestTombsAreBounded(t *testing.T) {
	var tombs tombs[string]
	tombs.init()
	for i := range 10 {
		tombs.set(fmt.Sprint("foreign", i), tomb{foreign: true})
	}
	for i := range 2*maxTombs + 7 {
		k := fmt.Sprint(i)
		tombs.set(k, tomb{revision: 1, foreign: true})
		tombs.set(k, tomb{revision: 2})
		deletions, foreign := tombs.len()
		require.LessOrEqual(t, deletions, maxTombs)
		require.GreaterOrEqual(t, deletions, min(i+1, maxTombs/2))
		require.Equal(t, 10, foreign)
		if early := i - maxTombs/2 + 1; early >= 0 {
			b, _ := tombs.get(fmt.Sprint(early))
			require.Equal(t, uint64(2), b.revision, early)
		}
	}
	_, ok := tombs.get("0")
	require.False(t, ok)
}

// Deletions of keys that were deleted before, and came back, count once, and as new.
func TestTombsOfKeysThatComeBack(t *testing.T) {
	var tombs tombs[string]
	tombs.init()
	for i := range maxTombs / 2 {
		tombs.set(fmt.Sprint(i), tomb{revision: 1})
	}
	const back = 100
	for i := range back {
		k := fmt.Sprint(i)
		tombs.remove(k)
		_, ok := tombs.get(k)
		require.False(t, ok)
		tombs.set(k, tomb{revision: 2})
		tombs.set(k, tomb{revision: 3})
	}
	for i := range maxTombs/2 - back {
		tombs.set(fmt.Sprint("new", i), tomb{revision: 4})
	}
	for i := range back {
		b, _ := tombs.get(fmt.Sprint(i))
		require.Equal(t, uint64(3), b.revision, i)
	}
}

// Keys that a listing has not met have no markers in the bucket.
func TestTombsUnlisted(t *testing.T) {
	var tombs tombs[string]
	tombs.init()
	for i := range maxTombs {
		tombs.set(fmt.Sprint(i), tomb{revision: 1, expect: 1})
	}
	tombs.set("foreign", tomb{revision: 1, foreign: true})
	tombs.unlisted(func(k string) bool { return k == "1" || k == fmt.Sprint(maxTombs-1) })
	deletions, foreign := tombs.len()
	require.Equal(t, maxTombs, deletions)
	require.Zero(t, foreign)
	for i := range maxTombs {
		b, _ := tombs.get(fmt.Sprint(i))
		require.Equal(t, i == 1 || i == maxTombs-1, b.expect == 1, i)
	}
}

package registry

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// No more deletions are remembered than maxTombs, whatever their keys held before.
func TestTombsAreBounded(t *testing.T) {
	var tombs tombs[string]
	tombs.init()
	for i := range 2 * maxTombs {
		k := fmt.Sprint(i)
		tombs.set(k, tomb{revision: 1, foreign: true})
		tombs.set(k, tomb{revision: 2})
	}
	require.Equal(t, maxTombs, tombs.len())
	for i := range 10 {
		tombs.set(fmt.Sprint("foreign", i), tomb{foreign: true})
	}
	for i := range 2 * maxTombs {
		tombs.set(fmt.Sprint("again", i), tomb{revision: 3})
	}
	require.Equal(t, maxTombs+10, tombs.len())
	require.Equal(t, 10, tombs.foreigners())
}

// The last deletions are remembered, also of keys that were deleted before, and came back.
func TestTombsOfKeysThatComeBack(t *testing.T) {
	var tombs tombs[string]
	tombs.init()
	for i := range maxTombs {
		tombs.set(fmt.Sprint(i), tomb{revision: 1})
	}
	const back = 100
	for i := range back { // the last one first, so that none is where it was
		k := fmt.Sprint(back - i)
		tombs.remove(k)
		tombs.set(k, tomb{revision: 2})
	}
	for i := range maxTombs - back {
		tombs.set(fmt.Sprint("new", i), tomb{revision: 3})
		require.LessOrEqual(t, tombs.len(), maxTombs)
	}
	for i := range back {
		b, _ := tombs.get(fmt.Sprint(back - i))
		require.Equal(t, uint64(2), b.revision, back-i)
	}
	require.Equal(t, maxTombs, tombs.len())
	for i := range back {
		tombs.set(fmt.Sprint("newer", i), tomb{revision: 4})
	}
	require.Equal(t, maxTombs, tombs.len())
	_, ok := tombs.get("1")
	require.False(t, ok)
}

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

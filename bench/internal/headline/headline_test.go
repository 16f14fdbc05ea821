package headline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHas(t *testing.T) {
	require.True(t, Has("BenchmarkCacheHit/keys=100/order=uniform/impl=mutex"))
	require.True(t, Has("CacheHit/keys=100/order=uniform"))
	require.False(t, Has("CacheHit/keys=100"))
	require.False(t, Has("BenchmarkCacheHit/keys=100000/order=uniform/impl=mutex"))
}

func TestKeeps(t *testing.T) {
	require.True(t, Keeps("BenchmarkCacheHit/keys=100/order=uniform/impl=mutex"))
	require.True(t, Keeps("BenchmarkRegistryMix/keys=100000/read=50/order=uniform/impl=mutex"))
	require.False(t, Has("BenchmarkRegistryMix/keys=100000/read=50/order=uniform/impl=mutex"), "it is not measured first")
	require.False(t, Keeps("BenchmarkRegistryMix/keys=100000/read=90/order=uniform/impl=mutex"))
}

func TestPattern(t *testing.T) {
	require.Equal(t, `^BenchmarkA$/^k=1$|^BenchmarkB$`, Pattern([]Case{{Name: "A/k=1"}, {Name: "B"}}))
}

func TestCases_AreDistinctAndAboutADozen(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range append(append([]Case{}, Speed...), Latency...) {
		require.False(t, seen[c.Name], c.Name)
		require.NotEmpty(t, c.Says)
		seen[c.Name] = true
	}
	require.InDelta(t, 12, len(seen), 2)
}

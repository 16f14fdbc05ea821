package latchotel_test

import (
	"strings"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchotel "github.com/latchfree/latchfree/integrations/otel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keysOf returns how many keys of the group g have their own value of the attribute key.
func keysOf(all map[string]float64) (n int) {
	for id := range all {
		if strings.HasPrefix(id, "breaker_group.key.open ") && !strings.Contains(id, "key=_other") {
			n++
		}
	}
	return n
}

// The worst keys are shown: open ones before failures, failures before labels.
func TestWorstKeys(t *testing.T) {
	var g atomicbreaker.Group[string]
	for key, failures := range map[string]int{"a": 1, "b": 3, "c": 2, "d": 2, "_other": 1} {
		for range failures {
			g.RecordFailure(key)
		}
	}
	g.Trip("z", 0)
	g.Trip("\xff", 0)
	for n, want := range map[int]map[string]float64{
		-1: {"open _other": 2, "failures _other": 9},
		1:  {"open z": 1, "open _other": 1, "failures _other": 9},
		4:  {"open z": 1, "open \uFFFD": 1, "failures b": 3, "failures c": 2, "open _other": 0, "failures _other": 4},
	} {
		meter, collect := reader(t)
		first(latchotel.Group(meter, "g", &g, latchotel.GroupOptions[string]{MaxKeys: n}))
		all := samples(t, first(collect()))
		for name, value := range want {
			metric, key, _ := strings.Cut(name, " ")
			includes(t, all, map[string]float64{"breaker_group.key." + metric + " breaker_group.key=" + key + " breaker_group.name=g": value})
		}
		assert.Equal(t, max(n, 0), keysOf(all))
	}
}

// Each count of a group has its own number.
func TestGroupCounts(t *testing.T) {
	meter, collect := reader(t)
	g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[int]{MaxOpen: 1, Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)}})
	first(latchotel.Group(meter, "g", g, latchotel.GroupOptions[int]{}))
	var late [7]atomicbreaker.GroupPermit[int]
	for i := range late {
		late[i] = first(g.Allow(-1))
	}
	for k := range latchotel.DefaultMaxKeys + 7 {
		g.Trip(k, 0)
	}
	g.Trip(-1, 0)
	for _, permit := range late {
		permit.Failure()
	}
	for range 3 {
		_, err := g.Allow(1)
		require.ErrorIs(t, err, atomicbreaker.ErrOpen)
	}
	for k := range 5 {
		g.RecordFailure(1000 + k)
	}
	for k := range 2 {
		g.Reset(k)
	}
	s := g.Stats()
	different(t, s.Opened, s.Closed, s.Rejected, s.Late, s.Withheld)
	all := samples(t, first(collect()))
	includes(t, all, map[string]float64{
		"breaker_group.openings breaker_group.name=g": 28, "breaker_group.closings breaker_group.name=g": 2, "breaker_group.rejected breaker_group.name=g": 3,
		"breaker_group.late breaker_group.name=g": 7, "breaker_group.withheld breaker_group.name=g": 5,
		"breaker_group.keys breaker.state=Open breaker_group.name=g":           26,
		"breaker_group.keys breaker.state=HalfOpen breaker_group.name=g":       0,
		"breaker_group.key.open breaker_group.key=_other breaker_group.name=g": 6,
	})
	assert.Equal(t, latchotel.DefaultMaxKeys, keysOf(all))
}

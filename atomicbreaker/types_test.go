//go:build !modelcheck

package atomicbreaker_test

import (
	"encoding"
	"fmt"
	"testing"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// What has a name is that name as text, and what has none its number.
func TestEveryValueHasAName(t *testing.T) {
	names[ab.State](t, "State", ab.Closed, ab.Shadow)
	names[ab.Outcome](t, "Outcome", ab.Success, ab.Ignored)
	names[ab.Verdict](t, "Verdict", ab.Counted, ab.Recovered)
	names[ab.Reason](t, "Reason", ab.ReasonThreshold, ab.ReasonTripFunc)
}

// names tries all values of a type, of which these have names.
func names[T interface {
	~uint8
	fmt.Stringer
	encoding.TextMarshaler
}](t *testing.T, kind string, first, last T) {
	seen := map[string]bool{}
	for i := range 256 {
		v := T(i)
		if text, err := v.MarshalText(); err != nil || string(text) != v.String() || seen[v.String()] {
			t.Errorf("%v: MarshalText: %s, %v", v, text, err)
		}
		seen[v.String()] = true
		if number := fmt.Sprintf("%s(%d)", kind, i); (v.String() != number) != (first <= v && v <= last) {
			t.Errorf("%s is called %v", number, v)
		}
	}
}

// A name costs nothing: it may be a label of a metric.
func TestNamesDoNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		_, _, _, _ = ab.Shadow.String(), ab.Ignored.String(), ab.Recovered.String(), ab.ReasonDisable.String()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

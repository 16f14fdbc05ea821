//go:build !modelcheck

package atomicbreaker_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// What has a name can be read from it, and what has none cannot.
func TestNamesAreReadBack(t *testing.T) {
	readBack[ab.State](t, "State", ab.Closed, ab.Shadow)
	readBack[ab.Outcome](t, "Outcome", ab.Success, ab.Ignored)
	readBack[ab.Verdict](t, "Verdict", ab.Counted, ab.Recovered)
	readBack[ab.Reason](t, "Reason", ab.ReasonThreshold, ab.ReasonTripFunc)
}

type named[T any] interface {
	*T
	encoding.TextUnmarshaler
}

// readBack tries all values of a type, of which these, at least, have names.
func readBack[T interface {
	~uint8
	fmt.Stringer
	encoding.TextMarshaler
}, P named[T]](t *testing.T, kind string, first, last T) {
	before := T(77) // which no type has a name for
	for i := range 256 {
		v := T(i)
		text, err := v.MarshalText()
		if err != nil || string(text) != v.String() {
			t.Errorf("%v: MarshalText: %s, %v", v, text, err)
		}
		got := before
		err = P(&got).UnmarshalText(text)
		switch number := fmt.Sprintf("%s(%d)", kind, i); {
		case v.String() != number:
			if err != nil || got != v {
				t.Errorf("%v: read back as %v, %v", v, got, err)
			}
		case first <= v && v <= last:
			t.Errorf("%v has no name", number)
		case err == nil || got != before:
			t.Errorf("%v: read as %v, %v", v, got, err)
		}
	}
	for _, text := range []string{"", "closed", " " + first.String(), first.String() + " ", kind} {
		v := last
		if err := P(&v).UnmarshalText([]byte(text)); err == nil || v != last {
			t.Errorf("%q: read as %v, %v", text, v, err)
		}
	}
}

func TestWrongNames(t *testing.T) {
	var s ab.State
	var r ab.Reason
	for want, err := range map[string]error{
		`atomicbreaker: State "Opne": must be one of Closed, Open, HalfOpen, ForcedOpen, Disabled, Shadow`: s.UnmarshalText([]byte("Opne")),
		`atomicbreaker: State "": must be one of Closed, Open, HalfOpen, ForcedOpen, Disabled, Shadow`:     s.UnmarshalText(nil),
		`atomicbreaker: Reason "ReasonTrip": must be one of Threshold, FailureRate, FailureCount, SlowRate, OpenTimeout, ProbeFailed, ` +
			`ProbeTimeout, Recovered, RecordSuccess, RecordFailure, Reset, Trip, ForceOpen, Disable, Forgotten, HalfOpen, TripFunc`: r.UnmarshalText([]byte("ReasonTrip")),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What a log or a variable holds of a breaker can be read where it is looked at.
func TestEventsAndSnapshotsAreReadBack(t *testing.T) {
	b := ab.MustNew(ab.Config{Name: "db", Shadow: true})
	b.Trip(time.Minute)
	event := ab.Event{From: ab.HalfOpen, To: ab.Open, Reason: ab.ReasonProbeFailed, OpenFor: time.Second}
	for _, v := range []any{event, b.Snapshot(), map[ab.Verdict]ab.Outcome{ab.Late: ab.Ignored}} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal(text, got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), v) {
			t.Errorf("%s was %+v and becomes %+v, %v", text, v, got.Elem(), err)
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

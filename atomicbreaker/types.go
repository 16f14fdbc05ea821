package atomicbreaker

import "strconv"

// State is what a breaker does with calls.
type State uint8

const (
	// Closed lets every call through and counts failures.
	Closed State = iota
	// Open rejects every call until its time has passed.
	Open
	// HalfOpen lets a few calls through as probes.
	HalfOpen
	// ForcedOpen rejects every call; see Breaker.ForceOpen.
	ForcedOpen
	// Disabled lets every call through and counts none; see Breaker.Disable.
	Disabled
	// Shadow lets every call through, and counts; see Config.Shadow.
	Shadow
)

// String returns the name of s.
func (s State) String() string {
	return nameOf(uint8(s), "State", []string{
		Closed:     "Closed",
		Open:       "Open",
		HalfOpen:   "HalfOpen",
		ForcedOpen: "ForcedOpen",
		Disabled:   "Disabled",
		Shadow:     "Shadow",
	})
}

// rejects reports whether the breaker rejects calls outright.
func (s State) rejects() bool { return s == Open || s == ForcedOpen }

// MarshalText returns the name of s.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Who adds an Outcome adds a case wherever Ignored has one.

// Outcome is what the end of a call says about the thing called.
type Outcome uint8

const (
	// Success says that it works.
	Success Outcome = iota
	// Failure says that it does not.
	Failure
	// Ignored says nothing about it: the caller gave up, or its request was wrong.
	Ignored
)

// String returns the name of o.
func (o Outcome) String() string {
	return nameOf(uint8(o), "Outcome", []string{
		Success: "Success",
		Failure: "Failure",
		Ignored: "Ignored",
	})
}

// known returns o, or Failure if it is none of the three.
func (o Outcome) known() Outcome {
	if o > Ignored {
		return Failure
	}
	return o
}

// MarshalText returns the name of o.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Verdict is what a reported outcome did to the breaker.
type Verdict uint8

const (
	// Counted says that the outcome counted and the state is as before, or Disabled.
	Counted Verdict = iota
	// Late says that the outcome changed nothing: see Permit and RecordFailure.
	Late
	// Tripped says that this failure opened the breaker. With Config.ProbeFailureRate it
	// may be a success.
	Tripped
	// Recovered says that this success closed the breaker. With Config.ProbeFailureRate it may be a
	// failure.
	Recovered
)

// String returns the name of v.
func (v Verdict) String() string {
	return nameOf(uint8(v), "Verdict", []string{
		Counted:   "Counted",
		Late:      "Late",
		Tripped:   "Tripped",
		Recovered: "Recovered",
	})
}

// MarshalText returns the name of v.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// nameOf returns names[v], or the number where there is no name.
func nameOf(v uint8, kind string, names []string) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")" // fmt would make names escape
}

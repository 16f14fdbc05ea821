package atomicbreaker

import "fmt"

// State is what a breaker does with calls.
type State uint8

const (
	// Closed lets every call through and counts failures.
	Closed State = iota
	// Open rejects every call until its time has passed.
	Open
	// HalfOpen lets a few calls through, to find out.
	HalfOpen
	// ForcedOpen rejects every call until Reset; see Breaker.ForceOpen.
	ForcedOpen
	// Disabled lets every call through and counts none; see Breaker.Disable.
	Disabled
	// Shadow lets every call through, and counts; see Config.Shadow.
	Shadow
)

// String returns the name of s.
func (s State) String() string {
	switch s {
	case Closed:
		return "Closed"
	case Open:
		return "Open"
	case HalfOpen:
		return "HalfOpen"
	case ForcedOpen:
		return "ForcedOpen"
	case Disabled:
		return "Disabled"
	case Shadow:
		return "Shadow"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText returns the name of s.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Outcome is what the end of a call says about the thing called.
type Outcome uint8

const (
	// Success says that it works.
	Success Outcome = iota
	// Failure says that it does not.
	Failure
	// Ignored says nothing: the caller gave up, or sent nonsense.
	Ignored
)

// String returns the name of o.
func (o Outcome) String() string {
	switch o {
	case Success:
		return "Success"
	case Failure:
		return "Failure"
	case Ignored:
		return "Ignored"
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// Verdict is what a reported outcome did to the breaker.
type Verdict uint8

const (
	// Counted says that the outcome was taken into account and the state is as before, or
	// that the breaker is Disabled.
	Counted Verdict = iota
	// Late says that the breaker has changed its state or was reset since the call was
	// admitted, and the outcome changed nothing.
	Late
	// Tripped says that this failure opened the breaker. One failure per opening gets
	// this verdict.
	Tripped
	// Recovered says that this success closed the breaker. One success per closing gets
	// this verdict.
	Recovered
)

// String returns the name of v.
func (v Verdict) String() string {
	switch v {
	case Counted:
		return "Counted"
	case Late:
		return "Late"
	case Tripped:
		return "Tripped"
	case Recovered:
		return "Recovered"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

package atomicbreaker

// State is what a breaker does with calls.
type State uint8

const (
	// Closed lets every call through and counts failures.
	Closed State = iota
	// Open rejects every call until its time has passed.
	Open
	// HalfOpen lets a few calls through, to find out whether they succeed.
	HalfOpen
	// ForcedOpen rejects every call until Reset; see Breaker.ForceOpen.
	ForcedOpen
	// Disabled lets every call through and counts none; see Breaker.Disable.
	Disabled
	// Shadow lets every call through, and counts; see Config.Shadow.
	Shadow
)

func states() enum {
	return enum{"State", []string{
		Closed:     "Closed",
		Open:       "Open",
		HalfOpen:   "HalfOpen",
		ForcedOpen: "ForcedOpen",
		Disabled:   "Disabled",
		Shadow:     "Shadow",
	}}
}

// String returns the name of s.
func (s State) String() string { return nameOf(states(), s) }

// MarshalText returns the name of s.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets s to the value with this name, or returns an error that
// lists the names.
func (s *State) UnmarshalText(name []byte) error { return setNamed(states(), s, name) }

// Outcome is what the end of a call says about the thing called.
type Outcome uint8

const (
	// Success says that the thing called works.
	Success Outcome = iota
	// Failure says that it does not work.
	Failure
	// Ignored says nothing about it: the caller gave up, or its request was wrong.
	Ignored
)

func outcomes() enum {
	return enum{"Outcome", []string{
		Success: "Success",
		Failure: "Failure",
		Ignored: "Ignored",
	}}
}

// String returns the name of o.
func (o Outcome) String() string { return nameOf(outcomes(), o) }

// MarshalText returns the name of o.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText sets o to the value with this name, or returns an error that
// lists the names.
func (o *Outcome) UnmarshalText(name []byte) error { return setNamed(outcomes(), o, name) }

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
	// this verdict. With Config.ProbeFailureRate it may be a success, if this was the
	// last of the probes and too many of them failed.
	Tripped
	// Recovered says that this success closed the breaker. One success per closing gets
	// this verdict; with Config.ProbeFailureRate it may be a failure.
	Recovered
)

func verdicts() enum {
	return enum{"Verdict", []string{
		Counted:   "Counted",
		Late:      "Late",
		Tripped:   "Tripped",
		Recovered: "Recovered",
	}}
}

// String returns the name of v.
func (v Verdict) String() string { return nameOf(verdicts(), v) }

// MarshalText returns the name of v.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText sets v to the value with this name, or returns an error that
// lists the names.
func (v *Verdict) UnmarshalText(name []byte) error { return setNamed(verdicts(), v, name) }

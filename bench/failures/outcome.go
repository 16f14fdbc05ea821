package main

import "fmt"

// status is how a case ended.
type status string

const (
	pass  status = "pass"
	fail  status = "fail"        // not what is expected
	wrong status = "wrong value" // a caller got a value it must not get, or none without an error
	hang  status = "hang"        // somebody waits for ever
	crash status = "crash"       // the process died
	na    status = "n/a"         // not asked of this cache
	count status = "figure"      // a number, to be judged by the reader
)

// outcome is what was observed of one case and one cache.
type outcome struct {
	Status status `json:"status"`
	// Note says what was observed, or why nothing was. A pass may have one.
	Note string `json:"note,omitempty"`
	// Rounds is how often a case was tried that takes luck; 0 if it was forced.
	Rounds int `json:"rounds,omitempty"`
}

func (o outcome) String() string {
	if o.Note == "" {
		return string(o.Status)
	}
	return fmt.Sprintf("%s: %s", o.Status, o.Note)
}

// verdict ends a case from within: see trial.end.
type verdict struct{ outcome }

// unexpected is the error of a create function that should not have run.
type unexpected int

func (u unexpected) Error() string { return fmt.Sprintf("a create function ran (%d)", int(u)) }

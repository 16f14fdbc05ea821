package fuzz

import (
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// permit is what is used of an ab.Permit and an ab.GroupPermit.
type permit interface {
	Success() ab.Verdict
	Failure() ab.Verdict
	Cancel() ab.Verdict
	Done(error) ab.Verdict
	Report(ab.Outcome) ab.Verdict
	Trip(time.Duration) ab.Verdict
}

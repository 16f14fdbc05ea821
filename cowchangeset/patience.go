package cowchangeset

import "runtime"

// How long one operation waits for others that are about to finish, before it
// goes on without them. The window waited for is a copy of one entry and one
// atomic instruction. The loads cover it while its goroutine is running; the
// yields, while it is runnable on this processor. More would only delay the
// caller behind a goroutine that is not going to run soon.
const (
	patientLoads  = 64
	patientYields = 4
)

// patience is what one operation has left to wait. It is spent once for the
// whole operation, so that many stalled goroutines delay it no more than one.
type patience struct{ spent int }

// wait spends some and reports whether there was any left.
func (p *patience) wait() bool {
	if p.spent >= patientLoads+patientYields {
		return false
	}
	p.spent++
	if p.spent > patientLoads {
		runtime.Gosched()
	}
	return true
}

// extend adds the time that copying a batch of k entries takes.
func (p *patience) extend(k uint64) {
	const loadsPerEntry = 4 // a load of a cached word is several times cheaper than a copy
	p.spent -= int(k * loadsPerEntry)
}

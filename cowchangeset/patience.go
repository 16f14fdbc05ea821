package cowchangeset

import "runtime"

// patience is what one operation has left to wait. It is spent once for the
// whole operation, so that many stalled goroutines delay it no more than one.
type patience struct{ spent int }

// wait spends some and reports whether there was any left.
func (p *patience) wait() bool {
	if p.spent >= patientLoads()+patientYields() {
		return false
	}
	p.spent++
	if p.spent > patientLoads() {
		runtime.Gosched()
	}
	return true
}

// extend adds the time that copying a batch of k entries takes.
func (p *patience) extend(k uint64) { p.spent -= int(k) * loadsPerEntry() }

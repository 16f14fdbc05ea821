package cowchangeset

import "runtime"

// spinWait is what one operation has left to wait. It is spent once for the
// whole operation, so that many stalled goroutines delay it no more than one.
type spinWait struct{ spent int }

// spin spends some and reports whether there was any left.
func (s *spinWait) spin() bool {
	if s.spent >= spinLoads()+spinYields() {
		return false
	}
	s.spent++
	if s.spent > spinLoads() {
		runtime.Gosched()
	}
	return true
}

// extend adds the time that copying a batch of k entries takes.
func (s *spinWait) extend(k uint64) { s.spent -= int(k) * loadsPerEntry() }

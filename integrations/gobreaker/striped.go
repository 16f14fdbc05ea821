package gobreaker

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// striped are the counts of a closed generation with a fixed window or none. Calls
// that succeed while none fails write to one stripe only.
type striped struct {
	stripes []stripe // a power of two
	// failing says that the last result was a failure. The mutex is held to change it.
	failing atomic.Bool

	_        [64]byte
	mu       sync.Mutex // no user code runs under it
	failures uint32
	inARow   uint32 // failures since the last success
	before   uint64 // successes up to the last failure
}

// A stripe has a line of its own. All fields only grow.
type stripe struct {
	requests, successes, exclusions atomic.Uint64

	_ [64 - 24]byte
}

// maxStripes bounds the memory of a breaker.
const maxStripes = 64

func newStriped() *striped {
	return &striped{stripes: make([]stripe, 1<<bits.Len(uint(min(runtime.GOMAXPROCS(0), maxStripes)-1)))}
}

// mine returns a stripe that tends to be the same for what runs on one processor,
// which hands the stacks of its dead goroutines to its new ones.
//
// Safety: the address becomes a number at once and is never followed.
func (s *striped) mine() *stripe {
	var here byte
	stack := uint64(uintptr(unsafe.Pointer(&here))) >> 11 // stacks are 2 KiB or more
	return &s.stripes[int(stack*0x9e3779b97f4a7c15>>32)&(len(s.stripes)-1)]
}

// succeed counts a success. One that has read failing as false before a failure set it
// is ordered before that failure, unless a later success has been counted already.
func (s *striped) succeed() {
	if s.failing.Load() {
		s.succeedAfterFailure()
	} else {
		s.mine().successes.Add(1)
	}
}

// succeedAfterFailure is succeed for a success that has seen a failure. Another one may
// have ended the run of failures already.
func (s *striped) succeedAfterFailure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing.Load() {
		s.before, s.inARow = s.successes(), 0
		s.failing.Store(false)
	}
	s.mine().successes.Add(1)
}

// fail counts a failure and returns the counts with it.
func (s *striped) fail() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	s.inARow++
	s.failing.Store(true)
	return s.sum()
}

func (s *striped) counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum()
}

func (s *striped) successes() (n uint64) {
	for i := range s.stripes {
		n += s.stripes[i].successes.Load()
	}
	return n
}

// sum reads results before requests, so that every result has its request.
func (s *striped) sum() Counts {
	good := s.successes()
	n := Counts{TotalSuccesses: uint32(good), TotalFailures: s.failures, ConsecutiveFailures: s.inARow}
	if s.inARow == 0 {
		n.ConsecutiveSuccesses = uint32(good - s.before)
	}
	for i := range s.stripes {
		n.TotalExclusions += uint32(s.stripes[i].exclusions.Load())
	}
	for i := range s.stripes {
		n.Requests += uint32(s.stripes[i].requests.Load())
	}
	return n
}

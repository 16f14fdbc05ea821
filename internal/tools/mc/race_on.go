//go:build modelcheck && race

package mc

import "runtime"

// The scheduler's hand-overs are channel operations. If the race detector saw
// them it would take them for synchronisation between the threads, and so hide
// every data race of the code under test. A thread's side of them is therefore
// bracketed by raceOff and raceOn, and functions that touch the scheduler's own
// state in a thread are marked norace.
//
// A recorded execution repeats one that has failed already. It is described
// with package fmt, which is not marked, so there the hand-overs are shown.

//go:norace
func raceOff() {
	if m := active; m == nil || !m.recording {
		runtime.RaceDisable()
	}
}

//go:norace
func raceOn() {
	if m := active; m == nil || !m.recording {
		runtime.RaceEnable()
	}
}

// raceErrors returns the number of reports so far.
func raceErrors() int { return runtime.RaceErrors() }

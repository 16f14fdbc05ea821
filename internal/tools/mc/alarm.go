//go:build modelcheck

package mc

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// alarm is a timer of an execution in which time is kept.
type alarm struct {
	at   int64  // when it fires, by the modelled clock
	over *int32 // 1: it was stopped
	fire func()
}

// Alarm starts fire as a thread: at once, because time passes at any speed, or, with
// Config.Timed, when M.Advance has moved the clock by d, unless over is 1 by then.
//
//go:norace
func Alarm(d time.Duration, over *int32, fire func()) {
	m := active
	if !m.cfg.Timed {
		Go(fire)
		return
	}
	Step(&Op{Verb: "After", On: Access{unsafe.Pointer(&m.elapsed), Read}})
	if d <= 0 {
		Go(fire)
		return
	}
	var begun atomic.Bool // real, as what was done before is before what fire does
	begun.Store(true)
	m.alarms = append(m.alarms, alarm{m.elapsed + int64(d), over, func() {
		begun.Load()
		fire()
	}})
}

// ring starts the threads of the alarms that are due, and forgets those that were stopped.
//
//go:norace
func (m *M) ring() {
	var due []alarm
	left := m.alarms[:0]
	for _, a := range m.alarms {
		switch {
		case *a.over == 1:
		case a.at <= m.elapsed:
			due = append(due, a)
		default:
			left = append(left, a)
		}
	}
	m.alarms = left
	for _, a := range due {
		Go(a.fire)
	}
}

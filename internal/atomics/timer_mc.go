//go:build modelcheck

package atomics

import (
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// After starts a modelled thread, whose first step finds out whether stop came
// before it. Time passes at any speed there, and d is not looked at, unless the exploration
// keeps time: see mc.Alarm.
func After(d time.Duration, f func()) (stop func()) {
	if !mc.Modelled() {
		return later(d, f)
	}
	t := new(modelTimer)
	mc.Alarm(d, &t.over, func() {
		if t.step("fire", mc.Write); mc.Get(&t.over) == 0 {
			mc.Set(&t.over, 1)
			f()
		}
	})
	return func() { t.step("stop", mc.Write); mc.Set(&t.over, 1) }
}

// modelTimer orders nothing for the race detector, as a timer that is stopped
// does not.
type modelTimer struct{ over int32 }

// Safety: the address only names the word to the model.
func (t *modelTimer) step(verb string, mode mc.Mode) {
	step(verb, mc.Blocking, unsafe.Pointer(t), mode)
}

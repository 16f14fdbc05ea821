package throttle

import "time"

// Draw makes a throttle that nobody uses yet draw its numbers from f.
func (t *Throttle) Draw(f func() uint32) { t.settings().draw = f }

// Interval returns how long odds are used.
func (t *Throttle) Interval() time.Duration { return t.settings().interval }

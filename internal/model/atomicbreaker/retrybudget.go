package model

import (
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// RetryBudget is what a retry budget should do at the time Now. All tokens are
// in thousandths.
type RetryBudget struct {
	Capacity, Earns, PerSecond int // PerSecond 0: none
	Now                        time.Duration

	missing int
	looked  time.Duration // up to then time has added
}

// Config returns what NewRetryBudget takes.
func (b *RetryBudget) Config() ab.RetryBudgetConfig {
	c := ab.RetryBudgetConfig{Capacity: b.Capacity / 1000, Ratio: float64(b.Earns) / 1000, MinPerSecond: float64(b.PerSecond) / 1000}
	if b.PerSecond == 0 {
		c.MinPerSecond = -1
	}
	return c
}

// refill adds what has come since it was called last. It is exact if all times
// lie full seconds apart.
func (b *RetryBudget) refill() {
	added := int64((b.Now-b.looked)/time.Second) * int64(b.PerSecond)
	b.missing = int(max(0, int64(b.missing)-added))
	b.looked = b.Now
}
func (b *RetryBudget) Success() {
	b.refill()
	b.missing = max(0, b.missing-b.Earns)
}
func (b *RetryBudget) Retry() bool {
	if b.Available() == 0 {
		return false
	}
	b.missing += 1000
	return true
}
func (b *RetryBudget) Available() int {
	b.refill()
	return (b.Capacity - b.missing) / 1000
}

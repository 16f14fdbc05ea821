// Package model has the sequential model of a Budget of package retrybudget. See internal/tools/model.
package model

import "time"

// Budget is what a retry budget should do at the time Now. All tokens are
// in thousandths.
type Budget struct {
	Capacity, Earns, PerSecond int // PerSecond 0: none
	Now                        time.Duration

	missing int
	looked  time.Duration // up to then time has added
}

// refill adds what has come since it was called last. It is exact if all times
// lie full seconds apart.
func (b *Budget) refill() {
	added := int64((b.Now-b.looked)/time.Second) * int64(b.PerSecond)
	b.missing = int(max(0, int64(b.missing)-added))
	b.looked = b.Now
}

func (b *Budget) Success() {
	b.refill()
	b.missing = max(0, b.missing-b.Earns)
}

func (b *Budget) Retry() bool {
	if b.Available() == 0 {
		return false
	}
	b.missing += 1000
	return true
}

func (b *Budget) Available() int {
	b.refill()
	return (b.Capacity - b.missing) / 1000
}

package retrybudget

import (
	"fmt"
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Config holds the settings of a Budget. The zero value means the defaults.
type Config struct {
	// Capacity is how many tokens the bucket holds, which is how many retries
	// may follow each other without a success, up to 4,000,000. Zero means 100.
	Capacity int

	// Ratio is how many tokens a success earns: with 0.1, there is one retry
	// for ten successes. It is rounded to thousandths, of which it must be at
	// least one, and it is at most 4,000,000. Zero means 0.1.
	Ratio float64

	// MinPerSecond is how many tokens each second adds, so that callers that
	// rarely succeed may retry at all. It is rounded to thousandths, of which
	// it must be at least one, and it is at most 4,000,000. Zero means 1. A
	// negative number means none: then only successes earn retries, and no
	// clock is read.
	MinPerSecond float64
}

const (
	defaultCapacity     = 100
	defaultRatio        = 0.1
	defaultMinPerSecond = 1

	// maxTokens keeps 1000 times as many in 32 bits.
	maxTokens = 4_000_000
)

// settings is a validated Config. It never changes.
type settings struct {
	epoch     time.Time // what refillTicks are counted from
	capacity  uint64    // in thousandths of a token, as all below
	earns     uint64    // by a success
	perSecond uint64    // zero for none
}

// compile validates c. The epoch is taken here.
func (c *Config) compile() (*settings, error) {
	s := &settings{epoch: atomics.Now(), capacity: defaultCapacity * wholeToken}
	if c.Capacity < 0 || int64(c.Capacity) > maxTokens {
		return nil, fmt.Errorf("retrybudget: Config.Capacity %d: must be in 0..%d", c.Capacity, maxTokens)
	}
	if c.Capacity > 0 {
		s.capacity = uint64(c.Capacity) * wholeToken
	}
	var err error
	if s.earns, err = thousandths("Ratio", c.Ratio, defaultRatio); err != nil {
		return nil, err
	}
	if c.MinPerSecond < 0 {
		return s, nil
	}
	s.perSecond, err = thousandths("MinPerSecond", c.MinPerSecond, defaultMinPerSecond)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// thousandths returns 1000·v, or an error that names the field.
func thousandths(field string, v, byDefault float64) (uint64, error) {
	if v == 0 {
		v = byDefault
	}
	if !(v >= 1.0/wholeToken && v <= maxTokens) { // written so that it holds for NaN
		return 0, fmt.Errorf("retrybudget: Config.%s %v: must be 0 or in 0.001..%d", field, v, maxTokens)
	}
	return uint64(math.Round(v * wholeToken)), nil
}

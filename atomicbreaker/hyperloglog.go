package atomicbreaker

import (
	"math"
	"math/bits"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// distinctKeys estimates how many keys a group has lately been asked about, without
// storing them: HyperLogLog (Flajolet, Fusy, Gandouet and Meunier, 2007), with
// linear counting while it is nearly empty. The error is some 3 %, and nearly
// always none for up to a dozen keys, and one at most for up to three dozen.
//
// A key that was seen before writes nothing.
type distinctKeys struct {
	current atomics.Pointer[periods]
}

// periods has the keys that were seen since a time, and those of the period before.
type periods struct {
	since       time.Duration // since the epoch
	now, before *hyperLogLog
}

// A hyperLogLog holds, for each part of the hashes, the longest run of zeros that
// follows it, plus one.
type hyperLogLog [registers]atomics.Uint32

const (
	registerBits = 10
	registers    = 1 << registerBits

	// distinctPeriod is after how long keys that are not used any more begin to
	// be forgotten, which takes as long again.
	distinctPeriod = 10 * time.Minute
)

func newDistinctKeys() *distinctKeys {
	c := new(distinctKeys)
	c.current.Store(&periods{now: new(hyperLogLog)})
	return c
}

// add counts a key.
func (d *distinctKeys) add(hash uint64) { d.current.Load().now.add(hash) }

// add retries only if another caller has written the register, which
// it can do 54 times.
func (h *hyperLogLog) add(hash uint64) {
	r := &h[hash>>(64-registerBits)]
	rank := uint32(bits.LeadingZeros64(hash<<registerBits|1<<(registerBits-1))) + 1
	for {
		old := r.Load()
		if rank <= old || r.CompareAndSwap(old, rank) {
			return
		}
	}
}

// estimate returns the number of keys, and begins another period if it is time.
func (d *distinctKeys) estimate(now time.Duration) uint64 {
	held := d.current.Load()
	if now-held.since >= distinctPeriod {
		d.current.CompareAndSwap(held, &periods{since: now, now: new(hyperLogLog), before: held.now})
		held = d.current.Load()
	}
	return held.estimate()
}

// estimate returns the number of keys seen in either.
func (p *periods) estimate() uint64 {
	sum, empty := 0.0, 0
	for i := range p.now {
		rank := p.now[i].Load()
		if p.before != nil {
			rank = max(rank, p.before[i].Load())
		}
		if rank == 0 {
			empty++
		}
		sum += math.Ldexp(1, -int(rank))
	}
	const m = float64(registers)
	n := 0.7213 / (1 + 1.079/m) * m * m / sum
	if n <= 2.5*m && empty > 0 {
		n = m * math.Log(m/float64(empty))
	}
	return uint64(math.Round(n))
}

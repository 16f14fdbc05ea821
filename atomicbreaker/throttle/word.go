package throttle

// odds are the probability of a rejection, and the interval for which it was
// worked out. Of all numbers below 2^32, those below rejects reject. In a word:
//
//	 63.........32  31.........0
//	┌─────────────┬────────────┐
//	│ interval 32 │ rejects 32 │
//	└─────────────┴────────────┘
//
// Intervals are numbered from the epoch modulo 2^32, so odds that nobody has used
// for so many intervals may be used for one more. The zero word rejects nothing in
// the first interval.
//
// A sum for each call would read 1024 words with 64 stripes. So the first caller of an
// interval sums and publishes by one CAS, and one that comes late with its own costs one
// sum more.
type odds struct{ interval, rejects uint32 }

func oddsOf(w uint64) odds  { return odds{uint32(w >> 32), uint32(w)} }
func (o odds) word() uint64 { return uint64(o.interval)<<32 | uint64(o.rejects) }

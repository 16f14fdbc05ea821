package retrybudget

import (
	"fmt"
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Budget is a bucket of tokens: a retry takes one, a success earns a part of one, and
// time adds a few.
//
// Over any period there are at most as many retries as the bucket holds, plus what
// successes have earned and time has added in it. Time counts in whole milliseconds and
// tokens in thousandths: each retry loses less than a thousandth of what time has added.
//
// The zero Budget is full and has the default settings. A Budget must not be copied
// after first use. All methods may be called concurrently.
type Budget struct {
	_ atomics.NoCopy
	_ atomics.CacheLinePad // neighbours' writes do not slow down every success

	word atomics.Uint64            // a tokenWord, by CAS of Success or Retry
	set  atomics.Pointer[settings] // from nil, the defaults, to non-nil once, by CAS, before word is written

	_ [atomics.CacheLineSize - 16]byte
}

// Config holds the settings of a Budget. The zero value means the defaults.
type Config struct {
	// Capacity is how many tokens the bucket holds: how many retries may follow each
	// other without a success, up to 4,000,000. Zero means 100.
	Capacity int

	// Ratio is how many tokens a success earns, from 0.001 to 4,000,000, rounded to
	// thousandths. With 0.1, there is one retry for ten successes. Zero means 0.1.
	Ratio float64

	// MinPerSecond is how many tokens each second adds, so that callers that rarely
	// succeed may retry at all, with the bounds of Ratio. Zero means 1, a negative number
	// none: then no clock is read.
	MinPerSecond float64
}

// New returns a full Budget, or an error that names the setting that is wrong and its value.
func New(c Config) (*Budget, error) {
	s, err := c.compile()
	if err != nil {
		return nil, err
	}
	b := new(Budget)
	b.set.Store(s)
	return b, nil
}

// MustNew is like New but panics if a setting is wrong.
func MustNew(c Config) *Budget {
	b, err := New(c)
	if err != nil {
		panic(err)
	}
	return b
}

// Success reports that a call, a retry or not, has succeeded, and earns Ratio tokens if
// there is room for them. It never reads the clock.
//
// Success is wait-free while the bucket is full, and lock-free otherwise. It
// takes effect by one CAS, or when the state is read if the bucket is full.
func (b *Budget) Success() {
	// LP(Success): there is nothing to earn for a full bucket.
	if b.word.Load()&spentMask != 0 {
		b.earn()
	}
}

// earn is outlined so that Success can be inlined. A CAS fails only when another
// caller's has succeeded.
func (b *Budget) earn() {
	s := b.set.Load() // the caller that spent has put it there
	for failed := 1; ; failed++ {
		w := tokenWord(b.word.Load())
		// What time has added may wait: either may fill the bucket first.
		next := w - tokenWord(min(w.spent(), s.earns))
		// LP(Success): the bucket has become full meanwhile.
		if next == w {
			return
		}
		// LP(Success): this CAS.
		if b.word.CompareAndSwap(uint64(w), uint64(next)) {
			return
		}
		atomics.Backoff(failed)
	}
}

// Retry reports whether a call may be made again, and takes one token if it may. The
// token cannot be given back: a budget limits retries, however they end.
//
// Retry is lock-free. It takes effect by the CAS that takes the token, or when
// the state is read if there is none.
func (b *Budget) Retry() bool {
	s := b.settings()
	// The clock is read after the word each time, so that it is never behind it.
	for failed := 1; ; failed++ {
		w := tokenWord(b.word.Load())
		now := s.now()
		spent := w.spentAt(s, now)
		if s.capacity-spent < wholeToken {
			// LP(Retry): the load; tokens too few for the clock were too few before.
			return false
		}
		// LP(Retry): this CAS.
		if b.word.CompareAndSwap(uint64(w), now<<sinceShift|(spent+wholeToken)) {
			return true
		}
		atomics.Backoff(failed)
	}
}

// Available returns how many retries may be made now. It changes nothing.
//
// Available is wait-free. It takes effect when the state is read, but counts
// what time has added until it returns.
func (b *Budget) Available() int {
	// LP(Available): this load.
	w := tokenWord(b.word.Load())
	s := b.set.Load()
	if s == nil {
		return defaultCapacity // nobody has spent
	}
	return int((s.capacity - w.spentAt(s, s.now())) / wholeToken)
}

// settings returns what interprets the word and, in a zero Budget, installs the
// defaults, whose epoch every later caller then shares.
func (b *Budget) settings() *settings {
	if s := b.set.Load(); s != nil {
		return s
	}
	s, _ := Config{}.compile() // the defaults are valid
	return b.set.Install(s)
}

const (
	defaultCapacity = 100
	maxTokens       = 4_000_000 // 1000 times as many fit in 32 bits
)

// settings is a validated Config. It never changes.
type settings struct {
	epoch     time.Time // what ticks are counted from
	capacity  uint64    // in thousandths of a token, as all below
	earns     uint64    // by a success
	perSecond uint64    // zero for none
}

// compile validates c. The epoch is taken here.
func (c Config) compile() (*settings, error) {
	if c.Capacity < 0 || int64(c.Capacity) > maxTokens {
		return nil, fmt.Errorf("retrybudget: Config.Capacity %d: must be in 0..%d", c.Capacity, maxTokens)
	}
	if c.Capacity == 0 {
		c.Capacity = defaultCapacity
	}
	earns, err := thousandths("Ratio", c.Ratio, 0.1)
	if err != nil {
		return nil, err
	}
	s := &settings{epoch: atomics.Now(), capacity: uint64(c.Capacity) * wholeToken, earns: earns}
	if !(c.MinPerSecond < 0) { // NaN is wrong
		s.perSecond, err = thousandths("MinPerSecond", c.MinPerSecond, 1)
	}
	return s, err
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

// A tokenWord is the state of a Budget. It holds what is missing, so that the zero
// tokenWord is full.
//
//	 63..........32  31...........0
//	┌──────────────┬──────────────┐
//	│ since 32     │ spent 32     │
//	└──────────────┴──────────────┘
//	1 ms ticks       thousandths of a token, at most the capacity
//
// since is when the last token was taken, from the budget's epoch and modulo its width:
// what time has added up to then is no longer part of spent.
//
// 0 ≤ spent ≤ capacity. Only a retry adds to spent, after it has subtracted what time
// added. A success only subtracts, so their order does not matter. A clock that wraps
// after 49 days without a retry, rounding, and a CAS that succeeds because an earlier
// word has come back all add too little, never too much.
type tokenWord uint64

const (
	wholeToken = 1000
	sinceShift = 32
	spentMask  = 1<<32 - 1
	refillTick = time.Millisecond
)

func (t tokenWord) since() uint32 { return uint32(t >> sinceShift) }
func (t tokenWord) spent() uint64 { return uint64(t) & spentMask }

// spentAt returns what is missing at now, which must have been read after the
// word: then the time since is not negative.
func (t tokenWord) spentAt(s *settings, now uint64) uint64 {
	// Both factors are below 1<<32.
	added := uint64(uint32(now)-t.since()) * s.perSecond / uint64(time.Second/refillTick)
	return t.spent() - min(t.spent(), added)
}

// now returns the ticks since the epoch, and zero if time adds nothing.
func (s *settings) now() uint64 {
	if s.perSecond == 0 {
		return 0
	}
	return uint64(atomics.Since(s.epoch) / refillTick)
}

package atomicbreaker

import (
	"fmt"
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// RetryBudget limits how many calls are made again, so that retries do not
// multiply the load of something that is failing. It is a bucket of tokens: a
// retry takes one, a success earns a part of one, and time adds a few.
//
//	for {
//		err := call(ctx)
//		if err == nil {
//			budget.Success()
//			return nil
//		}
//		if !budget.Retry() {
//			return err
//		}
//	}
//
// Over any period there are at most as many retries as the bucket holds, plus
// what successes have earned and time has added in it. Time counts in whole
// milliseconds, and tokens in whole thousandths: each retry loses less than a
// thousandth of a token of what time has added.
//
// A breaker and a budget complement each other: the breaker looks at failures
// in a row, the budget at their share of all calls. Use one budget for each thing
// that is called, and share it among all callers.
//
// The zero RetryBudget is full and has the default settings. A RetryBudget
// must not be copied after first use. All methods may be called concurrently.
type RetryBudget struct {
	_ atomics.NoCopy
	// As in a Breaker, neighbours' writes do not slow down every success.
	_ atomics.CacheLinePad

	// Every transition is one CAS by the caller of Success or Retry.
	word atomics.Uint64

	// Nil means the defaults, until someone needs a clock. Goes from nil to
	// non-nil once, by CAS, before word is first written.
	set atomics.Pointer[budget]

	_ [atomics.CacheLineSize - 16]byte
}

// RetryBudgetConfig holds the settings of a RetryBudget. The zero value means
// the defaults.
type RetryBudgetConfig struct {
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

// budget is a validated RetryBudgetConfig. It never changes.
type budget struct {
	epoch     time.Time // what refillTicks are counted from
	capacity  uint64    // in thousandths of a token, as all below
	earns     uint64    // by a success
	perSecond uint64    // zero for none
}

// compile validates c. The epoch is taken here.
func (c *RetryBudgetConfig) compile() (*budget, error) {
	s := &budget{epoch: atomics.Now(), capacity: defaultCapacity * wholeToken}
	if c.Capacity < 0 || int64(c.Capacity) > maxTokens {
		return nil, fmt.Errorf("atomicbreaker: RetryBudgetConfig.Capacity %d: must be in 0..%d", c.Capacity, maxTokens)
	}
	if c.Capacity > 0 {
		s.capacity = uint64(c.Capacity) * wholeToken
	}
	var err error
	if s.earns, err = thousandths("Ratio", c.Ratio, defaultRatio); err != nil {
		return nil, err
	}
	if c.MinPerSecond < 0 && !math.IsInf(c.MinPerSecond, -1) {
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
		return 0, fmt.Errorf("atomicbreaker: RetryBudgetConfig.%s %v: must be 0 or in 0.001..%d", field, v, maxTokens)
	}
	return uint64(math.Round(v * wholeToken)), nil
}

// NewRetryBudget returns a full RetryBudget, or an error that names the
// setting that is wrong and its value.
func NewRetryBudget(c RetryBudgetConfig) (*RetryBudget, error) {
	s, err := c.compile()
	if err != nil {
		return nil, err
	}
	b := new(RetryBudget)
	b.set.Store(s)
	return b, nil
}

// MustNewRetryBudget is like NewRetryBudget but panics if a setting is wrong.
func MustNewRetryBudget(c RetryBudgetConfig) *RetryBudget {
	return must(NewRetryBudget(c))
}

// Success reports that a call, a retry or not, has succeeded, and earns Ratio tokens
// if there is room for them. While the bucket is full it writes nothing, and it never
// reads the clock.
//
// Success is wait-free while the bucket is full, and lock-free otherwise. It
// takes effect by one CAS, or when the state is read if the bucket is full.
func (b *RetryBudget) Success() {
	// LP(Success): there is nothing to earn for a full bucket.
	if b.word.Load()&spentMask != 0 {
		b.earn()
	}
}

// earn is outlined so that Success can be inlined.
//
// A CAS fails only when another caller's has succeeded.
func (b *RetryBudget) earn() {
	s := b.set.Load() // the caller that spent has put it there
	for failed := 1; ; failed++ {
		w := tokenWord(b.word.Load())
		next := w.earned(s)
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
// token cannot be given back: a budget limits how many retries are made, however
// they end.
//
// Retry is lock-free. It takes effect by the CAS that takes the token, or when
// the state is read if there is none.
func (b *RetryBudget) Retry() bool {
	s := b.settings()
	// A CAS fails only when another caller's has succeeded. The clock is read
	// after the word each time, so that it is never behind it.
	for failed := 1; ; failed++ {
		w := tokenWord(b.word.Load())
		next, ok := w.spend(s, s.now())
		if !ok {
			// LP(Retry): tokens that were too few when the clock was read were
			// too few before, when the word was read.
			return false
		}
		// LP(Retry): this CAS.
		if b.word.CompareAndSwap(uint64(w), uint64(next)) {
			return true
		}
		atomics.Backoff(failed)
	}
}

// Available returns how many retries may be made now. It changes nothing.
//
// Available is wait-free. It takes effect when the state is read, but counts
// what time has added until it returns.
func (b *RetryBudget) Available() int {
	// LP(Available): this load.
	w := tokenWord(b.word.Load())
	s := b.set.Load()
	switch {
	case s == nil:
		return defaultCapacity // nobody has spent
	case w.spent() == 0:
		return int(s.capacity / wholeToken)
	}
	return int((s.capacity - w.spentAt(s, s.now())) / wholeToken)
}

// settings returns what interprets the word and, in a zero RetryBudget,
// installs the defaults, whose epoch every later caller then shares.
func (b *RetryBudget) settings() *budget {
	if s := b.set.Load(); s != nil {
		return s
	}
	return install(&b.set, new(RetryBudgetConfig).compile)
}

// A tokenWord is the whole state of a RetryBudget. It holds what is missing
// rather than what is there, so that the zero tokenWord is full.
//
//	 63..........32  31...........0
//	┌──────────────┬──────────────┐
//	│ since 32     │ spent 32     │
//	└──────────────┴──────────────┘
//	1 ms ticks       thousandths of a token, at most the capacity
//
// since is when the last token was taken, from the budget's epoch and modulo
// its width: what time has added up to then is no longer part of spent. In a
// full bucket, and if time adds nothing, it means nothing.
type tokenWord uint64

const (
	wholeToken = 1000
	sinceShift = 32
	spentMask  = 1<<32 - 1
	sinceMask  = 1<<32 - 1
	refillTick = time.Millisecond
)

func (t tokenWord) since() uint64 { return uint64(t) >> sinceShift }
func (t tokenWord) spent() uint64 { return uint64(t) & spentMask }

// earned returns the bucket after a success. What time has added is not looked
// at: it makes no difference whether that or this fills the bucket first.
func (t tokenWord) earned(s *budget) tokenWord { return t - tokenWord(min(t.spent(), s.earns)) }

// spend returns the bucket with one token less, unless there is none.
func (t tokenWord) spend(s *budget, now uint64) (next tokenWord, ok bool) {
	spent := t.spentAt(s, now)
	if s.capacity-spent < wholeToken {
		return t, false
	}
	return tokenWord(now<<sinceShift | (spent + wholeToken)), true
}

// spentAt returns what is missing at now, which must have been read after the
// word: then the time since is not negative. If the clock has gone round it is
// too short, which adds too little, and never too much.
func (t tokenWord) spentAt(s *budget, now uint64) uint64 {
	// Both factors are below 1<<32.
	added := ((now - t.since()) & sinceMask) * s.perSecond / uint64(time.Second/refillTick)
	return t.spent() - min(t.spent(), added)
}

// now returns the ticks since the epoch, and zero if time adds nothing.
func (s *budget) now() uint64 {
	if s.perSecond == 0 {
		return 0
	}
	return ticks(atomics.Since(s.epoch), refillTick)
}

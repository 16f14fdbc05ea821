package retrybudget

import "github.com/latchfree/latchfree/internal/atomics"

// Budget is a bucket of tokens: a retry takes one, a success earns a part of one, and
// time adds a few.
//
// Over any period there are at most as many retries as the bucket holds, plus
// what successes have earned and time has added in it. Time counts in whole
// milliseconds, and tokens in whole thousandths: each retry loses less than a
// thousandth of a token of what time has added.
//
// The zero Budget is full and has the default settings. A Budget must not be copied
// after first use. All methods may be called concurrently.
type Budget struct {
	_ atomics.NoCopy
	// Neighbours' writes do not slow down every success.
	_ atomics.CacheLinePad

	// Every transition is one CAS by the caller of Success or Retry.
	word atomics.Uint64

	// Nil means the defaults, until someone needs a clock. Goes from nil to
	// non-nil once, by CAS, before word is first written.
	set atomics.Pointer[settings]

	_ [atomics.CacheLineSize - 16]byte
}

// New returns a full Budget, or an error that names the setting that is wrong and its
// value.
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

// Success reports that a call, a retry or not, has succeeded, and earns Ratio tokens
// if there is room for them. While the bucket is full it writes nothing, and it never
// reads the clock.
//
// Success is wait-free while the bucket is full, and lock-free otherwise. It
// takes effect by one CAS, or when the state is read if the bucket is full.
func (b *Budget) Success() {
	// LP(Success): there is nothing to earn for a full bucket.
	if b.word.Load()&spentMask != 0 {
		b.earn()
	}
}

// earn is outlined so that Success can be inlined.
//
// A CAS fails only when another caller's has succeeded.
func (b *Budget) earn() {
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
func (b *Budget) Retry() bool {
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
func (b *Budget) Available() int {
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

// settings returns what interprets the word and, in a zero Budget,
// installs the defaults, whose epoch every later caller then shares.
func (b *Budget) settings() *settings {
	if s := b.set.Load(); s != nil {
		return s
	}
	s, _ := new(Config).compile() // the defaults are valid
	return b.set.Install(s)
}

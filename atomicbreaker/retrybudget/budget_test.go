//go:build !modelcheck

package retrybudget_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
)

// retries makes as many retries as it may, up to n.
func retries(b *retrybudget.Budget, n int) (made int) {
	for made < n && b.Retry() {
		made++
	}
	return made
}

func wantRetries(t *testing.T, b *retrybudget.Budget, want int) {
	t.Helper()
	if got := b.Available(); got != want {
		t.Errorf("Available() = %d, want %d", got, want)
	}
	if got := retries(b, want+10); got != want {
		t.Errorf("%d retries, want %d", got, want)
	}
	if got := b.Available(); got != 0 {
		t.Errorf("Available() = %d when a retry was refused", got)
	}
}

func TestDefaults(t *testing.T) {
	for name, b := range map[string]*retrybudget.Budget{
		"zero":    new(retrybudget.Budget),
		"default": retrybudget.MustNew(retrybudget.Config{}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b.Success() // earns nothing, as it is full
				wantRetries(t, b, 100)
				for range 9 {
					b.Success()
				}
				wantRetries(t, b, 0)
				b.Success()
				wantRetries(t, b, 1)
				time.Sleep(999 * time.Millisecond)
				wantRetries(t, b, 0)
				time.Sleep(time.Millisecond)
				wantRetries(t, b, 1)
				time.Sleep(time.Hour)
				wantRetries(t, b, 100)
			})
		})
	}
}

// A budget of its own kind: without time, and with all of it.
func TestSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := retrybudget.MustNew(retrybudget.Config{Capacity: 3, Ratio: 0.5, MinPerSecond: -1})
		wantRetries(t, b, 3)
		time.Sleep(365 * 24 * time.Hour)
		wantRetries(t, b, 0)
		b.Success()
		b.Success()
		b.Success()
		wantRetries(t, b, 1)
		b.Success() // with the half that was left
		wantRetries(t, b, 1)

		b = retrybudget.MustNew(retrybudget.Config{Capacity: 10, Ratio: 0.001, MinPerSecond: 0.25})
		wantRetries(t, b, 10)
		time.Sleep(8*time.Second - 1)
		if got := b.Available(); got != 1 {
			t.Errorf("Available() = %d after less than eight seconds", got)
		}
		time.Sleep(time.Nanosecond)
		wantRetries(t, b, 2)
		for range 1000 {
			b.Success()
		}
		wantRetries(t, b, 1)

		// 1000 times 1.001 is less than 1001 in floating point.
		b = retrybudget.MustNew(retrybudget.Config{Ratio: 1.001})
		b.Spend(2)
		b.Success()
		if got := b.Missing(); got != 999 {
			t.Errorf("%d thousandths are missing, want 999", got)
		}

		// The time when it was full adds nothing.
		b = retrybudget.MustNew(retrybudget.Config{Capacity: 2})
		time.Sleep(time.Hour)
		wantRetries(t, b, 2)
		wantRetries(t, b, 0)
	})
}

// The largest settings do not overflow anything.
func TestExtremes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 4_000_000
		b := retrybudget.MustNew(retrybudget.Config{Capacity: most, Ratio: most, MinPerSecond: most})
		b.Spend(most)
		if b.Retry() || b.Available() != 0 {
			t.Error("nothing is left, and a retry was made")
		}
		b.Success()
		if got := b.Available(); got != most {
			t.Errorf("Available() = %d after a success that earns all", got)
		}
		b.Spend(most)
		time.Sleep(time.Second - 1)
		if got := b.Available(); got != most/1000*999 {
			t.Errorf("Available() = %d after 999 ms", got)
		}
		b.Success()
		b.Spend(most)
		time.Sleep(math.MaxUint32 * time.Millisecond) // the most that a word can hold
		if got := b.Available(); got != most || !b.Retry() || b.Available() != most-1 {
			t.Errorf("Available() = %d after 49 days", got)
		}

		b = retrybudget.MustNew(retrybudget.Config{Capacity: 1, Ratio: 0.001, MinPerSecond: 0.001})
		wantRetries(t, b, 1)
		time.Sleep(1000*time.Second - 1)
		wantRetries(t, b, 0)
		time.Sleep(time.Nanosecond)
		wantRetries(t, b, 1)
	})
}

// When the clock of a word has gone round, too little time seems to have
// passed, and never too much. A full bucket knows no time.
func TestClockGoesRound(t *testing.T) {
	const round = (1 << 32) * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := retrybudget.MustNew(retrybudget.Config{Capacity: 50_000})
		time.Sleep(round - 2*time.Second)
		b.Spend(50_000)
		time.Sleep(5 * time.Second) // the word is before the turn, and the clock after it
		wantRetries(t, b, 5)
		time.Sleep(round)
		wantRetries(t, b, 0)
		time.Sleep(2 * time.Second)
		wantRetries(t, b, 2)

		full := retrybudget.MustNew(retrybudget.Config{})
		time.Sleep(3 * round)
		wantRetries(t, full, 100)
	})
}

func TestWrongSettings(t *testing.T) {
	inf := math.Inf(1)
	for want, c := range map[string]retrybudget.Config{
		"Capacity -1: must be in 0..4000000":         {Capacity: -1},
		"Capacity 4000001":                           {Capacity: 4_000_001},
		"Ratio -0.1: must be 0 or in 0.001..4000000": {Ratio: -0.1},
		"Ratio 0.0009: ":                             {Ratio: 0.0009},
		"Ratio 4.000001e+06: ":                       {Ratio: 4_000_001},
		"Ratio NaN: ":                                {Ratio: math.NaN()},
		"Ratio +Inf: ":                               {Ratio: inf},
		"Ratio -Inf: ":                               {Ratio: -inf},
		"MinPerSecond 0.0009: must be 0 or in 0.001..4000000":        {MinPerSecond: 0.0009},
		"MinPerSecond 4.000001e+06: ":                                {MinPerSecond: 4_000_001},
		"MinPerSecond NaN: ":                                         {MinPerSecond: math.NaN()},
		"MinPerSecond +Inf: ":                                        {MinPerSecond: inf},
		"Capacity " + fmt.Sprint(math.MinInt32) + ": must be in 0..": {Capacity: math.MinInt32},
	} {
		want = "retrybudget: Config." + want
		b, err := retrybudget.New(c)
		if b != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("New: %v, want it to start with %q", err, want)
		}
		func() {
			defer func() {
				if p, ok := recover().(error); !ok || !strings.HasPrefix(p.Error(), want) {
					t.Errorf("MustNew panics with %v, want that it starts with %q", p, want)
				}
			}()
			retrybudget.MustNew(c)
		}()
	}
}

// Against an account that is kept in millionths of a token: never more
// retries, and at most a thousandth less for each. With whole tokens in a
// second, neither more nor less.
func TestAgainstModel(t *testing.T) {
	for _, c := range []retrybudget.Config{
		{Capacity: 3, Ratio: 0.3, MinPerSecond: 2},
		{Capacity: 20, Ratio: 1.5, MinPerSecond: -1},
		{Capacity: 7, Ratio: 0.001, MinPerSecond: 0.7},
		{Capacity: 5, Ratio: 0.25, MinPerSecond: 0.003},
		{Capacity: 1, Ratio: 5, MinPerSecond: 1999.999},
		{Capacity: 1000, Ratio: 0.1, MinPerSecond: 100},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { againstModel(t, c) })
		})
	}
}

func againstModel(t *testing.T, c retrybudget.Config) {
	const whole = 1_000_000
	r := rand.New(rand.NewPCG(1, 2))
	b, start := retrybudget.MustNew(c), time.Now()
	full := int64(c.Capacity) * whole
	perTick := max(0, int64(math.Round(c.MinPerSecond*1000)))
	tokens, tick, lost := full, int64(0), int64(0)
	add := func(n int64) { tokens = min(full, tokens+n) }
	for range 20_000 {
		now := time.Since(start).Milliseconds()
		add((now - tick) * perTick)
		tick = now
		switch op := r.IntN(8); {
		case op < 2:
			b.Success()
			add(int64(math.Round(c.Ratio * whole)))
		case op < 5:
			got := b.Retry()
			if got && tokens < whole || !got && tokens >= whole+lost {
				t.Fatalf("Retry() = %v with %d millionths, of which %d may be lost", got, tokens, lost)
			}
			if got {
				tokens -= whole
				if perTick%1000 != 0 {
					lost += whole / 1000
				}
			}
		case op < 7:
			if got := int64(b.Available()); got > tokens/whole || got < (tokens-lost)/whole {
				t.Fatalf("Available() = %d with %d millionths, of which %d may be lost", got, tokens, lost)
			}
		default:
			time.Sleep(time.Duration(r.Int64N(int64(2 * time.Second / time.Duration(r.IntN(1000)+1)))))
		}
		if tokens == full {
			lost = 0
		}
	}
}

func TestLayout(t *testing.T) {
	if n := unsafe.Sizeof(retrybudget.Budget{}); n != 128 {
		t.Errorf("a Budget takes %d bytes", n)
	}
}

// together runs f(0) … f(n-1) at once, until all return.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// rounds is how often a stress test repeats itself.
func rounds(n int) int {
	if testing.Short() {
		n /= 10
	}
	return n
}

// jitter yields now and then, so that a single thread interleaves too.
func jitter(i int) {
	if i%7 == 0 {
		runtime.Gosched()
	}
}

// One token is taken by one of many, and what is earned and what is taken
// adds up exactly while the bucket is neither empty nor full.
func TestStress(t *testing.T) {
	const goroutines = 4
	for range rounds(200) {
		last := retrybudget.MustNew(retrybudget.Config{Capacity: 1, MinPerSecond: -1})
		var made atomic.Int32
		together(goroutines, func(int) {
			if last.Retry() {
				made.Add(1)
			}
		})
		if n := made.Load(); n != 1 {
			t.Fatalf("%d retries with one token", n)
		}

		b := retrybudget.MustNew(retrybudget.Config{Capacity: 10_000, Ratio: 0.3, MinPerSecond: -1})
		b.Spend(5000)
		together(goroutines, func(id int) {
			for i := range 100 {
				jitter(i + id)
				if (i+id)%2 == 0 {
					b.Success()
				} else if !b.Retry() {
					t.Error("no retry with thousands of tokens")
				}
			}
		})
		if got, want := b.Missing(), 5000*1000+goroutines*50*(1000-300); got != want {
			t.Fatalf("%d thousandths are missing, want %d", got, want)
		}
	}
}

// With all of them at its limits and the clock running, there are never more
// retries than tokens.
func TestStressLimit(t *testing.T) {
	const goroutines, perSecond, capacity = 4, 1000, 5
	for range rounds(50) {
		var made, earned atomic.Int64
		start := time.Now()
		b := retrybudget.MustNew(retrybudget.Config{Capacity: capacity, Ratio: 0.5, MinPerSecond: perSecond})
		together(goroutines, func(id int) {
			for i := range 500 {
				jitter(i + id)
				switch {
				case i%3 != 0:
					if b.Retry() {
						made.Add(1)
					}
				case i%2 == 0:
					b.Success()
					earned.Add(500)
				default:
					if n := b.Available(); n < 0 || n > capacity {
						t.Errorf("Available() = %d", n)
					}
				}
			}
		})
		// One more millisecond has begun.
		added := (time.Since(start).Milliseconds() + 1) * perSecond
		if n := made.Load() * 1000; n > capacity*1000+earned.Load()+added*1000 {
			t.Fatalf("%d thousandths taken, of %d, %d earned and %d added", n, capacity*1000, earned.Load(), added*1000)
		}
	}
}

func TestAllocations(t *testing.T) {
	b := retrybudget.MustNew(retrybudget.Config{})
	if n := testing.AllocsPerRun(1000, func() { b.Success(); b.Retry(); b.Success(); b.Available() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

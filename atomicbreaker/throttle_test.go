//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// always draws what is rejected at every probability but zero.
func always() uint32 { return 0 }

// request asks n times for admission, and returns how often it was given.
func request(t *testing.T, throttle *ab.Throttle, n int) (admitted int) {
	t.Helper()
	for range n {
		switch err := throttle.Allow(); {
		case err == nil:
			admitted++
		case !errors.Is(err, ab.ErrThrottled) || !errors.Is(err, ab.ErrRejected) || errors.Is(err, ab.ErrOpen):
			t.Fatalf("Allow: %v, want ErrThrottled", err)
		}
	}
	return admitted
}

func wantCounts(t *testing.T, throttle *ab.Throttle, requests, accepts int) {
	t.Helper()
	if s := throttle.Snapshot(); s.Requests != requests || s.Accepts != accepts {
		t.Fatalf("%d requests and %d accepts, want %d and %d", s.Requests, s.Accepts, requests, accepts)
	}
}

func TestZeroThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var throttle ab.Throttle
		if s := throttle.Snapshot(); s != (ab.ThrottleSnapshot{}) {
			t.Fatalf("Snapshot of the zero Throttle: %+v", s)
		}
		throttle.Draw(always)
		// 18 and this one are less than 20; the 20th is not.
		request(t, &throttle, 18)
		time.Sleep(time.Second)
		if n := request(t, &throttle, 1); n != 1 {
			t.Fatal("the 19th request was rejected")
		}
		time.Sleep(time.Second)
		if n := request(t, &throttle, 1); n != 0 {
			t.Fatal("the 20th request was admitted")
		}
		if s := throttle.Snapshot(); s != (ab.ThrottleSnapshot{Requests: 20, RejectProbability: 20. / 21}) {
			t.Fatalf("Snapshot: %+v", s)
		}
		for range 10 {
			throttle.Success() // half of 20
		}
		time.Sleep(time.Second)
		if n := request(t, &throttle, 1); n != 0 {
			t.Fatal("the 21st request was admitted with ten accepts")
		}
		throttle.Success()
		time.Sleep(time.Second)
		if n := request(t, &throttle, 1); n != 1 {
			t.Fatal("the 22nd request was rejected with eleven accepts")
		}
		time.Sleep(2 * time.Minute)
		wantCounts(t, &throttle, 22, 11)
		time.Sleep(9 * time.Second)
		wantCounts(t, &throttle, 0, 0)
	})
}

// What is rejected is what is drawn below the probability, exactly, and the
// probability is that of the state.
func TestThrottleProbability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct {
			ratio              float64
			min                int
			requests, accepted int
			want               float64 // once one more was asked for
		}{
			{1, 1, 99, 100, 0},
			{1, 1, 99, 50, 50. / 101},
			{1, 100, 98, 0, 0},
			{1, 100, 99, 0, 100. / 101},
			{2, 1, 99, 50, 0},
			{2, 1, 99, 49, 2. / 101},
			{1.5, 1, 99, 40, 40. / 101},
			{math.MaxFloat64, 1, 99, 1, 0},
			{math.MaxFloat64, 1, 99, 0, 100. / 101},
			{3, 1, 0, 0, 1. / 2},
		} {
			throttle := ab.MustNewThrottle(ab.ThrottleConfig{Ratio: x.ratio, MinRequests: x.min})
			border := uint32(x.want * (1 << 32))
			draw := border
			throttle.Draw(func() uint32 { return draw })
			request(t, throttle, x.requests)
			for range x.accepted {
				throttle.Success()
			}
			time.Sleep(throttle.Interval())
			if n := request(t, throttle, 1); n != 1 {
				t.Errorf("%+v: rejected at %d", x, draw)
			}
			if got := throttle.Snapshot().RejectProbability; got != x.want {
				t.Errorf("%+v: a probability of %v", x, got)
			}
			if draw--; x.want > 0 && request(t, throttle, 1) != 0 {
				t.Errorf("%+v: admitted at %d", x, draw)
			}
		}
	})
}

// Odds are used for an interval, and then they are worked out again.
func TestThrottleIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := ab.MustNewThrottle(ab.ThrottleConfig{Window: 24 * time.Second, MinRequests: 1})
		throttle.Draw(always)
		if throttle.Interval() != 100*time.Millisecond {
			t.Fatalf("intervals of %v", throttle.Interval())
		}
		const last = time.Nanosecond
		if n := request(t, throttle, 10); n != 10 {
			t.Fatalf("%d of 10 admitted in the first interval", n)
		}
		time.Sleep(throttle.Interval() - last)
		if n := request(t, throttle, 1); n != 1 {
			t.Fatal("rejected before the first interval was over")
		}
		time.Sleep(last)
		if n := request(t, throttle, 1); n != 0 {
			t.Fatal("admitted when the first interval was over")
		}
		for range 10 {
			throttle.Success()
		}
		time.Sleep(throttle.Interval() - last)
		if n := request(t, throttle, 1); n != 0 {
			t.Fatal("admitted before the second interval was over")
		}
		time.Sleep(last)
		if n := request(t, throttle, 2); n != 2 {
			t.Fatal("rejected when the second interval was over")
		}
	})
}

// While nothing is rejected, nothing is drawn.
func TestThrottleDrawsNothingForTheHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var throttle ab.Throttle
		throttle.Draw(func() uint32 { t.Error("a number was drawn"); return 0 })
		for range 100 {
			request(t, &throttle, 1)
			throttle.Success()
			time.Sleep(throttle.Interval())
		}
	})
}

// Calls that hang count when they begin. Counted when they end, they would not
// be seen for as long as they hang.
func TestT50_HungCallsAreRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := ab.MustNewThrottle(ab.ThrottleConfig{Window: 30 * time.Second})
		throttle.Draw(always)
		hang, admitted := make(chan struct{}), new(atomic.Int32)
		for range 1000 { // for a second
			time.Sleep(time.Millisecond)
			go throttle.Do(context.Background(), func(context.Context) error {
				admitted.Add(1)
				<-hang
				return nil
			})
		}
		synctest.Wait()
		if n := admitted.Load(); n > 20+125 { // until there were enough, and up to an interval more
			t.Errorf("%d calls hang", n)
		}
		wantCounts(t, throttle, 1000, 0)
		close(hang)
		synctest.Wait()
		wantCounts(t, throttle, 1000, int(admitted.Load()))
	})
}

// After an outage, rejections of its own do not keep a throttle shut: all
// calls go through again in the time that its documentation says.
func TestT51_ThrottlesRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		throttle := ab.MustNewThrottle(ab.ThrottleConfig{Window: 10 * time.Second})
		throttle.Draw(random.Uint32)
		const perSecond = 200
		run := func(seconds int, works bool) (through int) {
			for range seconds * perSecond {
				time.Sleep(time.Second / perSecond)
				if throttle.Allow() == nil {
					if through++; works {
						throttle.Success()
					}
				}
			}
			return through
		}
		if n := run(60, true); n != 60*perSecond {
			t.Fatalf("%d of %d calls go through while all are accepted", n, 60*perSecond)
		}
		run(60, false)
		if n := run(300, false); n > 100 {
			t.Errorf("%d calls go through in 5 minutes of outage, want about one in each window", n)
		}
		run(60, true) // 5 s · ln 2000 is 38 s
		if n := run(60, true); n != 60*perSecond {
			t.Errorf("%d of %d calls go through two minutes after an outage", n, 60*perSecond)
		}
	})
}

// A backend that accepts so many calls a second and no more gets about twice
// as many, however many there are.
func TestThrottleFollowsTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		throttle := ab.MustNewThrottle(ab.ThrottleConfig{Window: 10 * time.Second})
		throttle.Draw(random.Uint32)
		const perSecond, capacity, seconds = 1000, 100, 120
		var through int
		for i := range seconds {
			left := capacity
			for range perSecond {
				time.Sleep(time.Second / perSecond)
				if throttle.Allow() != nil {
					continue
				}
				if i >= seconds/2 {
					through++
				}
				if left--; left >= 0 {
					throttle.Success()
				}
			}
		}
		if rate := through / (seconds / 2); rate < 18*capacity/10 || rate > 22*capacity/10 {
			t.Errorf("%d calls a second go through to a backend that accepts %d", rate, capacity)
		}
	})
}

func TestThrottleDo(t *testing.T) {
	throttle := ab.MustNewThrottle(ab.ThrottleConfig{Name: "billing"})
	ctx := context.Background()
	call := func(err error) error {
		return throttle.Do(ctx, func(got context.Context) error {
			if got != ctx {
				t.Error("Do passes another context")
			}
			return err
		})
	}
	for i, x := range []struct {
		err     error
		accepts int
	}{{nil, 1}, {errBoom, 1}, {context.Canceled, 1}, {context.DeadlineExceeded, 1}} {
		if err := call(x.err); err != x.err {
			t.Errorf("Do: %v, want %v", err, x.err)
		}
		wantCounts(t, throttle, i+1, x.accepts)
	}
	if s := throttle.Snapshot(); s.Name != "billing" {
		t.Errorf("the name is %q", s.Name)
	}
	fn := func(context.Context) error { t.Error("fn was called"); return nil }
	panics(t, "atomicbreaker: ", func() { throttle.Do(noContext, fn) })
	panics(t, "atomicbreaker: ", func() { throttle.Do(ctx, nil) })
	ended, cancel := context.WithCancelCause(ctx)
	cancel(errBoom)
	if err := throttle.Do(ended, fn); err != errBoom {
		t.Errorf("Do with a context that has ended: %v, want its cause", err)
	}
	wantCounts(t, throttle, 4, 1)

	panics(t, "oops", func() { throttle.Do(ctx, func(context.Context) error { panic("oops") }) })
	goexit(func() { throttle.Do(ctx, func(context.Context) error { runtime.Goexit(); return nil }) })
	wantCounts(t, throttle, 6, 1)
	throttle.Done(context.Canceled) // whose context nobody knows
	throttle.Done(errors.Join(errBoom, context.Canceled))
	wantCounts(t, throttle, 6, 2)
}

// Do does not call the function of a call that is rejected, which is no more
// than a request.
func TestThrottleRejectsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := ab.MustNewThrottle(ab.ThrottleConfig{MinRequests: 1})
		throttle.Draw(always)
		request(t, throttle, 1)
		time.Sleep(throttle.Interval())
		err := throttle.Do(context.Background(), func(context.Context) error {
			t.Error("fn was called")
			return nil
		})
		if !errors.Is(err, ab.ErrThrottled) {
			t.Errorf("Do: %v, want ErrThrottled", err)
		}
		wantCounts(t, throttle, 2, 0)
	})
}

func TestThrottleClassify(t *testing.T) {
	outcome := ab.Success
	throttle := ab.MustNewThrottle(ab.ThrottleConfig{Classify: func(_ context.Context, err error) ab.Outcome {
		if err != errBoom {
			panic(err)
		}
		return outcome
	}})
	accepts := 0
	for _, x := range []struct {
		outcome ab.Outcome
		accepts bool
	}{{ab.Success, true}, {ab.Failure, false}, {ab.Ignored, true}, {ab.Outcome(77), false}} {
		if outcome = x.outcome; x.accepts {
			accepts++
		}
		throttle.Done(errBoom)
		wantCounts(t, throttle, 0, accepts)
	}
	for _, o := range []ab.Outcome{ab.Success, ab.Failure, ab.Ignored, ab.Outcome(77)} {
		if o == ab.Success || o == ab.Ignored {
			accepts++
		}
		throttle.Report(o)
		wantCounts(t, throttle, 0, accepts)
	}
	throttle.Done(nil) // is not asked about
	panics(t, "other", func() {
		throttle.Do(context.Background(), func(context.Context) error { return errors.New("other") })
	})
	wantCounts(t, throttle, 1, accepts+1)
}

func TestThrottleConfig(t *testing.T) {
	for want, c := range map[string]ab.ThrottleConfig{
		"Ratio 0.99":         {Ratio: 0.99},
		"Ratio -1":           {Ratio: -1},
		"Ratio NaN":          {Ratio: math.NaN()},
		"Ratio +Inf":         {Ratio: math.Inf(1)},
		"Ratio -Inf":         {Ratio: math.Inf(-1)},
		"Window -1ns":        {Window: -1},
		"MinRequests -1":     {MinRequests: -1},
		"MinRequests 262145": {MinRequests: 1<<18 + 1},
	} {
		_, err := ab.NewThrottle(c)
		if err == nil || !strings.HasPrefix(err.Error(), "atomicbreaker: ThrottleConfig."+want+":") {
			t.Errorf("%+v: %v, want an error about %s", c, err, want)
		}
		panics(t, "atomicbreaker: ThrottleConfig.", func() { ab.MustNewThrottle(c) })
	}
	for _, c := range []ab.ThrottleConfig{
		{}, {Ratio: 1}, {Ratio: math.MaxFloat64}, {Window: 1}, {Window: math.MaxInt64}, {MinRequests: 1}, {MinRequests: 1 << 18},
	} {
		throttle, err := ab.NewThrottle(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		request(t, throttle, 1)
		throttle.Success()
		if s := throttle.Snapshot(); c.Window != 1 && (s.Requests != 1 || s.Accepts != 1) {
			t.Errorf("%+v: %+v", c, s)
		}
	}
}

// From the first use on, everything that is asked and reported is counted
// once.
func TestStressThrottle(t *testing.T) {
	const goroutines, each = 8, 200
	for range rounds(50) {
		var throttle ab.Throttle
		var admitted, accepted atomic.Int64
		together(goroutines, func(id int) {
			for i := range each {
				jitter(i + id)
				if throttle.Allow() != nil {
					continue
				}
				admitted.Add(1)
				if (i+id)%3 == 0 {
					throttle.Success()
					accepted.Add(1)
				}
				if s := throttle.Snapshot(); s.Requests > goroutines*each || s.Accepts > goroutines*each || s.RejectProbability < 0 || s.RejectProbability >= 1 {
					t.Errorf("%+v", s)
				}
			}
		})
		wantCounts(t, &throttle, goroutines*each, int(accepted.Load()))
	}
}

package peers

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/maypok86/otter/v2"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/oncecache"
)

// The tests in this file are what README.md and coming-from-breakers.md say about how peers differ. They
// fail when a new version of a peer changes that.

// A call is admitted, the breaker opens and becomes half-open, a probe is out,
// and then the call of long ago succeeds.
func TestLateResults(t *testing.T) {
	t.Run("gobreaker drops it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := newGobreakerTwoStep(1)
			late, err := breaker.Allow()
			require.NoError(t, err)
			done, _ := breaker.Allow()
			done(errCall)
			time.Sleep(openTimeout + 1)
			_, err = breaker.Allow()
			require.NoError(t, err, "the probe")
			late(nil)
			assert.Equal(t, gobreaker.StateHalfOpen, breaker.State())
		})
	})
	// Results carry nothing that could tell this success from the probe's.
	t.Run("failsafe takes it for the probe's", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := newFailsafe(1)
			require.True(t, breaker.TryAcquirePermit(), "the late call")
			breaker.RecordFailure()
			time.Sleep(openTimeout)
			require.True(t, breaker.TryAcquirePermit(), "the probe")
			breaker.RecordSuccess()
			assert.True(t, breaker.IsClosed())
		})
	})
	t.Run("latchfree drops it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := newLatchfree(1)
			late, err := breaker.Allow()
			require.NoError(t, err)
			permit, _ := breaker.Allow()
			permit.Failure()
			time.Sleep(openTimeout)
			_, err = breaker.Allow()
			require.NoError(t, err, "the probe")
			assert.Equal(t, atomicbreaker.Late, late.Success())
			assert.Equal(t, atomicbreaker.HalfOpen, breaker.State())
		})
	})
}

// A probe is made and never heard of again.
func TestLostProbes(t *testing.T) {
	const aDay = 24 * time.Hour
	t.Run("gobreaker rejects for good", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := newGobreakerTwoStep(1)
			done, _ := breaker.Allow()
			done(errCall)
			time.Sleep(openTimeout + 1)
			_, err := breaker.Allow()
			require.NoError(t, err, "the probe")
			time.Sleep(aDay)
			_, err = breaker.Allow()
			assert.ErrorIs(t, err, gobreaker.ErrTooManyRequests)
		})
	})
	t.Run("failsafe rejects for good", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := newFailsafe(1)
			breaker.RecordFailure()
			time.Sleep(openTimeout)
			require.True(t, breaker.TryAcquirePermit(), "the probe")
			time.Sleep(aDay)
			assert.False(t, breaker.TryAcquirePermit())
		})
	})
	t.Run("latchfree makes another after ProbeTimeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := newLatchfree(1)
			permit, _ := breaker.Allow()
			permit.Failure()
			time.Sleep(openTimeout)
			_, err := breaker.Allow()
			require.NoError(t, err, "the probe")
			_, err = breaker.Allow()
			require.ErrorIs(t, err, atomicbreaker.ErrTooManyProbes)
			time.Sleep(aDay)
			_, err = breaker.Allow()
			assert.NoError(t, err)
		})
	})
}

// A probe panics, or ends its goroutine.
func TestProbesThatDoNotReturn(t *testing.T) {
	panics := func() (int, error) { panic("probe") }
	exits := func() (int, error) { runtime.Goexit(); return 0, nil }
	fails := func() (int, error) { return 0, errCall }

	// probe opens the breaker, lets its time pass, and makes one call.
	probe := func(execute func(func() (int, error)) (int, error), call func() (int, error)) {
		_, _ = execute(fails)
		time.Sleep(openTimeout + 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			_, _ = execute(call)
		}()
		<-done
	}
	t.Run("gobreaker counts a panic", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := newGobreaker(1)
			probe(breaker.Execute, panics)
			assert.Equal(t, gobreaker.StateOpen, breaker.State())
		})
	})
	t.Run("gobreaker loses the probe to Goexit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := newGobreaker(1)
			probe(breaker.Execute, exits)
			assert.Equal(t, gobreaker.StateHalfOpen, breaker.State())
			_, err := breaker.Execute(fails)
			assert.ErrorIs(t, err, gobreaker.ErrTooManyRequests)
		})
	})
	for name, call := range map[string]func() (int, error){"a panic": panics, "Goexit": exits} {
		t.Run("failsafe loses the probe to "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				executor := newFailsafeExecutor(1)
				probe(executor.Get, call)
				time.Sleep(openTimeout)
				_, err := executor.Get(fails)
				assert.ErrorIs(t, err, circuitbreaker.ErrOpen)
			})
		})
		t.Run("latchfree counts "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				breaker := newLatchfree(1)
				probe(func(f func() (int, error)) (int, error) { return atomicbreaker.Execute(breaker, f) }, call)
				assert.Equal(t, atomicbreaker.Open, breaker.State())
			})
		})
	}
}

// The first creation panics, and the same key is asked for again.
func TestCachesAfterPanic(t *testing.T) {
	for _, impl := range caches {
		t.Run(impl.impl, func(t *testing.T) {
			calls := 0
			c := impl.make(func(url string) (*engine, error) {
				if calls++; calls == 1 {
					panic("create")
				}
				return &engine{url, calls}, nil
			})
			assert.Panics(t, func() { _, _ = c.get("a") })
			if impl.impl == "oncevalues" {
				assert.Panics(t, func() { _, _ = c.get("a") })
				return
			}
			e, err := c.get("a")
			require.NoError(t, err)
			assert.Equal(t, 2, e.serial)
		})
	}
}

// A value is set while another is being created for the same key.
func TestSetDuringCreation(t *testing.T) {
	for impl, want := range map[string]struct{ returned, kept string }{
		"otter":        {"set", "set"},
		"singleflight": {"created", "created"},
		"oncevalues":   {"created", "set"},
		"latchfree":    {"set", "set"},
	} {
		t.Run(impl, func(t *testing.T) {
			i := slices.IndexFunc(caches, func(c cacheMaker) bool { return c.impl == impl })
			var c cache
			c = caches[i].make(func(url string) (*engine, error) {
				together(1, func(int) { c.set(url, &engine{url: "set"}) })
				return &engine{url: "created"}, nil
			})
			returned, err := c.get("a")
			require.NoError(t, err)
			kept, err := c.get("a")
			require.NoError(t, err)
			assert.Equal(t, want.returned, returned.url)
			assert.Equal(t, want.kept, kept.url)
		})
	}
}

// A function that captures a variable is made at the call. Otter allocates it
// there, hit or miss, and does not allocate with a loader made beforehand.
func TestCapturingFunctionOnHit(t *testing.T) {
	peer := newOtterCache(func(url string) (*engine, error) { return &engine{url: url}, nil })
	var ours oncecache.Cache[string, *engine]
	ctx, serial := context.Background(), 0
	for name, c := range map[string]struct {
		allocates bool
		get       func() (*engine, error)
	}{
		"otter": {true, func() (*engine, error) {
			return peer.cache.Get(ctx, "a", otter.LoaderFunc[string, *engine](func(context.Context, string) (*engine, error) {
				return &engine{serial: serial}, nil
			}))
		}},
		"otter beforehand": {false, func() (*engine, error) { return peer.getOrCreate(ctx, "a") }},
		"latchfree": {false, func() (*engine, error) {
			return ours.GetOrCreate("a", func() (*engine, error) { return &engine{serial: serial}, nil })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			allocs := testing.AllocsPerRun(100, func() {
				serial++
				if _, err := c.get(); err != nil {
					t.Error(err)
				}
			})
			assert.Equal(t, c.allocates, allocs > 0, "%v allocations on a hit", allocs)
		})
	}
}

//go:build !modelcheck

package throttle_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

// After an outage all calls go through again soonest if a Throttle is behind a Breaker,
// as the documentation advises, and latest the other way round, as the
// Throttle then counts what the Breaker rejects. The outage takes ten minutes, and 200
// calls come in each second.
func TestBreakersAfterAnOutage(t *testing.T) {
	const perSecond, outage, step = 200, 10 * time.Minute, 5 * time.Second
	type call = func(context.Context) error
	order := map[string]func(t *throttle.Throttle, b *ab.Breaker, f call) call{
		"a Throttle alone": func(t *throttle.Throttle, _ *ab.Breaker, f call) call {
			return func(ctx context.Context) error { return t.Do(ctx, f) }
		},
		"a Throttle behind a Breaker": func(t *throttle.Throttle, b *ab.Breaker, f call) call {
			return func(ctx context.Context) error {
				return b.Do(ctx, func(ctx context.Context) error { return t.Do(ctx, f) })
			}
		},
		"a Breaker behind a Throttle": func(t *throttle.Throttle, b *ab.Breaker, f call) call {
			return func(ctx context.Context) error {
				return t.Do(ctx, func(ctx context.Context) error { return b.Do(ctx, f) })
			}
		},
	}
	for _, tt := range []struct {
		order  string
		max    time.Duration // of the open time, which begins with a minute
		within [2]time.Duration
	}{
		// Probes 1, 3, 7 and 15 minutes after the beginning.
		{"a Throttle behind a Breaker", 10 * time.Minute, [2]time.Duration{5 * time.Minute, 5*time.Minute + step}},
		{"a Throttle alone", 10 * time.Minute, [2]time.Duration{10 * time.Minute, 12 * time.Minute}},
		{"a Breaker behind a Throttle", 10 * time.Minute, [2]time.Duration{20 * time.Minute, 23 * time.Minute}},
		// A probe each minute.
		{"a Throttle behind a Breaker", time.Minute, [2]time.Duration{0, step}},
		{"a Breaker behind a Throttle", time.Minute, [2]time.Duration{10 * time.Minute, 12 * time.Minute}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var th throttle.Throttle
			th.Draw(rand.New(rand.NewPCG(1, 2)).Uint32)
			breaker := ab.MustNew(ab.Config{OpenTimeout: time.Minute, MaxOpenTimeout: tt.max})
			up := true
			do := order[tt.order](&th, breaker, func(context.Context) error {
				if up {
					return nil
				}
				return errBoom
			})
			run := func(d time.Duration) (succeeded int) {
				for range int(d.Seconds() * perSecond) {
					time.Sleep(time.Second / perSecond)
					if do(t.Context()) == nil {
						succeeded++
					}
				}
				return succeeded
			}
			run(2 * time.Minute) // which is the Throttle's window
			up = false
			run(outage)
			up = true
			var recovered time.Duration // after the outage, then at least 99 % succeed for two minutes
			for now := step; now <= recovered+2*time.Minute; now += step {
				if run(step)*100 < 99*perSecond*int(step/time.Second) {
					recovered = now
				}
			}
			t.Logf("%s, open for at most %v: recovered after %v", tt.order, tt.max, recovered)
			if recovered < tt.within[0] || recovered > tt.within[1] {
				t.Errorf("%s, open for at most %v: recovered after %v, want %v to %v", tt.order, tt.max, recovered, tt.within[0], tt.within[1])
			}
		})
	}
}

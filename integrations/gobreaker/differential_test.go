package gobreaker

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	real "github.com/sony/gobreaker/v2"
)

// TestAgainstGobreaker makes the same random calls, one after another, of both.
func TestAgainstGobreaker(t *testing.T) {
	errSkip := &time.ParseError{}
	skip := func(err error) bool { return err == errSkip }
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			n := uint32(r.IntN(4))
			ours := NewCircuitBreaker[int](Settings{MaxRequests: n, IsExcluded: skip})
			theirs := real.NewCircuitBreaker[int](real.Settings{MaxRequests: n, IsExcluded: skip})
			for i := range 200 {
				if r.IntN(8) == 0 {
					time.Sleep(21*time.Second + 1)
				}
				var end error
				switch r.IntN(8) {
				case 0:
					end = errSkip
				case 1, 2, 3, 4, 5:
					end = errBad
				}
				fn := func() (int, error) { return i, end }
				v, err := ours.Execute(fn)
				w, err2 := theirs.Execute(fn)
				if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() || v != w {
					t.Fatalf("seed %d, call %d: %d, %v; gobreaker: %d, %v", seed, i, v, err, w, err2)
				}
				if s, want := ours.State().String(), theirs.State().String(); s != want {
					t.Fatalf("seed %d, call %d: %s; gobreaker: %s", seed, i, s, want)
				}
				if c, want := ours.Counts(), theirs.Counts(); ours.State() == StateClosed &&
					(c.TotalFailures != want.TotalFailures || c.TotalSuccesses != want.TotalSuccesses || c.ConsecutiveFailures != want.ConsecutiveFailures) {
					t.Fatalf("seed %d, call %d: %+v; gobreaker: %+v", seed, i, c, want)
				}
			}
		})
	}
}

package locked_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/bench/internal/locked"
)

type lockedGroup interface {
	Allow(string) (uint64, error)
	Success(string, uint64) atomicbreaker.Verdict
	Failure(string, uint64) atomicbreaker.Verdict
}

// ofOne is a single breaker as a group of one key.
type ofOne struct {
	b interface {
		Allow() (uint64, error)
		Success(uint64) atomicbreaker.Verdict
		Failure(uint64) atomicbreaker.Verdict
	}
}

func (o ofOne) Allow(string) (uint64, error)                     { return o.b.Allow() }
func (o ofOne) Success(_ string, s uint64) atomicbreaker.Verdict { return o.b.Success(s) }
func (o ofOne) Failure(_ string, s uint64) atomicbreaker.Verdict { return o.b.Failure(s) }

// The baselines do what ours does, step by step.
func TestBreakersBehaveLikeOurs(t *testing.T) {
	cfg := locked.BreakerConfig{Threshold: 2, OpenTimeout: 10 * 128 * time.Millisecond, Probes: 2, CloseAfter: 3}
	for name, make := range map[string]func() lockedGroup{
		"mutex":         func() lockedGroup { return ofOne{locked.NewMutexBreaker(cfg)} },
		"rwmutex":       func() lockedGroup { return ofOne{locked.NewRWMutexBreaker(cfg)} },
		"mutex group":   func() lockedGroup { return locked.NewMutexGroup[string](cfg) },
		"rwmutex group": func() lockedGroup { return locked.NewRWMutexGroup[string](cfg) },
		"syncmap group": func() lockedGroup { return locked.NewSyncMapGroup[string](cfg) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				ours := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{Default: atomicbreaker.Config{
					Policy: atomicbreaker.Consecutive(cfg.Threshold), OpenTimeout: cfg.OpenTimeout, Probes: cfg.Probes, CloseAfter: cfg.CloseAfter,
				}})
				theirs := make()
				type call struct {
					permit atomicbreaker.GroupPermit[string]
					stay   uint64
				}
				var calls []call
				for range 20_000 {
					switch r.IntN(8) {
					case 0:
						time.Sleep(time.Duration(r.IntN(20)*r.IntN(20)) * 128 * time.Millisecond)
					case 1, 2, 3:
						p, err := ours.Allow("k")
						stay, theirErr := theirs.Allow("k")
						require.Equal(t, err, theirErr)
						if err == nil {
							calls = append(calls, call{p, stay})
						}
					default:
						if len(calls) == 0 {
							continue
						}
						i := r.IntN(len(calls))
						c := calls[i]
						calls = append(calls[:i], calls[i+1:]...)
						if r.IntN(2) == 0 {
							require.Equal(t, c.permit.Success(), theirs.Success("k", c.stay))
						} else {
							require.Equal(t, c.permit.Failure(), theirs.Failure("k", c.stay))
						}
					}
				}
			})
		})
	}
}

type counters interface {
	IsOpen(string) bool
	RecordSuccess(string)
	RecordFailure(string)
}

func TestCountersLoseNothing(t *testing.T) {
	for name, c := range map[string]counters{
		"mutex":   locked.NewMutexCounters(400),
		"rwmutex": locked.NewRWMutexCounters(400),
		"syncmap": locked.NewSyncMapCounters(400),
	} {
		t.Run(name, func(t *testing.T) {
			var done sync.WaitGroup
			for range 4 {
				done.Go(func() {
					for range 100 {
						assert.False(t, c.IsOpen("k"))
						c.RecordFailure("other")
						c.RecordSuccess("other")
					}
				})
			}
			done.Wait()
			for range 4 {
				done.Go(func() {
					for range 100 {
						c.RecordFailure("k")
					}
				})
			}
			done.Wait()
			assert.True(t, c.IsOpen("k"))
			c.RecordSuccess("k")
			assert.False(t, c.IsOpen("k"))
			for range 399 {
				c.RecordFailure("k")
			}
			assert.False(t, c.IsOpen("k"))
		})
	}
}

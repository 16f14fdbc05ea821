//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// A stream for which too much waits ends with an error and nothing after it, also
// where it sleeps, and one that keeps up does not.
func TestStreamLagsProtocol(t *testing.T) {
	once := mc.Config{Mode: mc.Bounded, Preemptions: 1}
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		threads threads
		limit   int
		always  bool
	}{
		{"one more than its limit", bounded, threads{{put(1), put(2)}}, 1, false},
		{"two writers", once, threads{{put(1)}, {put(2)}}, 1, false},
		{"a new life", once, threads{{remove, create(5)}}, 1, false},
		{"within its limit", once, threads{{put(1)}, {put(2)}}, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = operations(tt.threads, "Stream")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := streamed(with7)
				s := shardedregistry.OpenStream(r, tt.limit)
				m.Go(func() {
					from, ended := shardedregistry.Version(2), false
					s.Run(context.Background(), func(e news, err error) bool {
						switch {
						case ended:
							m.Failf("%v, %v is yielded after the end", e, err)
						case err != nil:
							if ended = true; !errors.Is(err, shardedregistry.ErrLagged) || e != (news{}) || tt.always {
								m.Failf("%v, %v is yielded", e, err)
							}
						case e.Version != from:
							m.Failf("%v is yielded, want version %d", e, from)
						}
						from++
						return e.Version < 3
					})
					s.Leave()
				})
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { drained(m, r) })
			})
		})
	}
}

// A stream that sleeps ends when it lags, also if those have stalled who have not
// told it of most of what it misses, or who have found that it lags.
func TestStreamLagsAsleep(t *testing.T) {
	for _, tt := range []struct {
		name string
		last call
	}{
		{"Put(2), where another has stalled", put(2)},
		{"Put(2) until it has counted, where another has stalled", call{Do: func(r registry) any {
			shardedregistry.Informed(r.(*names1), "a", 2)
			return nil
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: tt.name + " ∥ Stream"}, func(m *mc.M) {
				r := streamed(with7)
				s := shardedregistry.OpenStream(r, 1)
				put(8).Do(r)
				s.Drain()
				shardedregistry.Stored(r, "a", 1)
				doing(m, r, []call{tt.last})
				m.Go(func() {
					s.Run(context.Background(), func(e news, err error) bool {
						if !errors.Is(err, shardedregistry.ErrLagged) {
							m.Failf("%v, %v is yielded", e, err)
						}
						return true
					})
					s.Leave()
				})
				m.Final(func() { drained(m, r) })
			})
		})
	}
}

// A call that has returned has woken a stream that has lagged, also if the one who
// made it lag has stalled.
func TestStreamThatLagsIsWoken(t *testing.T) {
	for _, tt := range []struct {
		name    string
		threads threads
	}{
		{"two change", threads{{put(2)}, {put(3)}}},
		{"one deletes", threads{{put(2)}, {remove}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Operations = operations(tt.threads, "sleep, where another has stalled")
			mc.Check(t, cfg, func(m *mc.M) {
				r := streamed(with7)
				s := shardedregistry.OpenStream(r, 1)
				put(8).Do(r)
				s.Drain()
				shardedregistry.Stored(r, "a", 1)
				rung := s.Doze()
				for _, calls := range tt.threads {
					m.Go(func() {
						if calls[0].Do(r); !rung() {
							m.Failf("a stream sleeps when %s has returned", calls[0].Name)
						}
					})
				}
				m.Final(func() {
					s.Leave()
					drained(m, r)
				})
			})
		})
	}
}

// A stream that has lagged and stays in its body keeps nothing of a key that
// changes again, and nobody else's.
func TestStreamLagsForEver(t *testing.T) {
	cfg := bounded
	cfg.Operations = "Put(1) ∥ Put(2), with a stream behind ∥ Stream"
	mc.Check(t, cfg, func(m *mc.M) {
		r := streamed(with7)
		stuck, s := shardedregistry.OpenStream(r, 1), shardedregistry.OpenStream(r, plenty)
		put(8).Do(r)
		doing(m, r, []call{put(1)})
		doing(m, r, []call{put(2)})
		m.Final(func() {
			put(9).Do(r)
			if all, _ := s.Drain(); len(all) != 4 {
				m.Failf("yielded are %v", all)
			}
			put(10).Do(r)
			s.Drain()
			if n := shardedregistry.Chained(r); n != 0 {
				m.Failf("%d old records are kept", n)
			}
			if _, lagged := stuck.Drain(); !lagged || shardedregistry.Seats(r) != 1 {
				m.Failf("lagged: %v, %d seats", lagged, shardedregistry.Seats(r))
			}
			stuck.Leave()
			s.Leave()
			drained(m, r)
		})
	})
}

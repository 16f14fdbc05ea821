//go:build modelcheck

package shardedregistry_test

import (
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// A stream that forgets what it has taken, and so does one that leaves, forgets
// nothing that another needs which a teller is about to subscription.
func TestStreamForgetsItsOwn(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(s streamer)
	}{
		{"take", func(s streamer) { s.Drain() }},
		{"take and leave", func(s streamer) { s.Drain(); s.Leave() }},
		{"leave", func(s streamer) { s.Leave() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Operations = "Put(2), where another has stalled ∥ Stream: " + tt.name + ", with another stream"
			mc.Check(t, cfg, func(m *mc.M) {
				r := streamed(with7)
				quick, slow := shardedregistry.OpenStream(r, plenty), shardedregistry.OpenStream(r, plenty)
				shardedregistry.Stored(r, "a", 1)
				doing(m, r, []call{put(2)})
				m.Go(func() { tt.do(quick) })
				m.Final(func() {
					if tt.name == "take" {
						quick.Drain()
						quick.Leave()
					}
					wantAll(m, r, slow, nil, 2)
				})
			})
		})
	}
}

// A dead cell leaves the table when a stream has left that somebody who stored
// before the deletion is about to subscription there.
func TestStreamIsSeatedTooLate(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 3}
	cfg.Operations = "the rest of Put ∥ the rest of Delete ∥ Stream: leave"
	mc.Check(t, cfg, func(m *mc.M) {
		r := streamed(with7)
		m.Go(shardedregistry.Stored(r, "a", 1))
		m.Go(shardedregistry.Kill(r, "a"))
		m.Go(func() { shardedregistry.OpenStream(r, plenty).Leave() })
		m.Final(func() { drained(m, r) })
	})
}

// A stream that is subscribed while a dead cell is about to leave the table, or to be
// replaced, sits there or not at all, and either way nothing waits for it when it
// has looked.
func TestStreamIsSeatedOrNot(t *testing.T) {
	creator := func(r *names1) func() { return func() { r.Create("a", 5) } }
	for _, tt := range []struct {
		name, key string
		watched   bool
		instead   func(*names1) func() // of the rest of Delete, or nil
	}{
		{"the rest of Delete", "a", false, nil},
		{"the rest of Delete, spelled", "A", false, nil},
		{"the rest of Delete, beside Watch", "a", true, nil},
		{"Create", "a", false, creator},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := mc.Config{Mode: mc.Bounded, Preemptions: 3, Operations: tt.name + " ∥ Stream, the rest of Put"}
			mc.Check(t, cfg, func(m *mc.M) {
				r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
					Shards: 1, Transitions: true,
					Normalize: func(k string) (string, error) { return strings.ToLower(k), nil },
				})
				r.Put(tt.key, 7)
				var w loop
				if tt.watched {
					w = shardedregistry.Subscribe(r)
				}
				put, remove := shardedregistry.Stored(r, "a", 1), shardedregistry.Kill(r, "a")
				if tt.instead != nil {
					remove = tt.instead(r)
				}
				var s streamer
				m.Go(remove)
				m.Go(func() {
					s = shardedregistry.OpenStream(r, plenty)
					put()
				})
				m.Final(func() {
					s.Drain()
					if n := s.Behind(); n != 0 {
						m.Failf("%d changes are said to wait", n)
					}
					s.Leave()
					if tt.watched {
						w.Leave()
					}
					drained(m, r)
				})
			})
		})
	}
}

// A dead cell leaves the table when a stream has ended that has lagged before it
// looked there, and that somebody has unsubscribed since.
func TestStreamLagsBeforeItLooks(t *testing.T) {
	cfg := bounded
	cfg.Operations = "tell of a deletion ∥ Put of another key ∥ Stream, for which one change may wait"
	mc.Check(t, cfg, func(m *mc.M) {
		r := streamed(with7)
		s := shardedregistry.OpenStream(r, 1)
		remove.Do(r)
		doing(m, r, []call{tell})
		m.Go(func() { r.Put("b", 1) })
		m.Go(func() { s.Drain(); s.Leave() })
		m.Final(func() { drained(m, r) })
	})
}

// The same, where who unsubscribes it is a writer from before the deletion, and the
// stream was about to look.
func TestStreamLagsBeforeItLooksAgain(t *testing.T) {
	cfg := bounded
	cfg.Operations = "the rest of Put ∥ the rest of Delete, Put of another key, Stream, for which two changes may wait"
	mc.Check(t, cfg, func(m *mc.M) {
		r := streamed(with7)
		s := shardedregistry.OpenStream(r, 2)
		put, remove := shardedregistry.Addressed(r, "a", 1), shardedregistry.Kill(r, "a")
		m.Go(put)
		m.Go(func() {
			remove()
			look := s.Begin()
			r.Put("b", 1)
			look()
			s.Leave()
		})
		m.Final(func() { drained(m, r) })
	})
}

// A call that has returned has woken the streams, also if the one that put down
// the notification that it found has stalled.
func TestStreamIsWoken(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Put(1) ∥ Put(2), while a stream sleeps"}, func(m *mc.M) {
		r := streamed(with7)
		s := shardedregistry.OpenStream(r, plenty)
		rung := s.Doze()
		for i := range 2 {
			m.Go(func() {
				if r.Put("a", i); !rung() {
					m.Failf("a stream sleeps when Put has returned")
				}
			})
		}
		m.Final(func() { wantAll(m, r, s, nil, 2) })
	})
}

// A loop over Watch leaves nothing where a creator subscriptions streams for a deleter
// that has stalled.
func TestWatchEndsBesideACreator(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Create, where a deleter has stalled ∥ Watch: leave"}, func(m *mc.M) {
		r := streamed(with7)
		w := shardedregistry.Subscribe(r)
		shardedregistry.Kill(r, "a")
		doing(m, r, []call{create(5)})
		m.Go(w.Leave)
		m.Final(func() { clean(m, r) })
	})
}

// Seats that have come and gone, so that the cell is as it was, are not there
// again when somebody adds one.
func TestSubscriptionsComeAndGo(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 3, Operations: "tell ∥ another Watch, tell, both leave"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := streamed(with7)
		w := shardedregistry.Subscribe(r)
		doing(m, r, []call{tell})
		m.Go(func() {
			another := shardedregistry.Subscribe(r)
			tell.Do(r)
			another.Leave()
			w.Leave()
		})
		m.Final(func() { clean(m, r) })
	})
}

// What a stream finds forgotten, because it was stored before the stream came, does
// not count as waiting, whatever else is told meanwhile.
func TestStreamCountsWhatIsThere(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Put of another key ∥ Stream: take"}, func(m *mc.M) {
		r := streamed([]call{put(7), other(put(7))})
		told := shardedregistry.Stored(r, "a", 1)
		forgotten := shardedregistry.Addressed(r, "a", 2)
		s := shardedregistry.OpenStream(r, plenty)
		told()
		forgotten()
		doing(m, r, []call{other(put(8))})
		m.Go(func() { s.Drain() })
		m.Final(func() {
			s.Drain()
			if n := s.Behind(); n != 0 {
				m.Failf("%d changes are said to wait", n)
			}
			s.Leave()
			drained(m, r)
		})
	})
}

// A stream does not begin with what a call had changed that has returned, because
// somebody else had told of it, while what that replaced is told by who is late.
func TestStreamBeginsAfterWhatWasTold(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Put(4) ∥ the rest of Put(3), Stream, the rest of Put(2)"}, func(m *mc.M) {
		r := streamed(with7)
		before := shardedregistry.OpenStream(r, plenty)
		second, third := shardedregistry.Stored(r, "a", 2), shardedregistry.Stored(r, "a", 3)
		var after streamer
		doing(m, r, []call{put(4)})
		m.Go(func() {
			third()
			after = shardedregistry.OpenStream(r, plenty)
			second()
		})
		m.Final(func() {
			for e := after.Next(); e.Version != 0; e = after.Next() {
				if e.Version <= 3 {
					m.Failf("%v is yielded", e)
				}
			}
			after.Leave()
			wantAll(m, r, before, nil, 2)
		})
	})
}

// A stream that is opened before a snapshot is taken yields what comes after that,
// also where a key is created again whose deletion has no date yet.
func TestStreamAndSnapshotAgree(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Create ∥ Create, Delete that stalls, Stream, then a cut"}, func(m *mc.M) {
		r := streamed(empty)
		taker := shardedregistry.Join(r)
		var remove func()
		var s streamer
		doing(m, r, []call{create(5)})
		m.Go(func() {
			r.Create("a", 8)
			remove = shardedregistry.Kill(r, "a")
			s = shardedregistry.OpenStream(r, plenty)
			for !taker.Collect() {
			}
		})
		m.Final(func() {
			held, ok := taker.Leave().Lookup("a")
			last := held.Version
			for e := s.Next(); e.Version != 0; e = s.Next() {
				if ok && e.Version > last+1 {
					m.Failf("%v is yielded after version %d", e, last)
				}
				last, ok = e.Version, true
			}
			remove()
			s.Leave()
			drained(m, r)
		})
	})
}

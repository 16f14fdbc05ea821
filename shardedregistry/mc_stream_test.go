//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

type streamer = shardedregistry.Streamer[string, int]

// plenty is a limit that is not reached.
const plenty = 100

// streamed returns what twoKeys does, of a registry with transitions.
func streamed(first []call) *names1 {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2, Transitions: true})
	shardedregistry.SetHash(r, func(k string) uint64 { return uint64(k[0]-'a') << 63 })
	for _, c := range first {
		c.Do(r)
	}
	return r
}

// take runs a loop over the changes of the key a, the first of which must have
// version from, if that is not 0, until one has version until. Each version must
// be the next one. A loop that misses the last change sleeps for ever, which the
// checker reports.
func take(m *mc.M, s streamer, from, until shardedregistry.Version) {
	defer s.Leave()
	s.Run(context.Background(), func(e news, err error) bool {
		if err != nil || from != 0 && e.Version != from || e.Key != "a" || e.Deleted && e.Value != 0 {
			m.Failf("%v, %v is yielded, want version %d", e, err, from)
		}
		from = e.Version + 1
		return e.Version < until
	})
}

// drained fails the execution if streams have left something.
func drained(m *mc.M, r *names1) {
	clean(m, r)
	if n := shardedregistry.Chained(r); n != 0 {
		m.Failf("%d old records are kept", n)
	}
}

// A stream that is open already yields every version, once and in order.
func TestStreamProtocols(t *testing.T) {
	once := mc.Config{Mode: mc.Bounded, Preemptions: 1}
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
		from    shardedregistry.Version
		until   shardedregistry.Version
		streams int
	}{
		{"a change", mc.Config{}, with7, threads{{put(1)}}, 2, 2, 1},
		{"changes", bounded, with7, threads{{put(1), put(2), put(3)}}, 2, 4, 1},
		{"two change", bounded, with7, threads{{put(1)}, {put(2)}}, 2, 3, 1},
		{"two change several times", once, with7, threads{{put(1), put(3)}, {put(2), put(4)}}, 2, 5, 1},
		{"three change", once, with7, threads{{put(1)}, {put(2)}, {update(3)}}, 2, 4, 1},
		{"created", mc.Config{}, empty, threads{{create(1)}}, 1, 1, 1},
		{"deleted", bounded, with7, threads{{remove}}, 2, 2, 1},
		{"comes and goes", bounded, empty, threads{{create(1), remove}}, 1, 2, 1},
		{"deleted and created", bounded, with7, threads{{remove, create(5)}}, 2, 3, 1},
		{"one deletes, another creates", bounded, with7, threads{{remove}, {appends(5)}}, 0, 0, 1},
		{"one deletes, another creates and changes", once, with7, threads{{remove}, {appends(5), put(6)}}, 0, 0, 1},
		{"two streams of a change", once, with7, threads{{put(1)}}, 2, 2, 2},
		{"two streams of changes", once, with7, threads{{put(1)}, {put(2)}}, 2, 3, 2},
		{"two streams of a new life", once, with7, threads{{remove, create(5)}}, 2, 3, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var others []string
			for range tt.streams {
				others = append(others, "Stream")
			}
			tt.cfg.Operations = operations(tt.threads, others...)
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := streamed(tt.first)
				var seen []news
				for range tt.streams {
					s := shardedregistry.OpenStream(r, plenty)
					if tt.until == 0 { // it depends on the order what the last is
						m.Go(func() { seen, _ = s.Drain() })
						m.Final(func() { wantAll(m, r, s, seen, 2) })
						continue
					}
					m.Go(func() { take(m, s, tt.from, tt.until) })
				}
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				if tt.until != 0 {
					m.Final(func() { drained(m, r) })
				}
			})
		})
	}
}

// wantAll fails the execution unless s, which has seen some versions of the key a,
// has all others from one on, and what there is kept for it is then forgotten.
func wantAll(m *mc.M, r *names1, s streamer, seen []news, from shardedregistry.Version) {
	all, lagged := s.Drain()
	all = append(seen, all...)
	for i, e := range all {
		if e.Version != from+shardedregistry.Version(i) {
			m.Failf("yielded are %v", all)
		}
	}
	last := all[len(all)-1]
	now, ok := r.Lookup("a")
	if lagged || ok == last.Deleted || ok && now.Version != last.Version {
		m.Failf("yielded are %v, the key holds %v, %v", all, now, ok)
	}
	if n := s.Behind(); n != 0 {
		m.Failf("%d changes are said to wait", n)
	}
	if n := shardedregistry.Linked(r) - r.Len(); n != 0 {
		m.Failf("%d dead cells are left", n)
	}
	s.Leave()
	drained(m, r)
}

// Whoever subscribes while others change the key gets all that comes later, and
// nothing whose call had returned.
func TestStreamBegins(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
	}{
		{"changed", mc.Config{}, with7, threads{{put(1)}}},
		{"changed twice", bounded, with7, threads{{put(1), put(2)}}},
		{"two change", bounded, with7, threads{{put(1)}, {put(2)}}},
		{"two change several times", bounded, with7, threads{{put(1), put(3)}, {put(2), put(4)}}},
		{"created", mc.Config{}, empty, threads{{create(1)}}},
		{"deleted and created", bounded, with7, threads{{remove, create(5)}}},
		{"one deletes, another creates", bounded, with7, threads{{remove}, {appends(5)}}},
		{"two delete and create", mc.Config{Mode: mc.Bounded, Preemptions: 1}, with7, threads{{remove, appends(6)}, {appends(5), remove}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = operations(tt.threads, "Stream: Lookup")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := streamed(tt.first)
				// What has returned, by a thread's last step: threads
				// run one at a time.
				var returned atomic.Uint64
				var before, since shardedregistry.Version
				var s streamer
				m.Go(func() {
					before = shardedregistry.Version(returned.Load())
					s = shardedregistry.OpenStream(r, plenty)
					e, _ := r.Lookup("a")
					since = e.Version // or 0: what comes later is above that
				})
				for _, calls := range tt.threads {
					m.Go(func() {
						for _, c := range calls {
							returned.Store(max(returned.Load(), uint64(versionOf(c.Do(r)))))
						}
					})
				}
				m.Final(func() {
					all, _ := s.Drain()
					for i, e := range all {
						if e.Version <= before || i > 0 && e.Version != all[i-1].Version+1 {
							m.Failf("yielded are %v, where version %d was known to be past", all, before)
						}
					}
					now, ok := r.Lookup("a")
					switch {
					case len(all) == 0 && since != 0 && ok && now.Version != since:
						m.Failf("nothing is yielded, and version %d has become %d", since, now.Version)
					case len(all) == 0 && since != 0 && !ok:
						m.Failf("nothing is yielded, and version %d was deleted", since)
					case len(all) > 0 && since != 0 && all[0].Version > since+1:
						m.Failf("yielded are %v after version %d", all, since)
					case len(all) > 0 && ok && all[len(all)-1].Version != now.Version:
						m.Failf("yielded are %v, the key holds %v", all, now)
					}
					if n := s.Behind(); n != 0 {
						m.Failf("%d changes are said to wait", n)
					}
					s.Leave()
					drained(m, r)
				})
			})
		})
	}
}

// versionOf returns the version that a call has returned, of a change or of what
// it deleted.
func versionOf(result any) shardedregistry.Version {
	switch first := result.([]any)[0].(type) {
	case shardedregistry.Version:
		return first
	case shardedregistry.Entry[string, int]:
		return first.Version
	}
	return 0
}

// A stream ends and leaves nothing, whoever tells it something, and misses of
// others nothing.
func TestStreamEnds(t *testing.T) {
	once := mc.Config{Mode: mc.Bounded, Preemptions: 1}
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
		behind  bool // whether something waits for it
	}{
		{"change", mc.Config{}, with7, threads{{put(1)}}, false},
		{"changes", once, with7, threads{{put(1)}, {put(2)}}, true},
		{"create", mc.Config{}, empty, threads{{create(1)}}, false},
		{"delete", mc.Config{}, with7, threads{{remove}}, false},
		{"delete and create", once, with7, threads{{remove}, {appends(5)}}, true},
		{"delete, create and change", once, with7, threads{{remove, appends(5)}, {appends(1)}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = operations(tt.threads, "leave")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := streamed(tt.first)
				s, stays := shardedregistry.OpenStream(r, plenty), shardedregistry.OpenStream(r, plenty)
				if tt.behind {
					put(8).Do(r)
					stays.Drain()
				}
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Go(s.Leave)
				m.Final(func() {
					stays.Drain()
					if n := stays.Behind(); n != 0 {
						m.Failf("%d changes are said to wait", n)
					}
					stays.Leave()
					drained(m, r)
				})
			})
		})
	}
}

// A stream that its context ends.
func TestStreamIsCancelled(t *testing.T) {
	cfg := bounded
	cfg.Operations = "Stream(ctx) ∥ cancel ∥ Put"
	mc.Check(t, cfg, func(m *mc.M) {
		r := streamed(with7)
		ctx, cancel := atomics.WithCancel(context.Background())
		m.Go(func() {
			for e, err := range r.Stream(ctx, 1) {
				if e.Version != 2 || err != nil {
					m.Failf("%v, %v is yielded", e, err)
				}
			}
		})
		m.Go(cancel)
		doing(m, r, []call{put(1)})
		m.Final(func() { drained(m, r) })
	})
}

// Streams and a snapshot that is being taken keep what they need, and nothing
// when both are over.
func TestStreamAndSnapshot(t *testing.T) {
	for _, tt := range []struct {
		name    string
		threads threads
		until   shardedregistry.Version
	}{
		{"change", threads{{put(1)}, {put(2)}}, 4},
		{"delete and create", threads{{remove, create(5)}}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := mc.Config{Mode: mc.Bounded, Preemptions: 1}
			cfg.Operations = operations(tt.threads, "leave", "Stream")
			mc.Check(t, cfg, func(m *mc.M) {
				r := streamed(with7)
				taker := shardedregistry.Join(r)
				put(8).Do(r)
				taker.Collect() // needs what the key holds now
				s := shardedregistry.OpenStream(r, plenty)
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Go(func() { taker.Leave() })
				m.Go(func() { take(m, s, 3, tt.until) })
				m.Final(func() {
					if drained(m, r); shardedregistry.Kept(r) != 0 {
						m.Failf("%d old records are kept", shardedregistry.Kept(r))
					}
				})
			})
		})
	}
}

// A writer that does not look whether what it replaces was told makes streams
// miss that, where the one that stored it is late.
func TestStreamOfTheForgetful(t *testing.T) {
	mc.Refute(t, mc.Config{Operations: "Put(1), then Put(2) by a writer that does not look back ∥ the rest of Put(1)"}, "yielded are", func(m *mc.M) {
		r := streamed(with7)
		s := shardedregistry.OpenStream(r, plenty)
		m.Go(shardedregistry.Stored(r, "a", 1))
		m.Go(func() { shardedregistry.PutForgetfully(r, "a", 2) })
		m.Final(func() { wantAll(m, r, s, nil, 2) })
	})
}

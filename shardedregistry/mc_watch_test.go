//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

type (
	names1 = shardedregistry.Registry[string, int]
	news   = shardedregistry.Event[string, int]
	loop   = shardedregistry.Watcher[string, int]
)

// bounded is what is explored where everything would be too much.
var bounded = mc.Config{Mode: mc.Bounded, Preemptions: 2}

// follow runs a loop over the events of the key a until one has version until,
// which must be the last one that there will be. The versions must increase, and
// each have held what held says, if it does, where 0 is a deletion. A loop that
// misses the last change sleeps for ever, which the checker reports.
func follow(m *mc.M, w loop, until shardedregistry.Version, held ...int) (last news) {
	defer w.Leave()
	w.Run(context.Background(), func(e news) bool {
		if e.Version <= last.Version || e.Key != "a" || e.Value == 0 {
			m.Failf("%v comes after %v", e, last)
		}
		at := e.Version - 1
		if e.Deleted {
			at-- // the last value
		}
		if held != nil && (e.Value != held[at] || e.Deleted != (held[e.Version-1] == 0)) {
			m.Failf("%v is told, where versions held %v", e, held)
		}
		last = e
		return e.Version < until
	})
	return last
}

// clean fails the execution if a loop or a call of Wait has left something.
func clean(m *mc.M, r *names1) {
	if n := shardedregistry.Traces(r); n != 0 {
		m.Failf("%d traces are left", n)
	}
}

// doing runs calls in a thread.
func doing(m *mc.M, r *names1, calls []call) {
	m.Go(func() {
		for _, c := range calls {
			c.Do(r)
		}
	})
}

// A notification that is done replaces none that is not: or a dead cell would leave the table before its
// watcher has looked.
func TestDoneReplacesNoneThatIsTaken(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 1, Operations: "tell ∥ Watch, Delete, tidy, Watch"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		w := shardedregistry.Subscribe(r)
		ended := atomics.MakeEvent()
		m.Go(func() {
			shardedregistry.Changed(r, "a")
			ended.Fire()
		})
		m.Go(func() {
			w.Sleep(context.Background())
			w.Drain()
			r.Delete("a")
			look := w.Take()
			ended.Wait()
			shardedregistry.Tidy(r, "a") // the end of a snapshot
			if e, ok := look(); !ok || !e.Deleted {
				m.Failf("the watcher finds %v, %v; want the deletion", e, ok)
			}
			w.Leave()
		})
		m.Final(func() { clean(m, r) })
	})
}

// operations lists threads for the book.
func operations(threads threads, others ...string) string {
	s := mc.Listed(threads, func(c call) string { return c.Name })
	for _, o := range others {
		s += " ∥ " + o
	}
	return s
}

// tell is the end of a change that took effect long ago.
var tell = call{Name: "tell", Do: func(r registry) any {
	shardedregistry.Changed(r.(*names1), "a")
	return nil
}}

// tidy is the end of a snapshot for which the key was kept.
var tidy = call{Name: "tidy", Do: func(r registry) any {
	shardedregistry.Tidy(r.(*names1), "a")
	return nil
}}

// Checks I11, I12, I13.

// A loop that watches already sees how the key ends, whatever comes between.
func TestWatchProtocols(t *testing.T) {
	for _, tt := range []struct {
		name     string
		cfg      mc.Config
		first    []call
		threads  threads
		until    shardedregistry.Version
		watchers int
		held     []int
	}{
		{"a change", mc.Config{}, with7, threads{{put(1)}}, 2, 1, []int{7, 1}},
		{"changes", mc.Config{}, with7, threads{{put(1), put(2)}}, 3, 1, []int{7, 1, 2}},
		{"two change", bounded, with7, threads{{put(1)}, {put(2)}}, 3, 1, nil},
		{"created", mc.Config{}, empty, threads{{create(1)}}, 1, 1, []int{1}},
		{"deleted", mc.Config{}, with7, threads{{remove}}, 2, 1, []int{7, 0}},
		{"changed and deleted", mc.Config{}, with7, threads{{put(1), remove}}, 3, 1, []int{7, 1, 0}},
		{"tell and delete", bounded, with7, threads{{tell, tidy}, {remove}}, 2, 1, []int{7, 0}},
		{"comes and goes", mc.Config{}, empty, threads{{create(1), remove}}, 2, 1, []int{1, 0}},
		{"deleted and created", mc.Config{}, with7, threads{{remove, create(5)}}, 3, 1, []int{7, 0, 5}},
		{"two watch a change", mc.Config{}, with7, threads{{put(1)}}, 2, 2, []int{7, 1}},
		{"two watch a deletion", bounded, with7, threads{{remove}}, 2, 2, []int{7, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var others []string
			for range tt.watchers {
				others = append(others, "Watch")
			}
			tt.cfg.Operations = operations(tt.threads, others...)
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := twoKeys(tt.first)()
				for range tt.watchers {
					w := shardedregistry.Subscribe(r)
					m.Go(func() { follow(m, w, tt.until, tt.held...) })
				}
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { clean(m, r) })
			})
		})
	}
}

// Who begins to watch, and then looks, misses nothing that comes later.
func TestWatchBegins(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
		until   shardedregistry.Version
	}{
		{"changed", mc.Config{}, with7, threads{{put(1)}}, 2},
		{"created", mc.Config{}, empty, threads{{create(1)}}, 1},
		{"deleted and created", mc.Config{}, with7, threads{{remove, create(5)}}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = operations(tt.threads, "Watch: Lookup")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := twoKeys(tt.first)()
				m.Go(func() {
					w := shardedregistry.Subscribe(r)
					if e, _ := r.Lookup("a"); e.Version < tt.until {
						follow(m, w, tt.until)
						return
					}
					w.Leave()
				})
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { clean(m, r) })
			})
		})
	}
}

// A loop that ends leaves nothing, whoever is telling it something.
func TestWatchEnds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
	}{
		{"change", mc.Config{}, with7, threads{{put(1)}}},
		{"changes", mc.Config{}, with7, threads{{put(1)}, {put(2)}}},
		{"create", mc.Config{}, empty, threads{{create(1)}}},
		{"delete", mc.Config{}, with7, threads{{remove}}},
		{"change and delete", bounded, with7, threads{{put(1)}, {remove}}},
		{"delete and create", mc.Config{}, with7, threads{{remove}, {create(5)}}},
		{"delete, create and change", bounded, with7, threads{{remove, create(5)}, {put(1)}}},
		{"change, and Create of what is present", mc.Config{}, with7, threads{{put(1), create(5)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = operations(tt.threads, "leave")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := twoKeys(tt.first)()
				w := shardedregistry.Subscribe(r)
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Go(w.Leave)
				m.Final(func() { clean(m, r) })
			})
		})
	}
}

// A deleter that is late tells nothing twice, and nothing old, whether it finds its
// own cell or the next one.
func TestWatchLateDeleter(t *testing.T) {
	cfg := mc.Config{Operations: "the rest of Delete ∥ Put(5), Put(6) ∥ Watch", Mode: mc.Bounded, Preemptions: 2}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		w := shardedregistry.Subscribe(r)
		m.Go(shardedregistry.Kill(r, "a"))
		doing(m, r, []call{put(5), put(6)})
		m.Go(func() { follow(m, w, 4) })
		m.Final(func() { clean(m, r) })
	})
}

// Who tells so late of a change that its key is deleted, and to a watcher that has
// come since, keeps no cell either.
func TestWatchLateTeller(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "tell ∥ look"}, func(m *mc.M) {
		r := twoKeys(with7)()
		before := shardedregistry.Subscribe(r)
		remove.Do(r) // the cell stays for that
		after := shardedregistry.Subscribe(r)
		doing(m, r, []call{tell})
		m.Go(func() { before.Drain() })
		m.Final(func() {
			after.Drain()
			if linked := shardedregistry.Linked(r); linked != r.Len() {
				m.Failf("%d cells are linked for %d keys", linked, r.Len())
			}
			before.Leave()
			after.Leave()
			clean(m, r)
		})
	})
}

// A subscription that is handed on while its watcher leaves keeps no cell: the table is
// tidy as soon as the other watcher has looked.
func TestWatchHandsSubscriptionsOn(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 1, Operations: "Create(5) ∥ Delete ∥ leave ∥ look"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		ends, stays := shardedregistry.Subscribe(r), shardedregistry.Subscribe(r)
		remove.Do(r) // the cell stays for the first
		stays.Drain()
		doing(m, r, []call{create(5)})
		doing(m, r, []call{remove})
		m.Go(ends.Leave)
		m.Go(func() { stays.Drain() })
		m.Final(func() {
			stays.Drain()
			if linked := shardedregistry.Linked(r); linked != r.Len() {
				m.Failf("%d cells are linked for %d keys", linked, r.Len())
			}
			stays.Leave()
			clean(m, r)
		})
	})
}

// A loop that ends leaves nothing either where it has been told of the key before,
// and nobody else misses anything by it.
func TestWatchEndsBesideAnother(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		threads threads
		known   bool // whether the loop that ends has looked at the key before
		until   shardedregistry.Version
	}{
		{"delete", bounded, threads{{remove}}, false, 4},
		{"delete what is known", bounded, threads{{remove}}, true, 4},
		{"delete and create what is known", mc.Config{Mode: mc.Bounded, Preemptions: 1}, threads{{remove}, {appends(5), update(6)}}, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			others := []string{"leave"}
			if tt.until != 0 {
				others = append(others, "Watch")
			}
			tt.cfg.Operations = operations(tt.threads, others...)
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := twoKeys(with7)()
				ends, stays := shardedregistry.Subscribe(r), shardedregistry.Subscribe(r)
				put(8).Do(r)
				if tt.known {
					ends.Drain()
				}
				put(9).Do(r)
				stays.Drain()
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Go(ends.Leave)
				if tt.until != 0 {
					m.Go(func() { follow(m, stays, tt.until) })
				}
				m.Final(func() {
					if tt.until == 0 {
						stays.Leave()
					}
					clean(m, r)
					if v, err := r.Put("a", 1); tt.until != 0 && v != tt.until+1 {
						m.Failf("version %d, %v comes after %d", v, err, tt.until)
					}
				})
			})
		})
	}
}

// A loop that its context ends.
func TestWatchIsCancelled(t *testing.T) {
	cfg := mc.Config{Operations: "Watch(ctx) ∥ cancel ∥ Put"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		ctx, cancel := atomics.WithCancel(context.Background())
		m.Go(func() {
			for e := range r.Watch(ctx) {
				if e.Version != 2 {
					m.Failf("%v is yielded", e)
				}
			}
		})
		m.Go(cancel)
		doing(m, r, []call{put(1)})
		m.Final(func() { clean(m, r) })
	})
}

// What a snapshot and the events after it show is how the key ends.
func TestWatchSnapshotProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
		until   shardedregistry.Version // the key's last, of a record that is alive
	}{
		{"changed", mc.Config{}, with7, threads{{put(1)}}, 2},
		{"created", mc.Config{}, empty, threads{{create(1)}}, 1},
		{"deleted and created", bounded, with7, threads{{remove, create(5)}}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = operations(tt.threads, "WatchSnapshot")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := twoKeys(tt.first)()
				m.Go(func() {
					var last shardedregistry.Version
					present := false
					for s, e := range r.WatchSnapshot(context.Background()) {
						if s != nil {
							var held shardedregistry.Entry[string, int]
							held, present = s.Lookup("a")
							last = held.Version
						} else {
							if e.Version <= last || e.Deleted && !present {
								m.Failf("%v is yielded after version %d, present: %v", e, last, present)
							}
							last, present = e.Version, !e.Deleted
						}
						if last >= tt.until {
							break
						}
					}
				})
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { clean(m, r) })
			})
		})
	}
}

// Dead cells leave the table when the last of their deleter, a watcher and a
// collector has done with them, whoever that is, and the watcher has seen the
// deletion.
func TestWatchAndSnapshot(t *testing.T) {
	for _, tt := range []struct {
		name        string
		preemptions int
		threads     threads
		until       shardedregistry.Version
	}{
		{"delete", 2, threads{{remove}}, 3},
		{"delete and create", 1, threads{{remove, create(5)}}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := mc.Config{Mode: mc.Bounded, Preemptions: tt.preemptions}
			cfg.Operations = operations(tt.threads, "leave", "Watch")
			mc.Check(t, cfg, func(m *mc.M) {
				r := twoKeys(with7)()
				taking := shardedregistry.Join(r)
				put(8).Do(r)
				taking.Collect() // needs what the key holds now
				w := shardedregistry.Subscribe(r)
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Go(func() { taking.Leave() })
				m.Go(func() { follow(m, w, tt.until) })
				m.Final(func() {
					if clean(m, r); shardedregistry.Kept(r) != 0 {
						m.Failf("%d old records are kept", shardedregistry.Kept(r))
					}
				})
			})
		})
	}
}

// A loop that is told of one key only sees how that ends, and nothing is kept or left for
// it at others: what is deleted leaves the table, and old records are forgotten, while the
// loop has not ended.
func TestLoopOfOneKeyProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		from    mc.Config
		threads threads
		held    []int
	}{
		{"a change of each", mc.Config{}, threads{{other(put(1)), put(1)}}, []int{7, 1}},
		{"changes of both", mc.Config{}, threads{{other(put(1)), other(put(2))}, {put(1)}}, []int{7, 1}},
		{"the other is deleted", mc.Config{}, threads{{put(1)}, {other(remove)}}, []int{7, 1}},
		{"the other comes and goes", mc.Config{}, threads{{other(remove), other(create(5)), put(1)}}, []int{7, 1}},
		{"both are deleted", bounded, threads{{other(remove), remove}}, []int{7, 0}},
	} {
		t.Run(tt.name+", Watch", func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: operations(tt.threads, "Watch of a")}, func(m *mc.M) {
				r := twoKeys(both7)()
				w := shardedregistry.SubscribeTo(r, "a")
				m.Go(func() { follow(m, w, 2, tt.held...) })
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { clean(m, r) })
			})
		})
		t.Run(tt.name+", WatchFrom", func(t *testing.T) {
			tt.from.Operations = operations(tt.threads, "WatchFrom of a")
			mc.Check(t, tt.from, func(m *mc.M) {
				r := remembered(64, both7)
				from := r.Revision()
				m.Go(func() { readOn(m, r, from, 1, 2, shardedregistry.Keys("a")) })
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { clean(m, r) })
			})
		})
	}
}

// A notification that is done was looked at: its watcher has read the record, and not only
// begun to. Here a writer has stored the record while a snapshot is being taken,
// and stalls before it has dated it; so who has read the record has dated it.
func TestDoneWasRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func(r *names1) (look func())
	}{
		{"Watch", func(r *names1) func() {
			w := shardedregistry.Subscribe(r)
			put(1).Do(r)
			w.Drain()
			return func() { w.Drain() }
		}},
	} {
		for _, change := range []struct {
			name string
			do   func(r *names1)
		}{
			{"changed", func(r *names1) { shardedregistry.Stored(r, "a", 8) }},
			{"deleted", func(r *names1) { shardedregistry.Kill(r, "a") }},
		} {
			t.Run(tt.name+", "+change.name, func(t *testing.T) {
				mc.Check(t, mc.Config{Operations: tt.name + " ∥ a look at the notification"}, func(m *mc.M) {
					r := remembered(8, with7)
					look := tt.open(r)
					shardedregistry.Join(r)
					change.do(r) // and stalls
					shardedregistry.Changed(r, "a")
					m.Go(look)
					m.Go(func() {
						if shardedregistry.IsDone(r, "a") && !shardedregistry.IsDated(r, "a") {
							m.Failf("the notification is done, and the record has not been read")
						}
					})
				})
			})
		}
	}
}

// A snapshot looks once more after it has joined and looked, beside changes that
// begin then: as long as it looks they know of it.
func TestSnapshotLooksNoMoreThanItMust(t *testing.T) {
	for _, threads := range []threads{
		{{put(1), put(2)}},
		{{remove, create(5)}},
		{{put(1)}, {other(put(2))}},
		{{remove}, {other(put(2))}},
	} {
		operations := operations(threads, "the second look")
		t.Run(operations, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: operations}, func(m *mc.M) {
				r := twoKeys(both7)()
				taking := shardedregistry.Join(r)
				m.Go(func() {
					if !taking.Collect() {
						m.Failf("a change that knew of the snapshot makes it look again")
					}
				})
				for _, calls := range threads {
					doing(m, r, calls)
				}
				m.Final(func() { taking.Leave() })
			})
		})
	}
}

type filters = []shardedregistry.Filter[string]

var ofA = map[string]filters{
	"Keys":              {shardedregistry.Keys("a")},
	"Prefix":            {shardedregistry.Prefix("a")},
	"Keys and a Prefix": {shardedregistry.Keys("a"), shardedregistry.Prefix("a")},
	"Matching":          {shardedregistry.Matching(func(k string) bool { return k == "a" })},
}

// A loop that joins with a filter, and then looks, misses no later change of its key,
// while loops of other keys join and leave: each replaces the subscribers.
func TestWatchFilterJoins(t *testing.T) {
	for _, name := range []string{"Keys", "Prefix"} {
		f := ofA[name]
		for _, tt := range []struct {
			name    string
			first   []call
			threads threads
			until   shardedregistry.Version
		}{
			{"changed", with7, threads{{put(1)}}, 2},
			{"created", empty, threads{{create(1)}}, 1},
			{"deleted and created", with7, threads{{remove, create(5)}}, 3},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2}
				cfg.Operations = operations(tt.threads, "Watch("+name+"): Lookup", "Watch(Keys(b)): leave")
				mc.Check(t, cfg, func(m *mc.M) {
					r := twoKeys(tt.first)()
					m.Go(func() {
						w := shardedregistry.SubscribeFiltered(r, f...)
						if e, _ := r.Lookup("a"); e.Version < tt.until {
							follow(m, w, tt.until)
							return
						}
						w.Leave()
					})
					m.Go(func() { shardedregistry.SubscribeFiltered(r, shardedregistry.Keys("b")).Leave() })
					for _, calls := range tt.threads {
						doing(m, r, calls)
					}
					m.Final(func() { clean(m, r) })
				})
			})
		}
	}
}

// A loop that watches its key already, by one topic or two, sees how the key ends while
// another loop of it leaves.
func TestWatchFilterStays(t *testing.T) {
	for _, name := range []string{"Keys and a Prefix", "Matching"} {
		f := ofA[name]
		for _, tt := range []struct {
			name    string
			threads threads
			until   shardedregistry.Version
		}{
			{"changes", threads{{put(1), put(2)}}, 3},
			{"deleted", threads{{remove}}, 2},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2}
				cfg.Operations = operations(tt.threads, "Watch("+name+")", "leave")
				mc.Check(t, cfg, func(m *mc.M) {
					r := twoKeys(with7)()
					w, ends := shardedregistry.SubscribeFiltered(r, f...), shardedregistry.SubscribeFiltered(r, f...)
					for _, calls := range tt.threads {
						doing(m, r, calls)
					}
					m.Go(func() { follow(m, w, tt.until) })
					m.Go(ends.Leave)
					m.Final(func() { clean(m, r) })
				})
			})
		}
	}
}

// What a change costs beside loops that watch other keys: the look-up of topics loads no
// shared word.
func TestWatchFilterCosts(t *testing.T) {
	for _, light := range []bool{true, false} {
		config := shardedregistry.Config[string, int]{}
		if !light {
			config.Normalize = func(k string) (string, error) { return k, nil }
		}
		r := shardedregistry.MustNew(config)
		r.Put("a", 1)
		put := func() mc.Cost { return mc.Measure(func() { r.Put("a", 8) }) }
		without := put()
		var all []shardedregistry.Watcher[string, int]
		for _, f := range []shardedregistry.Filter[string]{
			shardedregistry.Prefix("b/"), shardedregistry.Prefix("a/"), shardedregistry.Keys("b", "c"), shardedregistry.Keys[string](),
		} {
			all = append(all, shardedregistry.SubscribeFiltered(r, f))
			if got := put(); got != without {
				t.Errorf("a Put beside %d loops of other keys costs %v, want %v", len(all), got, without)
			}
		}
		own := shardedregistry.SubscribeFiltered(r, shardedregistry.Prefix("a"))
		r.Put("a", 1)
		own.Drain()
		notified := without
		notified.Loads, notified.RMWs, notified.TableReads = notified.Loads+5, notified.RMWs+2, notified.TableReads+1
		if got := put(); got != notified {
			t.Errorf("a Put of which a loop is told costs %v, want %v", got, notified)
		}
		own.Leave()
		for _, w := range all {
			w.Leave()
		}
	}
}

// Wait returns what the key holds in the end, or that it is absent, and leaves
// nothing.
func TestWaitProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
		since   []shardedregistry.Version // of each call of Wait
		want    []string                  // what it may return
	}{
		{"created", mc.Config{}, empty, threads{{create(1)}}, []shardedregistry.Version{0}, []string{"1 <nil>"}},
		{"changed", mc.Config{}, with7, threads{{put(1)}}, []shardedregistry.Version{1}, []string{"2 <nil>"}},
		{"changed twice", mc.Config{}, with7, threads{{put(1), put(2)}}, []shardedregistry.Version{2}, []string{"3 <nil>"}},
		{"two change", mc.Config{}, with7, threads{{put(1)}, {put(2)}}, []shardedregistry.Version{2}, []string{"3 <nil>"}},
		{"deleted", mc.Config{}, with7, threads{{remove}}, []shardedregistry.Version{1}, []string{"0 shardedregistry: key not found"}},
		{"deleted and created", mc.Config{}, with7, threads{{remove, create(5)}}, []shardedregistry.Version{1}, []string{"0 shardedregistry: key not found", "3 <nil>"}},
		{"absent, present", mc.Config{}, without, threads{{create(5)}, {get}}, []shardedregistry.Version{0}, []string{"3 <nil>"}},
		{"two wait", bounded, with7, threads{{put(1)}}, []shardedregistry.Version{1, 1}, []string{"2 <nil>"}},
		{"two wait for versions", bounded, with7, threads{{put(1), put(2)}}, []shardedregistry.Version{1, 2}, []string{"2 <nil>", "3 <nil>"}},
		{"beside another key", mc.Config{}, with7, threads{{put(1), other(create(2))}}, []shardedregistry.Version{1}, []string{"2 <nil>"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var others []string
			for _, since := range tt.since {
				others = append(others, fmt.Sprintf("Wait(%d)", since))
			}
			tt.cfg.Operations = operations(tt.threads, others...)
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := twoKeys(tt.first)()
				for _, since := range tt.since {
					m.Go(func() {
						e, err := r.Wait(context.Background(), "a", since)
						got := fmt.Sprint(e.Version, " ", err)
						for _, want := range tt.want {
							if got == want && e.Version != since {
								return
							}
						}
						m.Failf("Wait(%d) = %s", since, got)
					})
				}
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { clean(m, r) })
			})
		})
	}
}

// A call of Wait that leaves its waitlist, which was woken, leaves the next one there for others.
func TestWaitlistsOfOthersStay(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "the end of Wait ∥ the beginning of Wait"}, func(m *mc.M) {
		r := twoKeys(with7)()
		shardedregistry.Await(r) // so that Put wakes those in the waitlist
		_, exit := shardedregistry.EnterWaitlist(r, "a")
		r.Put("a", 1)
		m.Go(exit)
		var sleeping func() bool
		m.Go(func() { sleeping, _ = shardedregistry.EnterWaitlist(r, "a") })
		m.Final(func() {
			r.Put("a", 2)
			if sleeping() {
				m.Failf("a call sleeps on when the key has changed")
			}
		})
	})
}

// A call of Wait that its context ends leaves nothing, and wins or loses.
func TestWaitIsCancelled(t *testing.T) {
	cfg := mc.Config{Operations: "Wait(ctx, 1) ∥ cancel ∥ Put"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		ctx, cancel := atomics.WithCancelCause(context.Background())
		m.Go(func() {
			if e, err := r.Wait(ctx, "a", 1); (err != errTest || e.Version != 0) && (err != nil || e.Version != 2) {
				m.Failf("Wait = %v, %v", e, err)
			}
		})
		m.Go(func() { cancel(errTest) })
		doing(m, r, []call{put(1)})
		m.Final(func() { clean(m, r) })
	})
}

// A loop that comes while a deleter is about to leave the cell, and that late tellers tell of the deletion, sees it once: the
// deleter takes away no subscription that has come meanwhile.
func TestWatchLateTellersOfADeletion(t *testing.T) {
	cfg := bounded
	cfg.Operations = "Delete ∥ Watch: tell, look, tell, look"
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys([]call{put(6), put(7)})()
		before := shardedregistry.Subscribe(r) // the cell stays for that
		doing(m, r, []call{remove})
		m.Go(func() {
			after := shardedregistry.Subscribe(r)
			var last news
			for range 2 {
				tell.Do(r)
				for _, e := range after.Drain() {
					if e.Version <= last.Version {
						m.Failf("%v comes after %v", e, last)
					}
					last = e
				}
			}
			after.Leave()
		})
		m.Final(func() {
			before.Drain()
			before.Leave()
			clean(m, r)
		})
	})
}

// A teller that finds a notification waiting finds its watcher woken, also if the other teller has stalled.
func TestWatchTellersWakeFirst(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Put ∥ Put: woken?"}, func(m *mc.M) {
		r := twoKeys(with7)()
		w := shardedregistry.Subscribe(r)
		woken := w.Doze()
		doing(m, r, []call{put(1)})
		m.Go(func() {
			put(2).Do(r)
			if !woken() {
				m.Failf("a Put has returned, and the loop sleeps")
			}
		})
		m.Final(func() {
			w.Drain()
			w.Leave()
			clean(m, r)
		})
	})
}

// A loop that looks for subscriptions that are gone may do so while their key comes or goes.
func TestWatchSweeps(t *testing.T) {
	for _, threads := range []threads{{{remove, create(5)}}, {{remove}}} {
		cfg := bounded
		cfg.Operations = operations(threads, "Watch: look, Put of b, look")
		t.Run(cfg.Operations, func(t *testing.T) {
			mc.Check(t, cfg, func(m *mc.M) {
				r := twoKeys(with7)()
				w := shardedregistry.Subscribe(r)
				put(8).Do(r)
				w.Drain()
				doing(m, r, threads[0])
				m.Go(func() {
					w.Drain()
					other(put(7)).Do(r)
					w.Drain()
				})
				m.Final(func() {
					w.Drain()
					w.Leave()
					clean(m, r)
				})
			})
		})
	}
}

// A loop looks for the cell of a key that is gone, because a late teller has told it, while the key is created again.
func TestWatchLooksBesideACreator(t *testing.T) {
	cfg := mc.Config{Operations: "Create(5) ∥ look"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		w := shardedregistry.Subscribe(r)
		remove.Do(r)
		shardedregistry.Pushed(r, "a")
		doing(m, r, []call{create(5)})
		m.Go(func() { w.Drain() })
		m.Final(func() {
			w.Drain()
			w.Leave()
			clean(m, r)
		})
	})
}

// A loop that has begun when a deleter has found none may look at the cell, if a late teller sends it there, while the deleter
// takes that out of the table.
func TestWatchLooksBesideADeleter(t *testing.T) {
	cfg := bounded
	cfg.Operations = "Delete ∥ Watch: tell, look, leave"
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		doing(m, r, []call{remove})
		m.Go(func() {
			w := shardedregistry.Subscribe(r)
			tell.Do(r)
			w.Drain()
			w.Leave()
		})
		m.Final(func() { clean(m, r) })
	})
}

// A loop over WatchSnapshot shows that a key of its snapshot was deleted, also if it is first sent to a cell that another one
// has replaced.
func TestWatchSnapshotOfWhatIsReplaced(t *testing.T) {
	cfg := bounded
	cfg.Operations = "the rest of Delete ∥ Create(5)"
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		w := shardedregistry.SubscribeAfter(r)
		m.Go(shardedregistry.Kill(r, "a"))
		doing(m, r, []call{create(5)})
		m.Final(func() {
			remove.Do(r)
			notified(m, r, append([]news{{Key: "a", Version: 1, Value: 7}}, w.Drain()...), false)
			w.Leave()
			clean(m, r)
		})
	})
}

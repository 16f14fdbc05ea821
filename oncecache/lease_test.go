//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/latchfree/latchfree/oncecache"
)

// shop is a cache of numbers that are closed, and remembers which were.
type shop struct {
	*oncecache.Cache[string, int]
	mu     sync.Mutex
	closed []int
	fail   func(int) error
}

func newShop() *shop {
	s := &shop{fail: func(int) error { return nil }}
	s.Cache = oncecache.MustNew(oncecache.Config[string, int]{Close: func(_ string, v int) error {
		s.mu.Lock()
		s.closed = append(s.closed, v)
		s.mu.Unlock()
		return s.fail(v)
	}})
	return s
}

// acquire takes a lease of k with a value that is known to be there, or made.
func (s *shop) acquire(t *testing.T, k string, v int) *oncecache.Lease[string, int] {
	t.Helper()
	l, err := s.Acquire(t.Context(), k, makes(v))
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

func makes(v int) func(context.Context, string) (int, error) {
	return func(context.Context, string) (int, error) { return v, nil }
}

func (s *shop) wantClosed(t *testing.T, want ...int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.closed, want) {
		t.Errorf("closed %v, want %v", s.closed, want)
	}
}

// However a value leaves the cache, it is closed once: at once if nobody holds
// it, and otherwise when the last lease is released.
func TestClosedAfterTheLastLease(t *testing.T) {
	for name, remove := range map[string]func(*shop, *oncecache.Lease[string, int]){
		"Delete":           func(s *shop, _ *oncecache.Lease[string, int]) { s.Delete("k") },
		"Set":              func(s *shop, _ *oncecache.Lease[string, int]) { s.Set("k", 2) },
		"CompareAndDelete": func(s *shop, _ *oncecache.Lease[string, int]) { oncecache.CompareAndDelete(s.Cache, "k", 1) },
		"Discard":          func(_ *shop, l *oncecache.Lease[string, int]) { l.Discard() },
		"Close": func(s *shop, _ *oncecache.Lease[string, int]) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			// It may have closed a value that nobody holds before it looks at ended.
			if err := s.Close(ended); err != nil && !errors.Is(err, context.Canceled) {
				panic(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop()
			a, b, c := s.acquire(t, "k", 1), s.acquire(t, "k", -1), s.acquire(t, "k", -1)
			b.Release()
			b.Release()
			remove(s, a)
			if name == "Set" {
				s.acquire(t, "k", -1).Release()
			}
			a.Release()
			if c.Value() != 1 {
				t.Error(c.Value())
			}
			s.wantClosed(t)
			c.Release()
			s.wantClosed(t, 1)
			c.Discard()
			c.Release()
			s.wantClosed(t, 1)
		})
		t.Run(name+" without leases", func(t *testing.T) {
			s := newShop()
			l := s.acquire(t, "k", 1)
			if name != "Discard" {
				l.Release()
			}
			remove(s, l)
			if name == "Close" {
				s.Close(t.Context()) // and wait, this time
			}
			s.wantClosed(t, 1)
		})
	}
}

// The zero lease and one that was released have no value, and nothing to end.
func TestReleasedLease(t *testing.T) {
	s := newShop()
	released := s.acquire(t, "k", 1)
	released.Release()
	for _, l := range []*oncecache.Lease[string, int]{new(oncecache.Lease[string, int]), released} {
		l.Release()
		l.Discard()
		if p := panicOf(func() { l.Value() }); p != "oncecache: Value called on a released lease" {
			t.Error(p)
		}
	}
	wantGet(t, s.Cache, "k", 1)
	s.wantClosed(t)
}

// Reported bug 30, BitFaster, pebble, CockroachDB, gopls: a loser leaks; a count returns from zero.
// A copy that is released too is told, and closes nothing a second time.
func TestLeaseReleasedTwice(t *testing.T) {
	for name, before := range map[string]func(*shop){"live": func(*shop) {}, "deleted": func(s *shop) { s.Delete("k") }} {
		t.Run(name, func(t *testing.T) {
			s := newShop()
			l := s.acquire(t, "k", 1)
			copied := oncecache.CopyLease(l)
			before(s)
			l.Release()
			if p := panicOf(copied.Release); p != "oncecache: lease released twice" {
				t.Error(p)
			}
			s.Delete("k")
			s.wantClosed(t, 1)
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Reported bug 30, BitFaster, pebble, CockroachDB, gopls: a loser leaks; a count returns from zero.
// Many users of one key are counted exactly, in whatever
// words they are.
func TestLeasesOfAHotKey(t *testing.T) {
	s := newShop()
	s.Set("k", 1)
	rounds, workers := 2000, 4*runtime.GOMAXPROCS(0)
	if testing.Short() {
		rounds = 200
	}
	together(workers, func(int) {
		for range rounds {
			a, b := s.acquire(t, "k", -1), s.acquire(t, "k", -1)
			a.Release()
			if b.Value() != 1 {
				t.Error(b.Value())
			}
			b.Release()
		}
	})
	last := s.acquire(t, "k", -1)
	s.Delete("k")
	s.wantClosed(t)
	last.Release()
	s.wantClosed(t, 1)
}

// Without a Config.Close function leases keep nothing, and Discard works.
func TestLeaseWhereNothingIsClosed(t *testing.T) {
	var c oncecache.Cache[string, int]
	for range 2 {
		a, err := c.Acquire(t.Context(), "k", makes(1))
		b, _ := c.Acquire(t.Context(), "k", makes(2))
		if err != nil || a.Value() != 1 || b.Value() != 1 {
			t.Fatal(a.Value(), b.Value(), err)
		}
		a.Discard()
		if v, err := c.GetOrCreate("k", with(3)); v != 3 || err != nil {
			t.Error(v, err)
		}
		b.Discard() // not the value that it is the lease of
		b.Discard()
		wantGet(t, &c, "k", 3)
		c.Delete("k")
	}
}

// So it does with bounds, which count leases: the value of a creation that Delete has ended is its callers'.
func TestLeaseOfAForgottenCreationWhereNothingIsClosed(t *testing.T) {
	c := oncecache.MustNew(config{MaxEntries: 1})
	l, err := c.Acquire(t.Context(), "k", func(context.Context, string) (int, error) { c.Delete("k"); return 1, nil })
	if err != nil || l.Value() != 1 || c.Len() != 0 {
		t.Errorf("%d, %v, %d values", l.Value(), err, c.Len())
	}
	l.Release()
}

// Reported bug 31, ccache: a found value is closed before it is counted.
// Everyone who takes part in a creation gets a lease, even if the value is
// deleted before they are awake, and whoever has left gets none (T22).
func TestLeasesOfAFlight(t *testing.T) {
	for i, removed := range []string{"later", "in flight", "in flight of GetOrCreate"} {
		t.Run(removed, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop()
				p := newPilot()
				leases := make(chan *oncecache.Lease[string, int], 4)
				acquire := func(ctx context.Context) *call {
					return startCall(func() (int, error) {
						l, err := s.Acquire(ctx, "k", p.create)
						if err != nil {
							return 0, err
						}
						leases <- &l
						return l.Value(), nil
					})
				}
				var calls []*call
				if i < 2 {
					calls = append(calls, acquire(t.Context()))
				} else {
					calls = append(calls, start(s.Cache, "k", func() (int, error) { return p.create(t.Context(), "k") }))
				}
				<-p.ctx
				calls = append(calls, acquire(t.Context()), acquire(context.Background()), start(s.Cache, "k", unexpected(t)))
				ctx, leave := context.WithCancel(t.Context())
				gone := acquire(ctx)
				synctest.Wait()
				leave()
				wantAll(t, []*call{gone}, left)
				if i > 0 {
					s.Delete("k")
				}
				p.end <- with(7)
				s.Delete("k") // perhaps before they are awake
				wantAll(t, calls, result{value: 7})
				synctest.Wait()
				s.Delete("k")
				for range len(leases) {
					s.wantClosed(t)
					(<-leases).Release()
				}
				s.wantClosed(t, 7)
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Who wants a lease and leaves calls off nothing that GetOrCreate runs: it fails once.
func TestNoLeaseOfAPlainFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop()
		owner := begin(t, s.Cache, "k")
		ctx, leave := context.WithCancel(t.Context())
		gone := startCall(func() (int, error) { return acquire(ctx, s.Cache, "k", notAsked) })
		synctest.Wait()
		leave()
		wantAll(t, []*call{gone}, left)
		owner.end <- failing
		wantAll(t, []*call{owner.call}, result{err: errRefused})
	})
}

// Every value that a create function returns is cached, held, or closed.
func TestValuesThatNobodyWants(t *testing.T) {
	for name, drop := range map[string]func(*shop, asker){
		"Set":                func(s *shop, _ asker) { s.Set("k", 42) },
		"Delete":             func(s *shop, _ asker) { s.Delete("k") },
		"Delete and no heir": func(s *shop, owner asker) { s.Delete("k"); owner.leave() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop()
				p := newPilot()
				owner := asks(t, s.Cache, p.create)
				<-p.ctx
				drop(s, owner)
				synctest.Wait()
				p.end <- with(7)
				owner.wait(t)
				synctest.Wait()
				s.wantClosed(t, 7)
				if v, ok := s.Get("k"); ok != (name == "Set") || ok && v != 42 {
					t.Error(v, ok)
				}
			})
		})
	}
}

// A lease on a creation that Set ended is one of the value set, or of what
// came after.
func TestLeaseOfASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop()
		p := newPilot()
		got := make(chan *oncecache.Lease[string, int])
		go func() {
			l, err := s.Acquire(t.Context(), "k", p.create)
			if err != nil {
				t.Error(err)
			}
			got <- &l
		}()
		flight := <-p.ctx
		s.Set("k", 42)
		l := <-got
		if l.Value() != 42 || !cancelled(flight) {
			t.Error(l.Value(), flight.Err())
		}
		s.Set("k", 43)
		p.end <- with(7)
		synctest.Wait()
		s.wantClosed(t, 7)
		l.Release()
		s.wantClosed(t, 7, 42)
	})
}

// The ways in which Config.Close may end are nobody's business but Close's.
func TestCloseFunctionFails(t *testing.T) {
	for name, fail := range map[string]func(int) error{
		"error":  func(v int) error { return fmt.Errorf("closing %d: %w", v, errRefused) },
		"panic":  func(v int) error { panic(fmt.Errorf("closing %d: %w", v, errRefused)) },
		"Goexit": func(int) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop()
			s.fail = fail
			for v, remove := range []func(){
				func() { s.Delete("k") },
				func() { s.Set("k", -1) },
				func() { s.acquire(t, "k", -1).Discard() },
				func() { oncecache.CompareAndDelete(s.Cache, "k", 3) },
			} {
				s.acquire(t, "k", v).Release()
				done := make(chan struct{})
				go func() { defer close(done); remove() }()
				<-done
				s.Delete("none")
			}
			s.Set("a", 5)
			s.Set("b", 6)
			var err error
			for range 2 { // the first one exits, if Config.Close does
				done := make(chan struct{})
				go func() { defer close(done); err = s.Close(t.Context()) }()
				<-done
			}
			if name == "Goexit" {
				if err == nil || strings.Count(err.Error(), "Close function called runtime.Goexit") != 6 {
					t.Errorf("Close returns %v", err)
				}
			} else if !errors.Is(err, errRefused) || strings.Count(err.Error(), "connection refused") != 6 {
				t.Errorf("Close returns %v", err)
			}
			if name == "panic" && strings.Count(err.Error(), "oncecache: Close function panicked: ") != 6 {
				t.Errorf("Close returns %v", err)
			}
			slices.Sort(s.closed)
			if !slices.Equal(s.closed, []int{-1, 0, 1, 3, 5, 6}) {
				t.Errorf("closed %v", s.closed)
			}
		})
	}
}

// Who leaves a creation without a context of its own takes only its lease along.
func TestLeaseOfAPlainCreationIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop()
		owner := begin(t, s.Cache, "k")
		ctx, leave := context.WithCancel(t.Context())
		user := startCall(func() (int, error) { _, err := s.Acquire(ctx, "k", makes(9)); return 0, err })
		synctest.Wait()
		leave()
		wantAll(t, []*call{user}, left)
		owner.end <- with(1)
		wantAll(t, []*call{owner.call}, result{value: 1})
		s.Delete("k")
		s.wantClosed(t, 1)
	})
}

// A caller that has waited gets a lease of what came in the place of its creation: of a value that Set
// brought, which is used then, or of one that is in no table, on which nothing depends.
func TestLeaseOfWhatCameInstead(t *testing.T) {
	for want, instead := range map[int]func(c *oncecache.Cache[string, int]){
		1: func(c *oncecache.Cache[string, int]) { c.Delete("k") },
		2: func(c *oncecache.Cache[string, int]) { c.Set("k", 2) },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := oncecache.MustNew(config{MaxEntries: 2})
			p := newPilot()
			acquired := startCall(func() (int, error) {
				l, err := c.Acquire(t.Context(), "k", p.create)
				defer l.Release()
				return l.Value(), err
			})
			<-p.ctx
			instead(c)
			p.end <- with(1)
			wantAll(t, []*call{acquired}, result{value: want})
			if want == 2 {
				c.Set("l", 3)
				c.Set("m", 4)
				wantGet(t, c, "k", 2)
				wantAbsent(t, c, "l")
			}
		})
	}
}

// A NaN cannot be found, so its value is closed after its callers' leases, or
// at once if they have none.
func TestLeaseOfNaN(t *testing.T) {
	for _, background := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			closed, ctx := 0, t.Context()
			if background {
				ctx = context.Background()
			}
			c := oncecache.MustNew(oncecache.Config[float64, int]{Close: func(float64, int) error { closed++; return nil }})
			create := func(context.Context, float64) (int, error) { return 1, nil }
			l, err := c.Acquire(ctx, nan, create)
			synctest.Wait()
			if err != nil || l.Value() != 1 || closed != 0 {
				t.Fatal(l.Value(), err, closed)
			}
			l.Discard()
			if v, err := c.GetOrCreateContext(ctx, nan, create); v != 1 || err != nil {
				t.Error(v, err)
			}
			synctest.Wait() // a creator of its own closes it
			if v, err := c.GetOrCreate(nan, with(2)); v != 2 || err != nil {
				t.Error(v, err)
			}
			c.Set(nan, 3)
			if stored(c.SetIfAbsent(nan, 4)) {
				t.Error("stored a NaN")
			}
			if closed != 4 {
				t.Errorf("closed %d values, want 4", closed)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// session keeps a lease for as long as it is open.
type session struct {
	engine oncecache.Lease[string, *engine]
	_      []string
}

// dial returns a lease as any other result.
func dial(ctx context.Context, c *oncecache.Cache[string, *engine], url string) (oncecache.Lease[string, *engine], error) {
	lease, err := c.Acquire(ctx, url, func(_ context.Context, url string) (*engine, error) { return &engine{url}, nil })
	if err != nil {
		return oncecache.Lease[string, *engine]{}, err
	}
	return lease, nil
}

func openSession(ctx context.Context, c *oncecache.Cache[string, *engine], url string) (session, error) {
	lease, err := dial(ctx, c, url)
	if err != nil {
		return session{}, err
	}
	return session{engine: lease}, nil
}

func (s *session) query() string { return s.engine.Value().url }
func (s *session) close()        { s.engine.Release() }

// Leases are values: they are returned, stored, sent and ranged over.
func TestLeasesArePassedAround(t *testing.T) {
	closed := 0
	c := oncecache.MustNew(oncecache.Config[string, *engine]{Close: func(string, *engine) error { closed++; return nil }})
	s, err := openSession(t.Context(), c, memory)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan session, 1)
	sent <- s
	owner := <-sent
	sessions := map[string]session{memory: owner}
	c.Delete(memory)
	kept := sessions[memory]
	if got := kept.query(); got != memory || closed != 0 {
		t.Errorf("%s, %d closed", got, closed)
	}
	kept.close()
	kept.close() // it is released, and knows it
	if closed != 1 {
		t.Errorf("%d closed", closed)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := openSession(t.Context(), c, memory); err != oncecache.ErrClosed {
		t.Error(err)
	}
}

// The zero Lease was released.
func TestZeroLease(t *testing.T) {
	var s session
	s.close()
	s.engine.Discard()
	s.close()
	if p := panicOf(func() { s.query() }); p != "oncecache: Value called on a released lease" {
		t.Error(p)
	}
}

// Of two copies one is released too many, which shows when nobody else holds the
// value, and closes nothing that others use.
func TestCopiesOfALease(t *testing.T) {
	const twice = "oncecache: lease released twice"
	for _, deleted := range []bool{false, true} {
		s := newShop()
		s.Set("k", 1)
		lease, other := *s.acquire(t, "k", -1), *s.acquire(t, "k", -1)
		copied := lease
		if deleted {
			s.Delete("k")
		}
		lease.Release()
		if v := copied.Value(); v != 1 {
			t.Errorf("the copy has %d", v)
		}
		if p := panicOf(copied.Release); p != nil && p != twice {
			t.Errorf("the copy: %v", p)
		} else if p == nil {
			if p := panicOf(other.Release); p != twice {
				t.Errorf("deleted %t: when all are released: %v", deleted, p)
			}
		}
		s.Delete("k")
		s.wantClosed(t, 1)
	}
}

// resource is a value that is to be closed.
type resource struct {
	key           int
	users, closed atomic.Int32
	closes        *atomic.Int32
}

func (r *resource) close(t *testing.T) {
	if n := r.users.Load(); n != 0 {
		t.Errorf("closed under %d users", n)
	}
	if n := r.closed.Add(1); n != 1 {
		t.Errorf("closed %d times", n)
	}
	r.closes.Add(1)
}

// use is what the holder of a lease does.
func (r *resource) use(t *testing.T) {
	r.users.Add(1)
	if r.closed.Load() != 0 {
		t.Error("in use, and closed")
	}
	runtime.Gosched()
	if r.closed.Load() != 0 {
		t.Error("closed while in use")
	}
	r.users.Add(-1)
}

// T28, T30, T31 ccache: whatever callers do to a few keys, each value is closed
// once, after its last user, or by Close, which comes while they are at it.
func TestStressLeases(t *testing.T) {
	var made, closes atomic.Int32
	fresh := func(k int) *resource {
		made.Add(1)
		return &resource{key: k, closes: &closes}
	}
	create := func(ctx context.Context, k int) (*resource, error) {
		if runtime.Gosched(); ctx.Err() != nil && rand.IntN(2) == 0 {
			return nil, ctx.Err()
		}
		if rand.IntN(8) == 0 {
			return nil, errRefused
		}
		return fresh(k), nil
	}
	for round := range 5 {
		c := oncecache.MustNew(oncecache.Config[int, *resource]{
			Close: func(_ int, r *resource) error { r.close(t); return nil },
		})
		wanted := func(k int, r *resource, err error) {
			if err == nil && (r == nil || r.key != k) {
				t.Errorf("key %d has %v", k, r)
			}
			if err != nil && !errors.Is(err, errRefused) && err != context.Canceled && err != oncecache.ErrClosed {
				t.Error(err)
			}
		}
		together(stressWorkers, func(worker int) {
			r := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
			for i := range stressRounds() / 10 {
				k := r.IntN(stressKeys)
				ctx, leave := context.WithCancel(context.Background())
				if r.IntN(4) == 0 {
					go leave()
				}
				switch op := r.IntN(12); op {
				case 0:
					c.Set(k, fresh(k))
				case 1:
					if v := fresh(k); !stored(c.SetIfAbsent(k, v)) {
						v.close(t)
					}
				case 2:
					c.Delete(k)
				case 3:
					if v, ok := c.Get(k); ok {
						oncecache.CompareAndDelete(c, k, v)
					}
				case 4:
					v, err := c.GetOrCreateContext(ctx, k, create)
					wanted(k, v, err)
				case 5:
					v, err := c.GetOrCreate(k, func() (*resource, error) { return create(context.Background(), k) })
					wanted(k, v, err)
				case 6:
					if worker == 0 && i > stressRounds()/20 {
						c.Close(ctx)
					}
				default:
					l, err := c.Acquire(ctx, k, create)
					if err != nil {
						wanted(k, nil, err)
						break
					}
					wanted(k, l.Value(), nil)
					l.Value().use(t)
					if op == 7 {
						l.Discard()
					} else {
						l.Release()
					}
				}
				leave()
			}
		})
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if m, n := made.Load(), closes.Load(); m != n {
			t.Fatalf("round %d: %d values made, %d closed", round, m, n)
		}
		if creating, entries := oncecache.Creating(c); creating != 0 || entries != 0 || oncecache.Pending(c) != 0 {
			t.Errorf("%d creations, %d entries, %d pending at the end", creating, entries, oncecache.Pending(c))
		}
	}
}

// A lease that nobody has any more is reported, one that was released is not.
func TestLeakedLeasesAreReported(t *testing.T) {
	type report struct{ key, stack string }
	reports := make(chan report, 10)
	c := oncecache.MustNew(oncecache.Config[string, int]{
		Close:  func(string, int) error { return nil },
		OnLeak: func(k string, stack []byte) { reports <- report{k, string(stack)} },
	})
	one := func(context.Context, string) (int, error) { return 1, nil }
	for _, k := range []string{"released", "discarded", "leaked"} {
		l, err := c.Acquire(t.Context(), k, one)
		if err != nil {
			t.Fatal(err)
		}
		switch k {
		case "released":
			l.Release()
		case "discarded":
			l.Discard()
		}
	}
	collect(t, func() bool { return len(reports) > 0 })
	got := <-reports
	if got.key != "leaked" || !strings.Contains(got.stack, "TestLeakedLeasesAreReported") {
		t.Errorf("%s, acquired by\n%s", got.key, got.stack)
	}
	for range 10 {
		runtime.GC()
	}
	select {
	case r := <-reports:
		t.Errorf("%s is reported", r.key)
	default:
	}
}

// Nor is a lease reported that was released in a cache where nothing depends on it.
func TestReleasedLeasesOfNothingAreNotReported(t *testing.T) {
	reports := make(chan string, 10)
	c := oncecache.MustNew(oncecache.Config[string, int]{OnLeak: func(k string, _ []byte) { reports <- k }})
	for _, k := range []string{"released", "discarded", "leaked"} {
		l, err := c.Acquire(t.Context(), k, func(context.Context, string) (int, error) { return 1, nil })
		if err != nil {
			t.Fatal(err)
		}
		switch k {
		case "released":
			l.Release()
		case "discarded":
			l.Discard()
		}
	}
	for told := ""; told != "leaked"; {
		collect(t, func() bool { return len(reports) > 0 })
		if told = <-reports; told != "leaked" {
			t.Errorf("%s is reported", told)
		}
	}
	for range 10 {
		runtime.GC()
	}
	for len(reports) > 0 {
		t.Errorf("%s is reported", <-reports)
	}
}

// big is a value whose memory is looked for.
type big [1 << 20]byte

func makesBig(context.Context, string) (*big, error) { return new(big), nil }

func closesBig(string, *big) error { return nil }

// wantFreed checks that all but the last of made have been freed.
func wantFreed(t *testing.T, name string, made []weak.Pointer[big]) {
	t.Helper()
	runtime.GC()
	runtime.GC()
	left := 0
	for _, w := range made {
		if w.Value() != nil {
			left++
		}
	}
	if left > 1 {
		t.Errorf("%s: %d values are in memory beside the leased one", name, left)
	}
}

// A lease keeps its value, and none that came later.
func TestLeaseKeepsNoLaterValue(t *testing.T) {
	refresh := func(c *oncecache.Cache[string, *big], v *big) {
		c.Refresh(context.Background(), "k", func(context.Context, string, *big, bool) (*big, error) { return v, nil })
	}
	owner := oncecache.Config[string, *big]{TTL: time.Hour, Close: closesBig}
	for _, tt := range []struct {
		name   string
		config oncecache.Config[string, *big]
		bring  func(*oncecache.Cache[string, *big], *big)
	}{
		{"Refresh", oncecache.Config[string, *big]{}, refresh},
		{"Refresh, values are closed", oncecache.Config[string, *big]{Close: closesBig}, refresh},
		{"Refresh, MaxEntries", oncecache.Config[string, *big]{MaxEntries: 2}, refresh},
		{"Refresh, TTL", owner, refresh},
		{"Set", owner, func(c *oncecache.Cache[string, *big], v *big) { c.Set("k", v) }},
		{"Set in Refresh", owner, func(c *oncecache.Cache[string, *big], v *big) {
			c.Refresh(context.Background(), "k", func(context.Context, string, *big, bool) (*big, error) { c.Set("k", v); return new(big), nil })
		}},
		{"Delete in Refresh", owner, func(c *oncecache.Cache[string, *big], v *big) {
			c.Refresh(context.Background(), "k", func(context.Context, string, *big, bool) (*big, error) { c.Delete("k"); return v, nil })
		}},
		{"GetOrCreate", owner, func(c *oncecache.Cache[string, *big], v *big) {
			c.Delete("k")
			c.GetOrCreate("k", func() (*big, error) { return v, nil })
		}},
	} {
		c := oncecache.MustNew(tt.config)
		l, _ := c.Acquire(context.Background(), "k", makesBig)
		var made []weak.Pointer[big]
		for range 10 {
			v := new(big)
			made = append(made, weak.Make(v))
			tt.bring(c, v)
		}
		wantFreed(t, tt.name, made)
		l.Release()
		runtime.KeepAlive(c)
	}
}

// Nor one that a Refresh has made in the place of a value that had expired meanwhile.
func TestLeaseOfAnExpiredValueKeepsNoLaterOne(t *testing.T) {
	var made []weak.Pointer[big]
	var l oncecache.Lease[string, *big]
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, *big]{TTL: time.Second, Close: closesBig})
		l, _ = c.Acquire(context.Background(), "k", makesBig)
		for range 10 {
			c.Refresh(context.Background(), "k", func(context.Context, string, *big, bool) (*big, error) {
				time.Sleep(2 * time.Second)
				v := new(big)
				made = append(made, weak.Make(v))
				return v, nil
			})
		}
		c.Delete("k")
		synctest.Wait()
	})
	wantFreed(t, "it expires", made)
	runtime.KeepAlive(l)
}

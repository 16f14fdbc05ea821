//go:build !modelcheck

package histories_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	"github.com/latchfree/latchfree/oncecache"
)

// misses reports whether a call did not find the value that there is.
func (e cacheEvent) misses(s cacheState) bool {
	switch e.op {
	case "begin", "SetIfAbsent":
		return e.ok || e.absent
	case "Get", "All", "Set", "Delete":
		return !e.ok
	case "CompareAndDelete":
		return !e.ok && e.value == int(s.value)
	}
	return false
}

// renew begins a renewal of the value, or takes part in the one that there is.
func (s *cacheState) renew(c *cacheCall, e cacheEvent) bool {
	under := s.renewal()
	if !e.ok {
		if under == nil {
			// It takes part in another one whose function never runs, as a Set comes before that.
			if under = s.find(0); under == nil {
				return false
			}
			id := int32(-1)
			for s.find(id) != nil {
				id--
			}
			*under = flight{id: id, renews: true}
		}
		*c = cacheCall{renews: true, flight: under.id}
		return true
	}
	if under != nil || e.got != int(s.value) {
		return false
	}
	*c = cacheCall{renews: true, flight: int32(e.value)}
	*s.find(0) = flight{id: c.flight, runs: true, renews: true}
	return true
}

// renewal returns the one of the value that is under way, or nil.
func (s *cacheState) renewal() *flight {
	for i := range s.flights {
		if f := &s.flights[i]; f.renews && !f.settled && !f.overtaken {
			return f
		}
	}
	return nil
}

// overtake says that the value has gone, for one of Set, whose callers get that, or none.
func (s *cacheState) overtake(other promise) {
	if f := s.renewal(); f != nil {
		f.overtaken, f.other = true, other
	}
}

// settleRenewal puts the value in the place of that which was there when its function began,
// unless that has gone.
func (s *cacheState) settleRenewal(f *flight, e cacheEvent) bool {
	f.settled, f.result = true, e.ending.shared(e.value)
	if e.ending == inValue && !f.overtaken {
		s.value = f.id
	}
	return !f.runs
}

// renewed ends a call that takes part in a renewal: in the value of a Set that came meanwhile, or
// in what its function has made, if that had returned when the Set was over. The renewal is gone
// with its last call.
func (s *cacheState) renewed(id int32, p promise) bool {
	f := s.find(id)
	ok := f.settled && !f.late && f.result == p || f.other != getsUnknown && f.other == p
	if (f.settled || id < 0) && !slices.ContainsFunc(s.calls[:], func(c cacheCall) bool { return c.renews && c.flight == id }) {
		*f = flight{}
	}
	return ok
}

// refresher is what is used of a cache beside what cache has.
type refresher interface {
	cache
	Wait(context.Context, int) (int, error)
	Refresh(ctx context.Context, k int, create refreshOne) (int, error)
	GetOrCreateMany(ctx context.Context, keys []int, create func(context.Context, []int) (map[int]int, error)) (map[int]int, error)
}

// refreshClient is a goroutine that uses a cache.
type refreshClient struct {
	*cacheClient
	cache   refresher
	bounded bool
}

func (w *refreshClient) operate(k int) {
	switch w.IntN(7) {
	case 0:
		w.wait(k)
	case 1:
		w.many(k, (k+1)%cacheKeys)
	case 2, 3:
		if w.bounded { // what a Refresh finds may have gone, which nobody would know
			w.getOrCreate(k)
			return
		}
		w.refresh(k)
	case 4:
		w.cacheClient.operate(k)
	default:
		w.simple(k)
	}
}

func (w *refreshClient) wait(k int) {
	from := w.Now()
	got := w.gets(k, func() (int, error) { return w.cache.Wait(context.Background(), k) })
	to := w.Now()
	w.AddSpan(k, from, to, cacheEvent{op: "begin", client: w.ID, absent: got == getsNotFound})
	w.AddSecond(k, from, to, cacheEvent{op: "end", client: w.ID, gets: got})
}

// linger lets others run while a function does.
func (w *refreshClient) linger() {
	for range w.IntN(4) {
		runtime.Gosched()
	}
}

func (w *refreshClient) refresh(k int) {
	ending := inValue
	if w.IntN(4) == 0 {
		ending = inError
	}
	var r run
	from := w.Now()
	got := w.gets(k, func() (int, error) {
		return w.cache.Refresh(context.Background(), k, func(_ context.Context, _, old int, _ bool) (int, error) {
			r = run{began: w.Now(), value: w.fresh(), old: old}
			w.linger()
			if w.IntN(4) == 0 {
				w.simple(k)
			}
			r.ended = w.Now()
			if ending == inError {
				return 0, errRefusal
			}
			return r.value, nil
		})
	})
	to := w.Now()
	begin, end := cacheEvent{op: "begin", client: w.ID, renews: true}, cacheEvent{op: "end", client: w.ID, gets: got}
	if r.began == 0 {
		w.AddSpan(k, from, to, cacheEvent{op: "look", client: w.ID})
		w.AddSpan(k, from, to, begin)
		w.AddSecond(k, from, to, end)
		return
	}
	begin.ok, begin.value, begin.got = true, r.value, r.old
	w.AddSpan(k, from, r.began, cacheEvent{op: "look", client: w.ID})
	w.AddSpan(k, from, r.began, begin)
	w.created(k, from, r, to, ending)
	w.AddSecond(k, r.ended, to, end)
}

// many gets or creates several keys. Its function leaves out the first, or
// fails, now and then.
func (w *refreshClient) many(keys ...int) {
	how := w.IntN(6)
	runs, endings := map[int]run{}, map[int]cacheEnding{}
	from := w.Now()
	found, err := w.cache.GetOrCreateMany(context.Background(), keys, func(_ context.Context, asked []int) (map[int]int, error) {
		began, made := w.Now(), map[int]int{}
		for _, k := range asked {
			if _, again := runs[k]; again {
				w.Errorf("create ran twice for key %d of %v", k, keys)
			}
			made[k], endings[k] = w.fresh(), inValue
			runs[k] = run{began: began, value: made[k]}
		}
		w.linger()
		for _, k := range asked {
			r := runs[k]
			r.ended = w.Now()
			runs[k] = r
		}
		switch how {
		case 0:
			for k := range made {
				endings[k] = inError
			}
			return nil, errRefusal
		case 1:
			endings[asked[0]] = inNothing
			delete(made, asked[0])
		}
		return made, nil
	})
	to := w.Now()
	for _, k := range keys {
		got, ok := getsNotFound, false
		if w.knows[k], ok = found[k]; ok {
			got = gets + promise(found[k])
		} else if err != nil {
			got = getsFailure
		}
		end := cacheEvent{op: "end", client: w.ID, gets: got}
		r, own := runs[k]
		if !own {
			w.AddSpan(k, from, to, cacheEvent{op: "begin", client: w.ID, absent: false})
			w.AddSecond(k, from, to, end)
			continue
		}
		w.AddSpan(k, from, r.began, cacheEvent{op: "begin", client: w.ID, ok: true, value: r.value})
		w.created(k, from, r, to, endings[k])
		w.AddSecond(k, r.ended, to, end)
	}
}

// refreshTrial is like cacheTrial, with the other calls that create. In a cache
// with bounds, what has to go is what nobody finds any more.
func refreshTrial(bounded bool, fresh func() refresher) func(*rand.Rand) history.Trial[cacheState] {
	return func(*rand.Rand) history.Trial[cacheState] {
		c := fresh()
		return history.Trial[cacheState]{
			Init: cacheState{bounded: bounded}, Clients: cacheClients, Value: c,
			Work: func(client *history.Client[cacheState]) {
				w := &refreshClient{&cacheClient{Client: client, cache: c, overtakes: !bounded}, c, bounded}
				w.Rounds(cacheKeys, w.operate, func() {
					if !bounded {
						w.tide()
					}
				})
			},
			After: func(client *history.Client[cacheState]) {
				w := &cacheClient{Client: client, cache: c}
				there := maps.Collect(c.All())
				for k := range cacheKeys {
					if w.get(k) != slices.Contains(slices.Collect(maps.Keys(there)), k) {
						w.Errorf("in the end All does not say of %d what Get says", k)
					}
				}
				if n := c.Len(); n != len(there) || bounded && n > maxEntries {
					w.Errorf("in the end Len is %d, of %v", n, there)
				}
			},
		}
	}
}

const maxEntries = 2

func newBounded() realCache {
	return realCache{oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: maxEntries})}
}

func TestRefreshHistories(t *testing.T) {
	cover := history.Check(t, refreshTrial(false, func() refresher { return realCache{new(oncecache.Cache[int, int])} }),
		"overtook", "begin true", "begin false", "settled in a value", "settled in an error", "settled in nothing",
		"end gets a value", "end gets the error", "end gets ErrNotFound", "end gets a failure")
	cover.RequireResizes(t)
}

func TestBoundedHistories(t *testing.T) {
	history.Check(t, refreshTrial(true, func() refresher { return newBounded() }),
		"begin true", "begin false", "Get true", "Get false", "All false", "Set true", "Delete true",
		"settled in a value", "settled in an error", "settled in nothing", "settled in a panic", "end gets a value", "end gets ErrNotFound")
}

// A Refresh may take part in another one that a Set ends before its function runs: it gets that value, and
// no other, and what that other calls later is one of its own.
func TestModelOfRefreshThatNeverRan(t *testing.T) {
	const first, second = 0, 1
	for value, want := range map[int]bool{5: true, 7: false, 9: false} {
		s, ok := cacheState{value: 7}, true
		for _, e := range []cacheEvent{
			{op: "look", client: first},
			{op: "look", client: second},
			{op: "begin", client: second, renews: true},
			{op: "Set", value: 5, got: 7, ok: true},
			{op: "begin", client: first, renews: true, ok: true, value: 9, got: 5},
			{op: "end", client: second, gets: gets + promise(value)},
			{op: "ran", value: 9},
			{op: "settled", value: 9, ending: inValue},
			{op: "end", client: first, gets: gets + 9},
		} {
			var good bool
			s, good = e.After(s)
			ok = ok && good
		}
		if ok != want {
			t.Errorf("that the second gets %d is possible: %v, want %v", value, ok, want)
		}
	}
}

package sequences

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

// FuzzCacheOps reads a byte with the settings, and two for each operation:
// which one, and the key with what else the operation needs. Creations stay in
// flight, with other callers waiting for them and leaving, until an operation
// ends them; leases are held until one ends them; time passes in operations of
// its own.
func FuzzCacheOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 200 {
			return // longer ones find nothing that these do not
		}
		synctest.Test(t, func(t *testing.T) { cacheOps(t, ops, nil) })
	})
}

// FuzzCacheWeights reads what FuzzCacheOps does, for a cache with MaxWeight.
func FuzzCacheWeights(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 200 {
			return
		}
		synctest.Test(t, func(t *testing.T) { cacheWeights(t, ops, nil) })
	})
}

// FuzzCacheExpiry reads what FuzzCacheOps does, for a cache with TTL, after a byte that says
// whether it has MaxWeight too.
func FuzzCacheExpiry(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 200 {
			return
		}
		synctest.Test(t, func(t *testing.T) { cacheExpiry(t, ops, nil) })
	})
}

// Values weigh 0 to 7. Seven is too much.
const cacheMaxWeight = 6

func cacheWeight(v int) int64 { return int64(v*5/3) % (cacheMaxWeight + 2) }

// The settings. Without any, the cache is a zero Cache.
const (
	cacheCloses = 1 << iota
	_
	cacheKeepsErrors
	cacheTimesOut
	cacheIdles
	cacheMaxEntries          // from 0 to 3, in two bits
	cacheListens    = 1 << 7 // Config.OnRemove, Config.OnCreate and Config.RecordStats
	cacheWeighs     = 1 << 8 // Config.MaxWeight
	cacheExpires    = 1 << 9 // Config.TTL
)

// Deadlines are at whole milliseconds, and operations between them, at which creations take too long.
const (
	offset        = 300 * time.Microsecond
	createTimeout = 30 * time.Millisecond
	idleTimeout   = 40*time.Millisecond + 2*time.Microsecond
	cacheKeys     = 5
)

// lifetime is Config.TTLFunc at some time since the cache was made.
func lifetime(k, v int, at time.Duration) time.Duration {
	return [...]time.Duration{25 * time.Millisecond, math.MaxInt64, 0, 7 * time.Millisecond, 60 * time.Millisecond}[(k+v+int(at/(64*time.Millisecond)))%5]
}

// cacheRun is one run of operations against the model.
type cacheRun struct {
	t                    *testing.T
	c                    *oncecache.Cache[int, int]
	m                    *model.Owner
	epoch                time.Time
	calls                []*cacheCall
	open                 []*cacheFunction // that run
	leases               []*cacheCall     // calls whose lease is held
	unheard              bool             // a panic that no caller got
	zero                 bool             // the cache is a zero Cache
	closes               bool             // there is a Config.Close
	listens              bool             // there is a Config.OnRemove
	hits, misses, joined uint64
	reached              map[string]int // operations and outcomes; nil: nobody counts them

	mu      sync.Mutex
	closed  []int          // by Config.Close
	removed map[int]string // by value: what Config.OnRemove was told
	ended   [2]uint64      // how often Config.OnCreate was told of a value, and of an error
	took    time.Duration  // by what Config.OnCreate was told
}

func newCacheRun(t *testing.T, settings int, reached map[string]int) *cacheRun {
	r := &cacheRun{t: t, epoch: time.Now(), reached: reached, removed: map[int]string{}}
	config := oncecache.Config[int, int]{Create: createOfCache, MaxEntries: int(settings / cacheMaxEntries % 4)}
	if settings&cacheCloses != 0 {
		config.Close = func(_, v int) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.closed = append(r.closed, v)
			return nil
		}
	}
	if settings&cacheListens != 0 {
		config.RecordStats = true
		config.OnCreate = func(_ int, took time.Duration, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.took += took
			if err == nil {
				r.ended[0]++
			} else {
				r.ended[1]++
			}
		}
		config.OnRemove = func(_, v int, why oncecache.Reason, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			require.NotContains(t, r.removed, v, "told twice")
			require.Equal(t, config.Close != nil, slices.Contains(r.closed, v), "told before it is closed")
			require.NoError(t, err)
			r.removed[v] = why.String()
		}
	}
	if settings&cacheKeepsErrors != 0 {
		config.ErrorTTLFunc = func(k int, _ error) time.Duration {
			return [cacheKeys]time.Duration{25 * time.Millisecond, -1, 0, 50 * time.Millisecond, time.Nanosecond}[k]
		}
	}
	if settings&cacheTimesOut != 0 {
		config.CreateTimeout = createTimeout
	}
	if settings&cacheIdles != 0 {
		config.IdleTimeout = idleTimeout
	}
	if settings&cacheExpires != 0 {
		config.TTLFunc = func(k, v int) time.Duration { return lifetime(k, v, time.Since(r.epoch)) }
	}
	if settings&cacheWeighs != 0 {
		config.MaxWeight, config.Weight = cacheMaxWeight, func(_, v int) int64 { return cacheWeight(v) }
	}
	r.closes, r.listens = config.Close != nil, config.OnRemove != nil
	r.c = oncecache.MustNew(config)
	if r.zero = settings == 0; r.zero {
		r.c = new(oncecache.Cache[int, int])
		r.c.Len() // which makes what a cache has
	}
	time.Sleep(offset)
	r.m = model.NewOwner(model.CacheSettings{
		Closes: config.Close != nil || config.OnRemove != nil, TTL: config.ErrorTTLFunc, CreateTimeout: config.CreateTimeout,
		IdleTimeout: config.IdleTimeout, MaxEntries: config.MaxEntries,
		ErrClosed: oncecache.ErrClosed, ErrTimeout: oncecache.ErrCreateTimeout, ErrNotFound: oncecache.ErrNotFound,
		ErrNotModified: oncecache.ErrNotModified,
	})
	if settings&cacheWeighs != 0 {
		r.m.MaxWeight, r.m.Weight = cacheMaxWeight, cacheWeight
	}
	if r.m.Now = offset; settings&cacheExpires != 0 {
		r.m.Lifetime = func(k, v int) time.Duration { return lifetime(k, v, r.m.Now) }
	}
	return r
}

func cacheOps(t *testing.T, ops []byte, reached map[string]int) {
	if len(ops) > 0 {
		newCacheRun(t, int(ops[0]), reached).run(ops[1:])
	}
}

func cacheWeights(t *testing.T, ops []byte, reached map[string]int) {
	if len(ops) > 0 {
		newCacheRun(t, int(ops[0])|cacheWeighs, reached).run(ops[1:])
	}
}

func cacheExpiry(t *testing.T, ops []byte, reached map[string]int) {
	if len(ops) > 1 {
		newCacheRun(t, int(ops[0])|int(ops[1]&1)*cacheWeighs|cacheExpires, reached).run(ops[2:])
	}
}

func (r *cacheRun) run(ops []byte) {
	defer func() { // whatever happened, leave nobody behind
		for _, k := range r.calls {
			k.leave()
			for _, f := range k.begun {
				close(f.end)
			}
		}
	}()
	for v := 1; len(ops) >= 2; v++ {
		before := r.m.CacheStats
		r.do(ops[0], v, int(ops[1]))
		ops = ops[2:]
		r.check()
		r.sawBounds(before)
	}
	for len(r.open) > 0 {
		r.end(0, endsInValue)
		r.check()
	}
	for len(r.leases) > 0 {
		r.release(0, false)
	}
	r.close()
	r.check()
	require.Zero(r.t, r.m.Pending)
}

// do does operation op, in which v is a new value.
func (r *cacheRun) do(op byte, v, arg int) {
	t, c, m := r.t, r.c, r.m
	key, rest := arg%cacheKeys, arg/cacheKeys
	switch op % 22 {
	case 0:
		r.call(asksPlainly, v, 0, key)
	case 1: // a create function ends
		if len(r.open) > 0 {
			r.end(key%len(r.open), cacheEnding(rest))
		}
	case 2:
		got, ok := c.Get(key)
		want, wantOK := m.Get(key)
		r.looked(key)
		require.Equal(t, wantOK, ok, "Get")
		require.Equal(t, want, got, "Get")
		r.saw("Get", ok)
	case 3:
		if now := m.All()[key]; rest%4 == 1 && now != 0 && m.Closes {
			v = now
		}
		old, replaced := c.Set(key, v)
		wantOld, wantReplaced := m.Set(key, v)
		require.Equal(t, wantReplaced, replaced, "Set")
		require.Equal(t, wantOld, old, "Set")
		r.saw("Set", replaced)
	case 4:
		r.saw("SetIfAbsent in the place of an error", m.Occupied(key))
		actual, stored := c.SetIfAbsent(key, v)
		want, wantStored := m.SetIfAbsent(key, v)
		require.Equal(t, wantStored, stored, "SetIfAbsent")
		require.Equal(t, want, actual, "SetIfAbsent")
		r.saw("SetIfAbsent", stored)
	case 5:
		old, deleted := c.Delete(key)
		wantOld, wantDeleted := m.Delete(key)
		require.Equal(t, wantDeleted, deleted, "Delete")
		require.Equal(t, wantOld, old, "Delete")
		r.saw("Delete", deleted)
	case 6:
		old := m.All()[key] - rest%2 // the value that is there, or another
		deleted := oncecache.CompareAndDelete(c, key, old)
		require.Equal(t, m.CompareAndDelete(key, old), deleted, "CompareAndDelete")
		r.saw("CompareAndDelete", deleted)
	case 7:
		r.loops()
	case 8:
		r.call(asksWithContext, v, rest, key)
	case 9:
		r.call(acquires, v, rest, key)
	case 10:
		r.leave(arg)
	case 11, 12: // Release, Discard
		if len(r.leases) > 0 {
			r.release(arg%len(r.leases), op%22 == 12)
		}
	case 13:
		r.close()
	case 14:
		r.call(waits, v, rest, key)
	case 15:
		r.call(refreshes, v, rest, key)
	case 16: // one to three keys, of which one may be there twice
		keys := []int{key, (key + 1 + rest/4%2) % cacheKeys, (key + 3*(rest/8%2)) % cacheKeys}
		n := 1 + rest/16%3
		if m.TTL != nil && m.MaxEntries+int(m.IdleTimeout+time.Duration(m.MaxWeight)) > 0 {
			n = 1 // else errors are used when the call comes to them, while others make room
		}
		if m.MaxEntries > 0 || m.Weight != nil {
			n = 1 // else others make room while the call returns and puts back its leases
		}
		r.call(asksForMany, v, rest, keys[:n]...)
	case 17:
		for range arg % 128 {
			r.pass()
		}
	case 18:
		r.bound(arg)
	case 19:
		n := c.Clear()
		require.Equal(t, m.Clear(), n, "Clear")
		r.saw("Clear", min(n, 2))
	case 20:
		r.call(r.byCache(loads, asksWithContext), v, rest, key)
	case 21:
		r.call(r.byCache(renews, refreshes), v, rest, key)
	}
}

// byCache returns the kind of a call that is given no function, or, if the cache has none either,
// another.
func (r *cacheRun) byCache(kind, other cacheKind) cacheKind {
	if r.zero {
		return other
	}
	return kind
}

// bound changes a bound.
func (r *cacheRun) bound(to int) {
	entries, weight := 1+to%3, int64(1+to%cacheMaxWeight)
	bounds := r.m.MaxEntries > 0
	require.Equal(r.t, bounds, r.c.SetMaxEntries(entries) == nil, "SetMaxEntries")
	if bounds {
		r.m.BoundEntries(entries)
		r.saw("SetMaxEntries", entries)
	}
	weighs := r.m.Weight != nil
	require.Equal(r.t, weighs, r.c.SetMaxWeight(weight) == nil, "SetMaxWeight")
	if weighs {
		r.m.BoundWeight(weight)
		r.saw("SetMaxWeight", weight)
	}
}

// looked counts the first look-up of a call.
func (r *cacheRun) looked(keys ...int) {
	for _, k := range keys {
		if r.m.All()[k] != 0 {
			r.hits++
		} else {
			r.misses++
		}
	}
}

// pass lets a millisecond pass.
func (r *cacheRun) pass() {
	time.Sleep(time.Millisecond)
	r.m.Pass(time.Millisecond)
	synctest.Wait()
	r.settle() // who looks again may begin to create now
}

// sawBounds notes what an operation has made go.
func (r *cacheRun) sawBounds(before model.CacheStats) {
	now := r.m.CacheStats
	r.saw("evicted", min(now.Evicted+now.Idle-before.Evicted-before.Idle, 2))
	r.saw("expired", min(now.Expired-before.Expired, 2))
	r.saw("timed out", min(now.TimedOut-before.TimedOut, 2))
	r.saw("more than MaxEntries", r.m.MaxEntries > 0 && len(r.m.All()) > r.m.MaxEntries)
}

// release ends the i-th lease.
func (r *cacheRun) release(i int, discard bool) {
	k := r.leases[i]
	r.leases = slices.Delete(r.leases, i, i+1)
	key, v := k.keys[0], k.got[k.keys[0]]
	require.NotContains(r.t, r.closed, v, "closed in use")
	require.Equal(r.t, v, k.lease.Value())
	if discard {
		k.lease.Discard()
		r.saw("Discard", r.m.Discard(key, v))
	} else {
		k.lease.Release()
		r.saw("Release", r.m.All()[key] == v)
	}
	r.m.Release(v)
	require.Panics(r.t, func() { k.lease.Value() })
	k.lease.Release() // changes nothing
}

// close closes the cache without waiting.
func (r *cacheRun) close() {
	for _, k := range r.calls {
		if k.given == nil {
			k.given = map[int]int{}
		}
		for _, p := range k.parts {
			if k.kind == asksForMany && !k.seen && p.flight.Given && !p.held {
				k.given[p.key] = p.flight.Value
			}
		}
	}
	now, cancel := context.WithCancel(r.t.Context())
	cancel()
	var pending *oncecache.PendingError
	if err := r.c.Close(now); errors.Is(err, context.Canceled) {
		require.ErrorAs(r.t, err, &pending, "Close")
	}
	r.m.Close()
	synctest.Wait() // for Close functions
	r.settle()
	err := r.c.Close(now)
	if r.m.Pending > 0 {
		require.ErrorIs(r.t, err, context.Canceled, "Close while %d are pending", r.m.Pending)
	} else {
		require.NotErrorIs(r.t, err, context.Canceled, "Close")
	}
	if r.unheard {
		require.ErrorIs(r.t, err, errPanicked, "Close")
	} else {
		require.NotErrorIs(r.t, err, errPanicked, "Close")
	}
	r.saw("Close while something is pending", r.m.Pending > 0)
	r.saw("Close tells a panic", r.unheard)
}

// check compares everything with the model.
func (r *cacheRun) check() {
	synctest.Wait()
	r.settle()
	for _, k := range r.calls {
		r.checkCall(k)
	}
	slices.Sort(r.closed)
	if r.closes {
		require.Equal(r.t, slices.Sorted(maps.Keys(r.m.Closed)), r.closed, "closed")
	}
	if r.listens {
		require.Equal(r.t, r.m.Removed, r.removed, "removed")
		for _, why := range r.removed {
			r.saw("removed", why)
		}
	}
	require.Equal(r.t, len(r.m.All()), r.c.Len(), "Len")
	stats := r.m.CacheStats
	if !r.listens {
		r.hits, r.misses, r.joined, stats.CreateTime = 0, 0, 0, 0
	} else {
		require.Equal(r.t, [2]uint64{uint64(stats.Created), uint64(stats.Failed + stats.Panicked)}, r.ended, "OnCreate")
		require.Equal(r.t, stats.CreateTime, r.took, "OnCreate")
	}
	require.Equal(r.t, oncecache.Stats{
		Recorded: r.listens,
		Hits:     r.hits, Misses: r.misses, Joined: r.joined, Idle: uint64(stats.Idle), CreateTime: stats.CreateTime, Weight: r.m.TotalWeight(),
		Created: uint64(stats.Created), Failed: uint64(stats.Failed), Panicked: uint64(stats.Panicked),
		TimedOut: uint64(stats.TimedOut), Evicted: uint64(stats.Evicted), Expired: uint64(stats.Expired), Closed: uint64(len(r.closed)),
	}, r.c.Stats(), "Stats")
	if r.m.Weight != nil {
		r.saw("weight", r.m.TotalWeight())
		r.saw("more than MaxWeight", r.m.TotalWeight() > r.m.MaxWeight)
	}
	r.loops()
}

// loops compares what Peek and Info tell of each key, and what All, Keys and InFlight yield.
func (r *cacheRun) loops() {
	r.peeks()
	got := map[int]int{}
	for k, v := range r.c.All() {
		require.NotContains(r.t, got, k, "All yields a key twice")
		got[k] = v
	}
	require.Equal(r.t, r.m.All(), got, "All")
	require.Equal(r.t, slices.Sorted(maps.Keys(got)), slices.Sorted(r.c.Keys()), "Keys")
	var want, flights []oncecache.Flight[int]
	for _, f := range r.m.Underway() {
		key, since := r.m.Began(f)
		waiting := 0
		for _, k := range r.calls {
			if p := k.awaits(); p != nil && p.flight == f && !k.over() {
				waiting++
			}
		}
		want = append(want, oncecache.Flight[int]{Key: key, Since: r.epoch.Add(since), Waiting: waiting})
	}
	for f := range r.c.InFlight() {
		flights = append(flights, f)
	}
	require.ElementsMatch(r.t, want, flights, "InFlight")
}

// peeks compares what Peek and Info tell of each key.
func (r *cacheRun) peeks() {
	for key := range cacheKeys {
		want, there := r.m.All()[key]
		v, ok := r.c.Peek(key)
		require.Equal(r.t, there, ok, "Peek")
		require.Equal(r.t, want, v, "Peek")
		born, ends, leases, there := r.m.Info(key)
		info, ok := r.c.Info(key)
		require.Equal(r.t, there, ok, "Info")
		if !there {
			continue
		}
		wantInfo := oncecache.Info{Leases: leases}
		if born != 0 {
			wantInfo.Created = r.epoch.Add(born)
		}
		if ends != 0 {
			wantInfo.Expires = r.epoch.Add(ends)
		}
		require.True(r.t, wantInfo.Created.Equal(info.Created), "%v, want %v", info.Created, wantInfo.Created)
		require.True(r.t, wantInfo.Expires.Equal(info.Expires), "%v, want %v", info.Expires, wantInfo.Expires)
		require.Equal(r.t, wantInfo.Leases, info.Leases, "leases of %d", key)
	}
}

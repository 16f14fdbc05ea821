package latchotel_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	latchotel "github.com/latchfree/latchfree/integrations/otel"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBreaker(t *testing.T) {
	meter, collect := reader(t)
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(3), OpenTimeout: -1})
	first(latchotel.Breaker(meter, "db", b))
	fail := func(context.Context) error { return errDown }
	permit := first(b.Allow())
	_ = b.Do(context.Background(), fail)
	_ = b.Do(context.Background(), fail)
	includes(t, samples(t, first(collect())), map[string]float64{
		"breaker.failures breaker.name=db": 2, "breaker.state breaker.name=db breaker.state=Closed": 1, "breaker.retry_after breaker.name=db": 0,
	})
	_ = b.Do(context.Background(), fail)
	require.ErrorIs(t, b.Do(context.Background(), fail), atomicbreaker.ErrOpen)
	permit.Failure()
	all := samples(t, first(collect()))
	includes(t, all, map[string]float64{
		"breaker.state breaker.name=db breaker.state=Closed": 0, "breaker.state breaker.name=db breaker.state=Open": 1,
		"breaker.open breaker.name=db": 1, "breaker.openings breaker.name=db": 1, "breaker.rejected breaker.name=db": 1,
		"breaker.late breaker.name=db": 1, "breaker.streak breaker.name=db": 1, "breaker.probes breaker.name=db": 0,
	})
	assert.NotContains(t, all, "breaker.retry_after breaker.name=db")
	b.Reset()
	includes(t, samples(t, first(collect())), map[string]float64{
		"breaker.openings breaker.name=db": 1, "breaker.closings breaker.name=db": 1, "breaker.rejected breaker.name=db": 1,
	})
}

func TestGroup(t *testing.T) {
	meter, collect := reader(t)
	var g atomicbreaker.Group[string]
	first(latchotel.Group(meter, "g", &g, latchotel.GroupOptions[string]{MaxKeys: 2}))
	fail := func(key string, times int) {
		for range times {
			g.RecordFailure(key)
		}
	}
	fail("open", 5)
	fail("three", 3)
	fail("two", 2)
	fail("_other", 1)
	all := samples(t, first(collect()))
	includes(t, all, map[string]float64{
		"breaker_group.keys breaker.state=Open breaker_group.name=g":               1,
		"breaker_group.keys breaker.state=Closed breaker_group.name=g":             3,
		"breaker_group.key.open breaker_group.key=open breaker_group.name=g":       1,
		"breaker_group.key.failures breaker_group.key=three breaker_group.name=g":  3,
		"breaker_group.key.failures breaker_group.key=_other breaker_group.name=g": 3,
		"breaker_group.openings breaker_group.name=g":                              1,
	})
	assert.NotContains(t, all, "breaker_group.key.failures breaker_group.key=two breaker_group.name=g")
	_, err := g.Allow("open")
	require.Error(t, err)
	g.ResetAll()
	includes(t, samples(t, first(collect())), map[string]float64{
		"breaker_group.keys breaker.state=Open breaker_group.name=g": 0, "breaker_group.openings breaker_group.name=g": 1,
		"breaker_group.rejected breaker_group.name=g": 1, "breaker_group.late breaker_group.name=g": 0, "breaker_group.withheld breaker_group.name=g": 0, "breaker_group.wrong_settings breaker_group.name=g": 0,
	})
}

func TestThrottleAndBudget(t *testing.T) {
	meter, collect := reader(t)
	var th throttle.Throttle
	var budget retrybudget.Budget
	first(latchotel.Throttle(meter, "t", &th))
	first(latchotel.RetryBudget(meter, "r", &budget))
	require.NoError(t, th.Allow())
	th.Success()
	all := samples(t, first(collect()))
	includes(t, all, map[string]float64{
		"throttle.requests throttle.name=t": 1, "throttle.accepts throttle.name=t": 1, "throttle.reject_probability throttle.name=t": 0,
		"retry_budget.available retry_budget.name=r": float64(budget.Available()),
	})
}

func TestCache(t *testing.T) {
	meter, collect := reader(t)
	onCreate := first(latchotel.Creations[int](meter, "c"))
	c := oncecache.MustNew(oncecache.Config[int, int]{
		RecordStats: true, MaxEntries: 1, OnCreate: onCreate, Close: func(int, int) error { return nil },
	})
	first(latchotel.Cache(meter, "c", c, latchotel.CacheOptions{Flights: true}))
	first(latchotel.Cache(meter, "plain", new(oncecache.Cache[int, int]), latchotel.CacheOptions{}))
	one := func() (int, error) { return 1, nil }
	first(c.GetOrCreate(1, one))
	first(c.GetOrCreate(1, one))
	first(c.GetOrCreate(2, one))
	_, err := c.GetOrCreate(3, func() (int, error) { return 0, errDown })
	require.Error(t, err)
	require.Panics(t, func() { _, _ = c.GetOrCreate(4, func() (int, error) { panic("boom") }) })
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_, _ = c.GetOrCreate(4, func() (int, error) { runtime.Goexit(); return 0, nil })
	}()
	<-exited
	started, finish, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.GetOrCreate(5, func() (int, error) { close(started); <-finish; return 0, errDown })
	}()
	<-started
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		_, _ = c.GetOrCreate(5, one)
	}()
	for c.Stats().Joined == 0 || waiting(c) == 0 {
		runtime.Gosched()
	}
	all := samples(t, first(collect()))
	includes(t, all, map[string]float64{
		"cache.entries cache.name=c": 1, "cache.hits cache.name=c": 1, "cache.misses cache.name=c": 7, "cache.joined cache.name=c": 1,
		"cache.created cache.name=c": 2, "cache.create.failures cache.name=c": 1, "cache.create.panics cache.name=c": 2, "cache.create.timeouts cache.name=c": 0,
		"cache.removals cache.name=c cache.reason=Evicted": 1, "cache.removals cache.name=c cache.reason=Idle": 0, "cache.removals cache.name=c cache.reason=Expired": 0,
		"cache.create.in_flight cache.name=c": 1, "cache.create.waiting cache.name=c": 1,
		"cache.create.duration cache.name=c cache.result=ok": 2, "cache.create.duration cache.name=c cache.result=error": 1, "cache.create.duration cache.name=c cache.result=panic": 2,
	})
	assert.Positive(t, all["cache.create.oldest cache.name=c"])
	assert.NotContains(t, all, "cache.hits cache.name=plain")
	assert.NotContains(t, all, "cache.create.in_flight cache.name=plain")
	close(finish)
	<-ended
	<-joined
	c.Clear()
	require.NoError(t, c.Close(context.Background()))
	includes(t, samples(t, first(collect())), map[string]float64{
		"cache.entries cache.name=c": 0, "cache.hits cache.name=c": 1, "cache.created cache.name=c": 2, "cache.value_closes cache.name=c": 2,
		"cache.create.in_flight cache.name=c": 0, "cache.create.oldest cache.name=c": 0,
	})
}

func TestCacheWeightAndTTL(t *testing.T) {
	meter, collect := reader(t)
	weight := func(_, v int) int64 { return int64(v) }
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxWeight: 10, Weight: weight})
	c.Set(1, 7)
	expired := oncecache.MustNew(oncecache.Config[int, int]{TTLFunc: func(int, int) time.Duration { return 0 }})
	expired.Set(1, 1)
	first(latchotel.Cache(meter, "c", c, latchotel.CacheOptions{}))
	first(latchotel.Cache(meter, "ttl", expired, latchotel.CacheOptions{}))
	includes(t, samples(t, first(collect())), map[string]float64{
		"cache.weight cache.name=c": 7, "cache.removals cache.name=ttl cache.reason=Expired": 1,
	})
}

func TestRegistryTrackerJournal(t *testing.T) {
	meter, collect := reader(t)
	ctx := context.Background()
	var r shardedregistry.Registry[string, int]
	j := first(journal.Open[int](t.TempDir(), journal.Options{}))
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{Store: j})
	first(latchotel.Registry(meter, "r", &r))
	first(latchotel.Tracker(meter, "t", tracker))
	first(latchotel.Journal(meter, "j", j))
	first(r.Put("a", 1))
	for range 3 {
		first(tracker.Start(ctx))
		first(tracker.Record(1))
	}
	require.NoError(t, tracker.Flush(ctx))
	require.NoError(t, j.Rotate(ctx)) // which syncs, but writes for no call
	lines, stats := float64(j.Hash().Line), j.Stats()
	require.Positive(t, lines)
	different(t, stats.Entries, stats.Bytes, stats.Writes, stats.Syncs, uint64(stats.Size), uint64(stats.Segments), 0, 1)
	includes(t, samples(t, first(collect())), map[string]float64{
		"registry.entries registry.name=r": 1, "tracker.changesets tracker.name=t": 3, "tracker.open tracker.name=t": 1,
		"tracker.entries tracker.name=t": 1, "tracker.durable_seq tracker.name=t": 1,
		"journal.lines journal.name=j": lines, "journal.recovered journal.name=j": 0,
		"journal.entries journal.name=j": float64(stats.Entries), "journal.written journal.name=j": float64(stats.Bytes),
		"journal.writes journal.name=j": float64(stats.Writes), "journal.syncs journal.name=j": float64(stats.Syncs),
		"journal.failures journal.name=j": 0, "journal.broken journal.name=j": 0, "journal.segments journal.name=j": 2,
		"journal.size journal.name=j": float64(stats.Size), "journal.waiting journal.name=j": 0,
	})
	c, _ := tracker.Current()
	first(c.Seal(ctx))
	require.NoError(t, tracker.Flush(ctx))
	require.NoError(t, j.Prune(ctx, 2))
	require.NoError(t, j.Close())
	r.Delete("a")
	all := samples(t, first(collect()))
	includes(t, all, map[string]float64{"registry.entries registry.name=r": 0, "tracker.changesets tracker.name=t": 3, "tracker.open tracker.name=t": 0})
	assert.GreaterOrEqual(t, all["journal.lines journal.name=j"], lines)
}

// A journal that breaks says so: its files go, and it sees that.
func TestBrokenJournal(t *testing.T) {
	meter, collect := reader(t)
	dir, archive, ctx := filepath.Join(t.TempDir(), "journal"), filepath.Join(t.TempDir(), "archive"), context.Background()
	require.NoError(t, os.Mkdir(archive, 0o700))
	j := first(journal.Open[int](dir, journal.Options{Archive: archive}))
	first(latchotel.Journal(meter, "j", j))
	require.NoError(t, j.Start(ctx, cowchangeset.Header{ID: "a", Ordinal: 1}))
	require.NoError(t, j.Seal(ctx, "a", cowchangeset.Manifest{}))
	require.NoError(t, j.Rotate(ctx))
	require.NoError(t, j.Start(ctx, cowchangeset.Header{ID: "b", Ordinal: 2, Previous: "a"}))
	require.NoError(t, os.RemoveAll(archive))
	require.Error(t, j.Prune(ctx, 2), "no place for the segment")
	includes(t, samples(t, first(collect())), map[string]float64{"journal.broken journal.name=j": 0, "journal.failures journal.name=j": 1})
	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, j.Rotate(ctx), journal.ErrBroken)
	includes(t, samples(t, first(collect())), map[string]float64{"journal.broken journal.name=j": 1, "journal.failures journal.name=j": 2})
	require.ErrorIs(t, j.Close(), journal.ErrBroken)
}

// Of two calls at a time one waits, now and then, while the other writes; before one begins
// to write, both do.
func TestJournalWaits(t *testing.T) {
	meter, collect := reader(t)
	j := first(journal.Open[string](t.TempDir(), journal.Options{}))
	first(latchotel.Journal(meter, "j", j))
	ctx := context.Background()
	var stop atomic.Bool
	var calls sync.WaitGroup
	defer func() {
		stop.Store(true)
		calls.Wait()
		assert.NoError(t, j.Close())
	}()
	for i, id := range []string{"a", "b"} {
		require.NoError(t, j.Start(ctx, cowchangeset.Header{ID: id, Ordinal: uint64(i + 1), Previous: []string{"", "a"}[i]}))
		calls.Go(func() {
			for seq := uint64(0); seq < 200_000 && !stop.Load(); seq++ {
				assert.NoError(t, j.Append(ctx, id, []cowchangeset.Entry[string]{{Seq: seq, Value: "x"}}))
			}
			stop.Store(true)
		})
	}
	for n := 0.0; n != 1; {
		require.False(t, stop.Load(), "no call waits")
		n = samples(t, first(collect()))["journal.waiting journal.name=j"]
		require.Contains(t, []float64{0, 1, 2}, n)
	}
}

// Without a store entries are not durable.
func TestTrackerWithoutStore(t *testing.T) {
	meter, collect := reader(t)
	var tracker cowchangeset.Tracker[int]
	first(latchotel.Tracker(meter, "t", &tracker))
	first(tracker.Start(context.Background()))
	for i := range 3 {
		first(tracker.Record(i))
	}
	includes(t, samples(t, first(collect())), map[string]float64{
		"tracker.changesets tracker.name=t": 1, "tracker.entries tracker.name=t": 3, "tracker.durable_seq tracker.name=t": 0, "tracker.open tracker.name=t": 1,
	})
}

func TestRecoveredJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := first(journal.Open[int](dir, journal.Options{}))
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{Store: j})
	first(tracker.Start(context.Background()))
	require.NoError(t, tracker.Flush(context.Background()))
	require.NoError(t, j.Close())
	segments := first(filepath.Glob(filepath.Join(dir, "0*")))
	require.Len(t, segments, 1)
	segment := first(os.OpenFile(segments[0], os.O_APPEND|os.O_WRONLY, 0))
	first(segment.WriteString(`{"line":`)) // as a crash leaves it
	require.NoError(t, segment.Close())

	meter, collect := reader(t)
	j = first(journal.Open[int](dir, journal.Options{}))
	first(latchotel.Journal(meter, "j", j))
	includes(t, samples(t, first(collect())), map[string]float64{"journal.recovered journal.name=j": 8})
	require.NoError(t, j.Close())
}

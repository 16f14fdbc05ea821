package bench

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/bench/internal/latency"
	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Benchmarks of latency measure single operations for a window of time, and
// report quantiles. One iteration is one window, as long as -benchtime.
//
// impl=idle does nothing: its quantiles are those of the clock and of the
// scheduler, below which no implementation can be.

// atomics is a breaker of two atomics, the least that one can be: it counts
// results of calls that it admitted before it changed its state.
type atomics struct {
	failures atomic.Int64
	open     atomic.Bool
}

func (a *atomics) call(fail bool) bool {
	if a.open.Load() {
		return false
	}
	if !fail {
		if a.failures.Load() != 0 {
			a.failures.Store(0)
		}
	} else if a.failures.Add(1) >= never {
		a.open.Store(true)
	}
	return true
}

// BenchmarkLatencyBreakerCall makes calls of which one in a hundred fails.
func BenchmarkLatencyBreakerCall(b *testing.B) {
	of := func(call func(fail bool) bool) latency.Candidate {
		return latency.Candidate{Impl: "", Make: func() latency.Op {
			stream := latency.StreamsFor(load.Uniform(1, 1))
			return func(worker, _ int) bool {
				_, fail := stream(worker).Next()
				return latency.Done(call(fail))
			}
		}}
	}
	var all []latency.Candidate
	add := func(impl string, call func(bool) bool) {
		c := of(call)
		c.Impl = impl
		all = append(all, c)
	}
	for _, impl := range []string{"mutex", "rwmutex"} {
		for _, br := range breakers(never) {
			if br.impl == impl {
				add(impl, br.call)
			}
		}
	}
	add("atomics", new(atomics).call)
	ours := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(never), OpenTimeout: time.Hour})
	add("latchfree", func(fail bool) bool {
		p, err := ours.Allow()
		switch {
		case err != nil:
			return false
		case fail:
			p.Failure()
		default:
			p.Success()
		}
		return true
	})
	latency.Each(b, latency.Steady, latency.Shortest, append(all, latency.Idle)...)
}

// latencyCache is what benchmarks of latency use of a cache.
type latencyCache interface {
	GetOrCreate(string, func() (*engine, error)) (*engine, error)
	Delete(string) (*engine, bool)
}

var latencyCaches = []struct {
	impl string
	make func() latencyCache
}{
	{"mutex", func() latencyCache { return new(locked.MutexCache[string, *engine]) }},
	{"rwmutex", func() latencyCache { return new(locked.RWMutexCache[string, *engine]) }},
	{"oncevalues", func() latencyCache { return new(locked.OnceValuesCache[string, *engine]) }},
	{"latchfree", func() latencyCache { return new(oncecache.Cache[string, *engine]) }},
}

// some returns a create function that takes no time.
func some(url string) func() (*engine, error) {
	return func() (*engine, error) { return &engine{url: url}, nil }
}

// cacheCandidates makes one of each kind, filled with urls, and idle.
func cacheCandidates(urls []string, op func(c latencyCache) latency.Op) []latency.Candidate {
	var all []latency.Candidate
	for _, impl := range latencyCaches {
		all = append(all, latency.Candidate{Impl: impl.impl, Make: func() latency.Op {
			c := impl.make()
			for _, url := range urls {
				_, _ = c.GetOrCreate(url, some(url))
			}
			return op(c)
		}})
	}
	return append(all, latency.Idle)
}

// hits asks for keys that are there.
func hits(urls []string) func(c latencyCache) latency.Op {
	creates := make([]func() (*engine, error), len(urls)) // made once: through an interface each would be allocated
	for i, url := range urls {
		creates[i] = some(url)
	}
	return func(c latencyCache) latency.Op {
		stream := latency.StreamsFor(load.Uniform(len(urls), 0))
		return func(worker, _ int) bool {
			key, _ := stream(worker).Next()
			e, err := c.GetOrCreate(urls[key], creates[key])
			return latency.Done(err == nil && e.serving == 0)
		}
	}
}

// BenchmarkLatencyCacheHit asks for keys that are there.
func BenchmarkLatencyCacheHit(b *testing.B) {
	urls := load.URLs(100)
	latency.Each(b, latency.Steady, latency.Shortest, cacheCandidates(urls, hits(urls))...)
}

// slowCode is what one in slowEvery updates or creations runs of the user's
// code. Only the calls that do not run it themselves are measured.
const (
	slowCode  = 200 * time.Microsecond
	slowEvery = 200
)

// BenchmarkLatencyCacheSlowCode asks for keys that are there, and in one of ten
// operations creates a value and deletes it; some creations take long.
func BenchmarkLatencyCacheSlowCode(b *testing.B) {
	const own = 64
	urls := load.URLs(100)
	fresh := load.URLs(100 + own*4*runtime.NumCPU())[100:]
	latency.Each(b, []latency.Pattern{latency.Closed1, latency.Open1}, latency.Shortest, cacheCandidates(urls, func(c latencyCache) latency.Op {
		stream := latency.StreamsFor(load.Uniform(len(urls), 10))
		hit := hits(urls)(c)
		var created atomic.Int64
		return func(worker, i int) bool {
			if _, create := stream(worker).Next(); !create {
				return hit(worker, i)
			}
			url, slow := fresh[worker*own+i%own], created.Add(1)%slowEvery == 0
			_, _ = c.GetOrCreate(url, func() (*engine, error) {
				if slow {
					latency.Burn(slowCode)
				}
				return &engine{url: url}, nil
			})
			c.Delete(url)
			return !slow
		}
	})...)
}

// besides runs f over and over until the returned function is called.
func besides(f func()) (stop func()) {
	var ended atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		for !ended.Load() {
			f()
		}
	})
	return func() {
		ended.Store(true)
		done.Wait()
	}
}

// BenchmarkLatencyCacheSlowKey asks for keys that are there, while now and then
// one goroutine creates another, which takes 50 ms.
func BenchmarkLatencyCacheSlowKey(b *testing.B) {
	const takes, pause = 50 * time.Millisecond, 50 * time.Millisecond
	urls := load.URLs(100)
	for _, impl := range latencyCaches {
		b.Run(latency.Paced.Name+"/impl="+impl.impl, func(b *testing.B) {
			benchmarkSlowKey(b, impl.make(), urls, takes, pause)
		})
	}
	b.Run(latency.Paced.Name+"/impl=idle", func(b *testing.B) { benchmarkSlowKey(b, nil, urls, takes, pause) })
}

func benchmarkSlowKey(b *testing.B, c latencyCache, urls []string, takes, pause time.Duration) {
	op := latency.Idle.Make()
	slowly := func() { latency.Wait(takes) }
	if c != nil {
		for _, url := range urls {
			_, _ = c.GetOrCreate(url, some(url))
		}
		op = hits(urls)(c)
		slowly = func() {
			_, _ = c.GetOrCreate("slow", func() (*engine, error) {
				latency.Wait(takes)
				return &engine{url: "slow"}, nil
			})
			c.Delete("slow")
		}
	}
	stop := besides(func() {
		slowly()
		latency.Wait(pause)
	})
	defer stop()
	h := latency.New()
	runtime.GC()
	b.ResetTimer()
	for range b.N {
		h.Merge(latency.Open(latency.Paced.Threads(), latency.Window(2*(takes+pause)), latency.PerSecond, op))
	}
	b.StopTimer()
	latency.Report(b, h)
}

// BenchmarkLatencyCacheBurst starts goroutines that all ask for one absent key,
// whose creation takes a millisecond: each is measured from the start of all.
func BenchmarkLatencyCacheBurst(b *testing.B) {
	const goroutines, takes = 200, time.Millisecond
	run := func(impl string, c latencyCache) {
		b.Run("goroutines=200/impl="+impl, func(b *testing.B) {
			h := latency.New()
			runtime.GC()
			b.ResetTimer()
			for n := range b.N {
				h.Merge(latency.Burst(goroutines, latency.Window(latency.Shortest), func(burst int) {
					if c == nil {
						latency.Wait(takes)
						return
					}
					url := strconv.Itoa(n) + "/" + strconv.Itoa(burst)
					_, _ = c.GetOrCreate(url, func() (*engine, error) {
						latency.Wait(takes)
						return &engine{url: url}, nil
					})
				}))
			}
			latency.Report(b, h)
		})
	}
	for _, impl := range latencyCaches {
		run(impl.impl, impl.make())
	}
	run("idle", nil)
}

// growth is how many keys are added while others are read, unless the window
// ends before.
const growth = 1_000_000

// benchmarkGrowth measures reads while one goroutine adds keys.
func benchmarkGrowth(b *testing.B, impl string, fresh func() (read latency.Op, add func(key string))) {
	b.Run("read=100/impl="+impl, func(b *testing.B) {
		h, threads := latency.New(), max(runtime.GOMAXPROCS(0)-1, 1)
		var added int
		for range b.N {
			b.StopTimer()
			read, add := fresh()
			runtime.GC()
			b.StartTimer()
			n := 0
			stop := besides(func() {
				if n < growth {
					add("grown-" + strconv.Itoa(n))
					n++
				}
			})
			h.Merge(latency.Closed(threads, latency.Window(50*time.Millisecond), read))
			stop()
			added += n
		}
		b.StopTimer()
		latency.Report(b, h)
		b.ReportMetric(float64(added/b.N), "keys")
	})
}

// BenchmarkLatencyCacheGrowth asks for keys that are there while the cache
// grows.
func BenchmarkLatencyCacheGrowth(b *testing.B) {
	urls := load.URLs(100)
	for _, impl := range latencyCaches {
		benchmarkGrowth(b, impl.impl, func() (latency.Op, func(string)) {
			c := impl.make()
			for _, url := range urls {
				_, _ = c.GetOrCreate(url, some(url))
			}
			return hits(urls)(c), func(key string) { _, _ = c.GetOrCreate(key, some(key)) }
		})
	}
	benchmarkGrowth(b, "idle", func() (latency.Op, func(string)) {
		keys := make([]string, 0, growth)
		return latency.Idle.Make(), func(key string) { keys = append(keys, key) }
	})
}

// latencyRegistry is what benchmarks of latency use of a registry.
type latencyRegistry interface {
	Create(string, action) (shardedregistry.Version, error)
	Get(string) (action, bool)
	Update(string, func(action) (action, error)) (shardedregistry.Entry[string, action], error)
}

var latencyRegistries = []struct {
	impl string
	make func() latencyRegistry
}{
	{"mutex", func() latencyRegistry { return new(locked.MutexRegistry[string, action]) }},
	{"rwmutex", func() latencyRegistry { return new(locked.RWMutexRegistry[string, action]) }},
	{"xsync", func() latencyRegistry { return locked.NewPointersRegistry[action]() }},
	{"latchfree", func() latencyRegistry { return new(shardedregistry.Registry[string, action]) }},
}

func registryCandidates(names []string, op func(r latencyRegistry) latency.Op) []latency.Candidate {
	var all []latency.Candidate
	for _, impl := range latencyRegistries {
		all = append(all, latency.Candidate{Impl: impl.impl, Make: func() latency.Op {
			r := impl.make()
			for _, name := range names {
				_, _ = r.Create(name, action{Name: name})
			}
			return op(r)
		}})
	}
	return append(all, latency.Idle)
}

// mix reads keys, and updates one in ten with a function of the user's.
func mix(names []string, update func(worker int) (f func(action) (action, error), counts bool)) func(latencyRegistry) latency.Op {
	return func(r latencyRegistry) latency.Op {
		stream := latency.StreamsFor(load.Uniform(len(names), 10))
		return func(worker, _ int) bool {
			key, write := stream(worker).Next()
			if !write {
				_, ok := r.Get(names[key])
				return latency.Done(ok)
			}
			f, counts := update(worker)
			_, err := r.Update(names[key], f)
			return latency.Done(err == nil) && counts
		}
	}
}

// BenchmarkLatencyRegistryMix reads nine keys for one that it updates.
func BenchmarkLatencyRegistryMix(b *testing.B) {
	names := load.Names(100)
	latency.Each(b, latency.Steady, latency.Shortest, registryCandidates(names, mix(names, func(int) (func(action) (action, error), bool) {
		return run, true
	}))...)
}

// BenchmarkLatencyRegistrySlowCode is the same, where some updates take long.
func BenchmarkLatencyRegistrySlowCode(b *testing.B) {
	names := load.Names(100)
	slowRun := func(a action) (action, error) {
		latency.Burn(slowCode)
		return run(a)
	}
	var updates atomic.Int64
	latency.Each(b, []latency.Pattern{latency.Closed1, latency.Open1}, latency.Shortest, registryCandidates(names, mix(names, func(int) (func(action) (action, error), bool) {
		if updates.Add(1)%slowEvery == 0 {
			return slowRun, false
		}
		return run, true
	}))...)
}

// BenchmarkLatencyRegistryGrowth reads while the registry grows.
func BenchmarkLatencyRegistryGrowth(b *testing.B) {
	names := load.Names(100)
	for _, impl := range latencyRegistries {
		benchmarkGrowth(b, impl.impl, func() (latency.Op, func(string)) {
			r := impl.make()
			for _, name := range names {
				_, _ = r.Create(name, action{Name: name})
			}
			stream := latency.StreamsFor(load.Uniform(len(names), 0))
			read := func(worker, _ int) bool {
				key, _ := stream(worker).Next()
				_, ok := r.Get(names[key])
				return latency.Done(ok)
			}
			return read, func(key string) { _, _ = r.Create(key, action{Name: key}) }
		})
	}
	benchmarkGrowth(b, "idle", func() (latency.Op, func(string)) {
		entries := make([]action, 0, growth)
		return latency.Idle.Make(), func(key string) { entries = append(entries, action{Name: key}) }
	})
}

// list is the least that a recorder without locks can be: entries that point to
// those before. It has no changesets that begin and end.
type list struct{ head atomic.Pointer[entry] }

type entry struct {
	change
	seq    int
	before *entry
}

func (l *list) record(c change) (seq int) {
	e := &entry{change: c}
	for {
		head := l.head.Load()
		e.seq, e.before = 0, head
		if head != nil {
			e.seq = head.seq + 1
		}
		if l.head.CompareAndSwap(head, e) {
			return e.seq
		}
	}
}

// BenchmarkLatencyTrackerRecord records changes, a thousand in a changeset.
func BenchmarkLatencyTrackerRecord(b *testing.B) {
	const perSet = 1000
	entries := changes()
	var all []latency.Candidate
	for _, i := range []int{1, 0} { // the mutex first
		impl := recorders[i]
		all = append(all, latency.Candidate{Impl: impl.impl, Make: func() latency.Op {
			stream := latency.StreamsFor(load.Uniform(len(entries), 100))
			r := new(relay)
			r.renew(impl.make)
			return func(worker, _ int) bool {
				at, _ := stream(worker).Next()
				receipt, err := (*r.now.Load()).Record(entries[at])
				if err == nil {
					r.after(receipt, 1, perSet, impl.make)
				}
				return latency.Done(err == nil)
			}
		}})
	}
	all = append(all, latency.Candidate{Impl: "list", Make: func() latency.Op {
		stream := latency.StreamsFor(load.Uniform(len(entries), 100))
		l := new(list)
		return func(worker, _ int) bool {
			at, _ := stream(worker).Next()
			if l.record(entries[at]) >= retained {
				l.head.Store(nil)
			}
			return true
		}
	}})
	latency.Each(b, latency.Steady, latency.Shortest, append(all, latency.Idle)...)
}

// BenchmarkLatencySliceLoad loads a slice of a thousand items, and in one of a
// hundred operations appends to it.
func BenchmarkLatencySliceLoad(b *testing.B) {
	const most = 10_000
	hosts := load.Names(most)
	var all []latency.Candidate
	for _, impl := range []struct {
		impl string
		make func() locked.Slice[string]
	}{
		{"mutex", func() locked.Slice[string] { return new(locked.MutexSlice[string]) }},
		{"rwmutex", func() locked.Slice[string] { return new(locked.RWMutexSlice[string]) }},
		{"copy", func() locked.Slice[string] { return new(locked.CopySlice[string]) }},
		{"latchfree", func() locked.Slice[string] { return new(cowchangeset.Slice[string]) }},
	} {
		all = append(all, latency.Candidate{Impl: impl.impl, Make: func() latency.Op {
			stream := latency.StreamsFor(load.Uniform(most, 1))
			var now atomic.Pointer[locked.Slice[string]]
			renew := func() {
				s := impl.make()
				s.Append(hosts[:1000]...)
				now.Store(&s)
			}
			renew()
			return func(worker, _ int) bool {
				i, write := stream(worker).Next()
				s := *now.Load()
				if !write {
					items := s.Load()
					return latency.Done(items[i%len(items)] != "")
				}
				if s.Append(hosts[i]) == most-1 {
					renew()
				}
				return true
			}
		}})
	}
	latency.Each(b, latency.Steady, latency.Shortest, append(all, latency.Idle)...)
}

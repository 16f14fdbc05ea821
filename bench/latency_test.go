package bench

import (
	"flag"
	"fmt"
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
	"github.com/latchfree/latchfree/bench/internal/report"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Benchmarks of latency measure single operations for a window of time, and
// report quantiles. One iteration is one window, as long as -benchtime.
//
// impl=idle does nothing: its quantiles are those of the clock and of the
// scheduler, below which no implementation can be.

// candidate is one implementation. New makes a filled one and its operation.
type candidate struct {
	impl string
	make func() latency.Op
}

// idle is the floor.
var idle = candidate{"idle", func() latency.Op { return func(int, int) bool { return true } }}

// done returns true, if the operation has done its work: what fails is no
// operation, and a benchmark that left it out would say nothing.
func done(ok bool) bool {
	if !ok {
		panic("an operation fails")
	}
	return true
}

// share of the mutex's capacity at which open loops ask, of all implementations
// alike. It leaves the mutex time to catch up after what takes long.
const share = 0.25

// pattern is a way to ask.
type pattern struct {
	name  string
	times int // as many goroutines as processors, times this
	open  bool
}

var (
	closed1 = pattern{"load=closed/threads=1x", 1, false}
	closed4 = pattern{"load=closed/threads=4x", 4, false}
	open1   = pattern{"load=open/threads=1x", 1, true}
	open4   = pattern{"load=open/threads=4x", 4, true}

	// paced is far from any capacity, so that goroutines sleep in between.
	paced = pattern{"load=paced/threads=4x", 4, true}

	steady = []pattern{closed1, closed4, open1, open4}
)

// perSecond is how many operations come in a second if they are paced.
const perSecond = 5000

// threads returns the number of goroutines.
func (p pattern) threads() int { return p.times * runtime.GOMAXPROCS(0) }

// window returns the time of one iteration, at least the shortest.
func window(shortest time.Duration) time.Duration {
	d, err := time.ParseDuration(flag.Lookup("test.benchtime").Value.String())
	if err != nil {
		return shortest // -benchtime 1x
	}
	return max(d, shortest)
}

// eachLatency measures the candidates in each pattern. The first is the mutex,
// whose capacity is what open loops ask a share of; it is found in each process,
// before the measurement.
func eachLatency(b *testing.B, patterns []pattern, shortest time.Duration, candidates ...candidate) {
	for _, p := range patterns {
		for _, c := range candidates {
			b.Run(p.name+"/impl="+c.impl, func(b *testing.B) {
				if candidates[0].impl != report.Baseline {
					b.Fatalf("the first candidate is %s", candidates[0].impl)
				}
				rate := 0.0
				if p.open {
					rate = share * latency.Capacity(p.threads(), 10*time.Millisecond, candidates[0].make())
				}
				op := c.make()
				all := latency.New()
				runtime.GC() // what filling has left behind is not part of the measurement
				b.ResetTimer()
				for range b.N {
					if p.open {
						all.Merge(latency.Open(p.threads(), window(shortest), rate, op))
					} else {
						all.Merge(latency.Closed(p.threads(), window(shortest), op))
					}
				}
				reportTimes(b, all)
			})
		}
	}
}

// shortest is the least window of most benchmarks.
const shortest = 5 * time.Millisecond

// reportTimes adds quantiles to the result, where enough operations lie beyond.
func reportTimes(b *testing.B, h *latency.Histogram) {
	for _, q := range []struct {
		unit string
		of   float64
	}{{"p50-ns", 0.5}, {"p90-ns", 0.9}, {"p99-ns", 0.99}, {"p99.9-ns", 0.999}, {"p99.99-ns", 0.9999}} {
		if d, known := h.Quantile(q.of); known {
			b.ReportMetric(float64(d), q.unit)
		}
	}
	b.ReportMetric(float64(h.Max()), "max-ns")
	b.ReportMetric(float64(h.Count())/b.Elapsed().Seconds(), "ops/s")
}

// streamsFor returns one stream for each worker, each on cache lines of its own.
func streamsFor(s *load.Streams) func(worker int) *load.Stream {
	type padded struct {
		load.Stream
		_ [128]byte
	}
	all := make([]padded, 4*runtime.GOMAXPROCS(0))
	for i := range all {
		all[i].Stream = s.Stream()
	}
	return func(worker int) *load.Stream { return &all[worker].Stream }
}

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
	of := func(call func(fail bool) bool) candidate {
		return candidate{"", func() latency.Op {
			stream := streamsFor(load.Uniform(1, 1))
			return func(worker, _ int) bool {
				_, fail := stream(worker).Next()
				return done(call(fail))
			}
		}}
	}
	var all []candidate
	add := func(impl string, call func(bool) bool) {
		c := of(call)
		c.impl = impl
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
	eachLatency(b, steady, shortest, append(all, idle)...)
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
func cacheCandidates(urls []string, op func(c latencyCache) latency.Op) []candidate {
	var all []candidate
	for _, impl := range latencyCaches {
		all = append(all, candidate{impl.impl, func() latency.Op {
			c := impl.make()
			for _, url := range urls {
				_, _ = c.GetOrCreate(url, some(url))
			}
			return op(c)
		}})
	}
	return append(all, idle)
}

// hits asks for keys that are there.
func hits(urls []string) func(c latencyCache) latency.Op {
	creates := make([]func() (*engine, error), len(urls)) // made once: through an interface each would be allocated
	for i, url := range urls {
		creates[i] = some(url)
	}
	return func(c latencyCache) latency.Op {
		stream := streamsFor(load.Uniform(len(urls), 0))
		return func(worker, _ int) bool {
			key, _ := stream(worker).Next()
			e, err := c.GetOrCreate(urls[key], creates[key])
			return done(err == nil && e.serving == 0)
		}
	}
}

// BenchmarkLatencyCacheHit asks for keys that are there.
func BenchmarkLatencyCacheHit(b *testing.B) {
	urls := load.URLs(100)
	eachLatency(b, steady, shortest, cacheCandidates(urls, hits(urls))...)
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
	eachLatency(b, []pattern{closed1, open1}, shortest, cacheCandidates(urls, func(c latencyCache) latency.Op {
		stream := streamsFor(load.Uniform(len(urls), 10))
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
		b.Run(paced.name+"/impl="+impl.impl, func(b *testing.B) {
			benchmarkSlowKey(b, impl.make(), urls, takes, pause)
		})
	}
	b.Run(paced.name+"/impl=idle", func(b *testing.B) { benchmarkSlowKey(b, nil, urls, takes, pause) })
}

func benchmarkSlowKey(b *testing.B, c latencyCache, urls []string, takes, pause time.Duration) {
	op := idle.make()
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
		h.Merge(latency.Open(paced.threads(), window(2*(takes+pause)), perSecond, op))
	}
	b.StopTimer()
	reportTimes(b, h)
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
				h.Merge(latency.Burst(goroutines, window(shortest), func(burst int) {
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
			reportTimes(b, h)
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
			h.Merge(latency.Closed(threads, window(50*time.Millisecond), read))
			stop()
			added += n
		}
		b.StopTimer()
		reportTimes(b, h)
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
		return idle.make(), func(key string) { keys = append(keys, key) }
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

func registryCandidates(names []string, op func(r latencyRegistry) latency.Op) []candidate {
	var all []candidate
	for _, impl := range latencyRegistries {
		all = append(all, candidate{impl.impl, func() latency.Op {
			r := impl.make()
			for _, name := range names {
				_, _ = r.Create(name, action{Name: name})
			}
			return op(r)
		}})
	}
	return append(all, idle)
}

// mix reads keys, and updates one in ten with a function of the user's.
func mix(names []string, update func(worker int) (f func(action) (action, error), counts bool)) func(latencyRegistry) latency.Op {
	return func(r latencyRegistry) latency.Op {
		stream := streamsFor(load.Uniform(len(names), 10))
		return func(worker, _ int) bool {
			key, write := stream(worker).Next()
			if !write {
				_, ok := r.Get(names[key])
				return done(ok)
			}
			f, counts := update(worker)
			_, err := r.Update(names[key], f)
			return done(err == nil) && counts
		}
	}
}

// BenchmarkLatencyRegistryMix reads nine keys for one that it updates.
func BenchmarkLatencyRegistryMix(b *testing.B) {
	names := load.Names(100)
	eachLatency(b, steady, shortest, registryCandidates(names, mix(names, func(int) (func(action) (action, error), bool) {
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
	eachLatency(b, []pattern{closed1, open1}, shortest, registryCandidates(names, mix(names, func(int) (func(action) (action, error), bool) {
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
			stream := streamsFor(load.Uniform(len(names), 0))
			read := func(worker, _ int) bool {
				key, _ := stream(worker).Next()
				_, ok := r.Get(names[key])
				return done(ok)
			}
			return read, func(key string) { _, _ = r.Create(key, action{Name: key}) }
		})
	}
	benchmarkGrowth(b, "idle", func() (latency.Op, func(string)) {
		entries := make([]action, 0, growth)
		return idle.make(), func(key string) { entries = append(entries, action{Name: key}) }
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
	var all []candidate
	for _, i := range []int{1, 0} { // the mutex first
		impl := recorders[i]
		all = append(all, candidate{impl.impl, func() latency.Op {
			stream := streamsFor(load.Uniform(len(entries), 100))
			r := new(relay)
			r.renew(impl.make)
			return func(worker, _ int) bool {
				at, _ := stream(worker).Next()
				receipt, err := (*r.now.Load()).Record(entries[at])
				if err == nil {
					r.after(receipt, 1, perSet, impl.make)
				}
				return done(err == nil)
			}
		}})
	}
	all = append(all, candidate{"list", func() latency.Op {
		stream := streamsFor(load.Uniform(len(entries), 100))
		l := new(list)
		return func(worker, _ int) bool {
			at, _ := stream(worker).Next()
			if l.record(entries[at]) >= retained {
				l.head.Store(nil)
			}
			return true
		}
	}})
	eachLatency(b, steady, shortest, append(all, idle)...)
}

// BenchmarkLatencySliceLoad loads a slice of a thousand items, and in one of a
// hundred operations appends to it.
func BenchmarkLatencySliceLoad(b *testing.B) {
	const most = 10_000
	hosts := load.Names(most)
	var all []candidate
	for _, impl := range []struct {
		impl string
		make func() locked.Slice[string]
	}{
		{"mutex", func() locked.Slice[string] { return new(locked.MutexSlice[string]) }},
		{"rwmutex", func() locked.Slice[string] { return new(locked.RWMutexSlice[string]) }},
		{"copy", func() locked.Slice[string] { return new(locked.CopySlice[string]) }},
		{"latchfree", func() locked.Slice[string] { return new(cowchangeset.Slice[string]) }},
	} {
		all = append(all, candidate{impl.impl, func() latency.Op {
			stream := streamsFor(load.Uniform(most, 1))
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
					return done(items[i%len(items)] != "")
				}
				if s.Append(hosts[i]) == most-1 {
					renew()
				}
				return true
			}
		}})
	}
	eachLatency(b, steady, shortest, append(all, idle)...)
}

// What the report says of a benchmark is what its name says.
func TestPatterns_Names(t *testing.T) {
	for _, p := range steady {
		kind := "closed"
		if p.open {
			kind = "open"
		}
		if want := fmt.Sprintf("load=%s/threads=%dx", kind, p.times); p.name != want {
			t.Errorf("pattern %s is named %s", want, p.name)
		}
	}
}

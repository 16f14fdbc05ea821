package bench

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/shardedregistry"
)

// leases is what BenchmarkRegistryExpiry uses of a registry.
type leases interface {
	put(name string, a action)
	renew(name string)
	createAndDelete(name string)
}

// mutexLeases is a map behind a mutex, which somebody sweeps now and then.
type mutexLeases struct {
	mu      sync.Mutex
	entries map[string]mutexLease
}

type mutexLease struct {
	shardedregistry.Entry[string, action]
	until time.Time
}

func (l *mutexLeases) put(name string, a action) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[name]
	e.Key, e.Value, e.until = name, a, time.Now().Add(time.Hour)
	e.Version++
	l.entries[name] = e
}

func (l *mutexLeases) renew(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.entries[name]; ok {
		e.until = time.Now().Add(time.Hour)
		l.entries[name] = e
	}
}

func (l *mutexLeases) createAndDelete(name string) {
	l.put(name, action{Name: name})
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, name)
}

// registryLeases is a registry.
type registryLeases struct {
	*shardedregistry.Registry[string, action]
	version shardedregistry.Version // of keys that stay as they are
}

func (l registryLeases) put(name string, a action) { l.Put(name, a) }
func (l registryLeases) renew(name string) {
	if err := l.Renew(name, l.version, time.Hour); err != nil {
		panic(err)
	}
}
func (l registryLeases) createAndDelete(name string) {
	l.Create(name, action{Name: name})
	l.Delete(name)
}

// BenchmarkRegistryExpiry changes, renews, and creates and deletes entities that live for an
// hour: alone, and from 64 goroutines. "latchfreeforever" is a registry without Config.TTL, for
// comparison.
func BenchmarkRegistryExpiry(b *testing.B) {
	const keys = 1000
	names, streams := load.Names(2*keys), load.Uniform(keys, 100)
	hour := func(string, action) time.Duration { return time.Hour }
	made := map[string]func() leases{
		"mutex":            func() leases { return &mutexLeases{entries: map[string]mutexLease{}} },
		"latchfreeforever": func() leases { return registryLeases{new(shardedregistry.Registry[string, action]), 1} },
		"latchfree": func() leases {
			return registryLeases{shardedregistry.MustNew(shardedregistry.Config[string, action]{TTL: hour}), 1}
		},
	}
	for _, op := range []string{"put", "renew", "create"} {
		for _, goroutines := range []int{1, 64} {
			for _, impl := range []string{"mutex", "latchfreeforever", "latchfree"} {
				if op == "renew" && impl == "latchfreeforever" {
					continue
				}
				b.Run(fmt.Sprintf("op=%s/goroutines=%d/impl=%s", op, goroutines, impl), func(b *testing.B) {
					l := made[impl]()
					for _, name := range names[:keys] {
						l.put(name, action{Name: name})
					}
					do := map[string]func(int){
						"put":    func(i int) { l.put(names[i], action{Name: names[i], Runs: i}) },
						"renew":  func(i int) { l.renew(names[i]) },
						"create": func(i int) { l.createAndDelete(names[keys+i]) },
					}[op]
					b.ReportAllocs()
					b.ResetTimer()
					if goroutines == 1 {
						stream := streams.Stream()
						for range b.N {
							i, _ := stream.Next()
							do(i)
						}
						return
					}
					b.SetParallelism((goroutines + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
					b.RunParallel(func(pb *testing.PB) {
						stream := streams.Stream()
						for pb.Next() {
							i, _ := stream.Next()
							do(i)
						}
					})
				})
			}
		}
	}
}

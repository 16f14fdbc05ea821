package bench

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/shardedregistry"
)

// ledger moves something from one entity to another.
type ledger interface {
	transfer(from, to string) error
	sum() int
}

// mutexLedger is a map with versions behind a mutex.
type mutexLedger struct {
	mu      sync.Mutex
	entries map[string]shardedregistry.Entry[string, action]
}

func (l *mutexLedger) transfer(from, to string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, b := l.entries[from], l.entries[to]
	a.Value.Runs--
	a.Version++
	l.entries[from] = a
	if from == to {
		b = a
	}
	b.Value.Runs++
	b.Version++
	l.entries[to] = b
	return nil
}

func (l *mutexLedger) sum() (n int) {
	for _, e := range l.entries {
		n += e.Value.Runs
	}
	return n
}

// transactLedger uses transactions.
type transactLedger struct {
	shardedregistry.Registry[string, action]
}

func (l *transactLedger) transfer(from, to string) error {
	return l.Transact(func(tx *shardedregistry.Tx[string, action]) error {
		a, _ := tx.Get(from)
		a.Runs--
		if err := tx.Put(from, a); err != nil {
			return err
		}
		b, _ := tx.Get(to)
		b.Runs++
		return tx.Put(to, b)
	})
}

func (l *transactLedger) sum() (n int) {
	for _, a := range l.All() {
		n += a.Runs
	}
	return n
}

// updatesLedger updates one entity after the other, which is no transfer.
type updatesLedger struct{ transactLedger }

func (l *updatesLedger) transfer(from, to string) error {
	_, err := l.Update(from, func(a action) (action, error) { a.Runs--; return a, nil })
	if err == nil {
		_, err = l.Update(to, run)
	}
	return err
}

var ledgers = []struct {
	impl string
	make func(names []string) ledger
}{
	{"mutex", func(names []string) ledger {
		l := &mutexLedger{entries: map[string]shardedregistry.Entry[string, action]{}}
		for _, name := range names {
			l.entries[name] = shardedregistry.Entry[string, action]{Key: name, Value: action{Name: name}, Version: 1}
		}
		return l
	}},
	{"latchfreeupdates", func(names []string) ledger {
		l := new(updatesLedger)
		for _, name := range names {
			l.Create(name, action{Name: name})
		}
		return l
	}},
	{"latchfree", func(names []string) ledger {
		l := new(transactLedger)
		for _, name := range names {
			l.Create(name, action{Name: name})
		}
		return l
	}},
}

// BenchmarkRegistryTransact moves something between two entities: alone, and from 64
// goroutines. "latchfreeupdates" are two updates, each by itself, for comparison.
func BenchmarkRegistryTransact(b *testing.B) {
	for _, c := range []struct{ keys, goroutines int }{{1000, 1}, {1000, 64}, {10, 64}} {
		names, streams := load.Names(c.keys), load.Uniform(c.keys, 100)
		for _, l := range ledgers {
			b.Run(fmt.Sprintf("keys=%d/goroutines=%d/impl=%s", c.keys, c.goroutines, l.impl), func(b *testing.B) {
				r := l.make(names)
				b.ReportAllocs()
				b.ResetTimer()
				if c.goroutines == 1 {
					stream := streams.Stream()
					from, _ := stream.Next()
					for range b.N {
						to, _ := stream.Next()
						if err := r.transfer(names[from], names[to]); err != nil {
							b.Fatal(err)
						}
						from = to
					}
				} else {
					b.SetParallelism((c.goroutines + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
					b.RunParallel(func(pb *testing.PB) {
						stream := streams.Stream()
						from, _ := stream.Next()
						for pb.Next() {
							to, _ := stream.Next()
							if err := r.transfer(names[from], names[to]); err != nil {
								b.Error(err)
							}
							from = to
						}
					})
				}
				b.StopTimer()
				if n := r.sum(); n != 0 {
					b.Errorf("the sum is %d, want 0", n)
				}
			})
		}
	}
}

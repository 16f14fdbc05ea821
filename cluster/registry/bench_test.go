package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/shardedregistry"
)

const benchKeys = 1000

// A local read: of a registry that was written key by key and of one that has listed the bucket, beside registries of
// one process that were filled at once (local) and between the writes of the first one (local1). The last two differ by
// where in memory their keys lie. Short runs take turns, and the 5th percentile counts, since others use the machine.
func BenchmarkRead(b *testing.B) {
	c := natstest.Start(b, 1)
	js := c.JetStream()
	benchRead(b, js, "int", func(i int) int { return i })
	benchRead(b, js, "pointer", func(i int) *plan { return &plan{"ada", i} })
	benchRead(b, js, "struct24", func(i int) plan { return plan{"ada", i} })
	benchRead(b, js, "struct64", func(i int) [8]int { return [8]int{i} })
}

func benchRead[V any](b *testing.B, js jetstream.JetStream, name string, value func(int) V) {
	kv := bucket(b, js)
	r := opened[V](b, js, kv)
	local := shardedregistry.MustNew(shardedregistry.Config[string, V]{})
	local1 := shardedregistry.MustNew(shardedregistry.Config[string, V]{})
	keys := make([]string, benchKeys)
	for i := range keys {
		keys[i] = key(i)
		_, err := r.Put(within(b), keys[i], value(i))
		require.NoError(b, err)
		_, err = local1.Create(strings.Clone(keys[i]), value(i))
		require.NoError(b, err)
	}
	for i := range keys {
		_, err := local.Create(strings.Clone(keys[i]), value(i))
		require.NoError(b, err)
	}
	listed := opened[V](b, js, kv)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	inTurn(b, "value="+name+"/op=Get", map[string]func(){
		"registry": func() { getAll(r, keys) }, "listed": func() { getAll(listed, keys) },
		"local": func() { getAllLocal(local, keys) }, "local1": func() { getAllLocal(local1, keys) },
	})
	inTurn(b, "value="+name+"/op=Lookup", map[string]func(){
		"registry": func() { lookupAll(r, keys) }, "listed": func() { lookupAll(listed, keys) },
		"local": func() { lookupAllLocal(local, keys) }, "local1": func() { lookupAllLocal(local1, keys) },
	})
}

// The functions below are not inlined, since the compiler does not inline calls of generic methods in what it has
// inlined itself.

//go:noinline
func getAll[V any](r *Registry[string, V], keys []string) {
	for _, k := range keys {
		r.Get(k)
	}
}

//go:noinline
func lookupAll[V any](r *Registry[string, V], keys []string) {
	for _, k := range keys {
		r.Lookup(k)
	}
}

//go:noinline
func getAllLocal[V any](r *shardedregistry.Registry[string, V], keys []string) {
	for _, k := range keys {
		r.Get(k)
	}
}

//go:noinline
func lookupAllLocal[V any](r *shardedregistry.Registry[string, V], keys []string) {
	for _, k := range keys {
		r.Lookup(k)
	}
}

// inTurn reports how long functions take, each of which reads benchKeys keys.
func inTurn(b *testing.B, name string, functions map[string]func()) {
	b.Run(name, func(b *testing.B) {
		const passes = 20
		took := make(map[string][]time.Duration)
		for b.Loop() {
			for impl, f := range functions {
				f() // brings the keys into the caches
				began := time.Now()
				for range passes {
					f()
				}
				took[impl] = append(took[impl], time.Since(began))
			}
		}
		for impl, list := range took {
			slices.Sort(list)
			b.ReportMetric(float64(list[len(list)/20])/(passes*benchKeys), "ns/"+impl)
		}
	})
}

// A write, beside that of a bare client, which takes the same bytes.
func BenchmarkWrite(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		c := natstest.Start(b, nodes)
		js := c.JetStream()
		kv := bucket(b, js, func(k *jetstream.KeyValueConfig) { k.Replicas, k.Storage = nodes, jetstream.FileStorage })
		ctx := context.Background()
		r := opened[plan](b, js, kv)
		for _, clients := range []int{1, 16} {
			name := func(op, impl string) string {
				return fmt.Sprintf("nodes=%d/clients=%d/op=%s/impl=%s", nodes, clients, op, impl)
			}
			run := func(op, impl string, f func(key string, n int) error) {
				b.Run(name(op, impl), func(b *testing.B) {
					b.SetParallelism((clients + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
					var client, bad atomic.Int64
					b.RunParallel(func(pb *testing.PB) {
						k := fmt.Sprintf("%s.%d", impl, client.Add(1))
						for n := 0; pb.Next(); n++ {
							if err := f(k, n); err != nil && bad.Add(1) == 1 {
								b.Error(err)
							}
						}
					})
				})
			}
			run("Put", "registry", func(k string, n int) error {
				_, err := r.Put(ctx, k, plan{"ada", n})
				return err
			})
			run("Put", "bare", func(k string, n int) error {
				data, _ := json.Marshal(plan{"ada", n})
				_, err := kv.Put(ctx, k, data)
				return err
			})
			run("Update", "registry", func(k string, n int) error {
				_, err := r.Update(ctx, k, func(p plan) (plan, error) { p.N++; return p, nil })
				return err
			})
			run("Update", "bare", func(k string, n int) error { // as its users write it
				for {
					e, err := kv.Get(ctx, k)
					if err != nil {
						return err
					}
					var p plan
					if err := json.Unmarshal(e.Value(), &p); err != nil {
						return err
					}
					p.N++
					data, _ := json.Marshal(p)
					if _, err = kv.Update(ctx, k, data, e.Revision()); err == nil {
						return nil
					}
				}
			})
			var revisions sync.Map // by key
			updateIf := func(update func(k string, n int, last uint64) (uint64, error)) func(string, int) error {
				return func(k string, n int) error {
					last, _ := revisions.LoadOrStore("if"+k, new(uint64))
					next, err := update("if"+k, n, *last.(*uint64))
					*last.(*uint64) = next
					return err
				}
			}
			run("UpdateIf", "registry", updateIf(func(k string, n int, last uint64) (uint64, error) {
				if last == 0 {
					v, err := r.Put(ctx, k, plan{"ada", n})
					return uint64(v), err
				}
				v, err := r.UpdateIf(ctx, k, Version(last), plan{"ada", n})
				return uint64(v), err
			}))
			run("UpdateIf", "bare", updateIf(func(k string, n int, last uint64) (uint64, error) {
				data, _ := json.Marshal(plan{"ada", n})
				if last == 0 {
					return kv.Put(ctx, k, data)
				}
				return kv.Update(ctx, k, data, last)
			}))
			run("Sync", "registry", func(string, int) error { return r.Sync(ctx) })
		}
	}
}

// What a mirrored key takes, beside one of a registry of one process.
func BenchmarkMemory(b *testing.B) {
	const keys = 20_000
	c := natstest.Start(b, 1)
	kv := bucket(b, c.JetStream())
	for i := range keys {
		_, err := kv.Put(context.Background(), fmt.Sprintf("plan.%06d", i), []byte(`{"Owner":"ada","N":1}`))
		require.NoError(b, err)
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	js := c.JetStream()
	for b.Loop() {
		before := heap()
		began := time.Now()
		r := opened[plan](b, js, kv)
		listed := time.Since(began)
		with := heap()
		local := shardedregistry.MustNew(shardedregistry.Config[string, plan]{})
		for e := range r.Entries() {
			_, _ = local.Create(string([]byte(e.Key)), e.Value)
		}
		both := heap()
		b.ReportMetric(float64(with-before)/keys, "B/key")
		b.ReportMetric(float64(both-with)/keys, "B/key-local")
		b.ReportMetric(float64(listed.Milliseconds()), "ms-to-list")
		runtime.KeepAlive(local)
	}
}

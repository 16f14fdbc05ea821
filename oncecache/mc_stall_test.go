//go:build modelcheck

package oncecache_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// floor is what the operations of a world do something to.
type floor struct {
	*oncecache.Cache[string, int]
	leases []oncecache.Lease[string, int] // of a
	taken  mc.Tally
}

// lease returns a lease that nobody has been given. Each thread calls it before its first step,
// one after the other.
func (f *floor) lease() *oncecache.Lease[string, int] {
	f.taken.Add(1)
	return &f.leases[f.taken.Value()-1]
}

type floorOp = mc.Operation[*floor]

// built returns how a floor is made on which the keys are present, with n leases of a.
func built(c oncecache.Config[string, int], leases int, keys ...string) func() *floor {
	return func() *floor {
		f := &floor{Cache: oncecache.MustNew(c)}
		for _, k := range keys {
			f.Set(k, 1)
		}
		for range leases {
			l, err := f.Acquire(context.Background(), "a", makesFor)
			if err != nil {
				panic(err)
			}
			f.leases = append(f.leases, l)
		}
		return f
	}
}

func makes9() (int, error) { return 9, nil }

func makesFor(context.Context, string) (int, error) { return 9, nil }

func makesMany(context.Context, []string) (map[string]int, error) {
	return map[string]int{"a": 9}, nil
}

func renews(context.Context, string, int, bool) (int, error) { return 8, nil }

func closesInt(string, int) error { return nil }

// on makes an operation, on a key if it has one.
func on(name string, do func(f *floor)) floorOp { return floorOp{Name: name, Do: do} }

// to is a key to which operations do something.
type to string

func (k to) on(name string, do func(f *floor, k string)) floorOp {
	return on("Cache."+name+" ("+string(k)+")", func(f *floor) { do(f, string(k)) })
}

func (k to) get() floorOp  { return k.on("Get", func(f *floor, k string) { f.Get(k) }) }
func (k to) peek() floorOp { return k.on("Peek", func(f *floor, k string) { f.Peek(k) }) }
func (k to) getOrCreate() floorOp {
	return k.on("GetOrCreate", func(f *floor, k string) { f.GetOrCreate(k, makes9) })
}
func (k to) getOrCreateContext() floorOp {
	return k.on("GetOrCreateContext", func(f *floor, k string) { f.GetOrCreateContext(context.Background(), k, makesFor) })
}
func (k to) load() floorOp {
	return k.on("Load", func(f *floor, k string) { f.Load(context.Background(), k) })
}
func (k to) many() floorOp {
	return k.on("GetOrCreateMany", func(f *floor, k string) { f.GetOrCreateMany(context.Background(), []string{k}, makesMany) })
}
func (k to) wait() floorOp {
	return k.on("Wait", func(f *floor, k string) { f.Wait(context.Background(), k) })
}
func (k to) acquire() floorOp {
	return k.on("Acquire", func(f *floor, k string) { f.Acquire(context.Background(), k, makesFor) })
}
func (k to) refresh() floorOp {
	return k.on("Refresh", func(f *floor, k string) { f.Refresh(context.Background(), k, renews) })
}
func (k to) set() floorOp { return k.on("Set", func(f *floor, k string) { f.Set(k, 2) }) }
func (k to) setIfAbsent() floorOp {
	return k.on("SetIfAbsent", func(f *floor, k string) { f.SetIfAbsent(k, 3) })
}
func (k to) delete() floorOp { return k.on("Delete", func(f *floor, k string) { f.Delete(k) }) }
func (k to) info() floorOp   { return k.on("Info", func(f *floor, k string) { f.Info(k) }) }
func (k to) compareAndDelete(old int) floorOp {
	return on("CompareAndDelete ("+string(k)+")", func(f *floor) { oncecache.CompareAndDelete(f.Cache, string(k), old) })
}

var (
	lens      = on("Cache.Len", func(f *floor) { f.Len() })
	stats     = on("Cache.Stats", func(f *floor) { f.Stats() })
	clears    = on("Cache.Clear", func(f *floor) { f.Clear() })
	closesAll = on("Cache.Close", func(f *floor) { f.Close(context.Background()) })
	releases  = on("Lease.Release", func(f *floor) { f.lease().Release() })
	discards  = on("Lease.Discard", func(f *floor) { f.lease().Discard() })
	values    = on("Lease.Value", func(f *floor) { f.lease().Value() })
)

// Every operation progresses as its documentation says, whoever stops for ever.
func TestProgress(t *testing.T) {
	const bucket, mutex, event = mc.Bucket, mc.Mutex, mc.Event
	a, b, x := to("a"), to("b"), to("x")
	plain := oncecache.Config[string, int]{Create: makesFor, RecordStats: true}
	owning := oncecache.Config[string, int]{Close: closesInt}
	mc.CheckProgress(t, map[string]string{
		"Lease.Release blocking": "the mutex is that of what Close has begun to close",
	},
		mc.World[*floor]{Name: "a value stays", New: built(plain, 0, "a"), Operations: []floorOp{
			a.get().Bounded(10),
			a.peek().Bounded(5),
			x.get().Bounded(2),
			a.getOrCreate().Bounded(10),
			a.getOrCreateContext().Bounded(9),
			a.many().Bounded(9),
			a.wait().Bounded(9),
			x.wait().Bounded(2),
			a.setIfAbsent().Bounded(5),
			a.info().Bounded(6),
			a.compareAndDelete(77).Bounded(5),
			x.delete().Bounded(2),
			lens.Bounded(3),
			stats.Bounded(1),
			a.acquire().Free(),
			a.set().Waits(bucket),
			a.refresh().Waits(bucket | mutex | event),
			b.getOrCreate().Waits(bucket | mutex | event),
			b.delete(),
		}},
		mc.World[*floor]{Name: "a value comes and goes", New: built(plain, 0, "a"), Operations: []floorOp{
			a.get().Bounded(10),
			a.peek().Bounded(5),
			a.getOrCreate().Waits(bucket | mutex | event),
			a.getOrCreateContext().Waits(bucket | mutex | event),
			a.load().Waits(bucket | mutex | event),
			a.many().Waits(bucket | mutex | event),
			a.wait(),
			a.acquire().Waits(bucket | mutex | event),
			a.refresh().Waits(bucket | mutex | event),
			a.set().Waits(bucket),
			a.setIfAbsent().Waits(bucket),
			a.delete().Waits(bucket),
			a.compareAndDelete(1).Waits(bucket),
			clears.Waits(bucket),
			on("Cache.All", func(f *floor) {
				for range f.All() {
				}
			}).Waits(bucket),
			on("Cache.Keys", func(f *floor) {
				for range f.Keys() {
				}
			}).Waits(bucket),
			on("Cache.InFlight", func(f *floor) {
				for range f.InFlight() {
				}
			}).Waits(bucket),
		}},
		mc.World[*floor]{Name: "a value is made", New: built(plain, 0), Operations: []floorOp{
			a.get().Bounded(10),
			a.peek().Bounded(5),
			lens.Bounded(3),
			a.getOrCreate().Waits(bucket | mutex | event),
			a.getOrCreateContext().Waits(bucket | mutex | event),
			a.load().Waits(bucket | mutex | event),
			a.many().Waits(bucket | mutex | event),
			a.acquire().Waits(bucket | mutex | event),
			a.wait().Waits(event),
			a.set().Waits(bucket),
			a.delete().Waits(bucket),
		}},
		mc.World[*floor]{Name: "leases", New: built(owning, 5, "a"), Operations: []floorOp{
			a.get().Bounded(3),
			values.Bounded(0),
			a.acquire().Free(),
			releases.Bounded(1),
			b.set(),
		}},
		mc.World[*floor]{Name: "leases of a value that goes", New: built(owning, 5, "a"), Operations: []floorOp{
			a.get().Bounded(3),
			a.acquire().Waits(bucket | mutex | event),
			releases,
			discards.Waits(bucket),
			a.delete().Waits(bucket | mutex),
			a.set().Waits(bucket | mutex),
		}},
		mc.World[*floor]{Name: "MaxEntries", New: built(oncecache.Config[string, int]{MaxEntries: 1}, 0, "a"), Operations: []floorOp{
			a.get().Bounded(7),
			a.peek().Bounded(5),
			a.set().Waits(bucket | mutex),
			b.set().Waits(bucket | mutex),
			b.getOrCreate().Waits(bucket | mutex | event),
			a.delete().Waits(bucket | mutex),
			a.info().Waits(mutex),
			on("Cache.SetMaxEntries", func(f *floor) { f.SetMaxEntries(2) }).Waits(mutex),
		}},
		mc.World[*floor]{Name: "bounds that change", New: built(oncecache.Config[string, int]{
			MaxEntries: 2, MaxWeight: 9, Weight: func(string, int) int64 { return 1 },
		}, 0, "a", "b"), Operations: []floorOp{
			a.get().Bounded(7),
			on("Cache.SetMaxEntries", func(f *floor) { f.SetMaxEntries(1) }).Waits(bucket | mutex),
			on("Cache.SetMaxWeight", func(f *floor) { f.SetMaxWeight(1) }).Waits(bucket | mutex),
			a.set().Waits(bucket | mutex),
		}},
		mc.World[*floor]{Name: "TTL", New: built(oncecache.Config[string, int]{TTL: time.Hour}, 0, "a"), Operations: []floorOp{
			a.get().Bounded(7),
			a.peek().Bounded(5),
			a.set().Waits(bucket | mutex),
			a.getOrCreate(),
			on("time passes", func(f *floor) { mc.Pass(time.Hour) }),
		}},
		mc.World[*floor]{Name: "Close", New: built(owning, 5, "a"), Operations: []floorOp{
			a.get().Bounded(3),
			closesAll.Waits(bucket | mutex | event),
			a.delete().Waits(bucket | mutex),
			b.getOrCreate().Waits(bucket | mutex | event),
			releases,
		}},
	)
}

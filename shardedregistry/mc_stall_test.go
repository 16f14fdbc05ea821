//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// floor is what the operations of a world do something to.
type floor struct {
	*shardedregistry.Registry[string, int]
	ref shardedregistry.Ref[string, int] // of a; it remembers a's cell
	w   loop                             // in some worlds

	loops []loop // in one world: of each operation its own
}

// goOn goes on with a loop that no other operation has, if there is one.
//
//go:norace
func (s *floor) goOn() {
	if len(s.loops) > 0 {
		l := s.loops[0]
		s.loops = s.loops[1:]
		l.Drain()
	}
}

type floorOp = mc.Operation[*floor]

// staged returns how a floor is made on which so many of the keys a, b and c are present, after more.
func staged(keys int, c shardedregistry.Config[string, int], more ...func(s *floor)) func() *floor {
	c.Shards = 1
	return func() *floor {
		r := shardedregistry.MustNew(c)
		if c.TTL != nil {
			shardedregistry.PauseTimers(r)
		}
		for _, k := range []string{"a", "b", "c"}[:keys] {
			r.Put(k, 1)
		}
		s := &floor{Registry: r, ref: r.Ref("a")}
		s.ref.Get()
		for _, f := range more {
			f(s)
		}
		return s
	}
}

// to is a key to which operations do something, and what they store for it.
type to struct {
	key   string
	value int
}

func (k to) does(name string, do func(s *floor)) floorOp {
	return floorOp{Name: fmt.Sprintf("Registry.%s(%s)", name, k.key), Do: do}
}

func (k to) get() floorOp    { return k.does("Get ", func(s *floor) { s.Get(k.key) }) }
func (k to) lookup() floorOp { return k.does("Lookup ", func(s *floor) { s.Lookup(k.key) }) }
func (k to) peek() floorOp   { return k.does("Peek ", func(s *floor) { s.Peek(k.key) }) }
func (k to) create() floorOp { return k.does("Create ", func(s *floor) { s.Create(k.key, k.value) }) }
func (k to) getOrCreate() floorOp {
	return k.does("GetOrCreate ", func(s *floor) { s.GetOrCreate(k.key, func() (int, error) { return k.value, nil }) })
}
func (k to) put() floorOp { return k.does("Put ", func(s *floor) { s.Put(k.key, k.value) }) }
func (k to) update() floorOp {
	return k.does("Update ", func(s *floor) { s.Update(k.key, func(int) (int, error) { return k.value, nil }) })
}
func (k to) updateIf() floorOp {
	return k.does("UpdateIf ", func(s *floor) { s.UpdateIf(k.key, 1, k.value) })
}
func (k to) compute(op shardedregistry.ComputeOp) floorOp {
	return k.does(fmt.Sprintf("Compute %d", op), func(s *floor) {
		s.Compute(k.key, func(int, bool) (int, shardedregistry.ComputeOp, error) { return k.value, op, nil })
	})
}
func (k to) delete() floorOp { return k.does("Delete ", func(s *floor) { s.Delete(k.key) }) }
func (k to) deleteIf(v shardedregistry.Version) floorOp {
	return k.does(fmt.Sprint("DeleteIf ", v), func(s *floor) { s.DeleteIf(k.key, v) })
}
func (k to) deleteFunc() floorOp {
	return k.does("DeleteFunc ", func(s *floor) { s.DeleteFunc(func(name string, _ int) bool { return name == k.key }) })
}
func (k to) renew(v shardedregistry.Version, d time.Duration) floorOp {
	return k.does(fmt.Sprint("Renew ", d > 0), func(s *floor) { s.Renew(k.key, v, d) })
}
func (k to) wait(since shardedregistry.Version) floorOp {
	return k.does(fmt.Sprint("Wait ", since), func(s *floor) { s.Wait(context.Background(), k.key, since) })
}

// transacts puts the keys in a transaction.
func transactsTo(keys ...to) floorOp {
	var names []string
	for _, k := range keys {
		names = append(names, k.key)
	}
	return to{key: strings.Join(names, ", ")}.does("Transact ", func(s *floor) {
		s.Transact(func(tx *shardedregistry.Tx[string, int]) error {
			for _, k := range keys {
				if err := tx.Put(k.key, k.value); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// all makes an operation of no key.
func all(name string, do func(s *floor)) floorOp { return floorOp{Name: name, Do: do} }

// one leaves a loop after the first that it yields.
func leaves[E any](loop func(yield func(E) bool)) { loop(func(E) bool { return false }) }

func leaves2[A, B any](loop func(yield func(A, B) bool)) { loop(func(A, B) bool { return false }) }

// drains runs a loop to its end.
func drains[E any](loop func(yield func(E) bool)) { loop(func(E) bool { return true }) }

func drains2[A, B any](loop func(yield func(A, B) bool)) { loop(func(A, B) bool { return true }) }

var (
	refGets       = all("Ref.Get", func(s *floor) { s.ref.Get() })
	refLooks      = all("Ref.Lookup", func(s *floor) { s.ref.Lookup() })
	refPeeks      = all("Ref.Peek", func(s *floor) { s.ref.Peek() })
	takesSnapshot = all("Registry.Snapshot", func(s *floor) { s.Snapshot() })
	revisions     = all("Registry.Revision", func(s *floor) { s.Revision() })
)

// Every operation progresses as its documentation says, whoever stops for ever.
func TestProgress(t *testing.T) {
	ctx := context.Background()
	a, b, n := to{"a", 2}, to{"b", 3}, to{"n", 4}
	mc.CheckProgress(t, excused,
		mc.World[*floor]{Name: "calls that return loops and filters", New: staged(1, shardedregistry.Config[string, int]{
			History: 2, Indexes: indexes{"digit": digits},
		}), Operations: []floorOp{
			all("Keys", func(*floor) { shardedregistry.Keys("a") }).Bounded(0),
			all("Prefix", func(*floor) { shardedregistry.Prefix("a") }).Bounded(0),
			all("Matching", func(*floor) { shardedregistry.Matching(func(string) bool { return true }) }).Bounded(0),
			all("Registry.All call", func(s *floor) { s.All() }).Bounded(0),
			all("Registry.Entries call", func(s *floor) { s.Entries() }).Bounded(0),
			all("Registry.Keys call", func(s *floor) { s.Registry.Keys() }).Bounded(0),
			all("Registry.Watch call", func(s *floor) { s.Watch(ctx) }).Bounded(0),
			all("Registry.WatchFrom call", func(s *floor) { s.WatchFrom(ctx, 0) }).Bounded(1),
			all("Registry.WatchSnapshot call", func(s *floor) { s.WatchSnapshot(ctx) }).Bounded(0),
			all("Registry.ByIndex call", func(s *floor) { s.ByIndex("digit", "1") }).Bounded(1),
			all("Registry.IndexValues call", func(s *floor) { s.IndexValues("digit") }).Bounded(1),
			a.put(), a.delete(),
		}},
		// The key a stays. Others create and delete keys of the same bucket.
		mc.World[*floor]{Name: "a key stays", New: staged(2, shardedregistry.Config[string, int]{}), Operations: []floorOp{
			a.get().Bounded(3),
			a.lookup().Bounded(3),
			a.peek().Bounded(3),
			n.get().Bounded(3),
			refGets.Bounded(2),
			refLooks.Bounded(2),
			refPeeks.Bounded(2),
			all("Registry.Len", func(s *floor) { s.Len() }).Bounded(3),
			all("Registry.String", func(s *floor) { _ = s.String() }).Bounded(3),
			a.create().Bounded(5),
			a.getOrCreate().Bounded(3),
			a.updateIf().Bounded(16),
			a.deleteIf(99).Bounded(3),
			a.put().Free(),
			a.update().Free(),
			a.compute(shardedregistry.UpdateOp).Free(),
			a.compute(shardedregistry.CancelOp).Free(),
			to{key: "x"}.delete().Free(),
			b.delete(), n.put(), b.deleteFunc(), takesSnapshot,
		}},
		mc.World[*floor]{Name: "a key comes and goes", New: staged(1, shardedregistry.Config[string, int]{}), Operations: []floorOp{
			a.get().Bounded(3),
			a.lookup().Bounded(3),
			a.peek().Bounded(3),
			refGets.Bounded(7),
			refLooks.Bounded(5),
			refPeeks.Bounded(5),
			a.updateIf().Bounded(16),
			a.update().Free(),
			a.create().Waits(mc.Bucket),
			a.put().Waits(mc.Bucket),
			a.getOrCreate().Waits(mc.Bucket),
			a.compute(shardedregistry.UpdateOp).Waits(mc.Bucket),
			a.compute(shardedregistry.DeleteOp).Waits(mc.Bucket),
			a.delete().Waits(mc.Bucket),
			a.deleteIf(1).Waits(mc.Bucket),
			a.deleteFunc().Waits(mc.Bucket),
			all("Registry.Clear", func(s *floor) { s.Clear() }).Waits(mc.Bucket),
			all("Registry.Replace", func(s *floor) { s.Replace(maps.All(map[string]int{"n": 2}), nil) }).Waits(mc.Bucket),
			takesSnapshot.Waits(mc.Bucket),
			all("Registry.All loop", func(s *floor) { drains2(s.All()) }).Waits(mc.Bucket),
			all("Registry.Entries loop", func(s *floor) { drains(s.Entries()) }).Waits(mc.Bucket),
			all("Registry.Keys loop", func(s *floor) { drains(s.Registry.Keys()) }).Waits(mc.Bucket),
		}},
		mc.World[*floor]{Name: "transactions", New: staged(2, shardedregistry.Config[string, int]{}), Operations: []floorOp{
			a.get().Bounded(4),
			refLooks.Bounded(3),
			transactsTo(a, b).Free(),
			transactsTo(b, a).Free(),
			a.put().Free(),
			b.update().Free(),
			a.updateIf().Free(),
			a.create().Bounded(6),
			a.compute(shardedregistry.UpdateOp).Free(),
			a.deleteIf(99).Free(),
			takesSnapshot.Waits(mc.Bucket),
		}},
		mc.World[*floor]{Name: "transactions that create and delete", New: func() *floor {
			r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
			shardedregistry.SetHash(r, func(k string) uint64 { return uint64(k[0]) << 50 }) // a before n
			r.Put("a", 1)
			return &floor{Registry: r, ref: r.Ref("a")}
		}, Operations: []floorOp{
			a.get().Bounded(4),
			n.get().Bounded(4),
			transactsTo(a, n).Waits(mc.Bucket),
			transactsTo(n, a).Waits(mc.Bucket),
			a.delete().Waits(mc.Bucket),
			a.put().Waits(mc.Bucket),
			n.update().Waits(mc.Bucket),
			a.updateIf().Waits(mc.Bucket),
		}},
		mc.World[*floor]{Name: "equal hashes", New: func() *floor {
			r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
			shardedregistry.SetHash(r, func(string) uint64 { return 1 << 60 })
			r.Put("a", 1)
			r.Put("b", 1)
			return &floor{Registry: r, ref: r.Ref("a")}
		}, Operations: []floorOp{
			transactsTo(a, b).Alone(),
			transactsTo(b, a).Alone(),
			a.put().Free(),
			b.updateIf().Free(),
		}},
		mc.World[*floor]{Name: "history", New: staged(1, shardedregistry.Config[string, int]{History: 2}), Operations: []floorOp{
			a.get().Bounded(3),
			revisions.Bounded(2),
			a.put().Free(),
			a.update().Free(),
			a.updateIf().Free(),
			a.deleteIf(99).Bounded(3),
			all("Registry.WatchFrom loop", func(s *floor) { leaves2(s.WatchFrom(ctx, s.Revision())) }).Waits(mc.Event),
		}},
		mc.World[*floor]{Name: "watched", New: staged(1, shardedregistry.Config[string, int]{}, func(s *floor) {
			s.w = shardedregistry.Subscribe(s.Registry)
		}), Operations: []floorOp{
			a.get().Bounded(3),
			a.put().Free(),
			a.update().Free(),
			a.updateIf().Free(),
			a.wait(1).Waits(mc.Event | mc.Bucket),
			all("Registry.Watch loop", func(s *floor) { leaves(s.Watch(ctx)) }).Waits(mc.Event),
		}},
		mc.World[*floor]{Name: "watched, a key comes and goes", New: staged(1, shardedregistry.Config[string, int]{}, func(s *floor) {
			s.w = shardedregistry.Subscribe(s.Registry)
		}), Operations: []floorOp{
			a.get().Bounded(3),
			a.create().Waits(mc.Bucket),
			a.delete().Free(),
			a.updateIf().Free(),
			n.create(),
			all("Registry.WatchSnapshot loop", func(s *floor) {
				n := 0
				s.WatchSnapshot(ctx)(func(*shardedregistry.Snapshot[string, int], shardedregistry.Event[string, int]) bool {
					n++
					return n < 2
				})
			}).Waits(mc.Event | mc.Bucket),
		}},
		mc.World[*floor]{Name: "watched, a key was deleted", New: staged(1, shardedregistry.Config[string, int]{}, func(s *floor) {
			for range 3 { // the last of which unlinks what was deleted
				s.loops = append(s.loops, shardedregistry.Subscribe(s.Registry))
			}
			s.Delete("a")
		}), Operations: []floorOp{
			all("Registry.Watch loop goes on", (*floor).goOn).Waits(mc.Bucket),
			a.get().Bounded(3),
			a.create().Waits(mc.Bucket),
			n.create(),
		}},
		mc.World[*floor]{Name: "an index", New: staged(2, plainDigits), Operations: []floorOp{
			a.get().Bounded(3),
			all("Registry.ByIndex loop", func(s *floor) { drains(s.ByIndex("digit", "1")) }).Bounded(7),
			all("Registry.IndexValues loop", func(s *floor) { drains(s.IndexValues("digit")) }).Waits(mc.Bucket),
			a.put().Waits(mc.Bucket),
			b.put().Waits(mc.Bucket),
			to{"b", 1}.update().Waits(mc.Bucket),
			a.updateIf().Waits(mc.Bucket),
			b.delete().Waits(mc.Bucket),
		}},
		mc.World[*floor]{Name: "an index, no new values", New: staged(2, plainDigits), Operations: []floorOp{
			to{"a", 1}.put().Free(),
			to{"a", 11}.update().Free(),
			to{"a", 11}.updateIf().Free(),
			to{"a", 1}.compute(shardedregistry.UpdateOp).Free(),
			all("Registry.ByIndex loop", func(s *floor) { drains(s.ByIndex("digit", "1")) }).Bounded(7),
		}},
		mc.World[*floor]{Name: "a unique index", New: staged(1, uniqueDigits), Operations: []floorOp{
			a.get().Bounded(3),
			all("Registry.LookupBy", func(s *floor) { s.LookupBy("digit", "1") }).Free(),
			a.put().Waits(mc.Bucket | mc.Mutex),
			to{"a", 3}.update().Waits(mc.Bucket | mc.Mutex),
			to{"n", 2}.create().Waits(mc.Bucket | mc.Mutex),
			a.delete().Waits(mc.Bucket),
		}},
		mc.World[*floor]{Name: "time to live", New: staged(1, shardedregistry.Config[string, int]{TTL: dueAbove}), Operations: []floorOp{
			a.get().Bounded(3),
			a.renew(1, forever).Free(),
			a.renew(1, 0).Waits(mc.Mutex),
			a.put().Free(),
			to{"a", 50}.put().Waits(mc.Mutex),
			n.create(),
		}},
		mc.World[*floor]{Name: "expiry", New: staged(1, shardedregistry.Config[string, int]{TTL: dueAbove}, func(s *floor) {
			shardedregistry.Claim(s.Registry, "a")
		}), Operations: []floorOp{
			a.get().Bounded(3),
			a.renew(1, forever).Waits(mc.Mutex | mc.Bucket),
			to{"a", 50}.put().Waits(mc.Mutex | mc.Bucket),
			a.delete().Waits(mc.Mutex | mc.Bucket),
			to{"n", 50}.create().Waits(mc.Mutex | mc.Bucket),
			all("expiry of a", func(s *floor) { shardedregistry.Expire(s.Registry, "a") }),
		}},
	)
}

// excused says why a promise has no operation.
var excused = map[string]string{
	"Registry.Ref":         "every stage has one; it reads the registry's root, or makes that",
	"Registry.MarshalJSON": "it returns an error",
	"Tx.Get":               "what a transaction does: see Transact",
	"Tx.Lookup":            "what a transaction does: see Transact",
	"Tx.Put":               "what a transaction does: see Transact",
	"Tx.Delete":            "what a transaction does: see Transact",
}

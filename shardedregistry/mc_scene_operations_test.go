//go:build modelcheck

package shardedregistry_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/internal/tools/scenes"
	"github.com/latchfree/latchfree/shardedregistry"
)

// What generated scenes consist of: the settings of a registry, and the operations that threads do
// to the keys a and f. What they do is in mc_scenes_test.go, and
// what must hold in the end in mc_scene_loops_test.go.

// sceneSettings have levels, of which the first is none.
var sceneSettings = [][]string{
	{"two shards", "one shard", "equal hashes"},
	{"", "Indexes"},
	{"", "UniqueIndexes"},
	{"", "Check"},
	{"", "TTL"},
	{"", "History 32", "History 2"},
	{"", "Normalize"},
	{"", "Snapshot in progress", "Snapshot kept"},
	{"", "Watch", "Watch of a", "WatchFrom", "WatchSnapshot", "Wait"},
}

// sceneFirsts are what there may be before.
var sceneFirsts = []string{"nothing", "a", "a and f", "a, and f was deleted"}

// short is the time to live of some values, and what passes when time does.
const short = 10 * time.Millisecond

// A value of a scene is money, and then digits: how long it lives, whether Check rejects it, its
// value in the unique index, and those in the other.
func valueOf(money, life, rejected, slot, digit int) int {
	return money*10_000 + life*1000 + rejected*100 + slot*10 + digit
}

func moneyOf(v int) int { return v / 10_000 }

func digitOf(v int) int { return v % 10 }

// plainOf is a value without what Check or a unique index could reject.
func plainOf(v int) int { return v - v/10%100*10 }

const one = 10_000 // of money

var errRejected = errors.New("rejected")

func sceneCheck(_ string, v int) error {
	if v/100%10 != 0 {
		return errRejected
	}
	return nil
}

func sceneDigits(_ string, v int) []string { return []string{"x", "y"}[:digitOf(v)] }

func sceneSlots(_ string, v int) []string {
	if slot := v / 10 % 10; slot != 0 {
		return []string{fmt.Sprint("s", slot)}
	}
	return nil
}

func sceneTTL(_ string, v int) time.Duration {
	return []time.Duration{math.MaxInt64, short, 0}[v/1000%10]
}

func sceneNormalize(k string) (string, error) { return strings.ToLower(k), nil }

// sceneConfig returns the settings of a scene.
func sceneConfig(s *scenes.Scene) (c shardedregistry.Config[string, int]) {
	c.Shards = 2
	if s.Has("one shard") {
		c.Shards = 1
	}
	if s.Has("Indexes") {
		c.Indexes = indexes{"digit": sceneDigits}
	}
	if s.Has("UniqueIndexes") {
		c.UniqueIndexes = indexes{"slot": sceneSlots}
	}
	if s.Has("Check") {
		c.Check = sceneCheck
	}
	if s.Has("TTL") {
		c.TTL = sceneTTL
	}
	if s.Has("Normalize") {
		c.Normalize = sceneNormalize
	}
	switch {
	case s.Has("History 32"):
		c.History = 32
	case s.Has("History 2"):
		c.History = 2
	}
	return c
}

// value draws the value that the operation at hand stores for a key.
func (p *player) value(k string) int {
	d := p.scene.Drawn(p.doing + " " + k)
	rejected, slot := 0, 0
	if d.Below(8) == 0 {
		rejected = 1
	}
	if d.Below(2) == 0 {
		slot = 1 + d.Below(2)
	}
	p.money++
	return valueOf(p.money, []int{0, 0, 1, 2}[d.Below(4)], rejected, slot, d.Below(3))
}

// flips draws one of two for the operation at hand.
func (p *player) flips() bool {
	d := p.scene.Drawn(p.doing + " flips")
	return d.Below(2) == 0
}

// spelled draws how the operation at hand spells a key.
func (p *player) spelled(k string) string {
	if d := p.scene.Drawn(p.doing + " spells"); p.scene.Has("Normalize") && d.Below(2) == 0 {
		return strings.ToUpper(k)
	}
	return k
}

// otherKey returns the other key, spelled likewise.
func otherKey(k string) string {
	switch k {
	case "a":
		return "f"
	case "A":
		return "F"
	case "F":
		return "A"
	}
	return "a"
}

// timePasses is the name of the operation.
const timePasses = "time passes"

// sceneSimpler says which operation to try in the place of one that has led to a failure.
var sceneSimpler = map[string]string{
	"Lookup":                      "Get",
	"Peek":                        "Get",
	"Ref.Get":                     "Get",
	"Ref.Lookup":                  "Lookup",
	"Entries":                     "Lookup",
	"GetOrCreate":                 "Create",
	"Create":                      "Put",
	"Update":                      "Put",
	"Update, overtaken":           "Update",
	"UpdateIf":                    "Update",
	"UpdateIf of another version": "UpdateIf",
	"Compute":                     "Put",
	"Compute deletes":             "Delete",
	"DeleteIf":                    "Delete",
	"DeleteFunc":                  "Delete",
	"Clear":                       "Delete",
	"Replace":                     "Replace one",
	"Replace one":                 "Put",
	"Move all":                    "Move",
	"Swap":                        "Copy",
	"Transact, overtaken":         "Put both",
	"Delete both":                 "Clear",
	"Watch of one":                "Watch",
	"Watch, leave":                "Watch",
	"Snapshot, WatchFrom":         "Snapshot",
}

type sceneOperation struct {
	name string
	do   func(p *player, k string)
}

// atOnce makes an operation that takes effect at once of what it does to a registry or its model.
func atOnce(do func(p *player, k string, v int) func(r registry) any) func(*player, string) {
	return func(p *player, k string) { p.does(p.doing, do(p, k, p.value(k))) }
}

// transacting makes an operation of a transaction.
func transacting(do func(tx model.TxOps, k string, v int) (any, error)) func(*player, string) {
	return atOnce(func(p *player, k string, v int) func(registry) any {
		return func(r registry) any { return transacted(r, func(tx model.TxOps) (any, error) { return do(tx, k, v) }) }
	})
}

// transacted returns what a transaction has returned in its last run, and its error.
func transacted(r registry, do func(tx model.TxOps) (any, error)) any {
	var got any
	err := model.Transact(r, func(tx model.TxOps) (err error) { got, err = do(tx); return err })
	if errors.Is(err, shardedregistry.ErrNotUnique) {
		err = shardedregistry.ErrNotUnique // of several, any
	}
	return results(got, err)
}

// versioned makes an operation that first learns the version of its key, and then asks for that, or
// for one that is off by some.
func versioned(off model.Version, do func(p *player, r registry, k string, version model.Version, v int) any) func(*player, string) {
	return func(p *player, k string) {
		v := p.value(k)
		p.learns(k)
		off := off
		if off > 0 && p.hidden {
			off = 1 << 20 // which the key does not come to have
		}
		p.remembers(p.doing, func(r registry, known *model.Version) any { return do(p, r, k, *known+off, v) })
	}
}

// reads makes an operation that reads a key, on the registry and on its model.
func reads(do func(p *player, r *names1, k string) any) func(*player, string) {
	return func(p *player, k string) {
		p.does(p.doing, func(r registry) any {
			if r, ok := r.(*names1); ok {
				return do(p, r, k)
			}
			return results(r.Lookup(k))
		})
	}
}

func got(k string, v int, ok bool) any {
	if !ok {
		return results(model.Entry{}, false)
	}
	return results(model.Entry{Key: strings.ToLower(k), Value: v}, true)
}

// computes is Compute with a function that sees what is there, and leaves alone what has no digit.
func computes(k string, v int, op model.ComputeOp) func(registry) any {
	return func(r registry) any {
		var saw any
		e, ok, err := r.Compute(k, func(old int, exists bool) (int, model.ComputeOp, error) {
			saw = results(old, exists)
			if op == shardedregistry.DeleteOp && digitOf(old) == 0 {
				return 0, shardedregistry.CancelOp, nil
			}
			return v, op, nil
		})
		return results(saw, e, ok, err)
	}
}

// updating is Update with a function that sees what is there, and may do something first.
func updating(k string, v int, first func()) func(registry) any {
	return func(r registry) any {
		var saw any
		e, err := r.Update(k, func(old int) (int, error) {
			if _, ok := r.(*names1); ok && first != nil {
				do := first
				first = nil
				do()
			}
			saw = results(old)
			return v, nil
		})
		if errors.Is(err, shardedregistry.ErrNotFound) {
			saw = nil // it may have run before
		}
		return results(saw, e, err)
	}
}

// sceneOperations is the table.
var sceneOperations = []sceneOperation{
	{"Get", func(p *player, k string) {
		p.does(p.doing, func(r registry) any { return results(r.Get(k)) })
	}},
	{"Lookup", reads(func(_ *player, r *names1, k string) any { return results(r.Lookup(k)) })},
	{"Peek", func(p *player, k string) {
		p.does(p.doing, func(r registry) any {
			if r, ok := r.(*names1); ok {
				if v := r.Peek(k); v != nil {
					return results(*v, true)
				}
				return results(0, false)
			}
			return results(r.Get(k))
		})
	}},
	{"Ref.Get", func(p *player, k string) {
		p.does(p.doing, func(r registry) any {
			if _, ok := r.(*names1); ok {
				return results(p.refs[strings.ToLower(k)].Get())
			}
			return results(r.Get(k))
		})
	}},
	{"Ref.Lookup", reads(func(p *player, _ *names1, k string) any { return results(p.refs[strings.ToLower(k)].Lookup()) })},
	{"Entries", func(p *player, _ string) { p.lists() }},
	{"Len", func(p *player, _ string) {
		if n := p.r.Len(); n < 0 || n > 2+maxActors {
			p.failf("Len is %d", n)
		}
	}},
	{"ByIndex", func(p *player, _ string) { p.listsBy() }},
	{"LookupBy", func(p *player, k string) {
		if !p.scene.Has("UniqueIndexes") {
			p.lists()
			return
		}
		slot := "s1"
		if p.flips() {
			slot = "s2"
		}
		p.does(p.doing, func(r registry) any { return results(r.(finder).LookupBy("slot", slot)) })
	}},
	{"IndexValues", func(p *player, _ string) { p.listsValues() }},
	{"Snapshot", func(p *player, _ string) { p.snaps(p.r.Snapshot) }},
	{"Wait", func(p *player, k string) { p.waits(k) }},

	{"Create", atOnce(func(_ *player, k string, v int) func(registry) any {
		return func(r registry) any { return results(r.Create(k, v)) }
	})},
	{"Put", atOnce(func(_ *player, k string, v int) func(registry) any {
		return func(r registry) any { return results(r.Put(k, v)) }
	})},
	{"Update", atOnce(func(_ *player, k string, v int) func(registry) any { return updating(k, v, nil) })},
	{"Update, overtaken", atOnce(func(p *player, k string, v int) func(registry) any {
		own := p.value("own")
		return updating(k, v, func() { p.does("its Put", func(r registry) any { return results(r.Put(k, own)) }) })
	})},
	{"UpdateIf", versioned(0, func(_ *player, r registry, k string, version model.Version, v int) any {
		return results(r.UpdateIf(k, version, v))
	})},
	{"UpdateIf of another version", versioned(1, func(_ *player, r registry, k string, version model.Version, v int) any {
		return results(r.UpdateIf(k, version, v))
	})},
	{"Compute", atOnce(func(_ *player, k string, v int) func(registry) any {
		return computes(k, v, shardedregistry.UpdateOp)
	})},
	{"Compute deletes", atOnce(func(_ *player, k string, v int) func(registry) any {
		return computes(k, v, shardedregistry.DeleteOp)
	})},
	{"GetOrCreate", atOnce(func(_ *player, k string, v int) func(registry) any {
		return func(r registry) any { return results(r.GetOrCreate(k, answer(v, nil))) }
	})},
	{"Delete", atOnce(func(_ *player, k string, _ int) func(registry) any {
		return func(r registry) any { return results(r.Delete(k)) }
	})},
	{"DeleteIf", versioned(0, func(_ *player, r registry, k string, version model.Version, _ int) any {
		return results(r.DeleteIf(k, version))
	})},
	{"DeleteFunc", func(p *player, k string) {
		digit := digitOf(p.value(k))
		saw := map[string]int{}
		doomed := func(k string, v int) bool { last, ok := saw[k]; return digitOf(v) == digit && (!ok || v == last) }
		p.deletes(func() int {
			return p.r.DeleteFunc(func(k string, v int) bool { saw[k] = v; return digitOf(v) == digit })
		}, doomed)
	}},
	{"Clear", func(p *player, _ string) { p.deletes(p.r.Clear, func(string, int) bool { return true }) }},
	{"Replace", func(p *player, k string) { p.replaces(k, otherKey(k)) }},
	{"Replace one", func(p *player, k string) { p.replaces(k) }},
	{"Renew", func(p *player, k string) {
		if !p.scene.Has("TTL") {
			p.learns(k)
			return
		}
		versioned(0, func(p *player, r registry, k string, version model.Version, v int) any {
			ttl := sceneTTL(k, v)
			if _, ok := r.(*model.Registry); ok {
				ttl = p.lagging(k, v)
			}
			return results(r.(model.ExpiryOps).Renew(k, version, ttl))
		})(p, k)
	}},

	{"Move", transacting(func(tx model.TxOps, k string, _ int) (any, error) {
		from, ok := tx.Lookup(k)
		to, is := tx.Get(otherKey(k))
		if !ok || moneyOf(from.Value) < 2 {
			return results(from, ok, to, is), nil
		}
		return results(from, to, is, tx.Put(k, from.Value-one), tx.Put(otherKey(k), to+one)), nil
	})},
	{"Move all", transacting(func(tx model.TxOps, k string, _ int) (any, error) {
		from, ok := tx.Delete(k)
		to, is := tx.Get(otherKey(k))
		if !ok {
			return results(to, is), nil
		}
		return results(from, to, is, tx.Put(otherKey(k), to+moneyOf(from.Value)*one)), nil
	})},
	{"Copy", transacting(func(tx model.TxOps, k string, _ int) (any, error) {
		v, ok := tx.Get(k)
		if !ok {
			return results(tx.Delete(otherKey(k))), nil
		}
		return results(v, tx.Put(otherKey(k), plainOf(v))), nil
	})},
	{"Insert both", transacting(func(tx model.TxOps, k string, v int) (any, error) {
		a, inA := tx.Get(k)
		b, inB := tx.Get(otherKey(k))
		if inA || inB {
			return results(a, inA, b, inB), nil
		}
		return results(tx.Put(k, v), tx.Put(otherKey(k), plainOf(v))), nil
	})},
	{"Delete both", transacting(func(tx model.TxOps, k string, _ int) (any, error) {
		return results(results(tx.Delete(k)), results(tx.Delete(otherKey(k)))), nil
	})},
	{"Read both", transacting(func(tx model.TxOps, k string, _ int) (any, error) {
		return results(results(tx.Lookup(k)), results(tx.Lookup(otherKey(k)))), nil
	})},
	{"Swap", transacting(func(tx model.TxOps, k string, _ int) (any, error) {
		a, inA := tx.Get(k)
		b, inB := tx.Get(otherKey(k))
		for _, to := range []struct {
			key string
			v   int
			ok  bool
		}{{k, b, inB}, {otherKey(k), a, inA}} {
			if to.ok {
				tx.Put(to.key, to.v)
			} else {
				tx.Delete(to.key)
			}
		}
		return results(a, inA, b, inB), nil
	})},
	{"Put both", transacting(func(tx model.TxOps, k string, v int) (any, error) {
		return results(tx.Put(k, v), tx.Put(otherKey(k), v+one)), nil // with one unique value, if any
	})},
	{"Transact fails", transacting(func(tx model.TxOps, k string, v int) (any, error) {
		a, inA := tx.Get(k)
		return results(a, inA, tx.Put(k, v), results(tx.Get(otherKey(k)))), errRejected
	})},
	{"Transact panics", func(p *player, k string) {
		defer func() {
			if err := recover(); err != error(errRejected) {
				panic(err)
			}
		}()
		p.r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
			tx.Put(k, 1)
			tx.Delete(otherKey(k))
			panic(errRejected)
		})
	}},
	{"Transact, overtaken", atOnce(func(p *player, k string, v int) func(registry) any {
		own := p.value("own")
		first := func() { p.does("its Put", func(r registry) any { return results(r.Put(k, own)) }) }
		return func(r registry) any {
			return transacted(r, func(tx model.TxOps) (any, error) {
				a, inA := tx.Get(k)
				if _, ok := r.(*names1); ok && first != nil {
					do := first
					first = nil
					do()
				}
				b, inB := tx.Get(otherKey(k))
				return results(a, inA, b, inB, tx.Put(otherKey(k), plainOf(v)+moneyOf(a)*one)), nil
			})
		}
	})},

	{"Watch", func(p *player, _ string) { p.watches() }},
	{"Watch of one", func(p *player, k string) { p.watches(strings.ToLower(k)) }},
	{"Watch, leave", func(p *player, _ string) {
		p.watches()
		l := p.loops[len(p.loops)-1]
		p.loops = p.loops[:len(p.loops)-1]
		l.watcher.Leave()
	}},
	{"WatchFrom", func(p *player, _ string) { p.reads() }},
	{"Snapshot, WatchFrom", func(p *player, _ string) { p.snapsAndReads() }},
	{timePasses, func(p *player, _ string) { p.passes() }},
}

// show prints what was seen. Where a version depends on when cells leave the table, it hides that.
func (w *stage) show(v any) string {
	switch v := v.(type) {
	case []any:
		var b strings.Builder
		for _, v := range v {
			b.WriteString(w.show(v) + " ")
		}
		return b.String()
	case model.Version:
		if w.hidden {
			return "a version"
		}
	case model.Entry:
		if w.hidden {
			v.Version = 0
		}
		return fmt.Sprint(v)
	case model.Event:
		if w.hidden {
			v.Version = 0
		}
		return fmt.Sprint(v)
	case error:
		var exists *shardedregistry.ExistsError
		switch {
		case !w.hidden:
		case errors.As(v, &exists):
			return fmt.Sprint("exists: ", exists.Given, exists.Stored)
		case errors.Is(v, shardedregistry.ErrConflict):
			return "conflict"
		}
	}
	return fmt.Sprint(v)
}

// ordered returns the entries of both keys in order.
func ordered(entries []model.Entry) []model.Entry {
	entries = slices.DeleteFunc(entries, func(e model.Entry) bool { return e.Key == lastKey })
	slices.SortFunc(entries, func(x, y model.Entry) int { return cmp.Compare(x.Key, y.Key) })
	return entries
}

// cancelled returns a context that is done.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

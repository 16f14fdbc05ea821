//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/oncecache"
)

// What generated scenes consist of: the settings of a cache, and the operations that threads do.
// Everything that they call is here. What must hold is in mc_scene_rules_test.go.

// sceneSettings are the levels of each setting, of which the first is none.
var sceneSettings = [][]string{
	{"ints", "pointers", "structs"},
	{"", "Close", "CloseBeforeCreate"},
	{"", "OnRemove"},
	{"", "TTL 0", "TTL 10ms", "TTL forever", "Renew", "Renew fails", "Create renews"},
	{"", "ErrorTTL 10ms", "ErrorTTL forever"},
	{"", "CreateTimeout"},
	{"", "MaxEntries", "MaxWeight"},
	{"", "IdleTimeout"},
	{"", "RecordStats"},
	{"", "OnCreate", "OnCreate panics", "OnCreate exits"},
	{"", "Create", "Create fails"},
}

// short is every time in the settings. Operations that take time take all of it.
const short = 10 * time.Millisecond

// configure returns the settings that w has.
func configure[V any](w *stage[V]) oncecache.Config[int, V] {
	c := oncecache.Config[int, V]{}
	if w.has("Close", "CloseBeforeCreate") {
		c.Close = w.closes
	}
	c.CloseBeforeCreate = w.has("CloseBeforeCreate")
	if w.has("OnRemove") {
		c.OnRemove = w.removes
	}
	// Constants where the functions can say the same, but each form of both.
	ttl := func(d time.Duration) func(int, V) time.Duration {
		return func(int, V) time.Duration { return d }
	}
	switch {
	case w.has("TTL 0"):
		c.TTLFunc = ttl(0)
	case w.has("TTL 10ms"):
		c.TTL = short
	case w.has("TTL forever"):
		c.TTLFunc = ttl(math.MaxInt64)
	case w.has("Renew"):
		c.TTLFunc = ttl(2 * short)
	case w.has("Renew fails", "Create renews"):
		c.TTL = 2 * short
	}
	if w.has("Renew", "Renew fails", "Create renews") {
		c.RenewAhead = short
	}
	if w.has("Renew", "Renew fails") {
		c.Renew = func(ctx context.Context, k int, old V) (V, error) {
			how := inValue
			if w.has("Renew fails") {
				how = inError
			}
			return w.replaces(ctx, k, old, w.kind.number(old) != 0, how, 0)
		}
	}
	if w.creates() {
		c.Create = w.byConfig
	}
	switch {
	case w.has("ErrorTTL 10ms"):
		c.ErrorTTLFunc = func(int, error) time.Duration { return short }
	case w.has("ErrorTTL forever"):
		c.ErrorTTL = -1
	}
	if w.has("CreateTimeout") {
		c.CreateTimeout = short
	}
	if w.has("MaxEntries") {
		c.MaxEntries = 1
	}
	if w.has("MaxWeight") {
		c.MaxWeight, c.Weight = maxWeight, func(_ int, v V) int64 { return weight(w.kind.number(v)) }
	}
	if w.has("IdleTimeout") {
		c.IdleTimeout = short
	}
	c.RecordStats = w.has("RecordStats")
	if w.has("OnCreate", "OnCreate panics", "OnCreate exits") {
		c.OnCreate = w.created
	}
	return c
}

// maxWeight is the bound of the settings: some values fill it alone, and some are too heavy.
const maxWeight = 2

func weight(number int) int64 { return int64(1 + number%3) }

// creates reports whether there is Config.Create.
func (w *stage[V]) creates() bool { return w.has("Create", "Create fails", "Create renews") }

// byConfig is Config.Create. Calls that create for a key without a value tell it when they began;
// of the others it cannot know whether there is one.
func (w *stage[V]) byConfig(ctx context.Context, k int) (V, error) {
	how := inValue
	if w.has("Create fails") {
		how = inError
	}
	since, alone := ctx.Value(sinceKey{}).(int)
	return w.runs(ctx, k, alone, *new(V), how, since)
}

type sinceKey struct{}

// A kind is a type of values, which are numbered.
type kind[V any] struct {
	make   func(number int) V
	number func(V) int
	drop   func(c *oncecache.Cache[int, V], k int, old V) bool // CompareAndDelete; nil: it does not compile
}

type handle struct{ number int }

// A pool is what two copies of which can differ in the bytes that no field has.
type pool struct {
	ready bool
	conns map[int]int
}

var (
	intKind     = kind[int]{func(n int) int { return n }, func(v int) int { return v }, oncecache.CompareAndDelete[int, int]}
	pointerKind = kind[*handle]{func(n int) *handle { return &handle{n} }, func(v *handle) int {
		if v == nil {
			return 0
		}
		return v.number
	}, oncecache.CompareAndDelete[int, *handle]}
	structKind = kind[pool]{func(n int) pool { return pool{n%2 == 0, map[int]int{0: n}} }, func(v pool) int { return v.conns[0] }, nil}
)

// simpler says which operation to try in the place of one that has led to a failure.
var simpler = map[string]string{
	"GetOrCreate takes long":    "GetOrCreate",
	"GetOrCreateContext":        "GetOrCreate",
	"GetOrCreate fails":         "GetOrCreate",
	"GetOrCreate panics":        "GetOrCreate",
	"GetOrCreate exits":         "GetOrCreate",
	"GetOrCreate deletes":       "GetOrCreate",
	"GetOrCreateContext fails":  "GetOrCreate fails",
	"GetOrCreateContext panics": "GetOrCreate panics",
	"GetOrCreateContext exits":  "GetOrCreate exits",
	"Acquire within a context":  "Acquire",
	"Acquire, Discard":          "Acquire",
	"Refresh fails":             "Refresh",
	"Refresh panics":            "Refresh",
	"Refresh, not modified":     "Refresh",
	"Refresh takes long":        "Refresh",
	"Refresh, begun anew":       "Refresh",
	"Refresh by Create":         "Refresh",
	"Load":                      "GetOrCreateContext",
	"Peek":                      "Get",
	"GetOrCreateMany by Create": "GetOrCreateMany",
	"GetOrCreateMany fails":     "GetOrCreateMany",
	"GetOrCreateMany exits":     "GetOrCreateMany",
	"Clear":                     "Delete",
	"CompareAndDelete":          "Delete",
	"SetIfAbsent":               "Set",
	"Close within a context":    "Close",
	"time passes twice":         "time passes",
}

// Traits of an operation.
const (
	endsCreations = 1 << iota // a creation may be ended, so that another runs beside it
	endsContext
	closesCache
	leases // of values, which may be too many meanwhile, and until the next comes
	takesTime
	fails
	panics
	exits
	awaits    // what others create
	setsAgain // a value that may have left by then
	refreshes // and may join a renewal
	forgets   // a creation, whose callers get its value all the same
)

type operation[V any] struct {
	name   string
	traits int
	do     func(w *stage[V], k int)
}

// operations is the table. Create functions are w.makes: it makes a value, or ends otherwise.
func operations[V any]() []operation[V] {
	type world = *stage[V]
	create := func(how ending) func(world, int) {
		return func(w world, k int) {
			w.looksUp(1)
			w.call(k, false, func(since int) (V, error) {
				return w.c.GetOrCreate(k, func() (V, error) { return w.makes(nil, k, how, since) })
			})
		}
	}
	ask := func(how ending) func(world, int) {
		return func(w world, k int) {
			w.looksUp(1)
			w.call(k, true, func(since int) (V, error) {
				return w.c.GetOrCreateContext(w.ctx, k, func(ctx context.Context, _ int) (V, error) { return w.makes(ctx, k, how, since) })
			})
		}
	}
	hold := func(own bool, how ending, discards bool) func(world, int) {
		end := (*oncecache.Lease[int, V]).Release
		if discards {
			end = (*oncecache.Lease[int, V]).Discard
		}
		return func(w world, k int) {
			ctx := context.Background()
			if own {
				ctx = w.ctx
			}
			since := w.now()
			w.looksUp(1)
			w.guard(func() {
				l, err := w.c.Acquire(ctx, k, func(ctx context.Context, _ int) (V, error) { return w.makes(ctx, k, how, since) })
				if err != nil {
					w.failed(k, err, own, since)
					return
				}
				w.got(k, l.Value(), since)
				v, n := l.Value(), w.holds(l.Value())
				w.pause()
				w.staysLeased(k, n)
				w.unholds(n, l.Value())
				if end(&l); discards {
					w.discarded(v)
				}
			})
		}
	}
	refresh := func(how ending) func(world, int) {
		return func(w world, k int) {
			w.call(k, false, func(since int) (V, error) {
				if how == byCreate {
					return w.c.Refresh(context.Background(), k, nil)
				}
				return w.c.Refresh(context.Background(), k, func(ctx context.Context, k int, old V, exists bool) (V, error) {
					return w.replaces(ctx, k, old, exists, how, since)
				})
			})
		}
	}
	many := func(how ending) func(world, int) {
		return func(w world, k int) {
			since := w.now()
			ctx, create := context.Background(), func(_ context.Context, keys []int) (map[int]V, error) {
				return w.createsAll(keys, how, since)
			}
			if how == byCreate {
				ctx, create = context.WithValue(ctx, sinceKey{}, since), nil
			}
			w.looksUp(2)
			w.guard(func() {
				got, err := w.c.GetOrCreateMany(ctx, []int{k, other(k)}, create)
				w.gotAll([]int{k, other(k)}, got, err, since)
			})
		}
	}
	set := func(w world, k int, v V) (old V, replaced bool) {
		since := w.now()
		if old, replaced = w.c.Set(k, v); replaced {
			w.takes(k, old, oncecache.ReasonReplaced, since)
		}
		return old, replaced
	}
	shut := func(w world, ctx context.Context) {
		w.shuts()
		since := w.now()
		w.shut(w.c.Close(ctx), since)
	}
	return []operation[V]{
		{"Get", 0, func(w world, k int) { w.look(k) }},
		{"Peek", 0, func(w world, k int) {
			since := w.now()
			if v, ok := w.c.Peek(k); ok {
				w.got(k, v, since)
			}
		}},
		{"Info", 0, func(w world, k int) {
			if i, ok := w.c.Info(k); ok {
				w.informed(i)
			}
		}},
		{"SetMaxEntries", 0, func(w world, k int) { w.bounds(k) }},
		{"GetOrCreate", 0, create(inValue)},
		{"GetOrCreate fails", fails, create(inError)},
		{"GetOrCreate panics", panics, create(inPanic)},
		{"GetOrCreate exits", exits, create(inGoexit)},
		{"GetOrCreate takes long", takesTime, create(inTime)},
		{"GetOrCreate deletes", endsCreations | forgets, create(inDelete)},
		{"GetOrCreateContext", 0, ask(inValue)},
		{"GetOrCreateContext fails", fails, ask(inError)},
		{"GetOrCreateContext panics", panics, ask(inPanic)},
		{"GetOrCreateContext exits", exits, ask(inGoexit)},
		{"cancel", endsContext, func(w world, _ int) { w.cancelled.Add(1); w.cancel() }},
		{"Acquire", leases, hold(false, inValue, false)},
		{"Acquire fails", leases | fails, hold(false, inError, false)},
		{"Acquire within a context", leases, hold(true, inValue, false)},
		{"Acquire, Discard", leases | endsCreations | forgets, hold(false, inValue, true)},
		{"Set", endsCreations, func(w world, k int) {
			v, since := w.brings(k), w.now()
			set(w, k, v)
			w.brought(v, true)
			w.swept(1<<k, since)
			w.overtakes(k, since)
		}},
		{"SetIfAbsent", 0, func(w world, k int) {
			v := w.brings(k)
			since := w.now()
			actual, stored := w.c.SetIfAbsent(k, v)
			w.brought(v, stored)
			w.actually(k, actual, v, stored, since)
		}},
		{"Set the same", endsCreations | setsAgain, func(w world, k int) {
			v, ok := w.look(k)
			if !ok {
				return
			}
			since, end := w.now(), w.again(v)
			old, replaced := w.c.Set(k, v)
			had := replaced && w.kind.number(old) == w.kind.number(v)
			if end(had); replaced && !had {
				w.takes(k, old, oncecache.ReasonReplaced, since)
			}
		}},
		{"Delete", endsCreations | forgets, func(w world, k int) {
			since := w.now()
			if old, ok := w.c.Delete(k); ok {
				w.takes(k, old, oncecache.ReasonDeleted, since)
			}
			w.swept(1<<k, since)
		}},
		{"CompareAndDelete", endsCreations | forgets, func(w world, k int) {
			since := w.now()
			if v, ok := w.look(k); ok && w.kind.drop != nil && w.kind.drop(w.c, k, v) {
				w.takes(k, v, oncecache.ReasonDeleted, since)
			}
		}},
		{"Clear", endsCreations | forgets, func(w world, _ int) {
			since := w.now()
			w.c.Clear()
			w.swept(1<<1|1<<2, since)
		}},
		{"Refresh", refreshes | leases, refresh(inValue)},
		{"Refresh fails", refreshes | leases | fails, refresh(inError)},
		{"Refresh panics", refreshes | leases | panics, refresh(inPanic)},
		{"Refresh, not modified", refreshes | leases, refresh(inUnmodified)},
		{"Refresh returns the old", refreshes | leases, refresh(inOld)},
		{"Refresh takes long", refreshes | leases | takesTime, refresh(inTime)},
		{"Refresh, begun anew", refreshes | leases | endsCreations | forgets, refresh(inAnew)},
		{"Refresh by Create", refreshes | leases, func(w world, k int) {
			if w.creates() || w.has("Renew", "Renew fails") {
				refresh(byCreate)(w, k)
			} else {
				refresh(inValue)(w, k)
			}
		}},
		{"GetOrCreateMany", leases, many(inValue)},
		{"GetOrCreateMany fails", leases | fails, many(inError)},
		{"GetOrCreateMany exits", leases | exits, many(inGoexit)},
		{"GetOrCreateMany by Create", leases, func(w world, k int) {
			if w.creates() {
				many(byCreate)(w, k)
			} else {
				many(inValue)(w, k)
			}
		}},
		{"Load", 0, func(w world, k int) {
			if !w.creates() {
				ask(inValue)(w, k)
				return
			}
			w.looksUp(1)
			w.call(k, true, func(since int) (V, error) {
				return w.c.Load(context.WithValue(w.ctx, sinceKey{}, since), k)
			})
		}},
		{"Wait", awaits, func(w world, k int) {
			w.looksUp(1)
			w.call(k, true, func(int) (V, error) { return w.c.Wait(w.ctx, k) })
		}},
		{"Close", closesCache, func(w world, _ int) { shut(w, context.Background()) }},
		{"Close within a context", closesCache, func(w world, _ int) { shut(w, w.ctx) }},
		{"observe", 0, func(w world, _ int) {
			since := w.now()
			for k, v := range w.c.All() {
				w.got(k, v, since)
			}
			w.observed(w.c.Len(), w.flights(), w.stats())
		}},
		{"time passes", takesTime, func(w world, _ int) { w.passes() }},
		{"time passes twice", takesTime, func(w world, _ int) { w.passes(); w.passes() }},
	}
}

// The ways in which only create functions of scenes end.
const (
	inTime       = joined + 1 + iota // with a value, after some time
	inDelete                         // with a value, after the deletion of the key
	inUnmodified                     // the old value is right
	inOld                            // with the old value
	inAnew                           // with a value, after a deletion and another creation
	byCreate                         // there is none but Config.Create or Config.Renew
)

// other is the other key.
func other(k int) int { return 3 - k }

// look is a Get.
func (w *stage[V]) look(k int) (v V, ok bool) {
	since := w.now()
	w.looksUp(1)
	if v, ok = w.c.Get(k); ok {
		w.got(k, v, since)
	}
	return v, ok
}

// bounds changes the bound to n, which only a cache that has it allows.
func (w *stage[V]) bounds(n int) {
	w.most = max(w.most, n)
	if err := w.c.SetMaxEntries(n); (err == nil) != w.has("MaxEntries") {
		w.m.Failf("SetMaxEntries returns %v", err)
	}
	if err := w.c.SetMaxWeight(int64(n)); (err == nil) != w.has("MaxWeight") {
		w.m.Failf("SetMaxWeight returns %v", err)
	}
}

func (w *stage[V]) flights() (n int) {
	for range w.c.InFlight() {
		n++
	}
	return n
}

func (w *stage[V]) stats() oncecache.Stats { return w.c.Stats() }

// passes lets the time of all settings pass.
func (w *stage[V]) passes() {
	w.time.Add(1)
	w.m.Advance(short)
}

// end returns how the function of a creation or a renewal ends, once it is not interrupted any
// more. V is what it makes.
func (w *stage[V]) end(k int, v, old V, how ending) (V, error) {
	switch how {
	case inError:
		return *new(V), w.refuses(k)
	case inPanic:
		panic(w.refuses(k))
	case inGoexit:
		runtime.Goexit()
	case inUnmodified:
		return *new(V), oncecache.ErrNotModified
	case inOld:
		return old, nil
	}
	return v, nil
}

// refusal is the error of a creation of a key, and tells which.
type refusal struct{ key, number int }

func (r refusal) Error() string { return fmt.Sprintf("refused %d, number %d", r.key, r.number) }

// expectedError tells what may have led to err.
func expectedError(err error, k int) (what string) {
	var refused refusal
	var panicked *oncecache.PanicError
	switch {
	case errors.As(err, &refused) && (k == 0 || refused.key == k):
		if errors.As(err, &panicked) {
			return "panics"
		}
		return "fails"
	case err == oncecache.ErrGoexit:
		return "exits"
	case err == oncecache.ErrClosed:
		return "closes"
	case err == oncecache.ErrCreateTimeout:
		return "times out"
	case err == oncecache.ErrNotFound:
		return "not found"
	case err == context.Canceled:
		return "cancelled"
	case errors.As(err, new(*oncecache.CycleError)):
		return "cycle"
	}
	return ""
}

// open makes the cache of a scene, and its context.
func (w *stage[V]) open() {
	w.c, w.most = oncecache.MustNew(configure(w)), 1
	w.ctx, w.cancel = atomics.WithCancel(context.Background())
}

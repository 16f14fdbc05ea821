//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/internal/tools/scenes"
	"github.com/latchfree/latchfree/oncecache"
)

// Protocols are written by hand, and find what their author thinks of. Scenes are generated: three
// operations of the table, at once, in each of a few caches whose settings cover all pairs. So they
// find what comes of combinations.

// sceneFirsts says how many keys are set before.
var sceneFirsts = []string{"0 set", "1 set", "2 set"}

func sceneCast() *scenes.Cast {
	c := &scenes.Cast{
		Test: "TestScenes", Package: "./oncecache",
		Settings: sceneSettings, Firsts: sceneFirsts, Simpler: simpler,
		PairsOnly: true,
		Explore: func(s *scenes.Scene, cfg mc.Config) mc.Result {
			switch {
			case s.Has("pointers"):
				return play(cfg, s, pointerKind)
			case s.Has("structs"):
				return play(cfg, s, structKind)
			}
			return play(cfg, s, intKind)
		},
		Played: 20_000, Short: 500, Runs: 4,
	}
	for _, o := range operations[int]() {
		c.Operations = append(c.Operations, o.name)
	}
	c.Compose = func(s *scenes.Scene, three [3]string, d *scenes.Dice) {
		s.First = sceneFirsts[d.Below(len(sceneFirsts))]
		for t, o := range three {
			k := 1
			if t > 0 && d.Below(4) == 0 {
				k = 2
			}
			steps := []scenes.Step{{Operation: o, Key: k}}
			if d.Below(4) == 0 {
				second := c.Operations[d.Below(len(c.Operations))]
				steps = append(steps, scenes.Step{Operation: second, Key: 1 + d.Below(4)/3})
			}
			s.Threads = append(s.Threads, steps)
		}
	}
	return c
}

func play[V any](cfg mc.Config, s *scenes.Scene, k kind[V]) mc.Result {
	table, traits := map[string]operation[V]{}, 0
	for _, o := range operations[V]() {
		table[o.name] = o
	}
	for _, steps := range s.Threads {
		for _, o := range steps {
			traits |= table[o.Operation].traits
		}
	}
	return mc.Sample(cfg, func(m *mc.M) {
		w := &stage[V]{m: m, kind: k, scene: s, traits: traits}
		w.open()
		func() {
			defer scenes.Survives(m.Failf)
			for k := range slices.Index(sceneFirsts, s.First) {
				table["Set"].do(w, k+1)
			}
		}()
		for _, steps := range s.Threads {
			m.Go(func() {
				defer scenes.Survives(m.Failf)
				for _, o := range steps {
					table[o.Operation].do(w, o.Key)
				}
			})
		}
		m.Final(w.over)
	})
}

// TestScenes plays scenes of three threads.
func TestScenes(t *testing.T) { sceneCast().Play(t) }

// The settings of scenes are good, cover all pairs, and a scene can be made again from its name.
func TestScenesCoverPairs(t *testing.T) {
	sceneCast().Cover(t, func(s *scenes.Scene) {
		if _, err := oncecache.New(configure(&stage[int]{scene: s, kind: intKind})); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	})
}

// What generated scenes consist of: the settings of a cache, and the operations that threads do.
// Everything that they call is here. What must hold stands below.

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
				return w.c.GetOrCreate(k, func() (V, error) { return w.makes(noContext, k, how, since) })
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

//go:norace
func (w *stage[V]) notesBound(n int) { w.most = max(w.most, n) }

// bounds changes the bound to n, which only a cache that has it allows.
func (w *stage[V]) bounds(n int) {
	w.notesBound(n)
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

// What must hold in every scene, whatever its settings and operations: a value is closed and told
// once, after it has left and after its leases; callers get what was made for their key; create
// functions of a key run one at a time; counts are right at rest; and nothing is left after Close.

// stage is the cache of one execution of a scene, and what was seen of it. Threads take turns, so
// what they note is plain, and invisible to the race detector.
type stage[V any] struct {
	m      *mc.M
	c      *oncecache.Cache[int, V]
	kind   kind[V]
	scene  *scenes.Scene
	traits int // of all operations

	ctx    context.Context // of operations that may be cancelled
	cancel context.CancelFunc
	turn   atomics.Int32 // for pause

	time, cancelled, closing mc.Tally
	tick                     int // orders events
	values                   [maxNumber + 1]noted
	count                    int    // of values
	running, lone            [3]int // create functions, by key: all, and those of keys without a value
	ended                    [3]int // create functions, by key
	told                     [3]int // OnCreate, by key
	made, failures, panicked int    // create functions, by how they ended
	closings, removals       int
	lookups                  int                // that RecordStats counts
	overtook                 [3]int             // when a call of Set began that has returned since, by key
	why                      [16]int            // what OnRemove was told, by reason
	sweeps                   [10]sweep          // the last
	swipes                   int                // where the next goes
	most                     int                // the largest MaxEntries
	undue                    int                // functions that had begun when no value was due, and all were used; 0: not known
	heard                    [maxNumber + 1]int // when a call had returned this refusal; 0: not yet
	refusals                 int
	functions                int // that have begun
}

const maxNumber = 60

// noted is what is known of a value.
type noted struct {
	key       int
	born      bool // made by a function
	alone     bool // of a key that had none
	begunAt   int  // its function
	from      int  // what it was to replace; 0: nothing
	ownedAt   int  // when it was the cache's for sure; 0: not yet
	refused   bool // SetIfAbsent has left it to its caller
	closes    int
	closed    bool // Close has returned
	closedAt  int
	removes   int
	reason    oncecache.Reason // that OnRemove got
	taken     oncecache.Reason // for which a call has returned it; zero: none has
	takenAt   int
	discarded int  // when a lease of it had been discarded
	overtaken bool // Set has ended the creation that makes it
	remade    bool // a function has returned it once more, where nobody owns values
	leases    int
	spoiled   bool   // it was set again after it had left, which callers must not do
	complaint string // the first that holds unless it is spoiled
}

func (w *stage[V]) has(levels ...string) bool { return w.scene.Has(levels...) }

// pause is a step, at which others may come between.
func (w *stage[V]) pause() { w.turn.Add(1) }

//go:norace
func (w *stage[V]) now() int { w.tick++; return w.tick }

// blame complains of a value. If one may be spoiled, it is too early to say.
//
//go:norace
func (w *stage[V]) blame(n int, what string) {
	if w.traits&setsAgain == 0 {
		w.m.Failf("a value %s", what)
	} else if v := &w.values[n]; v.complaint == "" {
		v.complaint = what
	}
}

// fresh makes a value.
//
//go:norace
func (w *stage[V]) fresh(k int) (V, *noted) {
	if w.count == maxNumber {
		w.m.Failf("livelock: too many values")
		w.count = 0
	}
	w.count++
	w.values[w.count] = noted{key: k}
	return w.kind.make(w.count), &w.values[w.count]
}

// brings makes a value that is about to be set.
func (w *stage[V]) brings(k int) V {
	v, _ := w.fresh(k)
	return v
}

// brought notes whether the cache has taken a value.
//
//go:norace
func (w *stage[V]) brought(v V, taken bool) {
	n := w.kind.number(v)
	if taken {
		w.values[n].ownedAt = w.now()
	} else if w.values[n].refused = true; w.values[n].closes > 0 {
		w.m.Failf("a value that SetIfAbsent has not taken is closed")
	}
}

// again notes that a value is set that the key may have, and returns what notes whether it had.
//
//go:norace
func (w *stage[V]) again(v V) func(had bool) {
	n := w.kind.number(v)
	return func(had bool) {
		if !had {
			w.values[n].spoiled = true
		}
	}
}

// holds notes a lease of a value, and returns its number.
//
//go:norace
func (w *stage[V]) holds(v V) int {
	n := w.kind.number(v)
	if w.values[n].leases++; w.values[n].closes+w.values[n].removes > 0 {
		w.blame(n, "is leased, and closed")
	}
	return n
}

// staysLeased looks whether the key has lost a value that is leased, if nothing but the bounds or
// IdleTimeout can take it.
func (w *stage[V]) staysLeased(k, n int) {
	if w.traits&(endsCreations|refreshes) != 0 || w.ends() || w.closing.Value() > 0 || w.has("MaxWeight") && weight(n) > 1 {
		return
	}
	if v, ok := w.c.Peek(k); (!ok || w.kind.number(v) != n) && w.closing.Value() == 0 {
		w.m.Failf("a leased value has left")
	}
}

//go:norace
func (w *stage[V]) unholds(n int, v V) {
	if w.kind.number(v) != n {
		w.m.Failf("the value of a lease has changed")
	}
	w.values[n].leases--
}

// closes is Config.Close.
func (w *stage[V]) closes(k int, v V) error {
	w.beginsToClose(k, v)
	w.pause()
	if now, ok := w.c.Peek(k); ok && w.kind.number(now) == w.kind.number(v) {
		w.blame(w.kind.number(v), "is closed while it is the key's")
	}
	w.hasClosed(v)
	return nil
}

//go:norace
func (w *stage[V]) beginsToClose(k int, v V) {
	n := w.kind.number(v)
	at := &w.values[n]
	if n == 0 || at.key != k || at.refused {
		w.m.Failf("what is closed is no value of the cache for the key")
	}
	if at.closes++; at.closes > 1 {
		w.blame(n, "is closed twice")
	}
	if at.leases > 0 {
		w.blame(n, "is closed while it is leased")
	}
	at.closedAt = w.now()
}

//go:norace
func (w *stage[V]) hasClosed(v V) {
	w.values[w.kind.number(v)].closed = true
	w.closings++
}

// removes is Config.OnRemove.
func (w *stage[V]) removes(k int, v V, why oncecache.Reason, err error) {
	w.isTold(k, v, why, err)
	w.pause()
}

//go:norace
func (w *stage[V]) isTold(k int, v V, why oncecache.Reason, err error) {
	n := w.kind.number(v)
	at := &w.values[n]
	if n == 0 || at.key != k || at.refused || err != nil {
		w.m.Failf("what OnRemove gets is no value of the cache for the key, or an error: %v", err)
	}
	at.reason = why
	w.why[why]++
	if at.removes++; at.removes > 1 {
		w.blame(n, "is told twice")
	}
	if at.leases > 0 {
		w.blame(n, "is told while it is leased")
	}
	if w.has("Close", "CloseBeforeCreate") && !at.closed {
		w.blame(n, "is told before it is closed")
	}
	w.removals++
}

// created is Config.OnCreate.
func (w *stage[V]) created(k int, _ time.Duration, _ error) {
	w.notesCreation(k)
	w.pause()
	if w.has("OnCreate panics") {
		panic("OnCreate")
	}
	if w.has("OnCreate exits") {
		runtime.Goexit()
	}
}

//go:norace
func (w *stage[V]) notesCreation(k int) { w.told[k]++ }

// makes is the function of a creation, with its context, or nil, for a call that began at since.
func (w *stage[V]) makes(ctx context.Context, k int, how ending, since int) (V, error) {
	return w.runs(ctx, k, true, *new(V), how, since)
}

// replaces is the function of Refresh, and of Renew. The old value is leased meanwhile.
func (w *stage[V]) replaces(ctx context.Context, k int, old V, exists bool, how ending, since int) (V, error) {
	if !exists {
		if how == inUnmodified || how == inOld {
			how = inValue
		}
		return w.makes(ctx, k, how, since)
	}
	w.got(k, old, 0)
	n := w.holds(old)
	defer w.unholds(n, old)
	v, err := w.runs(ctx, k, false, old, how, since)
	w.staysRefreshed(k, n)
	return v, err
}

// staysRefreshed looks whether the key has lost the old value of a Refresh, if nothing but
// MaxEntries or IdleTimeout can take it. Another Refresh can, after a timeout or with a value
// that is too heavy.
func (w *stage[V]) staysRefreshed(k, n int) {
	if w.traits&endsCreations != 0 || w.ends() || w.closing.Value() > 0 || w.has("CreateTimeout", "MaxWeight") {
		return
	}
	if v, ok := w.c.Peek(k); (!ok || w.kind.number(v) != n) && w.closing.Value() == 0 {
		w.m.Failf("the old value has left while its Refresh runs")
	}
}

// refuses returns the error of a function.
//
//go:norace
func (w *stage[V]) refuses(k int) error {
	w.refusals = min(w.refusals+1, maxNumber)
	return refusal{k, w.refusals}
}

// hears notes that a call that began at since returns a refusal. Who has heard of it, and calls
// again, does not get it again, unless errors are kept.
//
//go:norace
func (w *stage[V]) hears(err error, since int) {
	var r refusal
	if !errors.As(err, &r) || r.number == maxNumber {
		return
	}
	if at := &w.heard[r.number]; *at == 0 {
		*at = w.now()
	} else if *at < since && !w.has("ErrorTTL 10ms", "ErrorTTL forever") {
		w.m.Failf("a call gets an error of which another had returned before it began")
	}
}

// runs is a create function; alone tells that its key has no value.
func (w *stage[V]) runs(ctx context.Context, k int, alone bool, old V, how ending, since int) (v V, err error) {
	begun := w.enters(k, alone, since)
	returned := false
	defer func() { w.leaves(k, alone, returned, err) }()
	w.pause()
	switch how {
	case inTime:
		w.passes()
	case inDelete:
		w.c.Delete(k)
	case inAnew:
		// Nobody waits for what the key has lost, but with CloseBeforeCreate: that would be for itself.
		w.c.Delete(k)
		w.looksUp(1)
		w.call(k, false, func(since int) (V, error) {
			return w.c.GetOrCreate(k, func() (V, error) { return w.makes(noContext, k, inValue, since) })
		})
	}
	if how == inValue || how == inTime || how == inDelete || how == inAnew {
		v = w.bears(k, alone, begun)
		w.from(v, old)
	}
	if how == inOld && !w.has("Close", "CloseBeforeCreate", "OnRemove") {
		w.remakes(old)
	}
	if ctx != nil && w.calledOff(k, begun, old) && ctx.Err() == nil {
		w.m.Failf("a function is not called off that is in vain")
	}
	v, err = w.end(k, v, old, how)
	returned = true
	return v, err
}

// calledOff reports whether a function that has begun at begun, in the place of old if there was a
// value, must have been called off: because Set has ended its creation, or because it renews a
// value that Delete has removed, and no caller waits for it.
//
//go:norace
func (w *stage[V]) calledOff(k, begun int, old V) bool {
	if w.overtook[k] > begun && w.traits&forgets == 0 && !w.has("CreateTimeout") {
		return true
	}
	at := w.values[w.kind.number(old)]
	return w.kind.number(old) > 0 && at.taken == oncecache.ReasonDeleted && at.takenAt > begun && w.traits&refreshes == 0
}

//go:norace
func (w *stage[V]) remakes(v V) { w.values[w.kind.number(v)].remade = true }

// createsAll is the function of GetOrCreateMany.
func (w *stage[V]) createsAll(keys []int, how ending, since int) (all map[int]V, err error) {
	begun := w.now()
	for _, k := range keys {
		w.enters(k, true, since)
	}
	returned := false
	defer func() {
		for _, k := range keys {
			w.leaves(k, true, returned, err)
		}
	}()
	w.pause()
	all = make(map[int]V, len(keys))
	each := oncecache.KeyErrors[int]{}
	for _, k := range keys {
		switch how {
		case inValue:
			all[k] = w.bears(k, true, begun)
		case inError:
			each[k] = w.refuses(k)
			err = each
		case inGoexit:
			runtime.Goexit()
		}
	}
	returned = true
	return all, err
}

//go:norace
func (w *stage[V]) bears(k int, alone bool, begun int) V {
	v, at := w.fresh(k)
	at.born, at.alone, at.begunAt, at.ownedAt = true, alone, begun, w.now()
	at.overtaken = w.overtook[k] > begun && w.traits&forgets == 0 && !w.has("CreateTimeout")
	return v
}

// enters notes that a create function begins. With CloseBeforeCreate, one that is alone waits for
// others and for their values, but not for what was set or renewed since its call began.
//
//go:norace
func (w *stage[V]) enters(k int, alone bool, since int) (begun int) {
	begun = w.now()
	w.functions++
	if w.running[k]++; w.running[k] > 1 && !w.mayEnd() {
		w.m.Failf("two create functions of one key run")
	}
	if !alone {
		return begun
	}
	if w.lone[k]++; w.lone[k] > 1 && w.has("CloseBeforeCreate") {
		w.m.Failf("two create functions of one key run in spite of CloseBeforeCreate")
	}
	for n := 1; n <= w.count && w.has("CloseBeforeCreate"); n++ {
		if v := &w.values[n]; v.key == k && v.ownedAt > 0 && (v.alone || v.ownedAt < since) && !v.closed {
			w.blame(n, "is there, or is not closed yet, when the next is created in spite of CloseBeforeCreate")
		}
	}
	return begun
}

// mayEnd reports whether a creation may be ended while its function runs.
func (w *stage[V]) mayEnd() bool {
	return w.traits&endsCreations != 0 || w.has("CreateTimeout") && w.traits&takesTime != 0
}

//go:norace
func (w *stage[V]) leaves(k int, alone, returned bool, err error) {
	w.running[k]--
	if alone {
		w.lone[k]--
	}
	w.ended[k]++
	switch {
	case !returned:
		w.panicked++
	case err == nil || err == oncecache.ErrNotModified:
		w.made++
	default:
		w.failures++
	}
}

// call makes a call for a key; own tells that it has the context that may end.
func (w *stage[V]) call(k int, own bool, f func(since int) (V, error)) {
	since := w.now()
	w.guard(func() {
		if v, err := f(since); err != nil {
			w.failed(k, err, own, since)
		} else {
			w.got(k, v, since)
		}
	})
}

// guard calls f, which may panic with what a create function did.
func (w *stage[V]) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			var refused refusal
			if err, ok := p.(error); !ok || !errors.As(err, &refused) || w.traits&panics == 0 {
				panic(p)
			}
		}
	}()
	f()
}

// got notes that a call that began at since has got a value.
//
//go:norace
func (w *stage[V]) got(k int, v V, since int) {
	n := w.kind.number(v)
	at := &w.values[n]
	if n == 0 || at.key != k {
		w.m.Failf("a caller gets what nobody has made for its key")
	}
	if at.refused {
		w.m.Failf("a caller gets what SetIfAbsent has not stored")
	}
	if at.closedAt > 0 && at.closedAt < since {
		w.blame(n, "is returned by a call that has begun after it was closed")
	}
	if at.remade {
		return
	}
	if at.takenAt > 0 && at.takenAt < since {
		w.blame(n, "is returned by a call that has begun after another had removed it")
	}
	for i := range w.sweeps {
		o := &w.sweeps[i]
		if o.keys>>k&1 == 0 || o.returned >= since {
			continue
		}
		if at.born && at.begunAt < o.begun {
			w.blame(n, "comes back, though its function began before Set, Delete or Clear")
		}
		if !at.born && at.ownedAt > 0 && at.ownedAt < o.begun {
			w.blame(n, "comes back, though it was set before Set, Delete or Clear")
		}
	}
	if at.discarded > 0 && at.discarded < since {
		w.blame(n, "is returned by a call that has begun after it was discarded")
	}
	if at.overtaken {
		w.blame(n, "is returned, though Set had ended its creation")
	}
	if o := &w.values[at.from]; at.from > 0 && w.traits&setsAgain == 0 && !o.remade && at.begunAt < o.takenAt && o.takenAt < since {
		w.blame(n, "is returned, and was to replace one that had been removed")
	}
}

// from notes what a function is to replace by v.
//
//go:norace
func (w *stage[V]) from(v, old V) { w.values[w.kind.number(v)].from = w.kind.number(old) }

// overtakes notes that a call of Set has returned which began at since: it has ended the
// creation that runs, if nothing else has.
//
//go:norace
func (w *stage[V]) overtakes(k, since int) {
	if w.closing.Value() == 0 {
		w.overtook[k] = max(w.overtook[k], since)
	}
}

// discarded notes that a lease of v was discarded. If v may be set again, another entry may have it.
//
//go:norace
func (w *stage[V]) discarded(v V) {
	if w.traits&setsAgain == 0 {
		w.values[w.kind.number(v)].discarded = w.now()
	}
}

// looksUp notes look-ups that RecordStats counts.
//
//go:norace
func (w *stage[V]) looksUp(n int) { w.lookups += n }

// actually looks at what SetIfAbsent has returned.
func (w *stage[V]) actually(k int, actual, v V, stored bool, since int) {
	if stored && w.kind.number(actual) != w.kind.number(v) {
		w.m.Failf("SetIfAbsent stores a value, and returns another")
	}
	if !stored && w.kind.number(actual) != 0 {
		w.got(k, actual, since)
	}
}

// informed looks at what Info has returned.
func (w *stage[V]) informed(i oncecache.Info) {
	if i.Leases < 0 || i.Leases > 8 {
		w.m.Failf("Info tells of %d leases", i.Leases)
	}
	lasts, most := i.Expires.Sub(i.Created), short
	if w.renews() {
		most *= 2
	}
	if ends := w.has("TTL 10ms") || w.renews(); ends == i.Expires.IsZero() || ends && (lasts < most || lasts > most+time.Millisecond) {
		w.m.Failf("Info tells of a value that lasts from %v to %v", i.Created, i.Expires)
	}
	if w.has("MaxEntries", "MaxWeight", "IdleTimeout") && i.Created.IsZero() {
		w.m.Failf("Info tells nothing of when a value was made")
	}
}

// sweep is a call that ends the creations of some keys, and removes their values.
type sweep struct{ keys, begun, returned int }

// swept notes such a call, which has returned.
//
//go:norace
func (w *stage[V]) swept(keys, since int) {
	if w.swipes == len(w.sweeps) {
		w.swipes = 0
	}
	w.sweeps[w.swipes] = sweep{keys, since, w.now()}
	w.swipes++
}

// takes notes that a call that began at since has removed a value, and returned it.
//
//go:norace
func (w *stage[V]) takes(k int, v V, why oncecache.Reason, since int) {
	w.got(k, v, since)
	n := w.kind.number(v)
	if w.values[n].taken != 0 && !w.values[n].remade {
		w.blame(n, "is returned by two calls that have removed it")
	}
	w.values[n].taken, w.values[n].takenAt = why, w.now()
}

func (w *stage[V]) gotAll(keys []int, got map[int]V, err error, since int) {
	var each oncecache.KeyErrors[int]
	if err != nil && !errors.As(err, &each) {
		w.m.Failf("GetOrCreateMany fails with %v", err)
	}
	if len(got)+len(each) != len(keys) {
		w.m.Failf("GetOrCreateMany has %d values and %d errors of %d keys", len(got), len(each), len(keys))
	}
	for _, k := range keys {
		if v, ok := got[k]; ok {
			w.got(k, v, since)
		} else {
			w.failed(k, each[k], false, since)
		}
	}
}

// failed notes that a call has failed, which something must have led to.
func (w *stage[V]) failed(k int, err error, own bool, since int) {
	w.hears(err, since)
	ok := false
	switch expectedError(err, k) {
	case "fails":
		ok = w.traits&fails != 0 || w.has("Renew fails", "Create fails")
	case "panics":
		ok = w.traits&panics != 0
	case "exits":
		ok = w.traits&exits != 0 || w.traits&forgets != 0 && w.has("OnCreate exits") // in a function
	case "closes":
		ok = w.closing.Value() > 0
	case "times out":
		ok = w.has("CreateTimeout") && w.time.Value() > 0
	case "not found":
		ok = w.traits&awaits != 0
	case "cancelled":
		ok = own && w.cancelled.Value() > 0
	case "cycle":
		ok = w.traits&forgets != 0 && w.has("CloseBeforeCreate")
	}
	if !ok {
		w.m.Failf("a call fails with %v, which nothing has led to", err)
	}
}

// observed looks at counts while others may change them: they may be off by one for each call.
func (w *stage[V]) observed(keys, flights int, s oncecache.Stats) {
	if keys < 0 || keys > 8 || flights > 6 {
		w.m.Failf("there are %d keys, %d creations", keys, flights)
	}
	if s.Weight < 0 {
		w.m.Failf("the weight is %d", s.Weight)
	}
}

// shuts notes that Close begins.
func (w *stage[V]) shuts() { w.closing.Add(1) }

// shut looks at what is left after a Close that began at since.
//
//go:norace
func (w *stage[V]) shut(err error, since int) {
	if errors.Is(err, context.Canceled) {
		if w.cancelled.Value() == 0 {
			w.m.Failf("Close fails with %v", err)
		}
		return
	}
	if w.traits&(panics|exits) == 0 && !w.has("OnCreate panics", "OnCreate exits") && err != nil {
		w.m.Failf("Close returns %v", err)
	}
	if w.running[1]+w.running[2] > 0 {
		w.m.Failf("Close returns before a create function")
	}
	for n := 1; n <= w.count; n++ {
		v := &w.values[n]
		if !v.born && (v.ownedAt == 0 || v.ownedAt > since) {
			continue
		}
		if w.has("Close", "CloseBeforeCreate") && !v.closed {
			w.blame(n, "is not closed when Close returns")
		}
		if w.has("OnRemove") && v.removes == 0 {
			w.blame(n, "is not told when Close returns")
		}
	}
}

// over looks at what is left when all threads are done, and closes the cache.
func (w *stage[V]) over() {
	defer scenes.Survives(w.m.Failf)
	if w.running[1]+w.running[2] != 0 {
		w.m.Failf("a create function was left")
	}
	w.counts()
	if w.closing.Value() == 0 {
		w.atRest()
	}
	w.shuts()
	since := w.now()
	w.shut(w.c.Close(context.Background()), since)
	w.afterwards()
	for n := 1; n <= w.count; n++ {
		if v := &w.values[n]; v.complaint != "" && !v.spoiled {
			w.m.Failf("a value %s", v.complaint)
		}
	}
}

// counts compares Stats with what was seen.
func (w *stage[V]) counts() {
	s := w.stats()
	if int(s.Created) != w.made || int(s.Failed) != w.failures || int(s.Panicked) != w.panicked {
		w.m.Failf("Stats counts %d created, %d failed, %d panicked, and it was %d, %d, %d",
			s.Created, s.Failed, s.Panicked, w.made, w.failures, w.panicked)
	}
	if int(s.Closed) != w.closings {
		w.m.Failf("Stats counts %d closed, and it was %d", s.Closed, w.closings)
	}
	if s.TimedOut > 0 && !(w.has("CreateTimeout") && w.time.Value() > 0) {
		w.m.Failf("Stats counts %d timed out", s.TimedOut)
	}
	if got := int(s.Hits + s.Misses); w.has("RecordStats") && got != w.lookups {
		w.m.Failf("Stats counts %d look-ups, and it was %d", got, w.lookups)
	}
	for k, n := range w.ended {
		if w.has("OnCreate") && w.told[k] != n {
			w.m.Failf("OnCreate is called %d times for %d creations", w.told[k], n)
		}
	}
}

// atRest looks at a cache that is open, and that nobody uses.
func (w *stage[V]) atRest() {
	if n := w.flights(); n != 0 {
		w.m.Failf("%d creations are left", n)
	}
	present, heavy := [maxNumber + 1]bool{}, int64(0)
	there := 0
	for k, v := range w.c.All() {
		w.got(k, v, w.now())
		n := w.kind.number(v)
		present[n] = true
		heavy += weight(n)
		there++
	}
	if n := w.c.Len(); n != there {
		w.m.Failf("Len is %d, and All yields %d", n, there)
	}
	if got := w.stats().Weight; w.has("MaxWeight") && got != heavy {
		w.m.Failf("the weight is %d, and that of all values %d", got, heavy)
	}
	if w.traits&leases == 0 && !w.renews() && (w.has("MaxEntries") && there > w.most || w.has("MaxWeight") && heavy > maxWeight) {
		w.m.Failf("%d values of weight %d are there, beyond the bound", there, heavy)
	}
	if w.has("TTL 0") && there > 0 {
		w.m.Failf("what expires at once is there")
	}
	for n := 1; n <= w.count; n++ {
		v := &w.values[n]
		switch {
		case v.ownedAt == 0:
		case present[n] && v.closes+v.removes > 0:
			w.blame(n, "is closed while it is the key's")
		case !present[n] && w.has("Close", "CloseBeforeCreate") && !v.closed:
			w.blame(n, "has left, and is not closed")
		case !present[n] && w.has("OnRemove") && v.removes == 0:
			w.blame(n, "has left, and is not told")
		}
	}
	due := false
	for k := 1; k <= 2; k++ {
		if v, ok := w.c.Peek(k); ok && !present[w.kind.number(v)] {
			w.m.Failf("Peek finds what All does not yield")
		}
		i, ok := w.c.Info(k)
		if ok {
			w.informed(i)
			due = due || atomics.Since(i.Created) >= short
		}
		if i.Leases != 0 {
			w.m.Failf("Info tells of %d leases, and nobody holds one", i.Leases)
		}
		if v, ok := w.look(k); ok && !present[w.kind.number(v)] {
			w.m.Failf("Get finds what All does not yield")
		} else if ok {
			there--
		}
	}
	if there != 0 {
		w.m.Failf("All yields what Get does not find")
	}
	if !due {
		w.undue = w.functions
	}
	w.leased()
	w.shrunk()
}

// reasons compares Stats with what OnRemove was told. Errors that are kept are counted, and not told.
func (w *stage[V]) reasons() {
	if !w.has("OnRemove") || w.traits&setsAgain != 0 {
		return
	}
	s, exact := w.stats(), !w.has("ErrorTTL 10ms", "ErrorTTL forever")
	for _, of := range []struct {
		why     oncecache.Reason
		counted uint64
		exact   bool
	}{{oncecache.ReasonExpired, s.Expired, true}, {oncecache.ReasonEvicted, s.Evicted, exact}, {oncecache.ReasonIdle, s.Idle, exact}} {
		if told := uint64(w.why[of.why]); told > of.counted || of.exact && told < of.counted {
			w.m.Failf("Stats counts %d values as %v, and OnRemove was told of %d", of.counted, of.why, told)
		}
	}
}

// leased holds leases of what is there, which Info must tell.
func (w *stage[V]) leased() {
	counts := w.has("Close", "CloseBeforeCreate", "OnRemove", "MaxEntries", "MaxWeight", "IdleTimeout") || w.ends()
	for k := 1; k <= 2; k++ {
		if _, ok := w.c.Peek(k); !ok || w.renews() {
			continue // a renewal would come between
		}
		w.looksUp(1)
		since := w.now()
		l, err := w.c.Acquire(context.Background(), k, func(context.Context, int) (V, error) {
			w.m.Failf("Acquire creates what Peek has found")
			return *new(V), w.refuses(k)
		})
		if err != nil {
			continue
		}
		w.got(k, l.Value(), since)
		i, _ := w.c.Info(k)
		if counts != (i.Leases == 1) {
			w.m.Failf("Info tells of %d leases, and there is one", i.Leases)
		}
		l.Release()
		if i, _ = w.c.Info(k); i.Leases != 0 {
			w.m.Failf("Info tells of %d leases, and there is none", i.Leases)
		}
	}
}

// ends and renews report whether values have an end, and are renewed before.
func (w *stage[V]) ends() bool   { return w.has("TTL 0", "TTL 10ms", "TTL forever") || w.renews() }
func (w *stage[V]) renews() bool { return w.has("Renew", "Renew fails", "Create renews") }

// shrunk makes the bounds least, when nobody holds leases.
func (w *stage[V]) shrunk() {
	w.bounds(1)
	there, heavy := 0, int64(0)
	for _, v := range w.c.All() {
		there++
		heavy += weight(w.kind.number(v))
	}
	if w.renews() { // which may hold one
		return
	}
	if w.has("MaxEntries") && there > 1 {
		w.m.Failf("%d values are there when SetMaxEntries(1) has returned", there)
	}
	if w.has("MaxWeight") && heavy > 1 {
		w.m.Failf("values of weight %d are there when SetMaxWeight(1) has returned", heavy)
	}
}

// afterwards looks at a cache that is closed.
func (w *stage[V]) afterwards() {
	w.looksUp(2)
	for k := 1; k <= 2; k++ {
		if _, ok := w.c.Get(k); ok {
			w.m.Failf("a closed cache has a value")
		}
	}
	for range w.c.All() {
		w.m.Failf("a closed cache yields a value")
	}
	if n, m, s := w.c.Len(), w.flights(), w.stats(); n != 0 || m != 0 || s.Weight != 0 {
		w.m.Failf("after Close, Len is %d, of %d creations, and the weight is %d", n, m, s.Weight)
	}
	if w.undue > 0 && w.undue != w.functions {
		w.m.Failf("a value is renewed that is not due")
	}
	w.counts()
	w.reasons()
	for n := 1; n <= w.count; n++ {
		v := &w.values[n]
		if v.refused && v.closes+v.removes > 0 {
			w.m.Failf("a value that SetIfAbsent has not taken is closed")
		}
		if v.ownedAt == 0 {
			continue
		}
		if w.has("Close", "CloseBeforeCreate") && v.closes != 1 {
			w.blame(n, fmt.Sprintf("is closed %d times", v.closes))
		}
		if w.has("OnRemove") && v.removes != 1 {
			w.blame(n, fmt.Sprintf("is told %d times", v.removes))
		}
		if w.has("OnRemove") && v.taken != 0 && v.reason != v.taken {
			w.blame(n, fmt.Sprintf("is told to be %v, and a call has returned it as %v", v.reason, v.taken))
		}
	}
}

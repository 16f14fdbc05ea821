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
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/internal/tools/scenes"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Protocols are written by hand, and find what their author thinks of. Scenes are generated: three
// operations of the table, at once or one after the other, on each of a few registries whose
// settings cover all pairs. So they find what comes of combinations.

func sceneCast(test string, inOrder bool, explore func(*scenes.Scene, mc.Config) mc.Result) *scenes.Cast {
	c := &scenes.Cast{
		Test: test, Package: "./shardedregistry",
		Settings: sceneSettings, Firsts: sceneFirsts, Simpler: sceneSimpler,
		Last:    func(op string) bool { return op == "Wait" },
		InOrder: inOrder, Explore: explore,
	}
	for _, o := range sceneOperations {
		c.Operations = append(c.Operations, o.name)
	}
	return c
}

// TestScenes plays scenes of three threads.
func TestScenes(t *testing.T) {
	c := sceneCast("TestScenes", false, func(s *scenes.Scene, cfg mc.Config) mc.Result {
		return mc.Sample(cfg, func(m *mc.M) {
			w := &stage{scene: s, m: m}
			w.ctx, w.cancel = atomics.WithCancel(context.Background())
			func() {
				defer scenes.Survives(w.failf)
				w.open()
				w.playing = len(s.Threads)
				for _, steps := range s.Threads {
					p := w.enlist()
					w.launch(func() { p.plays(steps) })
				}
				w.attend()
			}()
			m.Final(w.over)
		})
	})
	c.Played, c.Short, c.Runs = 10_000, 200, 4
	c.Play(t)
}

// TestScenesInOrder plays scenes of one thread, in which timers fire when they should.
func TestScenesInOrder(t *testing.T) {
	c := sceneCast("TestScenesInOrder", true, func(s *scenes.Scene, _ mc.Config) mc.Result {
		w := &stage{scene: s}
		synctest.Test(t, func(*testing.T) {
			w.ctx, w.cancel = context.WithCancel(context.Background())
			w.sleep = time.Sleep
			w.open()
			w.playing = 1
			p := w.enlist()
			w.attend()
			func() {
				defer scenes.Survives(w.failf)
				p.plays(s.Threads[0])
			}()
			synctest.Wait()
			w.cancel()
			synctest.Wait()
			w.over()
		})
		return mc.Result{Schedules: 1, Failure: w.failure}
	})
	c.Played, c.Short, c.Runs = 20_000, 300, 1
	c.Play(t)
}

// The settings of scenes are good, cover all pairs, and a scene can be made again from its name.
func TestScenesCoverPairs(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	if shardedregistry.Hash(r, sceneKeys[0])>>63 == shardedregistry.Hash(r, sceneKeys[1])>>63 {
		t.Error("the keys are in one shard")
	}
	for _, inOrder := range []bool{false, true} {
		sceneCast("", inOrder, nil).Cover(t, func(s *scenes.Scene) {
			if _, err := shardedregistry.New(sceneConfig(s)); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		})
	}
}

// What must hold in every scene, whatever its settings and operations: some order of all that was
// done explains what everybody has seen, with the versions; loops have seen how each key ended,
// and feeds each change; indexes have what the keys hold; and nothing is left.

// maxActors bounds the operations of a scene that remember something: 4 of each of 8 players.
const maxActors = 32

// lastKey is created when all players are done, and tells loops so.
const lastKey = "z"

// stage is the registry of one execution of a scene.
type stage struct {
	scene  *scenes.Scene
	m      *mc.M // nil where one thread does all
	r      *names1
	refs   map[string]shardedregistry.Ref[string, int]
	before *model.Registry // before the players begin
	clock  modelClock      // of the models
	hidden bool            // versions depend on when cells leave the table

	ctx     context.Context
	cancel  context.CancelFunc
	players []*player

	// Where there is no m, a loop runs beside the player.
	sleep   func(time.Duration)
	tick    atomic.Int64
	mu      sync.Mutex
	failure string // under mu

	// What threads share. They take turns; only functions without the race detector touch it.
	playing int // players that are at work
	waiting []waiting

	taking shardedregistry.Taking[string, int] // of the snapshot that is kept
	kept   string                              // what that must have

	snapshots bool // one is being taken while others play
	left      int  // old records and dead cells, when all is over
}

// player is a thread of a scene, and what it has done. Only Final reads it beside the thread.
type player struct {
	*stage
	number int
	doing  string // the operation at hand, with its key
	money  int    // of the next value
	acts   []*act
	known  []model.Version // by the memory of each operation
	loops  []*sceneLoop

	patience context.Context // of its call of Wait, which loses ends
	loses    context.CancelFunc
}

// waiting is a call of Wait.
type waiting struct {
	key    string
	since  model.Version
	cancel context.CancelFunc
	over   bool
}

func (w *stage) failf(format string, args ...any) {
	if w.m != nil {
		w.m.Failf(format, args...)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
	}
}

// now brackets acts.
func (w *stage) now(end bool) int64 {
	switch {
	case w.m == nil:
		return w.tick.Add(1)
	case end:
		return w.m.End()
	}
	return w.m.Begin()
}

// remembers runs a part of an operation, which uses the memory of the last one that was given any.
func (p *player) remembers(name string, do func(r registry, known *model.Version) any) {
	a := &act{name: name, begin: p.now(false), mine: p.mine()}
	a.seen = p.show(do(p.r, &p.known[len(p.known)-1]))
	a.end = p.now(true)
	a.among = [][]part{{{do: func(w *world) bool { return a.seen == p.show(do(w.Registry, &w.memory[w.mine])) }}}}
	p.acts = append(p.acts, a)
}

// memory gives the operation at hand a memory of its own.
func (p *player) memory() (mine int) {
	p.known = append(p.known, 0)
	return p.mine()
}

func (p *player) mine() int { return p.number + maxActors/4*(len(p.known)-1) }

// does runs a part of an operation that takes effect at once.
func (p *player) does(name string, do func(r registry) any) {
	a := &act{name: name, begin: p.now(false)}
	a.seen = p.show(do(p.r))
	a.end = p.now(true)
	a.among = [][]part{{{do: func(w *world) bool { return a.seen == p.show(do(w.Registry)) }}}}
	p.acts = append(p.acts, a)
}

// saw enters an act that has several parts.
func (p *player) saw(name string, begin int64, seen any, mine int, among ...[]part) {
	p.acts = append(p.acts, &act{name: name, seen: p.show(seen), begin: begin, end: p.now(true), among: among, mine: mine})
}

// learns looks up a key, and its version.
func (p *player) learns(k string) {
	p.memory()
	p.remembers("Lookup", func(r registry, known *model.Version) any {
		e, ok := r.Lookup(k)
		*known = e.Version
		return results(e, ok)
	})
}

// holds is a part in which a key held an entry, or none.
func (p *player) holds(k string, entries []model.Entry) part {
	i := slices.IndexFunc(entries, func(e model.Entry) bool { return e.Key == k })
	return part{do: func(w *world) bool {
		e, ok := w.Lookup(k)
		return ok == (i >= 0) && (!ok || p.show(e) == p.show(entries[i]))
	}}
}

// lists loops over all entries: of each key at some moment.
func (p *player) lists() {
	begin := p.now(false)
	entries := ordered(slices.Collect(p.r.Entries()))
	p.saw(p.doing, begin, entries, 0, []part{p.holds("a", entries), p.holds("f", entries)})
}

// listsBy loops over the entries that have a value in the index.
func (p *player) listsBy() {
	if !p.scene.Has("Indexes") {
		p.lists()
		return
	}
	value, least := "x", 1
	if p.flips() {
		value, least = "y", 2
	}
	begin := p.now(false)
	entries := ordered(slices.Collect(p.r.ByIndex("digit", value)))
	var parts []part
	for _, k := range sceneKeys {
		if slices.ContainsFunc(entries, func(e model.Entry) bool { return e.Key == k }) {
			parts = append(parts, p.holds(k, entries))
		} else {
			parts = append(parts, part{do: func(w *world) bool { v, ok := w.Get(k); return !ok || digitOf(v) < least }})
		}
		if slices.ContainsFunc(entries, func(e model.Entry) bool { return digitOf(e.Value) < least }) {
			p.failf("ByIndex(%q) yields %v", value, entries)
		}
	}
	p.saw(p.doing+" "+value, begin, entries, 0, parts)
}

// listsValues loops over the values of the index. For each that it has seen, some key had it, and
// otherwise each key had it not at some moment.
func (p *player) listsValues() {
	if !p.scene.Has("Indexes") {
		p.lists()
		return
	}
	begin := p.now(false)
	values := slices.Sorted(p.r.IndexValues("digit"))
	among := [][]part{nil}
	for least, value := range map[int]string{1: "x", 2: "y"} {
		has := func(k string, want bool) part {
			return part{do: func(w *world) bool { v, ok := w.Get(k); return (ok && digitOf(v) >= least) == want }}
		}
		var next [][]part
		for _, parts := range among {
			if slices.Contains(values, value) {
				next = append(next, append(slices.Clip(parts), has("a", true)), append(slices.Clip(parts), has("f", true)))
			} else {
				next = append(next, append(slices.Clip(parts), has("a", false), has("f", false)))
			}
		}
		among = next
	}
	p.saw(p.doing, begin, values, 0, among...)
}

// snaps takes a snapshot: of all keys at one moment.
func (p *player) snaps(take func() *shardedregistry.Snapshot[string, int]) *shardedregistry.Snapshot[string, int] {
	begin := p.now(false)
	s := take()
	p.sawSnapshot(begin, s)
	return s
}

func (p *player) sawSnapshot(begin int64, s *shardedregistry.Snapshot[string, int]) {
	entries := ordered(slices.Collect(s.Entries()))
	for _, e := range entries {
		if found, ok := s.Lookup(e.Key); !ok || found != e || s.Last() < e.Version {
			p.failf("a snapshot has %v, and looks up %v, %t; its last version is %d", e, found, ok, s.Last())
		}
	}
	seen := p.showAll(entries)
	p.saw("Snapshot", begin, seen, 0, []part{{do: func(w *world) bool {
		return seen == p.showAll(slices.Collect(w.Entries()))
	}}})
}

func (w *stage) showAll(entries []model.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(w.show(e))
	}
	return b.String()
}

// deletes runs what deletes all keys whose value is doomed, each at some moment, and counts them.
func (p *player) deletes(do func() int, doomed func(k string, v int) bool) {
	begin := p.now(false)
	n := do()
	removed := func(k string) part {
		return part{do: func(w *world) bool {
			v, ok := w.Get(k)
			w.Delete(k)
			return ok && doomed(k, v)
		}}
	}
	stayed := func(k string) part {
		return part{do: func(w *world) bool { v, ok := w.Get(k); return !ok || !doomed(k, v) }}
	}
	var among [][]part
	switch n {
	case 0:
		among = [][]part{{stayed("a"), stayed("f")}}
	case 1:
		among = [][]part{{removed("a"), stayed("f")}, {stayed("a"), removed("f")}}
	case 2:
		among = [][]part{{removed("a"), removed("f")}}
	}
	p.saw(p.doing, begin, n, 0, among...)
}

// replaces makes the registry have some keys: it deletes the others, each at some moment, and then
// stores each.
func (p *player) replaces(given ...string) {
	var equal func(x, y int) bool
	if p.flips() {
		equal = func(x, y int) bool { return digitOf(x) == digitOf(y) }
	}
	var values []int
	for _, k := range given {
		values = append(values, p.value(k))
	}
	begin := p.now(false)
	err := p.r.Replace(func(yield func(string, int) bool) {
		for i, k := range given {
			if !yield(k, values[i]) {
				return
			}
		}
	}, equal)
	errs := map[any]error{}
	if err != nil {
		for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
			one := err.(*shardedregistry.KeyError)
			errs[one.Key] = one.Err
		}
	}
	var parts []part
	for _, k := range sceneKeys {
		if !slices.ContainsFunc(given, func(g string) bool { return strings.ToLower(g) == k }) {
			parts = append(parts, part{do: func(w *world) bool { w.Delete(k); return true }})
		}
	}
	for i, k := range given {
		parts = append(parts, part{rank: 1 + i, do: func(w *world) bool {
			if old, ok := w.Get(k); ok && equal != nil && equal(old, values[i]) {
				return errs[k] == nil
			}
			_, err := w.Put(k, values[i])
			return p.show(err) == p.show(errs[k])
		}})
	}
	p.saw(p.doing, begin, err, 0, parts)
}

// passes lets the time to live of all that is there pass.
func (p *player) passes() {
	begin := p.now(false)
	if p.m != nil {
		p.m.Advance(short)
	} else {
		p.sleep(short)
	}
	p.saw(timePasses, begin, nil, 0, []part{{do: func(w *world) bool { w.Pass(short); return true }}})
}

// waits waits for another version of a key, or for any.
func (p *player) waits(k string) {
	e, _ := p.r.Lookup(k)
	p.waitsFor(k, e.Version)
}

func (p *player) waitsFor(k string, since model.Version) {
	ctx, mine := context.Background(), 0
	if p.m != nil {
		ctx = p.patience
		mine = p.rests(k, since)
	} else if !p.satisfied(k, since) {
		ctx = cancelled()
	}
	begin := p.now(false)
	e, err := p.r.Wait(ctx, k, since)
	switch {
	case err == context.Canceled:
		if p.m != nil && !p.cancelledBy(mine) || p.m == nil && ctx == context.Background() {
			p.failf("Wait returns %v", err)
		}
	case err == nil && e.Version <= since:
		p.failf("Wait for a version above %d returns %v", since, e)
	default:
		p.saw("Wait", begin, results(e, err), 0, []part{{do: func(w *world) bool {
			now, ok := w.Lookup(k)
			return ok == (err == nil) && p.show(now) == p.show(e) && (ok || since != 0)
		}}})
	}
}

// satisfied reports whether a call of Wait need not wait.
func (w *stage) satisfied(k string, since model.Version) bool {
	e, ok := w.r.Lookup(k)
	return ok && e.Version > since || !ok && since != 0
}

// rests notes that a player only waits from now on.
//
//go:norace
func (p *player) rests(k string, since model.Version) (mine int) {
	p.waiting = append(p.waiting, waiting{key: k, since: since, cancel: p.loses})
	mine = len(p.waiting) - 1
	p.leaves()
	return mine
}

//go:norace
func (w *stage) cancelledBy(i int) bool { return w.waiting[i].over }

// leaves notes that a player is done. When all are, what waits for what will not come is called
// off, and loops are told.
//
//go:norace
func (p *player) leaves() {
	if p.playing--; p.playing > 0 {
		return
	}
	for i := range p.waiting {
		at := &p.waiting[i]
		if p.scene.Has("TTL") || !p.satisfied(at.key, at.since) {
			at.over = true
			at.cancel()
		}
	}
	p.r.Put(lastKey, valueOf(1, 0, 0, 0, 0))
}

// launch starts a thread.
func (w *stage) launch(f func()) {
	body := func() {
		defer scenes.Survives(w.failf)
		f()
	}
	if w.m != nil {
		w.m.Go(body)
		return
	}
	go body()
	synctest.Wait()
}

// enlist returns a player.
func (w *stage) enlist() *player {
	p := &player{stage: w, number: len(w.players), money: 3 + 20*len(w.players)}
	if w.m != nil { // before the threads begin, as the race detector sees no order in what they tell each other
		p.patience, p.loses = atomics.WithCancel(context.Background())
	}
	w.players = append(w.players, p)
	return p
}

// open makes the registry of a scene, and what watches it.
func (w *stage) open() {
	config := sceneConfig(w.scene)
	w.r = shardedregistry.MustNew(config)
	w.hidden = !w.scene.Has("two shards")
	if w.scene.Has("equal hashes") {
		shardedregistry.SetHash(w.r, func(k string) uint64 { return 1 << 63 })
	}
	config.Shards = 2
	if config.TTL != nil {
		config.TTL = w.lagging
	}
	w.before = model.NewRegistry(config)
	w.refs = map[string]shardedregistry.Ref[string, int]{}
	for _, k := range sceneKeys {
		w.refs[k] = w.r.Ref(k)
	}
	for _, k := range sceneKeys {
		if !strings.Contains(w.scene.First, k) {
			continue
		}
		d := w.scene.Drawn("first " + k)
		v := valueOf(1+d.Below(3), d.Below(2), 0, d.Below(3), d.Below(3))
		w.r.Put(k, v)
		w.before.Put(k, v)
		w.refs[k].Get()
	}
	if strings.Contains(w.scene.First, "deleted") {
		w.r.Delete("f")
		w.before.Delete("f")
	}
	if w.scene.Has("Snapshot kept", "Snapshot in progress") {
		w.taking = shardedregistry.Join(w.r)
		w.kept = w.showAll(slices.Collect(w.before.Entries()))
	}
	if w.scene.Has("Snapshot kept") {
		for !w.taking.Collect() {
		}
	}
}

// lagging is the TTL of the model.
func (w *stage) lagging(k string, v int) time.Duration {
	d, i := sceneTTL(k, v), slices.Index(sceneKeys[:], strings.ToLower(k))
	if d == short {
		w.clock.asked[i] = true
		d -= time.Duration(w.clock.lags[i]) * short
	}
	return d
}

// attend starts what watches the registry of a scene while others play.
func (w *stage) attend() {
	w.snapshots = strings.Contains(w.scene.String(), "Snapshot") // of an operation or a setting
	if w.scene.Has("Snapshot in progress") {
		p := w.enlist()
		begin := p.now(false)
		w.launch(func() {
			for !w.taking.Collect() {
			}
			p.sawSnapshot(begin, w.taking.Leave())
		})
	}
	w.attendLoop()
}

// plays runs the steps of a thread.
func (p *player) plays(steps []scenes.Step) {
	for _, o := range steps {
		p.doing = fmt.Sprint(o.Operation, " ", o.Key)
		i := slices.IndexFunc(sceneOperations, func(of sceneOperation) bool { return of.name == o.Operation })
		sceneOperations[i].do(p, p.spelled(sceneKeys[o.Key-1]))
		if p.m == nil {
			synctest.Wait()
			p.expires()
		}
	}
	if n := len(steps); p.m == nil || steps[n-1].Operation != "Wait" {
		p.leaves()
	}
}

// expires enters that all that is due has expired.
func (p *player) expires() {
	p.saw("expire", p.now(false), nil, 0, []part{{do: (*world).expire}})
}

// What generated scenes consist of: the settings of a registry, and the operations that threads do
// to the keys a and f. What they do stands above, and
// what must hold in the end below.

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

// What loops of scenes are told of, and what they must have been told in the end.

// sceneLoop is a loop of a player, which goes on when all are done.
type sceneLoop struct {
	mine    int
	accepts []string
	watcher shardedregistry.Watcher[string, int]
	feed    shardedregistry.Revisions[string, int]
	feeds   bool
	lost    bool
	view    map[string]model.Entry // of a loop that began with a snapshot, or nil
	events  []model.Event
}

// watches begins a loop over Watch, of one key or all, and takes what there is.
func (p *player) watches(keys ...string) {
	l := &sceneLoop{mine: p.memory(), accepts: sceneKeys[:]}
	begin := p.now(false)
	if keys != nil {
		l.accepts = keys
		l.watcher = shardedregistry.SubscribeFiltered(p.r, shardedregistry.Keys(keys...))
	} else {
		l.watcher = shardedregistry.Subscribe(p.r)
	}
	p.begins(l, begin)
	begin = p.now(false)
	l.events = p.only(l.watcher.Drain())
	var parts []part
	for i, e := range l.events {
		parts = append(parts, part{rank: i, do: p.last(e)})
	}
	if parts != nil {
		p.saw("its events", begin, results(l.events), 0, parts)
	}
}

// begins enters that a loop has begun.
func (p *player) begins(l *sceneLoop, begin int64) {
	p.loops = append(p.loops, l)
	p.saw(p.doing+" begins", begin, nil, l.mine, []part{{do: func(w *world) bool {
		w.began[l.mine] = [2]int{len(w.changes[0]), len(w.changes[1])}
		return true
	}}})
}

// only leaves out the last key.
func (p *player) only(events []model.Event) []model.Event {
	return slices.DeleteFunc(events, func(e model.Event) bool { return e.Key == lastKey })
}

// last is that e is the last change of its key.
func (p *player) last(e model.Event) func(*world) bool {
	return func(w *world) bool {
		last, _ := w.Last(e.Key)
		return p.show(last) == p.show(e)
	}
}

// reads begins a loop over WatchFrom, and takes what there is.
func (p *player) reads() {
	if !p.feeds() {
		p.watches()
		return
	}
	l := &sceneLoop{mine: p.memory(), accepts: sceneKeys[:], feeds: true}
	begin := p.now(false)
	l.feed = shardedregistry.OpenFeed(p.r).Revisions
	p.begins(l, begin)
	l.drain(p)
}

func (w *stage) feeds() bool { return w.scene.Has("History 2", "History 32") }

// snapsAndReads takes a snapshot, and goes on from there by a feed.
func (p *player) snapsAndReads() {
	s := p.snaps(p.r.Snapshot)
	if !p.feeds() {
		return
	}
	l := &sceneLoop{accepts: sceneKeys[:], feeds: true, view: map[string]model.Entry{}}
	for e := range s.Entries() {
		l.view[e.Key] = e
	}
	l.feed = shardedregistry.OpenRevisions(p.r, s.Revision())
	p.loops = append(p.loops, l)
	l.drain(p)
}

// drain takes what there is in a feed.
func (l *sceneLoop) drain(p *player) {
	if l.lost {
		return
	}
	events, lost := shardedregistry.Feed[string, int]{Revisions: l.feed}.Drain()
	l.events, l.lost = append(l.events, p.only(events)...), lost
	if lost && !p.scene.Has("History 2") {
		p.failf("a feed has lost changes")
	}
}

// attended is what a loop knows that watches from the beginning.
type attended struct {
	*player
	accepts []string
	view    map[string]model.Event // what it has been told
	strict  bool                   // it is told of each change
	shown   bool                   // it began with a snapshot
	ended   bool
	over    bool // it has seen the last key
	began   int64
}

// sees takes an event, and reports whether there will be more.
func (l *attended) sees(e model.Event) (more bool) {
	if e.Key == lastKey {
		l.over = true
	} else {
		l.takes(e)
	}
	if !l.over {
		return true
	}
	if l.scene.Has("TTL") {
		return false // timers may come yet
	}
	for _, k := range l.accepts {
		if now, ok := l.r.Lookup(k); !l.knows(k, now, ok) {
			return true
		}
	}
	return false
}

// knows reports whether the loop knows what a key holds.
func (l *attended) knows(k string, now model.Entry, ok bool) bool {
	last, notified := l.view[k]
	if !ok {
		return !notified || last.Deleted
	}
	return notified && !last.Deleted && last.Version == now.Version && last.Value == now.Value
}

func (l *attended) takes(e model.Event) {
	last, notified := l.view[e.Key]
	switch {
	case !slices.Contains(l.accepts, e.Key):
		l.failf("a loop is told of %v", e)
	case notified && e.Version <= last.Version:
		l.failf("a loop is told of %v after %v", e, last)
	case l.strict && notified && !last.Deleted && e.Version != last.Version+1:
		l.failf("a feed has %v after %v", e, last)
	case l.shown && e.Deleted && (!notified || last.Deleted):
		l.failf("a loop is told of %v, and has not shown the key", e)
	}
	l.view[e.Key] = e
	begin := l.began
	l.began = l.now(false)
	l.saw("told", begin, e, 0, []part{{do: func(w *world) bool {
		if !l.strict {
			return l.last(e)(w)
		}
		i := slices.Index(sceneKeys[:], e.Key)
		return slices.ContainsFunc(w.changes[i], func(c model.Event) bool { return l.show(c) == l.show(e) })
	}}})
}

// attendLoop starts the loop of the settings.
func (w *stage) attendLoop() {
	if w.scene.Has("Wait") {
		if w.m == nil {
			return // nobody waits where one thread does all
		}
		p := w.enlist()
		e, _ := w.r.Lookup("a")
		w.playing++
		w.launch(func() { p.waitsFor("a", e.Version) })
		return
	}
	if !w.scene.Has("Watch", "Watch of a", "WatchFrom", "WatchSnapshot") {
		return
	}
	l := &attended{player: w.enlist(), accepts: sceneKeys[:], view: map[string]model.Event{}}
	for e := range w.before.Entries() {
		have, _ := w.r.Lookup(e.Key)
		l.view[e.Key] = model.Event{Key: e.Key, Value: e.Value, Version: have.Version}
	}
	l.began = l.now(false)
	end := func() { l.ended = true }
	filtered := []shardedregistry.Filter[string]{shardedregistry.Prefix("a"), shardedregistry.Keys(lastKey)}
	switch {
	case w.scene.Has("WatchFrom") && w.feeds():
		l.strict = true
		after := w.r.Revision()
		w.launch(func() {
			defer end()
			for c, err := range w.r.WatchFrom(w.ctx, after) {
				if err != nil {
					if !w.scene.Has("History 2") {
						w.failf("a feed ends with %v", err)
					}
					return
				}
				if c.Revision <= after {
					w.failf("revision %d comes after %d", c.Revision, after)
				}
				if after = c.Revision; !l.sees(c.Event) {
					return
				}
			}
		})
	case w.scene.Has("WatchSnapshot"):
		clear(l.view)
		l.shown = true
		w.launch(func() {
			defer end()
			for s, e := range w.r.WatchSnapshot(w.ctx) {
				if s == nil {
					if !l.sees(e) {
						return
					}
					continue
				}
				l.sawSnapshot(l.began, s)
				for e := range s.Entries() {
					l.view[e.Key] = model.Event{Key: e.Key, Value: e.Value, Version: e.Version}
				}
				delete(l.view, lastKey)
				if l.began = l.now(false); len(slices.Collect(s.Keys())) > len(l.view) {
					return // all was over
				}
			}
		})
	default:
		watcher := shardedregistry.Subscribe(w.r)
		if w.scene.Has("Watch of a") {
			l.accepts = sceneKeys[:1]
			watcher.Leave()
			watcher = shardedregistry.SubscribeFiltered(w.r, filtered...)
		}
		w.launch(func() {
			defer end()
			defer watcher.Leave()
			watcher.Run(w.ctx, l.sees)
		})
	}
}

// ends looks at what a loop has been told when all are done.
func (p *player) ends(l *sceneLoop, there []model.Entry) {
	switch {
	case l.view != nil:
		p.endsView(l, there)
		return
	case !l.feeds:
		l.watcher.Leave()
	}
	notified := [2][]model.Event{}
	for _, e := range l.events {
		i := slices.Index(sceneKeys[:], e.Key)
		if n := len(notified[i]); n > 0 && e.Version <= notified[i][n-1].Version || !slices.Contains(l.accepts, e.Key) {
			p.failf("a loop is told of %v", l.events)
		}
		notified[i] = append(notified[i], e)
	}
	if l.lost {
		return
	}
	p.saw("a loop ends", p.now(false), results(l.events), 0, []part{{do: func(w *world) bool {
		for i, k := range sceneKeys {
			n, changes, since := len(notified[i]), w.changes[i], w.began[l.mine][i]
			switch {
			case !slices.Contains(l.accepts, k):
			case !l.feeds && n == 0:
				if len(changes) != since {
					return false
				}
			case !l.feeds:
				if last, _ := w.Last(k); p.show(last) != p.show(notified[i][n-1]) {
					return false
				}
			default: // each change since it began, and perhaps some whose calls had not returned
				if n > len(changes) || n < len(changes)-since {
					return false
				}
				for j, e := range notified[i] {
					if p.show(changes[len(changes)-n+j]) != p.show(e) {
						return false
					}
				}
			}
		}
		return true
	}}})
}

// endsView looks at what a snapshot is with the changes since.
func (p *player) endsView(l *sceneLoop, there []model.Entry) {
	if l.lost {
		return
	}
	last := map[string]model.Version{}
	for k, e := range l.view {
		last[k] = e.Version
	}
	delete(l.view, lastKey)
	for _, e := range l.events {
		if e.Version <= last[e.Key] {
			continue
		}
		last[e.Key] = e.Version
		l.view[e.Key] = model.Entry{Key: e.Key, Value: e.Value, Version: e.Version}
		if e.Deleted {
			delete(l.view, e.Key)
		}
	}
	same := len(l.view) == len(there)
	for _, e := range there {
		same = same && l.view[e.Key] == e
	}
	if !same {
		p.failf("a snapshot with the changes since is not what there is:\n%v after %v, and there is %v", l.view, l.events, there)
	}
}

// feedsFromTheBeginning reads all changes that are remembered: all that there were, if so many are.
func (p *player) feedsFromTheBeginning() {
	if !p.feeds() {
		return
	}
	l := &sceneLoop{feed: shardedregistry.OpenRevisions(p.r, 0)}
	all, lost := shardedregistry.Feed[string, int]{Revisions: l.feed}.Drain()
	if lost {
		p.failf("a feed from the beginning has lost changes")
	}
	others := len(all)
	all = p.only(all)
	others -= len(all)
	p.saw("all changes", p.now(false), results(all), 0, []part{{do: func(w *world) bool {
		total := len(w.changes[0]) + len(w.changes[1])
		want := total
		if p.scene.Has("History 2") {
			want = min(total, 2-others)
		}
		notified := [2][]model.Event{}
		for _, e := range all {
			i := slices.Index(sceneKeys[:], e.Key)
			notified[i] = append(notified[i], e)
		}
		for i, events := range notified {
			changes := w.changes[i]
			if len(events) > len(changes) {
				return false
			}
			for j, e := range events {
				if p.show(changes[len(changes)-len(events)+j]) != p.show(e) {
					return false
				}
			}
		}
		return len(all) == want
	}}})
}

// What must hold when all players of a scene are done.

// over looks at what is left when all players are done.
func (w *stage) over() {
	defer scenes.Survives(w.failf)
	p := w.enlist()
	if w.scene.Has("TTL") && w.m != nil {
		shardedregistry.ExpireAll(w.r)
	}
	if w.scene.Has("Snapshot kept") {
		found := ordered(slices.Collect(w.taking.Found().Entries()))
		if got := w.showAll(found); got != w.kept {
			w.failf("the snapshot that is kept has %s, and had %s", got, w.kept)
		}
		w.taking.Leave()
	}
	p.expires()
	var there []model.Entry
	for _, k := range sceneKeys {
		p.does("Lookup "+k, func(r registry) any { return results(r.Lookup(k)) })
		if e, ok := w.r.Lookup(k); ok {
			there = append(there, e)
		}
	}
	var loops []*sceneLoop
	for _, q := range w.players {
		loops = append(loops, q.loops...)
	}
	for _, l := range loops {
		if l.feeds {
			l.drain(p)
		} else {
			l.events = append(l.events, p.only(l.watcher.Drain())...)
		}
	}
	w.keepsNothing()
	for _, l := range loops {
		p.ends(l, there)
	}
	w.atRest(there)
	p.feedsFromTheBeginning()
	p.goesOn()
	w.explain()
}

// keepsNothing looks at what is left of changes, when all loops have looked, and none has ended: but
// for what was changed behind the walk of a snapshot, and the next one takes away, nothing.
func (w *stage) keepsNothing() {
	n := w.r.Len()
	w.left = shardedregistry.Kept(w.r) + shardedregistry.Linked(w.r) - n
	if w.left > 0 {
		w.r.Snapshot()
	}
	if kept, linked := shardedregistry.Kept(w.r), shardedregistry.Linked(w.r); kept != 0 || linked != n {
		w.failf("%d old records are kept, and %d cells for %d keys", kept, linked, n)
	}
}

// atRest looks at a registry that nobody uses.
func (w *stage) atRest(there []model.Entry) {
	n := len(there)
	if e, ok := w.r.Lookup(lastKey); ok {
		there, n = append(slices.Clip(there), e), n+1
	}
	if got := w.r.Len(); got != n {
		w.failf("Len is %d, and %d keys are there", got, n)
	}
	if got := shardedregistry.Intents(w.r); got != 0 {
		w.failf("%d intents are left", got)
	}
	if got := shardedregistry.Undated(w.r); got != "" {
		w.failf("%s", got)
	}
	if linked := shardedregistry.Linked(w.r); linked != n {
		w.failf("%d cells are in the table, and %d keys are there", linked, n)
	}
	if got := shardedregistry.Traces(w.r); got != 0 {
		w.failf("%d traces of loops are left", got)
	}
	w.finds(there)
	if w.scene.Has("Indexes", "UniqueIndexes") {
		w.agrees(there)
	}
	if w.scene.Has("TTL") {
		shardedregistry.Scheduled(w.r) // which looks at the order
		if left, dead := shardedregistry.Overlooked(w.r), shardedregistry.ScheduledDead(w.r); len(left) > 0 || dead > 0 {
			w.failf("no timer looks at %v, and one will at %d cells that are dead", left, dead)
		}
	}
}

// finds compares what all ways to read find.
func (w *stage) finds(there []model.Entry) {
	all := slices.Collect(w.r.Entries())
	for _, e := range there {
		v, ok := w.r.Get(e.Key)
		at := w.r.Peek(e.Key)
		if !ok || v != e.Value || at == nil || *at != e.Value || !slices.Contains(all, e) {
			w.failf("%v is there, and Get finds %d, %t, Entries %v", e, v, ok, all)
		}
	}
	if len(all) != len(there) {
		w.failf("Entries yields %v, and there is %v", all, there)
	}
	for _, k := range sceneKeys {
		e, ok := w.refs[k].Lookup()
		if i := slices.IndexFunc(there, func(e model.Entry) bool { return e.Key == k }); ok != (i >= 0) || ok && there[i] != e {
			w.failf("a Ref finds %v, %t, and there is %v", e, ok, there)
		}
	}
}

// agrees compares indexes with what there is.
func (w *stage) agrees(there []model.Entry) {
	c := sceneConfig(w.scene)
	lists, pins := 0, 0
	compare := func(index string, values func(string, int) []string) {
		has := map[string][]model.Entry{}
		for _, e := range there {
			for _, v := range values(e.Key, e.Value) {
				has[v] = append(has[v], e)
				pins++
			}
		}
		lists += len(has)
		for v, want := range has {
			got := slices.Collect(w.r.ByIndex(index, v))
			if len(got) != len(want) || slices.ContainsFunc(want, func(e model.Entry) bool { return !slices.Contains(got, e) }) {
				w.failf("ByIndex(%q, %q) yields %v, and there is %v", index, v, got, there)
			}
		}
		if got := slices.Collect(w.r.IndexValues(index)); len(got) != len(has) {
			w.failf("IndexValues(%q) yields %v, and there is %v", index, got, there)
		}
	}
	for index, values := range c.Indexes {
		compare(index, values)
	}
	for index, values := range c.UniqueIndexes {
		compare(index, values)
		slots := map[string]bool{}
		for _, e := range there {
			for _, v := range values(e.Key, e.Value) {
				if slots[v] {
					w.failf("two keys have %q: %v", v, there)
				}
				slots[v] = true
				if got, ok := w.r.LookupBy(index, v); !ok || got != e {
					w.failf("LookupBy(%q) finds %v, %t, and there is %v", v, got, ok, there)
				}
			}
		}
	}
	if shelves, _, n := shardedregistry.Pins(w.r); shelves != lists || n != pins {
		w.failf("indexes keep %d values and %d pins, and there are %d and %d", shelves, n, lists, pins)
	}
}

// goesOn does a little more when all are done, which tells what the next versions are.
func (p *player) goesOn() {
	for _, k := range sceneKeys {
		v := valueOf(9, 0, 0, 0, 1)
		p.does("then Put "+k, func(r registry) any { return results(r.Put(k, v)) })
		p.does("then Delete "+k, func(r registry) any { return results(r.Delete(k)) })
		p.does("then Create "+k, func(r registry) any { return results(r.Create(k, v)) })
		p.does("then Lookup "+k, func(r registry) any { return results(r.Lookup(k)) })
	}
}

// behind returns the number of keys that may have been created and changed behind the walk of a
// snapshot, which then leaves something.
func (w *stage) behind(end *world) (n int) {
	if w.m == nil || !w.snapshots {
		return 0
	}
	for i, k := range sceneKeys {
		_, there := w.before.Get(k)
		deleted := slices.ContainsFunc(end.changes[i], func(e model.Event) bool { return e.Deleted })
		if !there || deleted {
			n++
		}
	}
	return n
}

// explain looks for an order that explains all.
func (w *stage) explain() {
	h := &history{lives: w.scene.Has("TTL"), clock: &w.clock}
	for _, p := range w.players {
		h.acts = append(h.acts, p.acts...)
	}
	slices.SortStableFunc(h.acts, func(a, b *act) int { return int(a.begin - b.begin) })
	start := &world{Registry: w.before.Copy()}
	start.note()
	for i, k := range sceneKeys { // what happened to it before
		if last, ok := start.Last(k); ok && last.Deleted {
			first := last
			first.Deleted = false
			first.Version--
			start.changes[i] = []model.Event{first, last}
		}
	}
	switch {
	case h.explains(start):
		if most := w.behind(h.last); w.left > most {
			w.failf("%d old records and dead cells are left, and could be of %d keys", w.left, most)
		}
	case h.budget < 0:
		w.failf("too many orders to look through\n%s", h)
	default:
		w.failf("no order explains what was seen\n%s", h)
	}
}

// What happened in an execution of a scene, and whether some order of it explains what everybody
// has seen. An order is one of the parts of acts: what takes effect at once, on one key or on both.
// In between, what is due may expire.

// sceneKeys are the keys of scenes, as they are stored. Of two shards each is in one.
var sceneKeys = [2]string{"a", "f"}

// A part of an act takes effect at once. It changes the model as the act has changed the registry,
// and reports whether the act could see there what it has seen. Parts with a lower rank come first.
type part struct {
	rank int
	do   func(w *world) bool
}

// An act is what an operation did in a part of its time, with what it has seen.
type act struct {
	name, seen string
	begin, end int64
	among      [][]part // of which one happened
	mine       int      // whose memory it uses
	lags       int      // how often time has passed since it began, at most
}

// world is the model of a registry, and what is known beside it.
type world struct {
	*model.Registry
	changes [2][]model.Event         // of each key, all
	memory  [maxActors]model.Version // what the operations have learnt
	began   [maxActors][2]int        // how many changes there had been when a loop began
	mine    int                      // of the act
}

func (w *world) copy() *world {
	c := *w
	c.Registry = w.Registry.Copy()
	for i, all := range w.changes {
		c.changes[i] = slices.Clip(all)
	}
	return &c
}

// note takes down what has changed.
func (w *world) note() {
	for i, k := range sceneKeys {
		last, ok := w.Last(k)
		if n := len(w.changes[i]); ok && (n == 0 || w.changes[i][n-1] != last) {
			w.changes[i] = append(w.changes[i], last)
		}
	}
}

// expire lets what is due expire, and notes that.
func (w *world) expire() bool { w.Expire(); w.note(); return true }

// history is the acts of one execution.
type history struct {
	acts   []*act
	lives  bool // there is a time to live
	clock  *modelClock
	last   *world          // in the end of the order that explains
	budget int             // how many positions it still looks at
	seen   map[string]bool // where it has been, by the keys of positions and worlds
}

// position is how far an order has come.
type position struct {
	chosen []int8 // of each act's alternatives; -1: none yet
	done   []uint16
	passed int // how often time has passed
}

// lags are how much a clock is slow, for each key, in times that time has passed.
type lags [2]int

// modelClock is what the model computes deadlines by.
type modelClock struct {
	lags  lags
	asked [2]bool // for which keys it was read
}

// key is equal where the rest of an order is.
func (p *position) key(key []byte) []byte {
	for i, n := range p.chosen {
		key = append(key, byte(n), byte(p.done[i]), byte(p.done[i]>>8))
	}
	return append(key, byte(p.passed))
}

func (w *world) key(key []byte) []byte {
	for i, k := range sceneKeys {
		left, expires := w.Left(k)
		key = fmt.Append(key, w.changes[i], left, expires)
	}
	return fmt.Append(key, w.memory, w.began)
}

// How many positions are looked at before it remembers where it has been, and in all.
const (
	fewPositions  = 100
	manyPositions = 100_000
)

// explains reports whether some order from w on explains the acts.
func (h *history) explains(w *world) bool {
	p := position{chosen: make([]int8, len(h.acts)), done: make([]uint16, len(h.acts))}
	for i, a := range h.acts {
		p.chosen[i] = -1
		for _, o := range h.acts {
			if o.name == timePasses && o.end > a.begin {
				a.lags++
			}
		}
	}
	h.seen, h.budget = map[string]bool{}, manyPositions
	return h.from(w, p)
}

// over reports whether act i is over at p.
func (h *history) over(p *position, i int) bool {
	return p.chosen[i] >= 0 && int(p.done[i]) == 1<<len(h.acts[i].among[p.chosen[i]])-1
}

func (h *history) from(w *world, p position) bool {
	if h.budget--; h.budget < 0 {
		return false
	}
	if h.budget < manyPositions-fewPositions { // most orders are found at once
		key := string(p.key(w.key(make([]byte, 0, 200))))
		if h.seen[key] {
			return false // another order has led here
		}
		h.seen[key] = true
	}
	first, left := int64(1<<62), false // when the first act that is not over ends
	for i, a := range h.acts {
		if !h.over(&p, i) {
			first, left = min(first, a.end), true
		}
	}
	if !left {
		h.last = w
		return true
	}
	for i, a := range h.acts {
		if h.over(&p, i) || a.begin > first {
			continue
		}
		for j, parts := range a.among {
			if p.chosen[i] >= 0 && int(p.chosen[i]) != j {
				continue
			}
			if h.goesOn(w, p, i, j, parts) {
				return true
			}
		}
	}
	if !h.lives {
		return false
	}
	for _, k := range sceneKeys {
		if w.Due(k) {
			next := w.copy()
			next.ExpireKey(k)
			next.note()
			if h.from(next, p) {
				return true
			}
		}
	}
	return false
}

// goesOn tries the parts of alternative j of act i that may be next.
func (h *history) goesOn(w *world, p position, i, j int, parts []part) bool {
	a, least := h.acts[i], 1<<30
	for n, one := range parts {
		if p.done[i]>>n&1 == 0 {
			least = min(least, one.rank)
		}
	}
	for n, one := range parts {
		if p.done[i]>>n&1 != 0 || one.rank != least {
			continue
		}
		limit := [2]int{}
		for lag := (lags{}); ; {
			next := w.copy()
			next.mine = a.mine
			h.clock.lags, h.clock.asked = lag, [2]bool{}
			ok, asked := one.do(next), h.clock.asked
			h.clock.lags = lags{}
			if ok && h.follows(next, p, i, j, n) {
				return true
			}
			// It may have read the clock before time passed, for each key of which it did.
			for k := range asked {
				if asked[k] {
					limit[k] = min(a.lags, p.passed)
				}
			}
			if !lag.next(limit) {
				break
			}
		}
	}
	return false
}

// next makes lag the next one up to a limit, and reports whether there is one.
func (lag *lags) next(limit [2]int) bool {
	for k := range lag {
		if lag[k] < limit[k] {
			lag[k]++
			return true
		}
		lag[k] = 0
	}
	return false
}

// follows goes on after part n of alternative j of act i.
func (h *history) follows(w *world, p position, i, j, n int) bool {
	w.note()
	q := position{slices.Clone(p.chosen), slices.Clone(p.done), p.passed}
	q.chosen[i] = int8(j)
	q.done[i] |= 1 << n
	if h.acts[i].name == timePasses {
		q.passed++
	}
	return h.from(w, q)
}

// String lists what was seen.
func (h *history) String() string {
	var b strings.Builder
	for _, a := range h.acts {
		fmt.Fprintf(&b, "\t[%d, %d] %s = %s\n", a.begin, a.end, a.name, a.seen)
	}
	return b.String()
}

//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/internal/scenes"
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

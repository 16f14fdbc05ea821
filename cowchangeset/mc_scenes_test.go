//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/internal/tools/scenes"
)

// A scene at once has three threads, with a step each. Whatever their steps and the store's do to
// each other: no acknowledged record is lost, each is in the changeset that its receipt names, which
// was open when the Record began; ordinals have no gaps; what is applied is applied once; who follows
// sees all, in order; the store is told everything, once and in order; and nobody waits for ever.

func TestScenes(t *testing.T) {
	runs := scenes.Number("SCENES_RUNS", 6)
	playScenes(t, true, 300, 6_000, func(s *scene) string {
		r := s.explore(runs)
		if os.Getenv("SCENE") != "" && r.Failure != "" {
			t.Logf("replay %s\n\n%s", r.Replay, r.Trace)
		}
		return r.Failure
	})
}

// Scenes at once that have failed.
func TestScenesOfOld(t *testing.T) {
	for _, name := range []string{
		// A Record waited for what a writer had reserved, and a seal had cut off.
		"exits; Async to a bound; three: Record 0 ∥ Record 0 ∥ ApplyEach fails 0",
	} {
		s, err := sceneNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		if r := s.explore(2000); r.Failure != "" {
			t.Errorf("%s\n%s", s, r.Failure)
		}
	}
}

func (s *scene) explore(runs int) (r mc.Result) {
	defer func() {
		if p := recover(); p != nil {
			r.Failure = fmt.Sprint("the exploration panics: ", p)
		}
	}()
	h := fnv.New64a()
	fmt.Fprint(h, s)
	content := s.before()
	return mc.Sample(mc.Config{Mode: mc.PCT, Runs: runs, Seed: h.Sum64(), Replay: os.Getenv("SCENE_REPLAY"), MaxSteps: 20_000}, func(m *mc.M) {
		newStage(m, s, content).play()
	})
}

// before returns what a store has at the start.
func (s *scene) before() *memory {
	m := newMemory()
	config := s.settings(m, new(int))
	config.StoreTimeout = -1 // no time passes
	mc.Sample(mc.Config{Mode: mc.PCT, Runs: 1}, func(*mc.M) {
		t := cowchangeset.MustNew(config)
		playStart(t, s.start)
		if err := t.Flush(context.Background()); err != nil {
			panic(err)
		}
	})
	return m
}

// playStart takes the steps of a start.
func playStart(t *cowchangeset.Tracker[int], start int) {
	ctx, e := context.Background(), 0
	next := func() int { e++; return e }
	for _, o := range sceneStarts[start].steps {
		c, _ := t.Current()
		switch o.operation {
		case "Start":
			t.Start(ctx)
		case "Record":
			t.Record(next())
		case "RecordBatch":
			t.RecordBatch([]int{next(), next()})
		case "Seal":
			c.Seal(ctx)
		case "Apply":
			c.Apply(ctx, func(context.Context, cowchangeset.Final[int]) error { return nil })
		case "ApplyEach fails":
			c.ApplyEach(ctx, func(_ context.Context, seq uint64, _ int) error {
				if seq == 1 {
					return errDisk
				}
				return nil
			})
		case "Abort":
			c.Abort(ctx, errDisk)
		default:
			panic(o.operation)
		}
	}
}

// settings returns those of the scene, and numbers changesets from *n + 1 on.
func (s *scene) settings(m *memory, n *int) cowchangeset.Config[int] {
	config := cowchangeset.Config[int]{
		NewID:          func(context.Context) (string, error) { *n++; return fmt.Sprint("id", *n), nil },
		PruneUnapplied: s.has("PruneUnapplied"),
		StoreTimeout:   -1,
	}
	s.bounded(&config)
	if s.has("slow") || s.has("hangs") {
		config.StoreTimeout = 1 // which may pass at any moment
	}
	switch {
	case !s.store():
	case s.has("plain"):
		config.Store = struct{ cowchangeset.Loader[int] }{m}
	default:
		config.Store = &forgetful{memory: m}
	}
	return config
}

// copied returns a store with the same content, which works.
func (m *memory) copied() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := newMemory()
	c.order, c.thanked = slices.Clone(m.order), maps.Clone(m.thanked)
	for id, s := range m.sets {
		of := *s
		of.Entries = slices.Clone(s.Entries)
		c.sets[id] = &of
	}
	return c
}

// stage is what the threads of a scene have.
type stage struct {
	*scene
	m       *mc.M
	memory  *memory
	config  cowchangeset.Config[int]
	tracker *cowchangeset.Tracker[int]
	slots   [2]*cowchangeset.Changeset[int] // the latest at the start, and the one before
	seals   bool                            // something seals besides Start
	until   context.Context                 // of Follows
	end     func()

	// What has happened, under a mutex that nobody waits for.
	mu       sync.Mutex
	left     int // threads that have not done their step
	sets     map[uint64]*cowchangeset.Changeset[int]
	newest   uint64                       // ordinal whose Start has returned
	entries  map[cowchangeset.Receipt]int // in memory
	acked    map[cowchangeset.Receipt]int // in the store
	sealed   map[uint64]bool              // Seal has returned nil
	finals   []final
	applying map[uint64]int // functions that run
	applied  map[uint64]int // that have returned nil
	notified map[uint64]bool
	aborted  map[uint64]bool
	each     map[uint64][]int
	pruned   int
	follows  [][]record3
}

type final struct {
	ordinal uint64
	entries []record3
}

type record3 struct {
	cowchangeset.Receipt
	value int
}

func newStage(m *mc.M, s *scene, content *memory) *stage {
	w := &stage{scene: s, m: m, memory: content.copied(),
		sets: map[uint64]*cowchangeset.Changeset[int]{}, entries: map[cowchangeset.Receipt]int{}, acked: map[cowchangeset.Receipt]int{},
		sealed: map[uint64]bool{}, applying: map[uint64]int{}, applied: map[uint64]int{}, notified: map[uint64]bool{},
		aborted: map[uint64]bool{}, each: map[uint64][]int{}}
	ids := new(int)
	w.config = s.settings(w.memory, ids)
	newID := w.config.NewID
	w.config.NewID = func(ctx context.Context) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return newID(ctx)
	}
	if s.store() {
		*ids = 10 // beyond those of the start
		var err error
		if w.tracker, err = cowchangeset.Resume(context.Background(), w.config); err != nil {
			m.Failf("Resume: %v", err)
		}
	} else {
		w.tracker = cowchangeset.MustNew(w.config)
		playStart(w.tracker, s.start)
	}
	for ordinal, c := range w.tracker.All() {
		w.sets[ordinal], w.newest = c, ordinal
		w.slots[1], w.slots[0] = w.slots[0], c
		for _, r := range contents(c) {
			w.entries[r.Receipt] = r.value
			if s.store() {
				w.acked[r.Receipt] = r.value
			}
		}
	}
	w.until, w.end = atomics.WithCancel(context.Background())
	w.misbehave()
	for _, o := range s.steps {
		switch o.operation {
		case "Seal", "Apply", "Apply fails", "Apply panics", "ApplyEach", "ApplyEach fails", "Abort":
			w.seals = true
		}
	}
	if c := w.slots[0]; c == nil || c.IsSealed() {
		w.seals = true
	}
	return w
}

// contents returns the entries of a changeset.
func contents(c *cowchangeset.Changeset[int]) (all []record3) {
	for seq, e := range c.Entries() {
		all = append(all, record3{cowchangeset.Receipt{ChangesetID: c.ID(), Ordinal: c.Ordinal(), Seq: seq}, e})
	}
	return all
}

// misbehave makes the store take a step in each call, and go wrong where the model chooses.
func (w *stage) misbehave() {
	var step atomics.Uint32
	never := atomics.MakeEvent()
	spent := map[string]int{}
	fault := func(ctx context.Context, method, id string) error {
		step.Add(1)
		if w.has("instant") || w.has("slow") || !w.faulty(method) {
			return nil
		}
		w.mu.Lock()
		spent[faultKey(method, id)]++
		over := spent[faultKey(method, id)] > w.times()
		w.mu.Unlock()
		if over || w.m.Choose(2) == 0 {
			return nil
		}
		switch {
		case w.has("hangs"):
			return never.WaitContext(ctx)
		case w.has("panics"):
			panic(errDisk)
		case w.has("exits"):
			runtime.Goexit()
		}
		return errDisk
	}
	if w.has("fails late") {
		w.memory.lateFaults(fault)
		w.memory.faults(func(context.Context, string, string) error { step.Add(1); return nil })
	} else {
		w.memory.faults(fault)
	}
}

func (w *stage) heal() {
	w.memory.faults(nil)
	w.memory.lateFaults(nil)
}

func (w *stage) play() {
	ends := func() {
		w.mu.Lock()
		w.left--
		last := w.left == 0
		w.mu.Unlock()
		if last {
			w.close()
		}
	}
	follows := 0
	for i, o := range w.steps {
		if o.operation == "Follow" || o.operation == "Follow there" {
			follows++
			w.m.Go(func() { w.follow(o) })
			continue
		}
		w.left++
		w.m.Go(func() { w.do(o, 10*(i+1)); ends() })
	}
	if follows == len(w.steps) {
		w.left++
		w.m.Go(ends)
	}
	w.m.Final(w.check)
}

// sentinel is the last entry, which who follows waits for.
const sentinel = 99

// close brings what all Follows end with. The store works again, but a call may still time out, and
// then the Follows are ended.
func (w *stage) close() {
	w.heal()
	for range 2 {
		if c, err := w.tracker.Start(context.Background()); w.started(c, err) {
			w.recorded(sentinel)(w.tracker.Record(sentinel))
			return
		}
	}
	w.end()
}

func (w *stage) follow(o sceneStep) {
	ctx, c := w.until, w.slots[o.slot]
	var seen []record3
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.follows = append(w.follows, seen)
	}()
	if o.operation == "Follow there" {
		if c == nil {
			return
		}
		for seq, e := range c.Follow(ctx, 0) {
			seen = append(seen, record3{cowchangeset.Receipt{ChangesetID: c.ID(), Ordinal: c.Ordinal(), Seq: seq}, e})
		}
		if ctx.Err() == nil && !slices.Equal(seen, contents(c)) {
			w.m.Failf("a Follow of %s ended after %v, and there is %v", c.ID(), seen, contents(c))
		}
		return
	}
	for r, e := range w.tracker.Follow(ctx, cowchangeset.Receipt{}) {
		seen = append(seen, record3{r, e})
		if e == sentinel {
			return
		}
	}
}

// allowed fails unless err is nil, one of others, or one that the store can bring about.
func (w *stage) allowed(what string, err error, others ...error) {
	if err == nil || slices.ContainsFunc(others, func(e error) bool { return errors.Is(err, e) }) {
		return
	}
	if !errors.Is(err, cowchangeset.ErrStore) || w.has("no store") || w.has("instant") {
		w.m.Failf("%s returns %v", what, err)
	}
}

// started takes note of a Start.
func (w *stage) started(c *cowchangeset.Changeset[int], err error) bool {
	w.allowed("Start", err, cowchangeset.ErrConflict)
	if err != nil {
		return false
	}
	if w.store() && !slices.Contains(w.memory.ids(), c.ID()) {
		w.m.Failf("%s was started, and the store has %v", c.ID(), w.memory.ids())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets[c.Ordinal()] != nil {
		w.m.Failf("two changesets have number %d", c.Ordinal())
	}
	w.sets[c.Ordinal()] = c
	w.newest = max(w.newest, c.Ordinal())
	return true
}

// recorded returns what takes note of the results of a Record that begins now.
func (w *stage) recorded(es ...int) func(cowchangeset.Receipt, error) {
	w.mu.Lock()
	newest, sealed := w.newest, maps.Clone(w.sealed)
	w.mu.Unlock()
	return func(r cowchangeset.Receipt, err error) {
		if r.ChangesetID == "" {
			w.refused(es[0], err)
			return
		}
		if !errors.Is(err, context.Canceled) {
			w.allowed("Record", err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if sealed[r.Ordinal] {
			w.m.Failf("%v is recorded in number %d, which was sealed", es, r.Ordinal)
		}
		if r.Ordinal < newest && !pinnedEntry(es[0]) {
			w.m.Failf("%v is recorded in number %d, when number %d was the latest", es, r.Ordinal, newest)
		}
		for _, e := range es {
			if was, ok := w.entries[r]; ok {
				w.m.Failf("%d and %d have the receipt %v", was, e, r)
			}
			w.entries[r] = e
			if err == nil && w.store() && !w.config.Async {
				w.acked[r] = e
				if !slices.Contains(w.memory.has(r.ChangesetID).Entries, item{Seq: r.Seq, Value: e}) {
					w.m.Failf("%d was recorded, and the store has %+v", e, w.memory.has(r.ChangesetID))
				}
			}
			r.Seq++
		}
	}
}

// refused fails if a Record that has recorded nothing has no reason for that.
func (w *stage) refused(e int, err error) {
	switch {
	case err == context.Canceled || err == errGone:
	case w.config.MaxBacklog > 0 && errors.Is(err, cowchangeset.ErrBacklogFull):
		if w.config.RejectWhenFull != (err == cowchangeset.ErrBacklogFull) {
			w.m.Failf("Record of %d returns %v", e, err)
		}
	case pinnedEntry(e) && err == cowchangeset.ErrSealed:
	case w.seals && errors.Is(err, cowchangeset.ErrNoActive):
	default:
		w.m.Failf("Record of %d records nothing, and returns %v", e, err)
	}
}

var errGone = errors.New("gone")

// pinnedEntry reports whether an entry goes into a changeset that need not be the latest.
func pinnedEntry(e int) bool { return e > 70 && e < sentinel }

func (w *stage) do(o sceneStep, e int) {
	ctx, c := context.Background(), w.slots[o.slot]
	switch o.operation {
	case "Start":
		w.started(w.tracker.Start(ctx))
		return
	case "StartAfter":
		w.started(w.tracker.StartAfter(ctx, c))
		return
	case "Record":
		w.recorded(e)(w.tracker.Record(e))
		return
	case "RecordContext":
		ctx, end := atomics.WithCancel(ctx)
		atomics.Go(end)
		w.recorded(e)(w.tracker.RecordContext(ctx, e))
		return
	case "Record ended":
		ctx, end := context.WithCancelCause(ctx)
		end(errGone)
		w.recorded(e)(w.tracker.RecordContext(ctx, e))
		return
	case "RecordBatch":
		w.recorded(e, e+1)(w.tracker.RecordBatch([]int{e, e + 1}))
		return
	case "RecordBatchContext":
		ctx, end := atomics.WithCancel(ctx)
		atomics.Go(end)
		w.recorded(e, e+1)(w.tracker.RecordBatchContext(ctx, []int{e, e + 1}))
		return
	case "Flush":
		w.flush()
		return
	case "Prune 1", "Prune 2":
		n := w.tracker.Prune(int(o.operation[6] - '0'))
		w.mu.Lock()
		w.pruned += n
		w.mu.Unlock()
		return
	case "Resume":
		w.crash()
		return
	}
	if c == nil {
		return
	}
	switch o.operation {
	case "Record there":
		e = 70 + e/10
		w.recorded(e)(c.Record(e))
	case "Seal":
		f, err := c.Seal(ctx)
		w.allowed("Seal", err)
		w.final(c, f, err == nil)
	case "Apply", "Apply fails", "Apply panics":
		w.apply(c, func() error {
			return c.Apply(ctx, func(_ context.Context, f cowchangeset.Final[int]) error {
				w.final(c, f, w.store())
				w.enter(c)
				defer w.leave(c)
				switch o.operation {
				case "Apply fails":
					return errGone
				case "Apply panics":
					panic(errGone)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.applied[c.Ordinal()]++; w.applied[c.Ordinal()] > 1 {
					w.m.Failf("%s is applied twice", c.ID())
				}
				return nil
			})
		})
	case "ApplyEach", "ApplyEach fails":
		calls := 0
		w.apply(c, func() error {
			return c.ApplyEach(ctx, func(_ context.Context, _ uint64, e int) error {
				w.enter(c)
				defer w.leave(c)
				if calls++; calls == 2 && o.operation == "ApplyEach fails" {
					return errGone
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if slices.Contains(w.each[c.Ordinal()], e) {
					w.m.Failf("entry %d is applied twice", e)
				}
				w.each[c.Ordinal()] = append(w.each[c.Ordinal()], e)
				return nil
			})
		})
	case "Abort":
		err := c.Abort(ctx, errGone)
		w.allowed("Abort", err, cowchangeset.ErrApplied, cowchangeset.ErrApplying)
		if err == nil || errors.Is(err, cowchangeset.ErrStore) {
			w.mu.Lock()
			w.aborted[c.Ordinal()] = true
			w.mu.Unlock()
		}
		if err == nil && w.store() && !w.memory.has(c.ID()).Aborted {
			w.m.Failf("%s is aborted, and the store has %+v", c.ID(), w.memory.has(c.ID()))
		}
	default:
		panic(o.operation)
	}
}

func (w *stage) final(c *cowchangeset.Changeset[int], f cowchangeset.Final[int], notified bool) {
	at := final{ordinal: c.Ordinal()}
	for seq, e := range f.All() {
		at.entries = append(at.entries, record3{cowchangeset.Receipt{ChangesetID: c.ID(), Ordinal: c.Ordinal(), Seq: seq}, e})
	}
	if s := w.store(); s && notified && (!w.memory.has(c.ID()).Sealed || len(w.memory.has(c.ID()).Entries) != f.Len()) {
		w.m.Failf("%s is sealed, and the store has %+v", c.ID(), w.memory.has(c.ID()))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finals = append(w.finals, at)
	w.sealed[c.Ordinal()] = true
}

func (w *stage) enter(c *cowchangeset.Changeset[int]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.applying[c.Ordinal()]++; w.applying[c.Ordinal()] > 1 {
		w.m.Failf("two apply %s", c.ID())
	}
	if w.aborted[c.Ordinal()] || w.notified[c.Ordinal()] {
		w.m.Failf("%s is applied again, or after an Abort", c.ID())
	}
}

func (w *stage) leave(c *cowchangeset.Changeset[int]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.applying[c.Ordinal()]--
}

func (w *stage) apply(c *cowchangeset.Changeset[int], apply func() error) {
	var err error
	func() {
		defer func() {
			if p := recover(); p == errGone {
				err = errGone
			} else if p != nil {
				panic(p)
			}
		}()
		err = apply()
	}()
	w.allowed("Apply", err, errGone, cowchangeset.ErrApplied, cowchangeset.ErrAborted, cowchangeset.ErrApplying)
	if err != nil {
		return
	}
	if w.store() && !w.has("plain") && w.memory.has(c.ID()).Applied != cowchangeset.AllApplied {
		w.m.Failf("%s is applied, and the store has %+v", c.ID(), w.memory.has(c.ID()))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notified[c.Ordinal()] = true
}

func (w *stage) flush() {
	w.mu.Lock()
	before := maps.Clone(w.entries)
	w.mu.Unlock()
	err := w.tracker.Flush(context.Background())
	w.allowed("Flush", err)
	if err != nil || !w.store() {
		return
	}
	for r, e := range before {
		if !slices.Contains(w.memory.has(r.ChangesetID).Entries, item{Seq: r.Seq, Value: e}) {
			w.m.Failf("flushed, and the store does not have %d", e)
		}
	}
}

// crash looks at what another process would make of the store if this one ended now.
func (w *stage) crash() {
	if !w.store() {
		return
	}
	w.mu.Lock()
	acked, sealed, notified, aborted := maps.Clone(w.acked), maps.Clone(w.sealed), maps.Clone(w.notified), maps.Clone(w.aborted)
	for ordinal := range aborted {
		aborted[ordinal] = w.memory.has(w.sets[ordinal].ID()).Aborted // it may only be aborted in memory
	}
	for ordinal := range sealed {
		sealed[ordinal] = w.memory.has(w.sets[ordinal].ID()).Sealed
	}
	newest := w.newest
	content := w.memory.copied()
	w.mu.Unlock()
	t, err := cowchangeset.Resume(context.Background(), w.settings(content, new(int)))
	if err != nil {
		w.m.Failf("Resume: %v", err)
		return
	}
	var first, last uint64
	there := map[record3]bool{}
	for ordinal, c := range t.All() {
		if first == 0 {
			first = ordinal
		}
		last = ordinal
		for _, r := range contents(c) {
			there[r] = true
		}
		if sealed[ordinal] && !c.IsSealed() || !w.has("plain") && notified[ordinal] && c.Applied() != cowchangeset.AllApplied || aborted[ordinal] && c.Reason() == nil {
			w.m.Failf("after Resume, number %d is sealed %v, applied %d, aborted for %v", ordinal, c.IsSealed(), c.Applied(), c.Reason())
		}
	}
	if last < newest {
		w.m.Failf("after Resume there are numbers %d to %d, and %d was started", first, last, newest)
	}
	for r, e := range acked {
		if r.Ordinal >= first && !there[record3{r, e}] {
			w.m.Failf("after Resume, %d is not at %v: %v", e, r, there)
		}
	}
}

// check looks at what is left when all threads have ended.
func (w *stage) check() {
	if w.has("instant") && w.config.Async {
		w.checkStore("nobody waits") // and yet all goes on
	}
	w.heal()
	if w.store() {
		w.tracker.Unbounded()
	}
	if err := w.tracker.Flush(context.Background()); err != nil {
		w.m.Failf("at last, Flush: %v", err)
	}
	first := uint64(w.pruned + 1)
	var all []record3
	for ordinal := uint64(1); ordinal <= uint64(len(w.sets)); ordinal++ {
		c := w.sets[ordinal]
		if c == nil {
			w.m.Failf("nobody has started number %d of %d", ordinal, len(w.sets))
			return
		}
		if c.Ordinal() != ordinal || ordinal < uint64(len(w.sets)) && (!c.IsSealed() || c.Next() != w.sets[ordinal+1]) {
			w.m.Failf("number %d is not sealed, or not followed by the next", ordinal)
		}
		entries := contents(c)
		all = append(all, entries...)
		for _, e := range c.Remains() {
			if e != 0 {
				w.m.Failf("a voided writer has left %d", e)
			}
		}
		for _, f := range w.finals {
			if f.ordinal == ordinal && !slices.Equal(f.entries, entries) {
				w.m.Failf("a Final has %v, and there is %v", f.entries, entries)
			}
		}
		if w.notified[ordinal] != (c.Applied() == cowchangeset.AllApplied) && w.notified[ordinal] || w.aborted[ordinal] && c.Reason() == nil || w.notified[ordinal] && w.aborted[ordinal] {
			w.m.Failf("number %d: applied %v, %d; aborted %v, %v", ordinal, w.notified[ordinal], c.Applied(), w.aborted[ordinal], c.Reason())
		}
		if ordinal < first && !w.config.PruneUnapplied && c.Applied() != cowchangeset.AllApplied && c.Reason() == nil {
			w.m.Failf("number %d is forgotten, and neither applied nor aborted", ordinal)
		}
	}
	if len(all) != len(w.entries) {
		w.m.Failf("%d entries were recorded, and there are %v", len(w.entries), all)
	}
	for _, r := range all {
		if e, ok := w.entries[r.Receipt]; !ok || e != r.value {
			w.m.Failf("%d is at %v, where %d was recorded", r.value, r.Receipt, e)
		}
	}
	var ids []uint64
	for ordinal, c := range w.tracker.All() {
		if c != w.sets[ordinal] {
			w.m.Failf("number %d is another changeset", ordinal)
		}
		ids = append(ids, ordinal)
	}
	if len(ids) != len(w.sets)-w.pruned || len(ids) > 0 && ids[0] != first {
		w.m.Failf("%d changesets, %d of them forgotten, and there are %v", len(w.sets), w.pruned, ids)
	}
	for _, seen := range w.follows {
		w.checkFollow(seen, all)
	}
	w.checkStore("flushed")
}

// checkFollow fails unless seen is everything from the beginning of a changeset on.
func (w *stage) checkFollow(seen, all []record3) {
	if len(seen) == 0 || seen[len(seen)-1].value != sentinel {
		return // of one changeset
	}
	from := len(all) - len(seen)
	if from < 0 || !slices.Equal(seen, all[from:]) || from > 0 && (all[from-1].Ordinal == seen[0].Ordinal || int(all[from-1].Ordinal) > w.pruned) {
		w.m.Failf("a Follow saw %v of %v", seen, all)
	}
}

// checkStore fails unless the store has everything.
func (w *stage) checkStore(when string) {
	if !w.store() {
		return
	}
	for _, s := range w.memory.blunders() {
		w.m.Failf("the tracker's mistake: %s, after %q", s, w.memory.called())
	}
	var ids []string
	for ordinal, c := range w.tracker.All() {
		ids = append(ids, c.ID())
		s := w.memory.has(c.ID())
		var stored []record3
		for _, e := range s.Entries {
			stored = append(stored, record3{cowchangeset.Receipt{ChangesetID: c.ID(), Ordinal: s.Ordinal, Seq: e.Seq}, e.Value})
		}
		if !slices.Equal(stored, contents(c)) || s.Sealed != c.IsSealed() || s.Aborted != (c.Reason() != nil) || !w.has("plain") && s.Applied != c.Applied() {
			w.m.Failf("%s, and of number %d, %v, the store has %+v, after %q", when, ordinal, contents(c), s, w.memory.called())
		}
	}
	stored := w.memory.ids()
	if len(stored) == len(ids)+1 {
		stored = stored[:len(ids)] // its Start has failed: the next one would replace it
	}
	if !w.has("plain") && !slices.Equal(stored, ids) {
		w.m.Failf("%s, and the store has changesets %v, not %v", when, stored, ids)
	}
}

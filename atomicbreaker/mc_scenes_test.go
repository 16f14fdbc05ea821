//go:build modelcheck

package atomicbreaker_test

import (
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/internal/tools/scenes"
)

// Protocols are written by hand, and find what their author thinks of. Scenes are generated: three
// operations of the table, with time between them, on a Breaker or a key of a Group whose settings
// cover all pairs. After each operation, all that readers see must be what the model says. In
// some scenes the last two run at once, and must be as if one came first.

// A step is an operation on a key, with the permit of a slot, after some ticks.
type step struct {
	operation       string
	key, slot, wait int
}

func (s step) String() string {
	text := fmt.Sprintf("%s %d.%d", s.operation, s.key+1, s.slot)
	if s.wait > 0 {
		text = fmt.Sprintf("+%d %s", s.wait, text)
	}
	return text
}

// A scene is a breaker, what comes before, what is done to it, and then perhaps what two threads
// do.
type scene struct {
	plot
	start   int
	steps   []step
	threads [][]step
}

func (s *scene) atOnce() bool { return len(s.threads) > 0 }

// all returns the steps, in no order.
func (s *scene) all() []step { return append(slices.Clone(s.steps), slices.Concat(s.threads...)...) }

// String returns a name, from which sceneNamed makes the scene again.
func (s *scene) String() string {
	var b strings.Builder
	for _, l := range s.levels {
		if l != "" {
			fmt.Fprintf(&b, "%s; ", l)
		}
	}
	b.WriteString(starts[s.start].name + ": ")
	b.WriteString(mc.Listed([][]step{s.steps}, step.String))
	if s.atOnce() {
		b.WriteString(" | " + mc.Listed(s.threads, step.String))
	}
	return b.String()
}

var stepText = regexp.MustCompile(`^(?:\+([0-9]+) )?(.+) ([12])\.([0-2])$`)

func sceneNamed(name string) (s *scene, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("no scene has the name %q: %v", name, p)
		}
	}()
	head, tail, _ := strings.Cut(name, ": ")
	words := strings.Split(head, "; ")
	s = new(scene)
	for i := range starts {
		if starts[i].name == words[len(words)-1] {
			s.start = i
		}
	}
	for _, of := range sceneSettings {
		level := of.levels[0]
		for _, w := range words[:len(words)-1] {
			if slices.Contains(of.levels, w) {
				level = w
			}
		}
		s.levels = append(s.levels, level)
	}
	before, beside, atOnce := strings.Cut(tail, " | ")
	s.steps = stepsNamed(before)
	if atOnce {
		for _, thread := range strings.Split(beside, " ∥ ") {
			s.threads = append(s.threads, stepsNamed(thread))
		}
	}
	if got := s.String(); got != name {
		err = fmt.Errorf("%q is read as %q", name, got)
	}
	return s, err
}

func stepsNamed(text string) (steps []step) {
	for _, text := range strings.Split(text, ", ") {
		if text == "" {
			continue
		}
		parts := stepText.FindStringSubmatch(text)
		wait, _ := strconv.Atoi(parts[1])
		steps = append(steps, step{parts[2], int(parts[3][0] - '1'), int(parts[4][0] - '0'), wait})
	}
	return steps
}

// programme numbers all scenes: of each row those of all triples in order, and those of all
// pairs at once, after each start.
type programme struct {
	rows    [][]int
	triples [][3]int
	pairs   [][2]int
}

func newProgramme() *programme {
	p := new(programme)
	var levels []int
	for _, of := range sceneSettings {
		levels = append(levels, len(of.levels))
	}
	p.rows = scenes.Pairwise(levels)
	n := len(sceneOperations)
	for i := range n {
		for j := range n {
			if i <= j && sceneOperations[i].once && sceneOperations[j].once {
				p.pairs = append(p.pairs, [2]int{i, j})
			}
			for k := range n {
				p.triples = append(p.triples, [3]int{i, j, k})
			}
		}
	}
	return p
}

func (p *programme) inOrder() int { return len(p.rows) * len(p.triples) }
func (p *programme) atOnce() int  { return len(p.rows) * len(p.pairs) * len(starts) }

// step draws what a scene does not say: the key, the permit, and how much time passes.
func (s *scene) step(d *scenes.Dice, operation int) step {
	step := step{operation: sceneOperations[operation].name, slot: d.Below(2), wait: waits[d.Below(len(waits))]}
	if s.keyed() && d.Below(6) == 0 {
		step.key = 1
	}
	return step
}

func (p *programme) row(i int) (s *scene) {
	s = new(scene)
	for t, level := range p.rows[i] {
		s.levels = append(s.levels, sceneSettings[t].levels[level])
	}
	return s
}

// scene returns scene i in order. What comes before takes turns.
func (p *programme) scene(i int, seed uint64) *scene {
	d := scenes.Throw(i, seed)
	row, triple := i/len(p.triples), i%len(p.triples)
	s := p.row(row)
	s.start = (row + triple + int(seed)) % len(starts)
	for _, o := range p.triples[triple] {
		s.steps = append(s.steps, s.step(&d, o))
	}
	return s
}

// meeting returns scene i at once, unless nothing says what it should come to: windows may miss
// each other's failures, places be given back a moment later, and listeners act in any call. An
// operation may come first, and a thread may do two.
func (p *programme) meeting(i int, seed uint64) *scene {
	d := scenes.Throw(i, ^seed)
	row, pair := i/len(starts)/len(p.pairs), i/len(starts)%len(p.pairs)
	s := p.row(row)
	s.start = i % len(starts)
	if windowed(s.levels[1]) || s.has("MaxOpen", "listener resets", "listener panics") {
		return nil
	}
	if d.Below(2) == 0 {
		if first := s.step(&d, d.Below(len(sceneOperations))); !strings.HasPrefix(first.operation, "Update") {
			s.steps = append(s.steps, first) // which may bring windows
		}
	}
	if len(s.steps) == 0 {
		s.steps = append(s.steps, step{operation: "nothing", wait: waits[d.Below(len(waits))]})
	}
	for slot, o := range p.pairs[pair] {
		thread := []step{s.beside(&d, slot, o)}
		if o := d.Below(3 * len(sceneOperations)); o < len(sceneOperations) && sceneOperations[o].once && !resetsAll(o, p.pairs[pair][0], p.pairs[pair][1]) {
			thread = append(thread, s.beside(&d, slot, o))
		}
		s.threads = append(s.threads, thread)
	}
	return s
}

// resetsAll reports whether one of the operations is ResetAll. It makes permits of absent keys late
// before it resets keys, and a thread with two operations may see that.
func resetsAll(operations ...int) bool {
	return slices.ContainsFunc(operations, func(o int) bool { return sceneOperations[o].name == "ResetAll" })
}

// beside draws a step of a thread.
func (s *scene) beside(d *scenes.Dice, slot, operation int) step {
	step := s.step(d, operation)
	step.slot, step.wait = slot, 0
	return step
}

// before returns the steps that come one after the other.
func (s *scene) before() []step { return slices.Concat(starts[s.start].steps, s.steps) }

func (o step) does(p player) any {
	p.pass(o.wait)
	return operationNamed[o.operation].do(p, o.key, o.slot)
}

// play returns how the scene fails, or "".
func (s *scene) play(runs int, seed uint64) (failure string) {
	if s.atOnce() {
		return s.explore(runs, seed, "").Failure
	}
	mc.Sample(mc.Config{Mode: mc.PCT, Runs: 1}, func(m *mc.M) { failure = s.compare(m) })
	return failure
}

// compare plays all steps one after the other.
func (s *scene) compare(m *mc.M) (failure string) {
	var at int
	defer func() {
		if p := recover(); p != nil {
			failure = fmt.Sprintf("a panic: %v in step %d", p, at)
		}
	}()
	a, d := newActor(m, &s.plot), newDouble(&s.plot)
	for i, o := range s.before() {
		at = i
		got, want := o.does(a), o.does(d)
		if got != want {
			return fmt.Sprintf("%s returns %+v, want %+v", o.operation, got, want)
		}
		if d := a.look().difference(d.look()); d != "" {
			return fmt.Sprintf("after %s, %s", o.operation, d)
		}
	}
	return a.quiet()
}

// explore plays so many executions of the scene, in which few preemptions come at random.
func (s *scene) explore(runs int, seed uint64, replay string) (r mc.Result) {
	defer func() {
		if p := recover(); p != nil {
			r.Failure = fmt.Sprint("the exploration panics: ", p)
		}
	}()
	h := fnv.New64a()
	fmt.Fprint(h, s)
	var now *mc.M
	start := func(p player) player {
		for _, o := range s.before() {
			o.does(p)
		}
		return p
	}
	call := func(o step) mc.Call[player] { return mc.Call[player]{Name: o.String(), Do: o.does} }
	looks := mc.Call[player]{Name: "look", Do: func(p player) any { return p.look().text() + p.quiet() }}
	program := mc.Program[player]{
		New: func() player {
			a := newActor(now, &s.plot)
			start(a)
			a.beside = true
			return a
		},
		Model: func() player { return start(newDouble(&s.plot)) },
		After: []mc.Call[player]{looks, call(at("Success", 0, 1, 0)), call(at("Failure", 0, 0, 0)), looks},
	}
	for _, steps := range s.threads {
		var calls []mc.Call[player]
		for _, o := range steps {
			calls = append(calls, call(o))
		}
		program.Threads = append(program.Threads, calls)
	}
	body := program.Body()
	return mc.Sample(mc.Config{Mode: mc.PCT, Runs: runs, Depth: 3, Seed: h.Sum64() ^ seed, Replay: replay}, func(m *mc.M) {
		now = m
		body(m)
	})
}

// smaller returns scenes that have a part of s each.
func (s *scene) smaller() (all []*scene) {
	with := func(change func(*scene)) {
		c := &scene{plot: plot{slices.Clone(s.levels)}, start: s.start, steps: slices.Clone(s.steps)}
		for _, steps := range s.threads {
			c.threads = append(c.threads, slices.Clone(steps))
		}
		change(c)
		all = append(all, c)
	}
	// of returns the steps in order, or those of a thread.
	of := func(c *scene, thread int) *[]step {
		if thread < 0 {
			return &c.steps
		}
		return &c.threads[thread]
	}
	for thread := -1; thread < len(s.threads); thread++ {
		for i := range *of(s, thread) {
			if len(*of(s, thread)) > 1 || thread < 0 && s.atOnce() {
				with(func(c *scene) { *of(c, thread) = slices.Delete(*of(c, thread), i, i+1) })
			}
		}
	}
	if s.start > 0 {
		with(func(c *scene) { c.start = 0 })
	}
	if s.start > 1 {
		with(func(c *scene) { c.start = 1 })
	}
	for t, level := range s.levels {
		if plain := sceneSettings[t].levels[0]; level != plain {
			with(func(c *scene) { c.levels[t] = plain })
		}
	}
	if s.has(ofEach) {
		with(func(c *scene) { c.levels[0] = ofGroup })
	}
	for thread := -1; thread < len(s.threads); thread++ {
		for i, o := range *of(s, thread) {
			if o.wait > 0 {
				with(func(c *scene) { (*of(c, thread))[i].wait = 0 })
			}
			if o.key > 0 {
				with(func(c *scene) { (*of(c, thread))[i].key = 0 })
			}
			if name := simplerOperation[o.operation]; name != "" && (thread < 0 || operationNamed[name].once) {
				with(func(c *scene) { (*of(c, thread))[i].operation = name })
			}
		}
	}
	return all
}

// sortOf returns what tells failures apart: the first words, without numbers and operations.
func sortOf(failure string) string {
	line, _, _ := strings.Cut(failure, "\n")
	return regexp.MustCompile(`^after [^,]+|^.* returns|[0-9]+|0x[0-9a-f]+`).ReplaceAllString(line, "#")
}

// shrink looks for a smaller scene that fails in the same way.
func (s *scene) shrink(failure string, seed uint64) (*scene, string) {
	for tries := 0; tries < 1000; {
		var found *scene
		for _, c := range s.smaller() {
			tries++
			if got := c.play(shrinkRuns, seed); got != "" && sortOf(got) == sortOf(failure) {
				found, failure = c, got
				break
			}
		}
		if found == nil {
			break
		}
		s = found
	}
	return s, failure
}

// shrinkRuns is how many executions decide that a smaller scene at once does not fail.
const shrinkRuns = 50

// finding is a way in which scenes fail, and the smallest that was found.
type finding struct {
	scene   *scene
	failure string
	first   int // how many were played until it was found
	scenes  int // that fail so
}

// The environment says what is played: SCENES=all all scenes, or those "in order" or "at once";
// SCENES_SEED others; SCENES_RUNS how many executions of each at once; SCENES_FINDINGS to stop when
// scenes fail in so many ways; SCENES_WITHOUT none that have one of these levels, starts or
// operations, which is a list with commas; and SCENE only the one that has this name.

// TestScenes plays a part of the scenes, spread over all of them, and always the same.
func TestScenes(t *testing.T) {
	runs, seed := 6, uint64(scenes.Number("SCENES_SEED", 0))
	if os.Getenv("SCENES") != "" {
		runs = 20
	}
	runs = scenes.Number("SCENES_RUNS", runs)
	if name := os.Getenv("SCENE"); name != "" {
		s, err := sceneNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		if !s.atOnce() {
			if failure := s.play(runs, seed); failure != "" {
				t.Errorf("%s\n%s", s, failure)
			}
			return
		}
		r := s.explore(scenes.Number("SCENES_RUNS", 1000), seed, os.Getenv("SCENE_REPLAY"))
		t.Log(r)
		if r.Failure != "" {
			t.Errorf("%s\n%s\nreplay %s\n\n%s", s, r.Failure, r.Replay, r.Trace)
		}
		return
	}
	p, all := newProgramme(), os.Getenv("SCENES") != ""
	inOrder, atOnce := p.inOrder(), p.atOnce()
	switch {
	case testing.Short():
		inOrder, atOnce = 2_000, 500
	case !all:
		inOrder, atOnce = 50_000, 20_000
	}
	switch os.Getenv("SCENES") {
	case "in order":
		atOnce = 0
	case "at once":
		inOrder = 0
	}
	without := strings.FieldsFunc(os.Getenv("SCENES_WITHOUT"), func(r rune) bool { return r == ',' })
	t.Logf("%d operations, %d breakers: of %d scenes in order %d are played, and of %d at once %d",
		len(sceneOperations), len(p.rows), p.inOrder(), inOrder, p.atOnce(), atOnce)
	most := scenes.Number("SCENES_FINDINGS", 40)
	var findings []*finding
	began, said, failed, met := time.Now(), time.Now(), 0, 0
	file := func(s *scene, failure string, played int) {
		failed++
		for _, f := range findings {
			if f.scene.atOnce() == s.atOnce() && sortOf(f.failure) == sortOf(failure) && s.includes(f.scene) {
				f.scenes++
				return
			}
		}
		small, text := s.shrink(failure, seed)
		findings = append(findings, &finding{small, text, played, 1})
		if all {
			fmt.Printf("found: %s: %s\n", small, text)
		}
	}
	// progress says how far it is, and whether to go on.
	progress := func(what string, done, n int) bool {
		if all && time.Since(said) > 5*time.Second {
			said = time.Now()
			fmt.Printf("scenes %s: %d done, %d left; %d scenes fail, in %d ways\n", what, done, n-done, failed, len(findings))
		}
		return done < n && len(findings) < most
	}
	stride := scenes.Stride(p.inOrder())
	for done := 0; progress("in order", done, inOrder); {
		type failing struct {
			scene   *scene
			failure string
			played  int
		}
		var wrong []failing
		mc.Sample(mc.Config{Mode: mc.PCT, Runs: 1}, func(m *mc.M) {
			for range min(100, inOrder-done) { // more would be too long a time for a time.Duration
				s := p.scene((done+int(seed)*inOrder)%p.inOrder()*stride%p.inOrder(), seed)
				if done++; slices.ContainsFunc(without, s.mentions) {
					continue
				}
				if failure := s.compare(m); failure != "" {
					wrong = append(wrong, failing{s, failure, done})
				}
			}
		})
		for _, w := range wrong {
			file(w.scene, w.failure, w.played)
		}
	}
	stride = scenes.Stride(p.atOnce())
	for done := 0; progress("at once", done, atOnce); done++ {
		s := p.meeting((done+int(seed)*atOnce)%p.atOnce()*stride%p.atOnce(), seed)
		if s == nil || slices.ContainsFunc(without, s.mentions) {
			continue
		}
		met++
		if r := s.explore(runs, seed, ""); r.Failure != "" {
			file(s, r.Failure, done+1)
		}
	}
	t.Logf("%d scenes in order and %d at once in %v, %d fail, in %d ways", inOrder, met, time.Since(began).Round(time.Millisecond), failed, len(findings))
	for _, f := range findings {
		t.Errorf("%s\n%s\n%d scenes fail so, or include that, the first of them scene %d; rerun with SCENE='%s' go test -tags modelcheck -run '^TestScenes$' ./atomicbreaker",
			f.scene, f.failure, f.scenes, f.first, f.scene)
	}
}

// Scenes that have failed.
func TestScenesOfOld(t *testing.T) {
	for _, name := range []string{
		// The key was forgotten, of which the other operation has taken the note away.
		"PerKey; Consecutive; ForgetAfter; overdue: +16 nothing 1.0 | Cancel 1.0 ∥ HalfOpen 1.1",
		"Group; Consecutive; ForgetAfter; probing for the second time: +11 nothing 1.0 | RecordFailure 1.0 ∥ HalfOpen 1.1",
		"Group; Consecutive; ForgetAfter; probing for the second time: +11 nothing 1.0 | RecordFailure 1.0 ∥ State 1.1",
		"Group; Consecutive; ForgetAfter; probing for the second time: +11 nothing 1.0 | RecordFailure 1.0 ∥ Snapshot 1.1",
		"Group; Consecutive; ForgetAfter; probing for the second time: +11 nothing 1.0 | HalfOpen 1.0 ∥ State 1.1",
	} {
		s, err := sceneNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		if failure := s.play(3000, 0); failure != "" {
			t.Errorf("%s\n%s", s, failure)
		}
	}
}

// mentions reports whether a scene has a level or an operation.
func (s *scene) mentions(name string) bool {
	return s.has(name) || starts[s.start].name == name || slices.ContainsFunc(s.all(), func(o step) bool { return o.operation == name })
}

// includes reports whether s has the levels and operations of small, or what simplerOperation
// replaces by these.
func (s *scene) includes(small *scene) bool {
	for t, level := range small.levels {
		if level != sceneSettings[t].levels[0] && level != s.levels[t] {
			return false
		}
	}
	left := map[string]int{}
	for _, o := range s.all() {
		for name := o.operation; name != ""; name = simplerOperation[name] {
			left[name]++
		}
	}
	for _, o := range small.all() {
		if left[o.operation]--; left[o.operation] < 0 {
			return false
		}
	}
	return true
}

// The settings of scenes are good, and a scene can be made again from its name.
func TestScenesHaveNames(t *testing.T) {
	p := newProgramme()
	for i := range 1000 {
		s := p.scene(i*7919%p.inOrder(), 0)
		for _, s := range []*scene{s, p.meeting(i*7919%p.atOnce(), 0)} {
			if s == nil {
				continue
			}
			if _, err := sceneNamed(s.String()); err != nil {
				t.Error(err)
			}
		}
		a := &actor{plot: &s.plot}
		for _, other := range []bool{false, true} {
			if s.keyed() {
				if _, err := ab.NewGroup(a.grouped(other)); err != nil {
					t.Errorf("%s: %v", s, err)
				}
			} else if _, err := ab.New(a.single(other)); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
	}
}

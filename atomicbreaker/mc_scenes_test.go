//go:build modelcheck

package atomicbreaker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
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

// What generated scenes consist of: the settings, the operations, and what comes before them.
// What must hold is what the model says.

// tick is the unit of time, in which nothing is rounded.
const tick = 128 * time.Millisecond

// A setting has levels, of which the first is the plainest.
type setting struct {
	levels  []string
	updated bool // Update changes it
}

const (
	ofBreaker = "Breaker"
	ofGroup   = "Group"
	ofEach    = "PerKey"
)

var sceneSettings = []setting{
	{[]string{ofBreaker, ofGroup, ofEach}, true}, // a Group may get PerKey, or lose it
	{[]string{"Consecutive", "FailureRate", "KOfN", "SlowRate", "long KOfN", "TripFunc", "two KOfN", "FailureCount", "row or KOfN", "slow TripFunc", "first failure", "row or rate", "rate or long", "three windows"}, true},
	{[]string{"", "MaxOpenTimeout", "Backoff", "until Reset"}, true},
	{[]string{"", "Probes"}, true},
	{[]string{"", "CloseAfter 2", "CloseAfter 3"}, true},
	{[]string{"", "half of probes", "all probes"}, true},
	{[]string{"", "short ProbeTimeout"}, true},
	{[]string{"", "Shadow"}, true},
	{[]string{"", "MaxOpen"}, true},
	{[]string{"", "ForgetAfter", "never forgotten"}, true},
	{[]string{"", "RecordTotals"}, false},
	{[]string{"", "OnStateChange", "listener until Update", "listener resets", "listener panics"}, false},
	{[]string{"", "DetailedErrors"}, false},
	{[]string{"", "Classify"}, false},
	{[]string{"", "leases wrap", "open times wrap", "calls wrap"}, false},
}

// window is that of all policies but SlowRate. Its parts are whole ticks.
const window = 15 * tick

var (
	policies = map[string]model.Policy{
		"Consecutive":   {{Why: ab.ReasonThreshold, N: 2}},
		"first failure": {{Why: ab.ReasonThreshold, N: 1}},
		"KOfN":          {{Why: ab.ReasonThreshold, N: 2, Last: 3}},
		"long KOfN":     {{Why: ab.ReasonThreshold, N: 3, Last: 40}},
		"two KOfN":      {{Why: ab.ReasonThreshold, N: 2, Last: 2}, {Why: ab.ReasonThreshold, N: 3, Last: 5}},
		"row or KOfN":   {{Why: ab.ReasonThreshold, N: 3}, {Why: ab.ReasonThreshold, N: 3, Last: 4}},
		"FailureCount":  {{Why: ab.ReasonFailureCount, N: 2, Window: window}},
		"FailureRate":   {{Why: ab.ReasonFailureRate, N: 2, Ratio: 0.5, Window: window}},
		"SlowRate":      {{Why: ab.ReasonSlowRate, N: 2, Ratio: 0.5, Slow: tick, Window: window / 2}},
		"TripFunc":      {{Why: ab.ReasonTripFunc, N: 2, Window: window}},
		"slow TripFunc": {{Why: ab.ReasonTripFunc, N: 3, Slow: tick, Window: window}},
		"row or rate":   {{Why: ab.ReasonThreshold, N: 2}, {Why: ab.ReasonFailureRate, N: 4, Ratio: 0.5, Window: window}},
		"rate or long":  {{Why: ab.ReasonFailureRate, N: 3, Ratio: 1, Window: window}, {Why: ab.ReasonThreshold, N: 2, Last: 33}},
		"three windows": {{Why: ab.ReasonFailureCount, N: 3, Window: window}, {Why: ab.ReasonSlowRate, N: 1, Ratio: 1, Slow: tick, Window: window}, {Why: ab.ReasonTripFunc, N: 2, Window: window / 2}},
	}
	made = map[string]ab.Policy{} // Update knows a TripFunc again
)

func init() {
	for name, p := range policies {
		made[name] = p.Real()
	}
}

// A plot is the settings of a scene.
type plot struct{ levels []string }

func (p *plot) has(levels ...string) bool {
	return slices.ContainsFunc(levels, func(l string) bool { return slices.Contains(p.levels, l) })
}

func (p *plot) keyed() bool { return p.levels[0] != ofBreaker }

// level returns a level, before Update or after.
func (p *plot) level(setting int, other bool) string {
	of := sceneSettings[setting]
	at := slices.Index(of.levels, p.levels[setting])
	switch {
	case !other || !of.updated:
	case setting == 0 && p.keyed():
		at = 3 - at
	case setting == 0:
	case setting == 1 && p.keyed() && windowed(of.levels[at]):
		// A key that loses its windows may be stored for a while or not.
	case setting == 1 && p.keyed():
		for at = (at + 1) % len(of.levels); windowed(of.levels[at]); {
			at = (at + 1) % len(of.levels)
		}
	default:
		at = (at + 1) % len(of.levels)
	}
	return of.levels[at]
}

func windowed(policy string) bool {
	return slices.ContainsFunc(policies[policy], func(r model.Rule) bool { return r.Window > 0 })
}

func (p *plot) name() string {
	if p.has("DetailedErrors") {
		return "scene"
	}
	return ""
}

// listens reports whether there is a listener.
func (p *plot) listens(other bool) bool {
	return p.levels[11] != "" && !(other && p.has("listener until Update"))
}

// A listener that acts does so for every third event of a key. It gets the event of a forgotten
// key before a TripFunc is asked: so a result comes after its Reset, and the model has no such
// order.
func (p *plot) acts(event int) bool {
	if p.keyed() && p.has("TripFunc", "slow TripFunc", "three windows") && p.has("listener resets") {
		return false
	}
	return event%3 == 0 && p.has("listener resets", "listener panics")
}

func (p *plot) perKey(other bool) bool { return p.level(0, other) == ofEach }

func (p *plot) maxOpen(other bool) int {
	if p.keyed() && p.level(8, other) == "MaxOpen" {
		return 1
	}
	return 0
}

func (p *plot) forgetAfter(other bool) time.Duration {
	switch p.level(9, other) {
	case "ForgetAfter":
		return 8 * tick
	case "never forgotten":
		return -1
	}
	return time.Hour
}

// begins returns how many ticks pass before the scene: a word has deadlines, and a permit the
// time of its call, modulo some range. Probes and open times of the scene then end where a
// new range begins, and calls do.
func (p *plot) begins() int {
	switch {
	case p.has("leases wrap"):
		return 1<<21 - 3 // of 128 ms
	case p.has("open times wrap"):
		return 1<<36/128 - 2 // of 1 ms
	case p.has("calls wrap"):
		return 1<<(41+10)/int(tick) - 1 // of 1.024 µs
	}
	return 0
}

// settings returns those that the model has.
func (p *plot) settings(other bool) model.Settings {
	s := model.Settings{
		Policy: policies[p.level(1, other)], Probes: 1, CloseAfter: 1,
		OpenFor: 2 * tick, MaxOpen: 20 * tick, Constant: true, ProbeTimeout: 3 * tick,
		Shadow: p.level(7, other) == "Shadow", Totals: p.has("RecordTotals"),
	}
	switch p.level(2, other) {
	case "MaxOpenTimeout":
		s.Constant, s.MaxOpen = false, 8*tick
	case "Backoff":
		s.Constant, s.MaxOpen, s.Backoff = false, 5*tick, []time.Duration{tick, 3 * tick, 5 * tick}
	case "until Reset":
		s.OpenFor, s.MaxOpen = -1, 365*24*time.Hour
	}
	if p.level(3, other) == "Probes" {
		s.Probes = 2
	}
	switch p.level(4, other) {
	case "CloseAfter 2":
		s.CloseAfter = 2
	case "CloseAfter 3":
		s.CloseAfter = 3
	}
	switch p.level(5, other) {
	case "half of probes":
		s.ProbeRate = 0.5
	case "all probes":
		s.ProbeRate = 1
	}
	if p.level(6, other) != "" {
		s.ProbeTimeout = tick
	}
	return s
}

// config returns what New takes.
func (p *plot) config(other bool) ab.Config {
	c := p.settings(other).Config()
	c.Name, c.Policy, c.DetailedErrors = p.name(), made[p.level(1, other)], p.has("DetailedErrors")
	if p.has("Classify") {
		c.Classify = func(ctx context.Context, err error) ab.Outcome {
			if errors.Is(err, errQuiet) {
				return ab.Ignored
			}
			if ab.Classify(ctx, err) == ab.Failure {
				return ab.Ignored + 1 // which is Failure
			}
			return ab.Classify(ctx, err)
		}
	}
	return c
}

// Errors.
var (
	errQuiet = errors.New("quiet")

	boom     = &fault{err: errBoom}
	quiet    = &fault{err: fmt.Errorf("wrapped: %w", errQuiet), quiet: true}
	canceled = &fault{err: fmt.Errorf("wrapped: %w", context.Canceled), unwanted: true}
	late     = &fault{err: context.DeadlineExceeded}
	rejected = &fault{err: ab.ErrTooManyProbes, rejects: true, unwanted: true}
	detailed = &fault{err: &ab.OpenError{}, rejects: true, unwanted: true}
	allMeek  = &fault{err: errors.Join(ab.ErrOpen, fmt.Errorf("inner: %w", ab.ErrRejected)), rejects: true, unwanted: true}
	meek     = &fault{err: errors.Join(context.Canceled, ab.ErrOpen), unwanted: true}
	boomGone = &fault{err: errors.Join(errBoom, context.Canceled)}
	goneBoom = &fault{err: fmt.Errorf("%w beside %w", context.Canceled, errBoom)}
	boomMeek = &fault{err: errors.Join(errBoom, ab.ErrOpen)}
	deepBoom = &fault{err: errors.Join(fmt.Errorf("deep: %w", errors.Join(ab.ErrRejected, errBoom)), ab.ErrOpen)}
)

// An operation is a row of the table.
type operation struct {
	name string
	once bool // it takes effect at one moment, and so may run beside others
	do   func(p player, k, slot int) any
}

var sceneOperations = func() (all []operation) {
	add := func(name string, once bool, do func(p player, k, slot int) any) {
		all = append(all, operation{name, once, do})
	}
	ends := func(name string, e ending) {
		add(name, true, func(p player, _, slot int) any { return p.report(slot, e) })
	}
	admitted := func(name string, takes int, e ending) {
		add(name, false, func(p player, k, _ int) any {
			if got := p.allow(k, sceneSlots-1); got != "admitted" {
				return got
			}
			p.pass(takes)
			return p.report(sceneSlots-1, e)
		})
	}
	calls := func(name string, c calling) {
		add(name, false, func(p player, k, _ int) any { return p.call(k, c) })
	}
	commands := func(name string, c commanding) {
		add(name, true, func(p player, k, _ int) any { return p.command(k, c) })
	}
	success := ending{report: permit.Success, outcome: ab.Success}
	failure := ending{report: permit.Failure, outcome: ab.Failure}
	reports := func(o, as ab.Outcome) ending {
		return ending{report: func(p permit) ab.Verdict { return p.Report(o) }, outcome: as}
	}
	done := func(f *fault) ending {
		return ending{report: func(p permit) ab.Verdict { return p.Done(f.err) }, err: f}
	}
	trips := func(d time.Duration) ending {
		return ending{report: func(p permit) ab.Verdict { return p.Trip(d) }, trip: true, open: d}
	}

	add("nothing", false, func(player, int, int) any { return nil })
	add("Allow", true, func(p player, k, slot int) any { return p.allow(k, slot) })
	ends("Success", success)
	ends("Failure", failure)
	ends("Cancel", ending{report: permit.Cancel, outcome: ab.Ignored})
	ends("Report none", reports(9, ab.Failure))
	ends("Report Ignored", reports(ab.Ignored, ab.Ignored))
	ends("Done nil", ending{report: func(p permit) ab.Verdict { return p.Done(nil) }, outcome: ab.Success})
	ends("Done boom", done(boom))
	ends("Done canceled", done(canceled))
	ends("Done joined with canceled", done(boomGone))
	ends("Done joined with a rejection", done(boomMeek))
	ends("Done joined deep", done(deepBoom))
	ends("Done joined cancellation and rejection", done(meek))
	ends("Done quiet", done(quiet))
	ends("Permit.Trip 0", trips(0))
	ends("Permit.Trip 4", trips(4*tick))
	ends("Permit.Trip forever", trips(-1))
	admitted("fails", 0, failure)
	admitted("succeeds", 0, success)
	admitted("succeeds slowly", 2, success)
	calls("Do succeeds", calling{by: "Do"})
	calls("Do fails", calling{by: "Do", err: boom})
	calls("Do fails slowly", calling{by: "Do", err: boom, takes: 2})
	calls("Do panics", calling{by: "Do", panics: true})
	calls("Do exits", calling{by: "Do", exits: true})
	calls("Do joined with canceled", calling{by: "Do", err: goneBoom})
	calls("Do canceled alone", calling{by: "Do", err: canceled})
	calls("Do in a context that ends", calling{by: "Do", ctx: "ends", err: boom})
	calls("Do in a context that is done", calling{by: "Do", ctx: "done", err: boom})
	calls("Do rejected inside", calling{by: "Do", err: allMeek})
	calls("Execute canceled", calling{by: "Execute", err: canceled})
	calls("Execute joined with canceled", calling{by: "Execute", err: boomGone})
	calls("ExecuteContext late", calling{by: "ExecuteContext", err: late})
	calls("ExecuteContext rejected inside", calling{by: "ExecuteContext", err: detailed})
	calls("ExecuteContext joined with a rejection", calling{by: "ExecuteContext", err: boomMeek})
	calls("ExecuteResult quiet", calling{by: "ExecuteResult", err: quiet})
	calls("ExecuteResult rejected", calling{by: "ExecuteResult", err: rejected})
	add("RecordSuccess", true, func(p player, k, _ int) any { return p.record(k, ab.Success) })
	add("RecordFailure", true, func(p player, k, _ int) any { return p.record(k, ab.Failure) })
	add("State", true, func(p player, k, _ int) any { return p.state(k) })
	add("Snapshot", true, func(p player, k, _ int) any { return p.snapshot(k) })
	commands("Reset", commanding{"Reset", 0})
	commands("Trip 0", commanding{"Trip", 0})
	commands("Trip 4", commanding{"Trip", 4 * tick})
	commands("Trip forever", commanding{"Trip", -1})
	commands("Trip too long", commanding{"Trip", 1000 * time.Hour})
	commands("HalfOpen", commanding{"HalfOpen", 0})
	commands("ForceOpen", commanding{"ForceOpen", 0})
	commands("Disable", commanding{"Disable", 0})
	add("ResetAll", true, func(p player, _, _ int) any { return p.resetAll() })
	add("Sweep", true, func(p player, _, _ int) any { return p.sweep() })
	add("Update", false, func(p player, _, _ int) any { return p.update(updateOther) })
	add("Update to the same", false, func(p player, _, _ int) any { return p.update(updateSame) })
	add("Update to what is wrong", false, func(p player, _, _ int) any { return p.update(updateWrong) })
	return all
}()

var operationNamed = func() map[string]operation {
	all := map[string]operation{}
	for _, o := range sceneOperations {
		all[o.name] = o
	}
	return all
}()

// simplerOperation says which operation to try in the place of one that has led to a failure.
var simplerOperation = map[string]string{
	"Report none":                  "Failure",
	"Report Ignored":               "Cancel",
	"Done nil":                     "Success",
	"Done boom":                    "Failure",
	"Done canceled":                "Cancel",
	"Done joined with canceled":    "Done boom",
	"Done joined with a rejection": "Done boom",
	"Permit.Trip 4":                "Permit.Trip 0",
	"Permit.Trip forever":          "Permit.Trip 0",
	"fails":                        "RecordFailure",
	"succeeds":                     "RecordSuccess",
	"succeeds slowly":              "succeeds",
	"Do succeeds":                  "succeeds",
	"Do fails":                     "fails",
	"Do fails slowly":              "Do fails",
	"Do panics":                    "Do fails",
	"Do exits":                     "Do fails",
	"Do joined with canceled":      "Do fails",
	"Execute joined with canceled": "Do fails",
	"ExecuteContext late":          "Do fails",
	"Trip 4":                       "Trip 0",
	"Trip forever":                 "Trip 0",
	"Trip too long":                "Trip 0",
	"Update":                       "Update to the same",
}

// waits are the ticks that may pass before an operation: past an open time, a probe's time,
// ForgetAfter, both, and all windows.
var waits = []int{0, 0, 0, 1, 2, 3, 8, 11, 16}

// starts are what may come before a scene. Slots 0 and 1 have permits of the first key.
var starts = []struct {
	name  string
	steps []step
}{
	{"healthy", []step{at("Allow", 0, 0, 0), at("Allow", 0, 1, 0)}},
	{"failing", []step{at("Allow", 0, 0, 0), at("RecordFailure", 0, 0, 0), at("Allow", 0, 1, 0)}},
	{"failing more", []step{at("Allow", 0, 0, 0), at("fails", 0, 0, 0), at("fails", 0, 0, 1), at("Allow", 0, 1, 0), at("fails", 0, 0, 0)}},
	{"open", []step{at("Allow", 0, 0, 0), at("Allow", 0, 1, 0), at("Trip 0", 0, 0, 0)}},
	{"probing", []step{at("Allow", 0, 0, 0), at("HalfOpen", 0, 0, 0), at("Allow", 0, 0, 0), at("Allow", 0, 1, 0)}},
	{"probing for the second time", []step{at("Trip 0", 0, 0, 0), at("fails", 0, 0, 2), at("HalfOpen", 0, 0, 0), at("Allow", 0, 0, 1), at("Allow", 0, 1, 0)}},
	{"overdue", []step{at("HalfOpen", 0, 0, 0), at("Allow", 0, 0, 0), at("Allow", 0, 1, 3)}},
	{"forgotten while failing", []step{at("Allow", 0, 0, 0), at("fails", 0, 0, 0), at("Allow", 0, 1, 0), at("nothing", 0, 0, 11)}},
	{"forgotten while open", []step{at("Allow", 0, 0, 0), at("Trip 0", 0, 0, 0), at("nothing", 0, 0, 16)}},
	{"forgotten while probing", []step{at("Trip 0", 0, 0, 0), at("Allow", 0, 0, 2), at("Allow", 0, 1, 0), at("nothing", 0, 0, 11)}},
	{"forced", []step{at("Allow", 0, 0, 0), at("ForceOpen", 0, 0, 0)}},
	{"disabled", []step{at("Allow", 0, 0, 0), at("Disable", 0, 0, 0), at("Allow", 0, 1, 0)}},
	{"while another is open", []step{at("Allow", 0, 0, 0), at("fails", 0, 0, 0), at("Trip 0", 1, 0, 0), at("Allow", 0, 1, 0)}},
}

func at(operation string, key, slot, wait int) step { return step{operation, key, slot, wait} }

// What scenes are played on: a Breaker, a Group, and their models.

const (
	sceneKeys  = 2
	sceneSlots = 3 // the last is of operations that hold their permit alone
)

var sceneNames = [sceneKeys]string{"db-1", "db-2"}

// player is what a Breaker, a Group and their models can do. A Breaker has one key. A permit lies
// in a slot until it is reported.
type player interface {
	allow(k, slot int) any
	report(slot int, e ending) any
	call(k int, c calling) any
	record(k int, o ab.Outcome) any
	command(k int, c commanding) any
	update(to updating) any
	resetAll() any
	sweep() any
	pass(ticks int)
	state(k int) any
	snapshot(k int) any
	look() sight
	quiet() string
}

// An ending is a report of a permit: of what it means or, with err, what Done makes of that.
type ending struct {
	report  func(permit) ab.Verdict
	outcome ab.Outcome
	err     *fault
	trip    bool // for so long:
	open    time.Duration
}

// A calling is a whole call.
type calling struct {
	by     string // Do, Execute, ExecuteContext, ExecuteResult
	ctx    string // "", done, or ends: while the call runs
	err    *fault // that the call returns; or
	panics bool
	exits  bool
	takes  int // ticks
}

// A fault is an error, and what it means.
type fault struct {
	err               error
	rejects, unwanted bool // all that is joined in it is a rejection, or that or a cancellation
	quiet             bool // the Classify of the settings ignores it
}

// means returns what the end of a call means by the documentation of Classify.
func (f *fault) means(own, known, cancelled bool) ab.Outcome {
	switch {
	case f == nil:
		return ab.Success
	case own && f.quiet, known && cancelled, known && f.rejects, !known && f.unwanted:
		return ab.Ignored
	}
	return ab.Failure
}

type commanding struct {
	name string // of the method
	open time.Duration
}

// updating says what Update changes.
type updating int

const (
	updateOther updating = iota // to the next levels, and then back
	updateSame
	updateWrong
)

// refusal is the error of Allow.
type refusal struct {
	open, probes, detailed bool
	name                   string
	state                  ab.State
	after                  time.Duration
}

func refusalOf(err error) any {
	if err == nil {
		return "admitted"
	}
	r := refusal{open: errors.Is(err, ab.ErrOpen), probes: errors.Is(err, ab.ErrTooManyProbes)}
	var e *ab.OpenError
	if r.detailed = errors.As(err, &e); r.detailed {
		r.name, r.state, r.after = e.Name, e.State, e.RetryAfter
	}
	return r
}

// sight is what readers see.
type sight struct {
	keys     [sceneKeys]seen
	stats    ab.Stats
	notified [sceneKeys][]ab.Event // since the last look
	wrong    string                // what contradicts itself

	absent   [sceneKeys]bool // only the real ones know that
	pristine [sceneKeys]bool // only models know that
}

// text is what must be equal.
func (s sight) text() string {
	s.absent, s.pristine = [sceneKeys]bool{}, [sceneKeys]bool{}
	return fmt.Sprintf("%+v", s)
}

type seen struct {
	ab.Snapshot
	state  ab.State
	isOpen bool
}

// difference returns how the sight of a player differs from that of its model, or "".
func (s sight) difference(want sight) string {
	if s.wrong != "" {
		return s.wrong
	}
	for k := range s.keys {
		if s.keys[k] != want.keys[k] {
			return fmt.Sprintf("key %d is\n\t%+v, want\n\t%+v", k+1, s.keys[k], want.keys[k])
		}
		if s.absent[k] && !want.pristine[k] {
			return fmt.Sprintf("key %d is not stored, and is not healthy", k+1)
		}
		if !slices.Equal(s.notified[k], want.notified[k]) {
			return fmt.Sprintf("the listener of key %d gets\n\t%+v, want\n\t%+v", k+1, s.notified[k], want.notified[k])
		}
	}
	if s.stats != want.stats {
		return fmt.Sprintf("the Stats are\n\t%+v, want\n\t%+v", s.stats, want.stats)
	}
	return ""
}

// actor is a Breaker or a Group.
type actor struct {
	m        *mc.M
	plot     *plot
	breaker  *ab.Breaker
	group    *ab.Group[string]
	other    bool // Update has changed the settings
	beside   bool // other operations run
	held     [sceneSlots]permit
	notified [sceneKeys][]ab.Event
	last     [sceneKeys]ab.Event
	heard    [sceneKeys]int // events
	wrong    string
}

func newActor(m *mc.M, p *plot) *actor {
	a := &actor{m: m, plot: p}
	if p.keyed() {
		a.group = ab.MustNewGroup(a.grouped(false))
	} else {
		a.breaker = ab.MustNew(a.single(false))
	}
	a.pass(p.begins())
	return a
}

func (a *actor) single(other bool) ab.Config {
	c := a.plot.config(other)
	if a.plot.listens(other) {
		c.OnStateChange = func(e ab.Event) { a.hear(0, e) }
	}
	return c
}

func (a *actor) grouped(other bool) ab.GroupConfig[string] {
	g := ab.GroupConfig[string]{Default: a.plot.config(other), ForgetAfter: a.plot.forgetAfter(other), MaxOpen: a.plot.maxOpen(other)}
	if a.plot.perKey(other) {
		c := g.Default
		g.Default = ab.Config{Policy: c.Policy, RecordTotals: c.RecordTotals}
		g.PerKey = func(string) ab.Config { return c }
	}
	if a.plot.listens(other) {
		g.OnStateChange = func(k string, e ab.Event) { a.hear(slices.Index(sceneNames[:], k), e) }
	}
	return g
}

// hear is the listener. It may act.
func (a *actor) hear(k int, e ab.Event) {
	if !a.plot.acts(a.notes(k, e)) {
		return
	}
	if a.plot.has("listener panics") {
		panic(errBoom)
	}
	a.command(k, commanding{name: "Reset"})
}

// notes requires that each event follows the one before. It returns how many there were.
//
//go:norace
func (a *actor) notes(k int, e ab.Event) int {
	last := a.last[k]
	if a.plot.has("listener until Update") { // which misses some
	} else if e.From != last.To || e.Generation != last.Generation+1 && (a.breaker != nil || e.Generation != 1 || e.From != ab.Closed) {
		a.complain("generation %d of %v follows generation %d of %v", e.Generation, e.From, last.Generation, last.To)
	}
	if now := atomics.Now(); !e.At.Equal(now) {
		a.complain("an event of %v at %v", e.At, now)
	}
	if e.Name != a.plot.name() {
		a.complain("an event of %q", e.Name)
	}
	a.last[k] = e
	e.Name, e.Generation, e.At = "", 0, time.Time{}
	a.notified[k] = append(a.notified[k], e)
	a.heard[k]++
	return a.heard[k]
}

// survive runs an operation, and returns its result unless a listener panics.
func (a *actor) survive(f func() any) (got any) {
	defer func() {
		if p := recover(); p == any(errBoom) {
			got = "panics"
		} else if p != nil {
			panic(p)
		}
	}()
	return f()
}

//go:norace
func (a *actor) complain(format string, args ...any) {
	if a.wrong == "" {
		a.wrong = fmt.Sprintf(format, args...)
	}
}

func (a *actor) allow(k, slot int) any {
	a.held[slot] = nil
	return a.survive(func() any { return a.asks(k, slot) })
}

func (a *actor) asks(k, slot int) any {
	var err error
	if a.group == nil {
		var p ab.Permit
		if p, err = a.breaker.Allow(); err == nil {
			a.held[slot] = p
		}
	} else {
		var p ab.GroupPermit[string]
		if p, err = a.group.Allow(sceneNames[k]); err == nil {
			a.held[slot] = p
		}
	}
	return refusalOf(err)
}

func (a *actor) report(slot int, e ending) any {
	p := a.held[slot]
	if a.held[slot] = nil; p == nil {
		return "no permit"
	}
	return a.survive(func() any { return e.report(p) })
}

// call says how a call ended: an error of its own, of Allow, or none.
func (a *actor) call(k int, c calling) any {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if c.ctx != "" {
		ctx, cancel = context.WithCancel(ctx)
	}
	if c.ctx == "done" {
		cancel()
	}
	defer cancel()
	var returns error
	if c.err != nil {
		returns = c.err.err
	}
	called := false
	body := func() error {
		called = true
		a.pass(c.takes)
		switch {
		case c.ctx == "ends":
			cancel()
		case c.panics:
			panic(errBoom)
		case c.exits:
			runtime.Goexit()
		}
		return returns
	}
	within := func(context.Context) error { return body() }
	valued := func(context.Context) (int, error) { return 1, body() }
	run := func() error {
		var err error
		switch {
		case a.group != nil && c.by == "Do":
			return a.group.Do(ctx, sceneNames[k], within)
		case a.group != nil:
			_, err = ab.ExecuteGroup(ctx, a.group, sceneNames[k], valued)
		case c.by == "Do":
			return a.breaker.Do(ctx, within)
		case c.by == "Execute":
			_, err = ab.Execute(a.breaker, func() (int, error) { return valued(nil) })
		case c.by == "ExecuteContext":
			_, err = ab.ExecuteContext(ctx, a.breaker, valued)
		default:
			_, err = ab.ExecuteResult(ctx, a.breaker, valued, func(_ int, err error) ab.Outcome { return ab.Classify(ctx, err) })
		}
		return err
	}
	var err error
	if c.panics || c.exits {
		if apart(func() { err = run() }); !called && err == nil {
			return "panics" // in Allow
		}
	} else if a.survive(func() any { err = run(); return nil }) != nil {
		return "panics"
	}
	switch {
	case called && err != returns:
		a.complain("a call returns %v in place of %v", err, returns)
		return nil
	case called:
		return "called"
	case err == context.Canceled:
		return "not called"
	}
	return refusalOf(err)
}

// apart runs f, which may panic with errBoom or call runtime.Goexit.
func apart(f func()) {
	done := make(chan any)
	go func() {
		var p any
		defer func() {
			if p = recover(); p == any(errBoom) {
				p = nil
			}
			done <- p
		}()
		f()
	}()
	if p := <-done; p != nil {
		panic(p)
	}
}

func (a *actor) record(k int, o ab.Outcome) any {
	return a.survive(func() any { return a.records(k, o) })
}

func (a *actor) records(k int, o ab.Outcome) ab.Verdict {
	switch {
	case a.group == nil && o == ab.Success:
		return a.breaker.RecordSuccess()
	case a.group == nil:
		return a.breaker.RecordFailure()
	case o == ab.Success:
		return a.group.RecordSuccess(sceneNames[k])
	}
	return a.group.RecordFailure(sceneNames[k])
}

func (a *actor) command(k int, c commanding) any {
	return a.survive(func() any { a.commands(k, c); return nil })
}

func (a *actor) commands(k int, c commanding) {
	if a.group == nil {
		switch c.name {
		case "Reset":
			a.breaker.Reset()
		case "Trip":
			a.breaker.Trip(c.open)
		case "HalfOpen":
			a.breaker.HalfOpen()
		case "ForceOpen":
			a.breaker.ForceOpen()
		default:
			a.breaker.Disable()
		}
		return
	}
	switch key := sceneNames[k]; c.name {
	case "Reset":
		a.group.Reset(key)
	case "Trip":
		a.group.Trip(key, c.open)
	case "HalfOpen":
		a.group.HalfOpen(key)
	case "ForceOpen":
		a.group.ForceOpen(key)
	default:
		a.group.Disable(key)
	}
}

func (a *actor) update(to updating) any {
	other := a.other != (to == updateOther)
	var err error
	if a.group == nil {
		c := a.single(other)
		if to == updateWrong {
			c.Probes = 32
		}
		err = a.breaker.Update(c)
	} else {
		c := a.grouped(other)
		if to == updateWrong {
			c.MaxOpen = -1
		}
		if a.survive(func() any { err = a.group.Update(c); return nil }) != nil {
			a.other = other // it goes on
			return "panics"
		}
	}
	if err == nil {
		a.other = other
	}
	return err == nil
}

func (a *actor) resetAll() any {
	return a.survive(func() any {
		if a.group != nil {
			a.group.ResetAll()
		} else {
			a.breaker.Reset()
		}
		return nil
	})
}

func (a *actor) sweep() any {
	if a.group == nil {
		return nil
	}
	return a.survive(func() any {
		before := a.group.Len()
		if n := a.group.Sweep(); before-n != a.group.Len() && !a.beside {
			a.complain("Sweep returns %d, and leaves %d of %d keys", n, a.group.Len(), before)
		}
		return nil
	})
}

func (a *actor) pass(ticks int) {
	if ticks != 0 {
		a.m.Advance(time.Duration(ticks) * tick)
	}
}

// state and snapshot are looks at one moment. Whether an absent key of PerKey is a shadow, nobody
// knows.
func (a *actor) state(k int) any {
	switch {
	case a.group == nil:
		return a.breaker.State()
	case a.plot.perKey(a.other) && a.plot.settings(a.other).Shadow:
		return nil
	}
	return a.group.State(sceneNames[k])
}

func (a *actor) snapshot(k int) any {
	var s ab.Snapshot
	if a.group == nil {
		s = a.breaker.Snapshot()
	} else {
		s = a.group.Snapshot(sceneNames[k])
	}
	s.Name, s.Generation, s.State = "", 0, 0
	return s
}

func (d *double) state(k int) any {
	if d.plot.perKey(d.other) && d.key(k).Shadow {
		return nil
	}
	return d.key(k).State()
}

func (d *double) snapshot(k int) any {
	s := d.key(k).Snapshot()
	s.State = 0
	return s
}

// quiet returns what is wrong in the end.
func (a *actor) quiet() string {
	if a.group != nil {
		if err := a.group.CheckQuiet(sceneNames[:]...); err != nil {
			return err.Error()
		}
	}
	return ""
}

func (d *double) quiet() string { return "" }

func (a *actor) look() (s sight) {
	if a.group == nil {
		s.keys[0] = seen{a.breaker.Snapshot(), a.breaker.State(), a.breaker.IsOpen()}
		s.stats = a.breaker.Stats()
		if g := uint64(s.keys[0].Generation); a.plot.has("OnStateChange", "listener resets") && g != a.last[0].Generation {
			a.complain("the breaker has generation %d, and the last event had %d", g, a.last[0].Generation)
		}
	} else {
		stored := [sceneKeys]bool{}
		n := 0
		for k, shot := range a.group.All() {
			i := slices.Index(sceneNames[:], k)
			stored[i] = true
			n++
			if again := a.group.Snapshot(k); again != shot {
				a.complain("All yields\n\t%+v, and Snapshot returns\n\t%+v", shot, again)
			}
		}
		if n != a.group.Len() {
			a.complain("All yields %d keys, and Len is %d", n, a.group.Len())
		}
		for i, k := range sceneNames {
			s.keys[i] = seen{a.group.Snapshot(k), a.group.State(k), a.group.IsOpen(k)}
			if s.absent[i] = !stored[i]; s.absent[i] {
				a.absent(&s.keys[i])
			}
		}
		s.stats = a.group.Stats()
	}
	for i := range s.keys {
		if name := s.keys[i].Name; name != "" && name != a.plot.name() {
			a.complain("the snapshot of %q", name)
		}
		s.keys[i].Name, s.keys[i].Generation = "", 0
	}
	s.notified, a.notified = a.notified, [sceneKeys][]ab.Event{}
	s.wrong = a.wrong
	return s
}

// absent corrects what is seen of an absent key, whose settings nobody knows if PerKey has them.
func (a *actor) absent(s *seen) {
	if s.Would != ab.Closed || s.isOpen {
		a.complain("an absent key is %v", s.Would)
	}
	if a.plot.perKey(a.other) && a.plot.settings(a.other).Shadow {
		if s.State != ab.Closed || s.state != ab.Closed {
			a.complain("an absent key of PerKey is %v", s.State)
		}
		s.State, s.state = ab.Shadow, ab.Shadow
	}
}

// double is the model of an actor.
type double struct {
	plot      *plot
	other     bool
	keys      [sceneKeys]*model.Breaker
	places    model.Places
	reclaimAt time.Duration
	held      [sceneSlots]struct {
		key    int // -1: none
		permit model.Permit
	}
	heard    [sceneKeys]int        // events
	notified [sceneKeys][]ab.Event // since the last look
	count    [sceneKeys]int        // events that the listener got
}

// listens brings events to the listener, which may act. It reports whether that has panicked.
func (d *double) listens() (panics bool) {
	for k, b := range d.keys {
		for d.heard[k] < len(b.Events) {
			e := b.Events[d.heard[k]]
			if d.heard[k]++; !d.plot.listens(d.other) {
				continue
			}
			d.notified[k] = append(d.notified[k], e)
			if d.count[k]++; !d.plot.acts(d.count[k]) {
				continue
			}
			if d.plot.has("listener panics") {
				panics = true
			} else {
				b.Reset()
			}
		}
	}
	return panics
}

// unless returns a result, unless the listener panics.
func (d *double) unless(got any) any {
	if d.listens() {
		return "panics"
	}
	return got
}

func newDouble(p *plot) *double {
	d := &double{plot: p}
	d.places.Most = p.maxOpen(false)
	for i := range d.keys {
		d.keys[i] = &model.Breaker{Settings: p.settings(false), Keyed: p.keyed(), Forget: max(0, p.forgetAfter(false)), Places: &d.places}
	}
	for i := range d.held {
		d.held[i].key = -1
	}
	d.pass(p.begins())
	return d
}

// key returns the model of a key.
func (d *double) key(k int) *model.Breaker {
	if !d.plot.keyed() {
		k = 0
	}
	return d.keys[k]
}

// reclaims does what follows a failure that MaxOpen has held back.
func (d *double) reclaims(withheld bool) {
	forget, now := d.keys[0].Forget, d.keys[0].Now
	if !withheld || forget == 0 {
		return
	}
	next := now + forget/64
	if now < d.reclaimAt && d.reclaimAt <= next {
		return
	}
	d.reclaimAt = next
	for _, b := range d.keys {
		b.Sweep()
	}
}

// tries is any operation on a key.
func (d *double) tries(k int, f func(*model.Breaker) any) any {
	b := d.key(k)
	before := b.Stats.Withheld
	got := f(b)
	d.reclaims(b.Stats.Withheld > before)
	return d.unless(got)
}

func (d *double) admits(b *model.Breaker) (model.Permit, any) {
	would := b.Would()
	p, err := b.Allow()
	if d.listens() {
		b.Done(p, ab.Ignored) // nobody gets it
		return p, "panics"
	}
	if err == nil {
		return p, "admitted"
	}
	r := refusal{open: err == ab.ErrOpen, probes: err == ab.ErrTooManyProbes}
	if d.plot.has("DetailedErrors") {
		r.detailed, r.name, r.state, r.after = true, d.plot.name(), would, b.RetryAfter()
	}
	return p, r
}

func (d *double) allow(k, slot int) any {
	d.held[slot].key = -1
	p, got := d.admits(d.key(k))
	if got == "admitted" {
		d.held[slot].key, d.held[slot].permit = k, p
	}
	return got
}

func (d *double) report(slot int, e ending) any {
	k, p, outcome := d.held[slot].key, d.held[slot].permit, e.outcome
	if d.held[slot].key = -1; k < 0 {
		return "no permit"
	}
	if e.err != nil {
		outcome = e.err.means(d.plot.has("Classify"), false, false)
	}
	return d.tries(k, func(b *model.Breaker) any {
		if e.trip {
			return b.DoneTrip(p, e.open)
		}
		return b.Done(p, outcome)
	})
}

func (d *double) call(k int, c calling) any {
	known := c.by != "Execute" || d.plot.keyed()
	if known && c.ctx == "done" {
		return "not called"
	}
	p, got := d.admits(d.key(k))
	if got != "admitted" {
		return got
	}
	d.pass(c.takes)
	outcome := c.err.means(d.plot.has("Classify") && (c.by != "ExecuteResult" || d.plot.keyed()), known, c.ctx == "ends")
	if c.panics || c.exits {
		outcome = ab.Failure
	}
	if got := d.tries(k, func(b *model.Breaker) any { return b.Done(p, outcome) }); got == "panics" && !c.panics && !c.exits {
		return got
	}
	return "called"
}

func (d *double) record(k int, o ab.Outcome) any {
	return d.tries(k, func(b *model.Breaker) any {
		if o == ab.Success {
			return b.RecordSuccess()
		}
		return b.RecordFailure()
	})
}

func (d *double) command(k int, c commanding) any {
	switch b := d.key(k); c.name {
	case "Reset":
		b.Reset()
	case "Trip":
		b.Trip(c.open)
	case "HalfOpen":
		b.HalfOpen()
	case "ForceOpen":
		b.ForceOpen()
	default:
		b.Disable()
	}
	return d.unless(nil)
}

func (d *double) update(to updating) any {
	if to == updateWrong {
		return false
	}
	var got any = true
	if d.plot.keyed() {
		if p := d.sweep(); p != nil {
			got = p
		}
	}
	d.other = d.other != (to == updateOther)
	d.places.Most = d.plot.maxOpen(d.other)
	for _, b := range d.keys {
		b.Update(d.plot.settings(d.other))
		b.Forget = max(0, d.plot.forgetAfter(d.other))
	}
	return got
}

func (d *double) resetAll() any {
	if !d.plot.keyed() {
		return d.command(0, commanding{name: "Reset"})
	}
	for _, b := range d.keys {
		b.ResetAll()
	}
	return d.unless(nil)
}

func (d *double) sweep() any {
	if d.plot.keyed() {
		for _, b := range d.keys {
			b.Sweep()
		}
	}
	return d.unless(nil)
}

func (d *double) pass(ticks int) {
	for _, b := range d.keys {
		b.Now += time.Duration(ticks) * tick
	}
}

func (d *double) look() (s sight) {
	s.stats.Recorded = d.plot.has("RecordTotals")
	for i, b := range d.keys {
		if i > 0 && !d.plot.keyed() {
			break
		}
		state := b.State()
		s.keys[i] = seen{b.Snapshot(), state, state == ab.Open || state == ab.ForcedOpen}
		s.pristine[i] = b.Pristine()
		model.Add(&s.stats, b.Counted())
	}
	s.notified, d.notified = d.notified, [sceneKeys][]ab.Event{}
	return s
}

func init() {
	ab.NewModel = func(c ab.Config) ab.Model {
		return &modelled{model.Breaker{Settings: modelSettings(c), Keyed: true, Forget: time.Hour}}
	}
}

// modelSettings returns those that a model has for c, as New would set them.
func modelSettings(c ab.Config) model.Settings {
	s := model.Settings{
		Probes: max(c.Probes, 1), CloseAfter: max(c.CloseAfter, 1), ProbeRate: c.ProbeFailureRate,
		OpenFor: cmp.Or(c.OpenTimeout, time.Minute), ProbeTimeout: 10 * time.Second, Constant: c.MaxOpenTimeout == 0, Shadow: c.Shadow, Totals: c.RecordTotals,
	}
	s.MaxOpen = cmp.Or(c.MaxOpenTimeout, 10*s.OpenFor)
	for _, r := range ab.ModelRules(c.Policy) {
		s.Policy = append(s.Policy, model.Rule{Why: ab.ReasonThreshold, N: r.K, Last: r.N})
	}
	return s
}

// modelled is a model as a Model.
type modelled struct{ model.Breaker }

func (m *modelled) Allow() (any, error) {
	p, err := m.Breaker.Allow()
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (m *modelled) Done(permit any, o ab.Outcome) ab.Verdict {
	if p, ok := permit.(model.Permit); ok {
		return m.Breaker.Done(p, o)
	}
	return ab.Late
}

func (m *modelled) DoneTrip(permit any, d time.Duration) ab.Verdict {
	if p, ok := permit.(model.Permit); ok {
		return m.Breaker.DoneTrip(p, d)
	}
	return ab.Late
}

func (m *modelled) Snapshot() ab.Snapshot {
	s := m.Breaker.Snapshot()
	s.Generation = m.Stays()
	return s
}

func (m *modelled) Notified() []ab.Event { return m.Events }

func (m *modelled) Set(c ab.Config) { m.Update(modelSettings(c)) }

func (m *modelled) Pass(d time.Duration) { m.Now += d }

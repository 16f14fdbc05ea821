//go:build modelcheck

package scenes

import (
	"fmt"
	"hash/fnv"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// A Step is an operation on a key.
type Step struct {
	Operation string
	Key       int
}

// A Scene is a value with some settings, what it holds before, and what threads do.
type Scene struct {
	cast    *Cast
	Levels  []string // of the settings
	First   string   // what there is before
	Draw    int      // from which values are drawn; 0 is not in the name
	Threads [][]Step
}

// A Cast says what the scenes of a test consist of.
type Cast struct {
	Test, Package string
	Settings      [][]string // the levels of each; the first is none, and those before one are tried in its place when it fails
	Firsts        []string   // what there may be before, the least first
	Operations    []string
	Simpler       map[string]string    // which operation to try in the place of one that has led to a failure
	Last          func(op string) bool // reports whether no other follows in the thread

	// PairsOnly leaves out the choices in which at most one setting has another level than none.
	PairsOnly bool

	// Compose draws what the three operations of a scene do not say; nil: as Cast does.
	Compose func(s *Scene, three [3]string, d *Dice)

	// InOrder says that one thread does all, so that each order of three operations is a scene;
	// otherwise each of three operations has a thread.
	InOrder bool

	// Played and Short are how many scenes are played, also in a short run, and Runs how many
	// executions of each.
	Played, Short, Runs int

	// Explore plays some executions of a scene.
	Explore func(s *Scene, cfg mc.Config) mc.Result
}

// Has reports whether a setting has one of these levels.
func (s *Scene) Has(levels ...string) bool {
	return slices.ContainsFunc(levels, func(l string) bool { return slices.Contains(s.Levels, l) })
}

// Drawn returns dice for a value of a scene, by its name. Parts of the scene have the same.
func (s *Scene) Drawn(name string) Dice {
	h := fnv.New64a()
	fmt.Fprint(h, s.Draw, name)
	return Dice{h.Sum64()}
}

// String returns a name, from which Named makes the scene again.
func (s *Scene) String() string {
	var b strings.Builder
	for _, l := range s.Levels {
		if l != "" {
			fmt.Fprintf(&b, "%s; ", l)
		}
	}
	b.WriteString(s.First)
	if s.Draw > 0 {
		fmt.Fprintf(&b, "; draw %d", s.Draw)
	}
	b.WriteString(": ")
	b.WriteString(mc.Listed(s.Threads, func(o Step) string { return fmt.Sprint(o.Operation, " ", o.Key) }))
	return b.String()
}

// Named returns the scene that has a name.
func (c *Cast) Named(name string) (s *Scene, err error) {
	s = &Scene{cast: c}
	head, tail, _ := strings.Cut(name, ": ")
	words := strings.Split(head, "; ")
	for _, levels := range c.Settings {
		level := levels[0]
		for _, w := range words {
			if w != "" && slices.Contains(levels, w) {
				level = w
			}
		}
		s.Levels = append(s.Levels, level)
	}
	for _, w := range words {
		if slices.Contains(c.Firsts, w) {
			s.First = w
		}
	}
	fmt.Sscanf(words[len(words)-1], "draw %d", &s.Draw)
	for _, thread := range strings.Split(tail, " ∥ ") {
		var steps []Step
		for _, o := range regexp.MustCompile(`(.+?) ([12])(?:, |$)`).FindAllStringSubmatch(thread, -1) {
			steps = append(steps, Step{o[1], int(o[2][0] - '0')})
		}
		s.Threads = append(s.Threads, steps)
	}
	if got := s.String(); got != name {
		err = fmt.Errorf("no scene has the name %q: it is read as %q", name, got)
	}
	return s, err
}

// programme numbers all scenes.
type programme struct {
	cast    *Cast
	rows    [][]int
	triples [][3]int
	without []string // levels in whose place the first is taken
}

func (c *Cast) programme() *programme {
	var levels []int
	for _, of := range c.Settings {
		levels = append(levels, len(of))
	}
	p := &programme{cast: c, rows: Pairwise(levels), without: strings.Split(os.Getenv("SCENES_WITHOUT"), ",")}
	if !c.PairsOnly { // each level alone as well: what has few settings takes fast paths
		p.rows = append(p.rows, Alone(levels)...)
	}
	n := len(c.Operations)
	for i := range n {
		for j := range n {
			for k := range n {
				if c.InOrder || i <= j && j <= k {
					p.triples = append(p.triples, [3]int{i, j, k})
				}
			}
		}
	}
	return p
}

func (p *programme) len() int { return len(p.rows) * len(p.triples) }

// scene returns scene i of the programme. What the triple does not say is drawn from its number
// and the seed: which thread does a second operation, on which keys, and what there is before.
func (p *programme) scene(i int, seed uint64) *Scene {
	c, d := p.cast, Throw(i, seed)
	row, triple := p.rows[i/len(p.triples)], p.triples[i%len(p.triples)]
	s := &Scene{cast: c}
	for t, level := range row {
		if slices.Contains(p.without, c.Settings[t][level]) {
			level = 0
		}
		s.Levels = append(s.Levels, c.Settings[t][level])
	}
	compose := c.Compose
	if compose == nil {
		compose = c.compose
	}
	compose(s, [3]string{c.Operations[triple[0]], c.Operations[triple[1]], c.Operations[triple[2]]}, &d)
	return s
}

func (c *Cast) compose(s *Scene, three [3]string, d *Dice) {
	s.First, s.Draw = c.Firsts[d.Below(len(c.Firsts))], d.Below(1000)
	for t, o := range three {
		k := 1
		if d.Below(3) == 0 {
			k = 2
		}
		steps := []Step{{o, k}}
		if !c.InOrder && d.Below(4) == 0 && !c.Last(o) {
			steps = append(steps, Step{c.Operations[d.Below(len(c.Operations))], 1 + d.Below(2)})
		}
		if c.InOrder && t > 0 {
			s.Threads[0] = append(s.Threads[0], steps...)
		} else {
			s.Threads = append(s.Threads, steps)
		}
	}
}

// explore plays so many executions of the scene, in which few preemptions come at random.
func (s *Scene) explore(runs int, seed uint64, replay string) (r mc.Result) {
	defer func() {
		if p := recover(); p != nil { // on the checker's own goroutine
			r.Failure = fmt.Sprint("the exploration panics: ", p)
		}
	}()
	h := fnv.New64a()
	fmt.Fprint(h, s)
	return s.cast.Explore(s, mc.Config{Mode: mc.PCT, Runs: runs, Depth: 6, Seed: h.Sum64() ^ seed, Timed: true, Replay: replay})
}

// smaller returns scenes that have a part of s each.
func (s *Scene) smaller() (all []*Scene) {
	with := func(change func(*Scene)) {
		c := *s
		c.Levels, c.Threads = slices.Clone(s.Levels), nil
		for _, steps := range s.Threads {
			c.Threads = append(c.Threads, slices.Clone(steps))
		}
		change(&c)
		all = append(all, &c)
	}
	for t, steps := range s.Threads {
		if len(s.Threads) > 1 {
			with(func(c *Scene) { c.Threads = slices.Delete(c.Threads, t, t+1) })
		}
		for i := range steps {
			if len(steps) > 1 {
				with(func(c *Scene) { c.Threads[t] = slices.Delete(c.Threads[t], i, i+1) })
			}
		}
	}
	for _, first := range s.cast.Firsts {
		if first == s.First {
			break
		}
		with(func(c *Scene) { c.First = first })
	}
	for t, level := range s.Levels {
		for _, simpler := range s.cast.Settings[t] {
			if simpler == level {
				break
			}
			with(func(c *Scene) { c.Levels[t] = simpler })
		}
	}
	for t, steps := range s.Threads {
		for i, o := range steps {
			if o.Key != 1 {
				with(func(c *Scene) { c.Threads[t][i].Key = 1 })
			}
			if name := s.cast.Simpler[o.Operation]; name != "" {
				with(func(c *Scene) { c.Threads[t][i].Operation = name })
			}
		}
	}
	return all
}

// includes reports whether s has all that small has, or what is less simple.
func (s *Scene) includes(small *Scene) bool {
	for t, level := range small.Levels {
		levels := s.cast.Settings[t]
		if slices.Index(levels, level) > slices.Index(levels, s.Levels[t]) {
			return false
		}
	}
	left := map[string]int{}
	for _, steps := range s.Threads {
		for _, o := range steps {
			for name := o.Operation; name != ""; name = s.cast.Simpler[name] {
				left[name]++
			}
		}
	}
	for _, steps := range small.Threads {
		for _, o := range steps {
			if left[o.Operation]--; left[o.Operation] < 0 {
				return false
			}
		}
	}
	return true
}

// size is how much there is in a scene.
func (s *Scene) size() (n int) {
	for t, level := range s.Levels {
		if level != s.cast.Settings[t][0] {
			n++
		}
	}
	for _, steps := range s.Threads {
		n += 2 * len(steps)
	}
	return n
}

// finding is a way in which scenes fail, and the smallest that was found.
type finding struct {
	text  string
	scene *Scene
	mc.Result
	first  int      // how many were played until it was found
	scenes []string // that fail so
}

// sortOf returns what tells failures apart: not the numbers.
func sortOf(failure string) string {
	line, _, _ := strings.Cut(failure, "\n")
	return regexp.MustCompile(`[0-9]+|0x[0-9a-f]+`).ReplaceAllString(line, "#")
}

// shrinkRuns is how many executions decide that a smaller scene does not fail.
const shrinkRuns = 300

// shrink looks for a smaller scene that fails as s does.
func (s *Scene) shrink(r mc.Result, seed uint64) (*Scene, mc.Result) {
	runs := shrinkRuns
	if s.cast.InOrder {
		runs = 1
	}
again:
	for _, c := range s.smaller() {
		if got := c.explore(runs, seed, ""); got.Failure != "" && sortOf(got.Failure) == sortOf(r.Failure) {
			s, r = c, got
			goto again
		}
	}
	return s, r
}

// Play plays a part of the scenes, spread over all of them, and always the same.
//
// The environment says what is played: SCENES=all all scenes; SCENES_SEED others, and other
// executions of these; SCENES_RUNS how many of each; SCENES_FINDINGS to stop when scenes fail in so
// many ways; SCENES_WITHOUT, which is a list of levels with commas, none of these, so that one that
// always fails hides nothing; and SCENE only the one that has this name.
func (c *Cast) Play(t testing.TB) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // as explorations want it
	if name := os.Getenv("SCENE"); name != "" {
		c.playNamed(t, name)
		return
	}
	p := c.programme()
	all, runs, seed := os.Getenv("SCENES") == "all", Number("SCENES_RUNS", c.Runs), uint64(Number("SCENES_SEED", 0))
	n := p.len()
	switch {
	case testing.Short():
		n = c.Short
	case !all:
		n = c.Played
	}
	stride := Stride(p.len())
	t.Logf("%d operations, %d triples, %d choices of settings: %d scenes, of which %d are played, with %d executions each",
		len(c.Operations), len(p.triples), len(p.rows), p.len(), n, runs)
	var findings []*finding
	schedules, failed, began, said := 0, 0, time.Now(), time.Now()
	var playing *Scene
	watch := time.AfterFunc(time.Hour, func() { panic(fmt.Sprint("hangs without a step: ", playing)) })
	defer watch.Stop()
	for done := range n {
		s := p.scene((done+int(seed)*n)%p.len()*stride%p.len(), seed)
		playing = s
		watch.Reset(2 * time.Minute)
		r := s.explore(runs, seed, "")
		schedules += r.Schedules
		if r.Failure != "" {
			failed++
			if findings = c.filed(findings, s, r, done+1, seed, all); len(findings) == Number("SCENES_FINDINGS", n) {
				n = done + 1
				break
			}
		}
		if all && time.Since(said) > 5*time.Second {
			said = time.Now()
			fmt.Printf("scenes: %d done, %d left; %d schedules, %.0f a second; %d scenes fail, in %d ways\n",
				done+1, n-done-1, schedules, float64(schedules)/time.Since(began).Seconds(), failed, len(findings))
		}
	}
	t.Logf("%d scenes, %d schedules in %v, %d scenes fail, in %d ways", n, schedules, time.Since(began).Round(time.Millisecond), failed, len(findings))
	c.report(t, findings)
}

// playNamed plays one scene.
func (c *Cast) playNamed(t testing.TB, name string) {
	s, err := c.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	r := s.explore(Number("SCENES_RUNS", 1000), uint64(Number("SCENES_SEED", 0)), os.Getenv("SCENE_REPLAY"))
	t.Log(r)
	if r.Failure != "" {
		t.Errorf("%s\n%s\nreplay %s\n\n%s", s, r.Failure, r.Replay, r.Trace)
	}
}

// filed files a failure: with one that it includes, or as a new one.
func (c *Cast) filed(findings []*finding, s *Scene, r mc.Result, played int, seed uint64, all bool) []*finding {
	for _, f := range findings {
		if f.text == sortOf(r.Failure) && s.includes(f.scene) {
			f.scenes = append(f.scenes, s.String())
			return findings
		}
	}
	small, r := s.shrink(r, seed)
	f := &finding{sortOf(r.Failure), small, r, played, []string{s.String()}}
	if all {
		fmt.Printf("found: %s: %s\n", small, f.text)
	}
	return append(findings, f)
}

// report prints the findings whose scenes include no other, and beneath each those whose do: which
// mostly are the same in other words.
func (c *Cast) report(t testing.TB, findings []*finding) {
	slices.SortStableFunc(findings, func(a, b *finding) int { return a.scene.size() - b.scene.size() })
	var roots []*finding
	beneath := map[*finding]string{}
next:
	for _, f := range findings {
		for _, r := range roots {
			if f.scene.includes(r.scene) {
				r.scenes = append(r.scenes, f.scenes...)
				beneath[r] += fmt.Sprintf("\talso: %s: SCENE='%s'\n", f.text, f.scene)
				continue next
			}
		}
		roots = append(roots, f)
	}
	for _, f := range roots {
		t.Errorf("%s\n%s\n%d scenes fail so, or include that, the first of them scene %d; rerun with SCENE='%s' SCENE_REPLAY=%s go test -tags modelcheck -run '^%s$' %s\n%s\n%s",
			f.scene, f.Failure, len(f.scenes), f.first, f.scene, f.Replay, c.Test, c.Package, beneath[f], f.shown())
	}
}

// shown is the trace, unless it is long.
func (f *finding) shown() string {
	const most = 60
	lines := strings.SplitAfter(f.Trace, "\n")
	if len(lines) > most {
		lines = append(slices.Clone(lines[:1]), lines[len(lines)-most:]...)
	}
	return strings.Join(lines, "")
}

// Survives is deferred in each thread of a scene. It reports a panic that no operation has led to,
// and where it came from.
func Survives(failf func(format string, args ...any)) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && err.Error() == "mc: waits for ever" {
		panic(p) // by which the checker ends the body
	}
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); !strings.HasPrefix(f.Function, "runtime.") && !strings.HasSuffix(f.File, "_test.go") {
			failf("panic in %s: %v", path.Base(f.Function), p)
		}
	}
	failf("panic: %v", p)
}

// Cover fails the test unless the settings of scenes cover all pairs, and a scene can be made again
// from its name. It calls f for some scenes.
func (c *Cast) Cover(t *testing.T, f func(*Scene)) {
	p := c.programme()
	type pair struct{ s, level, t, other int }
	covered := map[pair]bool{}
	for _, row := range p.rows {
		for t := range row {
			for s := range t {
				covered[pair{s, row[s], t, row[t]}] = true
			}
		}
	}
	for u := range c.Settings {
		for s := range u {
			for i, a := range c.Settings[s] {
				for j, b := range c.Settings[u] {
					if !covered[pair{s, i, u, j}] {
						t.Errorf("no scene has %q and %q", a, b)
					}
				}
			}
		}
	}
	for i := range 1000 {
		s := p.scene(i*7919%p.len(), 0)
		if _, err := c.Named(s.String()); err != nil {
			t.Error(err)
		}
		f(s)
	}
}

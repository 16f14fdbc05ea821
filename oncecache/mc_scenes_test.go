//go:build modelcheck

package oncecache_test

import (
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/internal/scenes"
	"github.com/latchfree/latchfree/oncecache"
)

// Protocols are written by hand, and find what their author thinks of. Scenes are generated: three
// operations of the table, at once, in each of a few caches whose settings cover all pairs. So they
// find what comes of combinations.

// A step is an operation on a key.
type step struct {
	operation string
	key       int
}

// A scenery is a cache, the keys that have a value before, and what threads do.
type scenery struct {
	levels  []string // of the settings
	first   int      // keys that are set before: 0 to 2
	threads [][]step
}

// String returns a name, from which sceneNamed makes the scene again.
func (s *scenery) String() string {
	var b strings.Builder
	for _, l := range s.levels {
		if l != "" {
			fmt.Fprintf(&b, "%s; ", l)
		}
	}
	fmt.Fprintf(&b, "%d set: ", s.first)
	b.WriteString(mc.Listed(s.threads, func(o step) string { return fmt.Sprint(o.operation, " ", o.key) }))
	return b.String()
}

func sceneNamed(name string) (s *scenery, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("no scene has the name %q", name)
		}
	}()
	head, tail, _ := strings.Cut(name, " set: ")
	words := strings.Split(head, "; ")
	s = &scenery{first: int(words[len(words)-1][0] - '0')}
	for _, of := range settings {
		level := of.levels[0]
		for _, w := range words {
			if slices.Contains(of.levels, w) {
				level = w
			}
		}
		s.levels = append(s.levels, level)
	}
	for _, thread := range strings.Split(tail, " ∥ ") {
		var steps []step
		for _, o := range regexp.MustCompile(`(.+?) ([12])(?:, |$)`).FindAllStringSubmatch(thread, -1) {
			steps = append(steps, step{o[1], int(o[2][0] - '0')})
		}
		s.threads = append(s.threads, steps)
	}
	if got := s.String(); got != name {
		err = fmt.Errorf("%q is read as %q", name, got)
	}
	return s, err
}

// pairwise returns the caches, as one level of each setting.
func pairwise() [][]int {
	var levels []int
	for _, of := range settings {
		levels = append(levels, len(of.levels))
	}
	return scenes.Pairwise(levels)
}

// programme numbers all scenes.
type programme struct {
	rows       [][]int
	operations []string
	triples    [][3]int
	without    []string // levels in whose place the first is taken
}

func newProgramme() *programme {
	p := &programme{rows: pairwise(), without: strings.Split(os.Getenv("SCENES_WITHOUT"), ",")}
	for _, o := range operations[int]() {
		p.operations = append(p.operations, o.name)
	}
	n := len(p.operations)
	for i := range n {
		for j := i; j < n; j++ {
			for k := j; k < n; k++ {
				p.triples = append(p.triples, [3]int{i, j, k})
			}
		}
	}
	return p
}

func (p *programme) len() int { return len(p.rows) * len(p.triples) }

// scene returns scene i of the programme. What the triple does not say is drawn from its number
// and the seed: which thread does a second operation, on which keys, and what there is before.
func (p *programme) scene(i int, seed uint64) *scenery {
	d := scenes.Throw(i, seed)
	row, triple := p.rows[i/len(p.triples)], p.triples[i%len(p.triples)]
	s := &scenery{first: d.Below(3)}
	for t, level := range row {
		if slices.Contains(p.without, settings[t].levels[level]) {
			level = 0
		}
		s.levels = append(s.levels, settings[t].levels[level])
	}
	for t, o := range triple {
		k := 1
		if t > 0 && d.Below(4) == 0 {
			k = 2
		}
		steps := []step{{p.operations[o], k}}
		if d.Below(4) == 0 {
			second := step{p.operations[d.Below(len(p.operations))], 1 + d.Below(4)/3}
			steps = append(steps, second)
		}
		s.threads = append(s.threads, steps)
	}
	return s
}

// explore plays so many executions of the scene, in which few preemptions come at random.
func (s *scenery) explore(runs int, seed uint64, replay string) mc.Result {
	h := fnv.New64a()
	fmt.Fprint(h, s)
	cfg := mc.Config{Mode: mc.PCT, Runs: runs, Depth: 6, Seed: h.Sum64() ^ seed, Timed: true, Replay: replay}
	switch s.levels[0] {
	case "pointers":
		return play(cfg, s, pointerKind)
	case "structs":
		return play(cfg, s, structKind)
	}
	return play(cfg, s, intKind)
}

func play[V any](cfg mc.Config, s *scenery, k kind[V]) (r mc.Result) {
	defer func() {
		if p := recover(); p != nil { // on the checker's own goroutine
			r.Failure = fmt.Sprint("the exploration panics: ", p)
		}
	}()
	table, traits := map[string]operation[V]{}, 0
	for _, o := range operations[V]() {
		table[o.name] = o
	}
	for _, steps := range s.threads {
		for _, o := range steps {
			traits |= table[o.operation].traits
		}
	}
	return mc.Sample(cfg, func(m *mc.M) {
		w := &stage[V]{m: m, kind: k, levels: s.levels, traits: traits}
		w.open()
		func() {
			defer w.survives()
			for k := range s.first {
				table["Set"].do(w, k+1)
			}
		}()
		for _, steps := range s.threads {
			m.Go(func() {
				defer w.survives()
				for _, o := range steps {
					table[o.operation].do(w, o.key)
				}
			})
		}
		m.Final(w.over)
	})
}

// smaller returns scenes that have a part of s each.
func (s *scenery) smaller() (all []*scenery) {
	with := func(change func(*scenery)) {
		c := &scenery{levels: slices.Clone(s.levels), first: s.first}
		for _, steps := range s.threads {
			c.threads = append(c.threads, slices.Clone(steps))
		}
		change(c)
		all = append(all, c)
	}
	for t, steps := range s.threads {
		if len(s.threads) > 1 {
			with(func(c *scenery) { c.threads = slices.Delete(c.threads, t, t+1) })
		}
		for i := range steps {
			if len(steps) > 1 {
				with(func(c *scenery) { c.threads[t] = slices.Delete(c.threads[t], i, i+1) })
			}
		}
	}
	for n := range s.first {
		with(func(c *scenery) { c.first = n })
	}
	for t, level := range s.levels {
		if none := settings[t].levels[0]; level != none {
			with(func(c *scenery) { c.levels[t] = none })
		}
		if small := simplerLevel[level]; small != "" {
			with(func(c *scenery) { c.levels[t] = small })
		}
	}
	for t, steps := range s.threads {
		for i, o := range steps {
			if o.key != 1 {
				with(func(c *scenery) { c.threads[t][i].key = 1 })
			}
			if name := simpler[o.operation]; name != "" {
				with(func(c *scenery) { c.threads[t][i].operation = name })
			}
		}
	}
	return all
}

// includes reports whether s has all that small has, or what simpler replaces by that.
func (s *scenery) includes(small *scenery) bool {
	for t, level := range small.levels {
		if level != settings[t].levels[0] && level != s.levels[t] && level != simplerLevel[s.levels[t]] {
			return false
		}
	}
	left := map[string]int{}
	for _, steps := range s.threads {
		for _, o := range steps {
			for name := o.operation; name != ""; name = simpler[name] {
				left[name]++
			}
		}
	}
	for _, steps := range small.threads {
		for _, o := range steps {
			if left[o.operation]--; left[o.operation] < 0 {
				return false
			}
		}
	}
	return true
}

// finding is a way in which scenes fail, and the smallest that was found.
type finding struct {
	text  string
	scene *scenery
	mc.Result
	first  int      // how many were played until it was found
	scenes []string // that fail so
}

// sortOf returns what tells failures apart: not the numbers.
func sortOf(failure string) string {
	line, _, _ := strings.Cut(failure, "\n")
	return regexp.MustCompile(`[0-9]+|0x[0-9a-f]+`).ReplaceAllString(line, "#")
}

// shrink looks for a smaller scene that fails as s does.
func (s *scenery) shrink(r mc.Result, runs int, seed uint64) (*scenery, mc.Result) {
again:
	for _, c := range s.smaller() {
		if got := c.explore(runs, seed, ""); got.Failure != "" && sortOf(got.Failure) == sortOf(r.Failure) {
			s, r = c, got
			goto again
		}
	}
	return s, r
}

// The environment says what is played: SCENES=all all scenes; SCENES_SEED others, and other
// executions of these; SCENES_RUNS how many of each; SCENES_FINDINGS to stop when scenes fail in so
// many ways; SCENES_WITHOUT, which is a list of levels with commas, none of these, so that one that
// always fails hides nothing; and SCENE only the one that has this name.

// TestScenes plays a part of the scenes, spread over all of them, and always the same.
func TestScenes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // as explorations want it
	if name := os.Getenv("SCENE"); name != "" {
		s, err := sceneNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		r := s.explore(scenes.Number("SCENES_RUNS", 1000), uint64(scenes.Number("SCENES_SEED", 0)), os.Getenv("SCENE_REPLAY"))
		t.Log(r)
		if r.Failure != "" {
			t.Errorf("%s\n%s\nreplay %s\n\n%s", s, r.Failure, r.Replay, r.Trace)
		}
		return
	}
	p := newProgramme()
	all, runs, seed := os.Getenv("SCENES") == "all", scenes.Number("SCENES_RUNS", 4), uint64(scenes.Number("SCENES_SEED", 0))
	n := p.len()
	switch {
	case testing.Short():
		n = 500
	case !all:
		n = 20_000
	}
	stride := scenes.Stride(p.len())
	t.Logf("%d operations, %d triples, %d caches: %d scenes, of which %d are played, with %d executions each",
		len(p.operations), len(p.triples), len(p.rows), p.len(), n, runs)
	var findings []*finding
	schedules, failed, began, said := 0, 0, time.Now(), time.Now()
	var playing *scenery
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
			if findings = filed(findings, s, r, done+1, seed, all); len(findings) == scenes.Number("SCENES_FINDINGS", n) {
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
	report(t, findings)
}

// report prints the findings whose scenes include no other, and beneath each those whose do: which
// mostly are the same in other words.
func report(t *testing.T, findings []*finding) {
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
		t.Errorf("%s\n%s\n%d scenes fail so, or include that, the first of them scene %d; rerun with SCENE='%s' SCENE_REPLAY=%s go test -tags modelcheck -run '^TestScenes$' ./oncecache\n%s\n%s",
			f.scene, f.Failure, len(f.scenes), f.first, f.scene, f.Replay, beneath[f], f.shown())
	}
}

// size is how much there is in a scene.
func (s *scenery) size() (n int) {
	for t, level := range s.levels {
		if level != settings[t].levels[0] {
			n++
		}
	}
	for _, steps := range s.threads {
		n += 2 * len(steps)
	}
	return n
}

// shrinkRuns is how many executions decide that a smaller scene does not fail.
const shrinkRuns = 300

// filed files a failure: with one that it includes, or as a new one.
func filed(findings []*finding, s *scenery, r mc.Result, played int, seed uint64, all bool) []*finding {
	for _, f := range findings {
		if f.text == sortOf(r.Failure) && s.includes(f.scene) {
			f.scenes = append(f.scenes, s.String())
			return findings
		}
	}
	small, r := s.shrink(r, shrinkRuns, seed)
	f := &finding{sortOf(r.Failure), small, r, played, []string{s.String()}}
	if all {
		fmt.Printf("found: %s: %s\n", small, f.text)
	}
	return append(findings, f)
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

// The settings of scenes are good, cover all pairs, and a scene can be made again from its name.
func TestScenesCoverPairs(t *testing.T) {
	p := newProgramme()
	type pair struct{ s, level, t, other int }
	covered := map[pair]bool{}
	for _, row := range p.rows {
		for t := range row {
			for s := range t {
				covered[pair{s, row[s], t, row[t]}] = true
			}
		}
	}
	for u := range settings {
		for s := range u {
			for i, a := range settings[s].levels {
				for j, b := range settings[u].levels {
					if !covered[pair{s, i, u, j}] {
						t.Errorf("no cache has %q and %q", a, b)
					}
				}
			}
		}
	}
	for i := range 1000 {
		s := p.scene(i*7919%p.len(), 0)
		if _, err := sceneNamed(s.String()); err != nil {
			t.Error(err)
		}
		if _, err := oncecache.New(configure(&stage[int]{levels: s.levels, kind: intKind})); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

package cowchangeset_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/tools/scenes"
)

// Protocols are written by hand, and find what their author thinks of. Scenes are generated: three
// operations of the table on a tracker, after one of several starts, with stores and settings of
// which each two levels meet. In order, each result and all that readers and the store see must be
// what a model says (scenes_in_order_test.go). At once, the promises of the documentation must hold
// in whatever interleaving (mc_scenes_test.go).

// sceneSettings have levels, of which the first is the plainest.
var sceneSettings = [][]string{
	{"no store", "instant", "slow", "fails", "fails late", "hangs", "panics", "exits"},
	{"", "in Start", "in Append", "in Seal", "in Applied and Abort", "in Prune"}, // what fails; all
	{"", "once", "twice"}, // how often; always
	{"", "Async", "Async to a bound", "Async to a bound or not at all"},
	{"", "plain"}, // a store that is neither Applier nor Pruner
	{"", "PruneUnapplied"},
}

const (
	inMethods = 1 + iota // settings by number
	howOften
	asynchrony
)

// sceneOperations are what a scene does three of. A slot says to which changeset: 0 is the latest, 1
// the one before it.
var sceneOperations = []string{
	"Start", "StartAfter", "Record", "RecordContext", "Record ended", "RecordBatch", "RecordBatchContext", "Record there", "Seal",
	"Apply", "Apply fails", "Apply panics", "ApplyEach", "ApplyEach fails", "Abort",
	"Prune 1", "Prune 2", "Follow", "Follow there", "Flush", "Resume",
}

// sceneStarts are what comes before, while the store works.
var sceneStarts = []struct {
	name  string
	steps []sceneStep
}{
	{"new", nil},
	{"started", sceneSteps("Start")},
	{"recorded", sceneSteps("Start", "Record", "RecordBatch")},
	{"sealed", sceneSteps("Start", "Record", "Seal")},
	{"two", sceneSteps("Start", "Record", "Start", "Record")},
	{"applied", sceneSteps("Start", "Record", "Apply", "Start", "Record")},
	{"aborted", sceneSteps("Start", "Record", "Abort", "Start")},
	{"half applied", sceneSteps("Start", "RecordBatch", "ApplyEach fails")},
	{"three", sceneSteps("Start", "Record", "Start", "Record", "Start")},
}

// sceneStep is an operation on the changeset of a slot.
type sceneStep struct {
	operation string
	slot      int
}

func sceneSteps(operations ...string) (all []sceneStep) {
	for _, o := range operations {
		all = append(all, sceneStep{operation: o})
	}
	return all
}

func (s sceneStep) String() string { return fmt.Sprintf("%s %d", s.operation, s.slot) }

// scene is a tracker with its store, what comes before, and three steps, in order or at once.
type scene struct {
	levels []string
	start  int
	steps  []sceneStep
	atOnce bool
}

func (s *scene) has(level string) bool { return slices.Contains(s.levels, level) }

// store reports whether there is one.
func (s *scene) store() bool { return !s.has("no store") }

// async reports whether Record does not wait for the store, unless that is behind.
func (s *scene) async() bool { return s.store() && s.levels[asynchrony] != "" }

// bounded sets what the scene says of Async.
func (s *scene) bounded(config *cowchangeset.Config[int]) {
	if config.Async = s.async(); config.Async && !s.has("Async") {
		config.MaxBacklog, config.RejectWhenFull = 1, s.has("Async to a bound or not at all")
	}
}

// faulty reports whether calls of a method go wrong, or take time.
func (s *scene) faulty(method string) bool {
	switch s.levels[inMethods] {
	case "in Start", "in Append", "in Seal", "in Prune":
		return s.levels[inMethods] == "in "+method
	case "in Applied and Abort":
		return method == "Applied" || method == "Abort"
	}
	return true
}

// times returns how many calls of a method go wrong for one changeset.
func (s *scene) times() int {
	switch s.levels[howOften] {
	case "once":
		return 1
	case "twice":
		return 2
	}
	return 1 << 30
}

var together3 = map[bool]string{false: ", ", true: " ∥ "}

// String returns a name, from which sceneNamed makes the scene again.
func (s *scene) String() string {
	var b strings.Builder
	for _, l := range s.levels {
		if l != "" {
			b.WriteString(l + "; ")
		}
	}
	b.WriteString(sceneStarts[s.start].name + ": ")
	for i, o := range s.steps {
		if i > 0 {
			b.WriteString(together3[s.atOnce])
		}
		b.WriteString(o.String())
	}
	return b.String()
}

func sceneNamed(name string) (*scene, error) {
	head, tail, _ := strings.Cut(name, ": ")
	words := strings.Split(head, "; ")
	s := &scene{atOnce: strings.Contains(tail, "∥")}
	for i := range sceneStarts {
		if sceneStarts[i].name == words[len(words)-1] {
			s.start = i
		}
	}
	for _, levels := range sceneSettings {
		level := levels[0]
		for _, w := range words[:len(words)-1] {
			if slices.Contains(levels, w) {
				level = w
			}
		}
		s.levels = append(s.levels, level)
	}
	for _, text := range strings.Split(tail, together3[s.atOnce]) {
		if n := len(text) - 2; n > 0 {
			s.steps = append(s.steps, sceneStep{text[:n], int(text[n+1] - '0')})
		}
	}
	if got := s.String(); got != name {
		return nil, fmt.Errorf("%q is read as %q", name, got)
	}
	return s, nil
}

// programme numbers the scenes: of each choice of settings all triples, and those whose order does
// not matter, at once.
type programme struct {
	rows         [][]int
	ordered, any [][3]int
}

func newProgramme() *programme {
	p := new(programme)
	var levels []int
	for _, of := range sceneSettings {
		levels = append(levels, len(of))
	}
	p.rows = scenes.Pairwise(levels)
	n := len(sceneOperations)
	for i := range n {
		for j := range n {
			for k := range n {
				p.ordered = append(p.ordered, [3]int{i, j, k})
				if i <= j && j <= k {
					p.any = append(p.any, [3]int{i, j, k})
				}
			}
		}
	}
	return p
}

func (p *programme) triples(atOnce bool) [][3]int {
	if atOnce {
		return p.any
	}
	return p.ordered
}

func (p *programme) len(atOnce bool) int { return len(p.rows) * len(p.triples(atOnce)) }

// scene returns scene i. What comes before takes turns, and slots are drawn.
func (p *programme) scene(i int, atOnce bool, seed uint64) *scene {
	d := scenes.Throw(i, seed)
	triples := p.triples(atOnce)
	row, triple := i/len(triples), i%len(triples)
	s := &scene{atOnce: atOnce, start: (row + triple + int(seed)) % len(sceneStarts)}
	for t, level := range p.rows[row] {
		s.levels = append(s.levels, sceneSettings[t][level])
	}
	for _, o := range triples[triple] {
		s.steps = append(s.steps, sceneStep{sceneOperations[o], d.Below(3) / 2})
	}
	return s
}

// smaller returns scenes that have a part of s each.
func (s *scene) smaller() (all []*scene) {
	with := func(change func(*scene)) {
		c := &scene{slices.Clone(s.levels), s.start, slices.Clone(s.steps), s.atOnce}
		change(c)
		all = append(all, c)
	}
	for i, o := range s.steps {
		if len(s.steps) > 1 && !(s.atOnce && len(s.steps) == 2) {
			with(func(c *scene) { c.steps = slices.Delete(c.steps, i, i+1) })
		}
		if o.slot > 0 {
			with(func(c *scene) { c.steps[i].slot = 0 })
		}
	}
	for earlier := range s.start {
		with(func(c *scene) { c.start = earlier })
	}
	for t, level := range s.levels {
		if plain := sceneSettings[t][0]; level != plain {
			with(func(c *scene) { c.levels[t] = plain })
		}
	}
	return all
}

// sortOf returns what tells failures apart: the first line, without numbers.
func sortOf(failure string) string {
	line, _, _ := strings.Cut(failure, "\n")
	return regexp.MustCompile(`[0-9]+`).ReplaceAllString(line, "#")
}

// shrink looks for a smaller scene that fails in the same way.
func (s *scene) shrink(failure string, play func(*scene) string) (*scene, string) {
	for tries := 0; tries < 1000; {
		found := false
		for _, c := range s.smaller() {
			tries++
			if got := play(c); got != "" && sortOf(got) == sortOf(failure) {
				s, failure, found = c, got, true
				break
			}
		}
		if !found {
			break
		}
	}
	return s, failure
}

// playScenes plays a part of the scenes, spread over all of them, and always the same. SCENES=all
// plays all, SCENES_SEED others, and SCENE the one that has this name.
func playScenes(t *testing.T, atOnce bool, short, most int, play func(*scene) string) {
	if name := os.Getenv("SCENE"); name != "" {
		if s, err := sceneNamed(name); err != nil {
			t.Error(err)
		} else if failure := play(s); s.atOnce == atOnce && failure != "" {
			t.Errorf("%s\n%s", s, failure)
		}
		return
	}
	p, seed := newProgramme(), scenes.Number("SCENES_SEED", 0)
	all := p.len(atOnce)
	n := min(most, all)
	switch {
	case os.Getenv("SCENES") != "":
		n = all
	case testing.Short():
		n = short
	}
	t.Logf("%d of %d scenes: %d choices of settings, %d operations", n, all, len(p.rows), len(sceneOperations))
	stride, failed := scenes.Stride(all), map[string]int{}
	for i := range n {
		s := p.scene((i+seed*n)%all*stride%all, atOnce, uint64(seed))
		failure := play(s)
		if failure == "" {
			continue
		}
		if failed[sortOf(failure)]++; failed[sortOf(failure)] == 1 {
			s, failure = s.shrink(failure, play)
			t.Errorf("SCENE='%s' fails, scene %d of those played:\n%s", s, i, failure)
		}
		if len(failed) == 20 {
			break
		}
	}
	for sort, n := range failed {
		t.Errorf("%d scenes fail so: %s", n, sort)
	}
}

// faultKey is what faults are counted for: Starts have an ID each.
func faultKey(method, id string) string {
	if method == "Start" {
		return method
	}
	return method + id
}

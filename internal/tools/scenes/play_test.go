//go:build modelcheck

package scenes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// failures takes note of how a test would fail.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

// A failure of any scene fails the test, which names the smallest that fails so.
func TestPlay_NamesTheSmallestThatFails(t *testing.T) {
	c := &Cast{
		Test: "TestX", Package: "./x",
		Settings:   [][]string{{"", "odd", "odder"}, {"", "rare"}},
		Firsts:     []string{"none", "some"},
		Operations: []string{"get", "put", "put twice"},
		Simpler:    map[string]string{"put twice": "put"},
		Last:       func(string) bool { return false },
		Runs:       1,
		Explore: func(s *Scene, _ mc.Config) (r mc.Result) {
			puts := 0
			for _, steps := range s.Threads {
				if slices.ContainsFunc(steps, func(o Step) bool { return strings.HasPrefix(o.Operation, "put") }) {
					puts++
				}
			}
			if puts >= 2 && s.Has("odd", "odder") {
				r.Failure = fmt.Sprintf("%d of them put", puts)
			}
			if puts == 3 && s.Has("rare") {
				panic("three")
			}
			return r
		},
	}
	c.Played = c.programme().len()
	c.Short = c.Played
	f := &failures{TB: t}
	c.Play(f)
	if len(f.texts) != 2 {
		t.Fatalf("%d findings, want two: %q", len(f.texts), f.texts)
	}
	for i, want := range []string{"put 1 ∥ put 1\n2 of them put\n", "put 1 ∥ put 1 ∥ put 1\nthe exploration panics: three\n"} {
		if !strings.Contains(f.texts[i], want) {
			t.Errorf("finding %d is %q, want %q", i, f.texts[i], want)
		}
	}
	if !strings.HasPrefix(f.texts[0], "odd; none; draw ") || !strings.HasPrefix(f.texts[1], "rare; none; draw ") {
		t.Errorf("the findings are %q", f.texts)
	}

	f.texts = nil
	c.Explore = func(*Scene, mc.Config) mc.Result { return mc.Result{} }
	if c.Play(f); f.texts != nil {
		t.Errorf("no scene fails, and the test does: %q", f.texts)
	}
}

func TestSurvives(t *testing.T) {
	f := new(failures)
	func() { defer Survives(f.Errorf) }()
	if f.texts != nil {
		t.Errorf("nothing has panicked: %q", f.texts)
	}
	func() {
		defer Survives(f.Errorf)
		new(Dice).Below(0) // divides by zero
	}()
	if len(f.texts) == 0 || !strings.HasPrefix(f.texts[0], "panic in scenes.(*Dice).Below") {
		t.Errorf("a panic of the library is reported as %q", f.texts)
	}
}

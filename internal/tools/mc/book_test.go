//go:build modelcheck

package mc_test

import (
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// What goes into a book comes out on its page, whatever the order.
func TestBook(t *testing.T) {
	cfg := mc.Config{Operations: "add ∥ add | or not"}
	keep := func(names ...string) mc.Book {
		return mc.KeepBook(func() {
			for _, name := range names {
				t.Run(name, func(t *testing.T) {
					switch name {
					case "a counter":
						mc.Check(t, cfg, func(m *mc.M) { n := new(atomics.Uint64); m.Go(func() { n.Add(1) }); m.Go(func() { n.Add(1) }) })
					case "bounded":
						mc.Linearizable(t, mc.Config{Mode: mc.Bounded, Preemptions: 1}, program(false, []mc.Call[set]{add1, size}, []mc.Call[set]{add2}))
					case "torn":
						mc.Refute(t, cfg, "lost update", torn)
					case "costs":
						mc.CheckCost(t, "nothing | at all", func() func(int) { return func(int) {} }, mc.Cost{}, 0)
					}
				})
			}
		})
	}
	b := keep("torn", "a counter", "costs", "bounded")
	page := b.Page(t)
	if len(b.Problems()) > 0 {
		t.Errorf("problems: %q", b.Problems())
	}
	for _, want := range []string{
		"| 3 | 1 | 1 | 1 | 13 | 1 |\n",
		"What goes into a book comes out on its page, whatever the order.\n",
		"| a counter | 2 | add ∥ add \\| or not | 2 | yes |\n",
		"| bounded | 2 | add(1), size() ∥ add(2) | 9 | ≤ 1 preemptions |\n",
		"| torn | 2 | add ∥ add \\| or not | 2 | fails, as it must: lost update: n = 1, want 2 |\n",
		"n.Load() = 0\n",
		"| nothing \\| at all | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
	other := keep("bounded", "a counter", "costs", "torn").Page(t)
	if other = strings.ReplaceAll(other, "#01", ""); other != page {
		t.Errorf("another order of tests makes another page:\n%s", mc.Difference(page, other))
	}
}

func TestBookRefuses(t *testing.T) {
	quiet := func(*mc.M) {}
	said := mc.Config{Operations: "nothing"}
	for _, tt := range []struct {
		name, want string
		f          func(t *testing.T)
	}{
		{"explorations that nobody enters", "not entered", func(t *testing.T) { mc.Explore(said, quiet) }},
		{"two explorations of one test", "explores more than once", func(t *testing.T) { mc.Check(t, said, quiet); mc.Check(t, said, quiet) }},
		{"silence about the operations", "does not say", func(t *testing.T) { mc.Check(t, mc.Config{}, quiet) }},
		{"failures that nobody hears of", "failed, and nobody", func(t *testing.T) { mc.Check(&recorder{TB: t}, said, torn) }},
		{"what is not the same again", "not deterministic", func(t *testing.T) {
			mc.Check(t, said, quiet)
			mc.Check(&recorder{TB: t}, said, func(m *mc.M) { m.Go(func() { new(atomics.Bool).Load() }) }) // by another t of the same name
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			problems := mc.KeepBook(func() { tt.f(t) }).Problems()
			if len(problems) != 1 || !strings.Contains(problems[0], tt.want) {
				t.Errorf("problems: %q, want one with %q", problems, tt.want)
			}
		})
	}
}

// What must fail and passes is an error, as is what fails otherwise.
func TestRefute(t *testing.T) {
	for _, tt := range []struct {
		want   string
		body   func(*mc.M)
		errors int
	}{
		{"lost update", torn, 0},
		{"lost update", func(*mc.M) {}, 1},
		{"something else", torn, 1},
	} {
		probe := &recorder{TB: t}
		mc.Refute(probe, mc.Config{}, tt.want, tt.body)
		if len(probe.errors) != tt.errors {
			t.Errorf("%s: %d errors, want %d", tt.want, len(probe.errors), tt.errors)
		}
	}
}

func TestDifference(t *testing.T) {
	if got, want := mc.Difference("a\nb\nc\n", "a\nc\nd\n"), "- b\n+ d\n"; got != want {
		t.Errorf("difference = %q, want %q", got, want)
	}
}

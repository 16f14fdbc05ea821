package main

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A test is run on mutants of the functions that it comes to, and of those of
// which nothing is known.
func TestReach(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs of mutants")
	}
	c := campaign{toolchain: inPlace(t)}
	target, err := c.load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	mutants := target.mutants(concurrency)
	c.together = target.together(mutants)
	overlay, err := c.overlay("together", c.together.files)
	if err != nil {
		t.Fatal(err)
	}
	b := &baseline{layer: &layer{name: "unit", build: plain}, dir: filepath.FromSlash(fixture), tests: "."}
	b.took = map[string]time.Duration{"TestRaise": 0, "TestStable": 0}
	if err := b.gather(c.toolchain, overlay, 2); err != nil {
		t.Fatal(err)
	}
	if len(b.reach) != 1 || b.reach["TestRaise"] == nil || !slices.Equal(b.apart, []string{"TestStable"}) {
		t.Errorf("tests come to %v, and apart are %v", b.reach, b.apart)
	}
	all := []string{"TestRaise"}
	for _, m := range mutants {
		if got := len(c.at(m, b, all)) == 1; got != (m.function == "box.raise") {
			t.Errorf("%s: tried %v", m.key(), got)
		}
	}
	b.reach = nil
	for _, m := range mutants {
		if !slices.Equal(c.at(m, b, all), all) {
			t.Errorf("%s: not tried where nothing is known", m.key())
		}
	}
}

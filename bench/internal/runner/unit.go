package runner

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Calibration is what a first pass over all benchmarks learned. Its
// measurements are thrown away.
type Calibration struct {
	Tops   []*Top        // in source order
	Header []string      // goos, goarch, pkg and cpu lines as the binary printed them
	Took   time.Duration // the pass, at one CPU count
}

// Top is a top-level benchmark.
type Top struct {
	Name  string
	Units []*Unit
}

// Unit is what one process runs: the leaves of a top-level benchmark that
// belong to one implementation.
type Unit struct {
	Impl   string // "" for leaves that name none
	Leaves int
}

// Leaves returns the number of selected benchmarks.
func (c *Calibration) Leaves() int {
	n := 0
	for _, top := range c.Tops {
		n += top.leaves()
	}
	return n
}

func (t *Top) leaves() int {
	n := 0
	for _, u := range t.Units {
		n += u.Leaves
	}
	return n
}

// add counts a leaf.
func (c *Calibration) add(name string) {
	base, rest, _ := strings.Cut(name, "/")
	i := slices.IndexFunc(c.Tops, func(t *Top) bool { return t.Name == base })
	if i < 0 {
		i = len(c.Tops)
		c.Tops = append(c.Tops, &Top{Name: base})
	}
	top := c.Tops[i]
	impl := ""
	for element := range strings.SplitSeq(rest, "/") {
		if value, ok := strings.CutPrefix(element, "impl="); ok {
			impl = value
		}
	}
	k := slices.IndexFunc(top.Units, func(u *Unit) bool { return u.Impl == impl })
	if k < 0 {
		k = len(top.Units)
		top.Units = append(top.Units, &Unit{Impl: impl})
	}
	top.Units[k].Leaves++
}

// join makes one unit of top-level benchmarks in which some leaves name no
// implementation: no pattern can select those alone.
func (c *Calibration) join() {
	for _, top := range c.Tops {
		if slices.ContainsFunc(top.Units, func(u *Unit) bool { return u.Impl == "" }) {
			top.Units = []*Unit{{Leaves: top.leaves()}}
		}
	}
}

// allBut returns what to leave out so that nothing but one unit of top
// remains. Selecting by leaving out lets Plan.Bench keep exactly the meaning
// that go test gives it.
func (c *Calibration) allBut(top *Top, unit *Unit) leftOut {
	var out leftOut
	for _, other := range c.Tops {
		if other != top {
			out.tops = append(out.tops, "^"+regexp.QuoteMeta(other.Name)+"$")
		}
	}
	for _, other := range top.Units {
		if other != unit {
			out.elements = append(out.elements, "^impl="+regexp.QuoteMeta(other.Impl)+"$")
		}
	}
	return out
}

package runner

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Calibration is what a first pass over all benchmarks learned. Its
// measurements are thrown away.
type Calibration struct {
	Tops   []*Top        // in source order
	Header []string      // goos, goarch, pkg and cpu lines as the binary printed them
	Took   time.Duration // of the budget, until the rounds may begin
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
	Leaves []*Leaf
}

// Leaf is one benchmark that is measured.
type Leaf struct {
	Name string
	Took time.Duration // by the calibration, with its preparation, at one CPU count
	most float64       // iterations that a sample of minBenchTime had at best
}

// Leaves returns the number of selected benchmarks.
func (c *Calibration) Leaves() int { return len(c.leaves()) }

func (c *Calibration) leaves() []*Leaf {
	var all []*Leaf
	for _, top := range c.Tops {
		all = append(all, top.leaves()...)
	}
	return all
}

func (t *Top) leaves() []*Leaf {
	var all []*Leaf
	for _, u := range t.Units {
		all = append(all, u.Leaves...)
	}
	return all
}

// leaf returns the leaf that a result is of, and the number of CPUs, which the
// name of a result ends in if it is not one.
func (u *Unit) leaf(name string) (leaf *Leaf, cpus int) {
	for _, l := range u.Leaves {
		if rest, ok := strings.CutPrefix(name, l.Name); ok {
			if rest == "" {
				return l, 1
			}
			if n, err := strconv.Atoi(strings.TrimPrefix(rest, "-")); err == nil && rest[0] == '-' {
				leaf, cpus = l, n
			}
		}
	}
	return leaf, cpus
}

// add takes note of a leaf.
func (c *Calibration) add(r result, took time.Duration) {
	base, _, _ := strings.Cut(r.name, "/")
	top := find(&c.Tops, func(t *Top) bool { return t.Name == base })
	top.Name = base
	impl := ""
	for element := range strings.SplitSeq(r.name, "/") {
		if value, ok := strings.CutPrefix(element, "impl="); ok {
			impl = value
		}
	}
	unit := find(&top.Units, func(u *Unit) bool { return u.Impl == impl })
	unit.Impl = impl
	leaf := &Leaf{Name: r.name, Took: took}
	leaf.note(r, calibrationTime)
	unit.Leaves = append(unit.Leaves, leaf)
}

// find returns the element that matches, appended when there is none.
func find[T any](all *[]*T, match func(*T) bool) *T {
	if i := slices.IndexFunc(*all, match); i >= 0 {
		return (*all)[i]
	}
	t := new(T)
	*all = append(*all, t)
	return t
}

// note takes note of how many iterations fitted a sample.
func (l *Leaf) note(r result, benchTime time.Duration) {
	l.most = max(l.most, float64(r.iterations)*float64(minBenchTime)/float64(benchTime))
}

// cutShort reports whether a sample says nothing. Package testing approaches the
// number of iterations from one, in steps of a hundred at most, and ends with
// the step that takes the bench time. If something else has the processor in one
// of the first two steps, then what it measured was that.
func (l *Leaf) cutShort(r result, benchTime time.Duration) bool {
	return r.iterations <= 100 &&
		10*float64(r.iterations)*float64(minBenchTime)/float64(benchTime) <= l.most
}

// ground returns what a leaf costs a round at one CPU count however short its
// samples are.
func (l *Leaf) ground() time.Duration { return max(l.Took-sampled(calibrationTime), 0) }

// group names what is compared with each other: the leaves whose names differ
// only in the implementation.
func (l *Leaf) group() string {
	elements := strings.Split(strings.TrimPrefix(l.Name, "Benchmark"), "/")
	return strings.Join(slices.DeleteFunc(elements, func(e string) bool { return strings.HasPrefix(e, "impl=") }), "/")
}

// pattern selects exactly these leaves, as an argument of -test.bench.
func pattern(leaves []*Leaf) string {
	alternatives := make([]string, len(leaves))
	for i, l := range leaves {
		elements := strings.Split(l.Name, "/")
		for k, element := range elements {
			elements[k] = "^" + regexp.QuoteMeta(element) + "$"
		}
		alternatives[i] = strings.Join(elements, "/")
	}
	return strings.Join(alternatives, "|")
}

// leaveOut removes leaves until what the rest costs a round however short its
// samples are is at most room, those of the costliest groups first, but for
// those that must not be left out. It returns the names of the groups.
func (c *Calibration) leaveOut(room time.Duration, never func(name string) bool) (names []string) {
	costs := make(map[string]time.Duration)
	var all time.Duration
	var groups []string
	for _, l := range c.leaves() {
		g := l.group()
		if _, ok := costs[g]; !ok {
			groups = append(groups, g)
		}
		costs[g] += l.ground()
		all += l.ground()
	}
	slices.SortStableFunc(groups, func(a, b string) int { return cmp.Compare(costs[b], costs[a]) })
	for _, g := range groups {
		if all <= room || len(names) == len(groups)-1 {
			break // one at least is measured
		}
		if never != nil && never(g) {
			continue
		}
		all -= costs[g]
		names = append(names, g)
	}
	for _, top := range c.Tops {
		for _, u := range top.Units {
			u.Leaves = slices.DeleteFunc(u.Leaves, func(l *Leaf) bool { return slices.Contains(names, l.group()) })
		}
	}
	c.compact()
	return names
}

// Keep removes the benchmarks that do not match, and reports whether any is left.
func (c *Calibration) Keep(match func(name string) bool) bool {
	for _, top := range c.Tops {
		for _, u := range top.Units {
			u.Leaves = slices.DeleteFunc(u.Leaves, func(l *Leaf) bool { return !match(l.Name) })
		}
	}
	c.compact()
	return len(c.Tops) > 0
}

// compact removes what has no leaves any more.
func (c *Calibration) compact() {
	for _, top := range c.Tops {
		top.Units = slices.DeleteFunc(top.Units, func(u *Unit) bool { return len(u.Leaves) == 0 })
	}
	c.Tops = slices.DeleteFunc(c.Tops, func(t *Top) bool { return len(t.Units) == 0 })
}

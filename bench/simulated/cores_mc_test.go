//go:build modelcheck

package simulated

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/internal/tools/svg"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
)

// keys is how many keys a map has, and the most cores that are simulated.
const keys = 64

var cores = []int{1, 2, 4, 8, 16, 32, 64}

// An operation is what all cores do again and again.
type operation struct {
	name string
	ways []way
}

// A way is one implementation. Setup returns the operation of a core.
type way struct {
	impl  string
	setup func() func(core int)
}

// A structure has a chart of its own.
type structure struct {
	name       string
	operations []operation
}

// random returns a source for each core, the same each time.
func random() [keys]*rand.Rand {
	var all [keys]*rand.Rand
	for core := range all {
		all[core] = rand.New(rand.NewPCG(uint64(core), 1))
	}
	return all
}

func locked(op func(m *lockedMap, core int, r *rand.Rand)) way {
	return way{"mutex", func() func(int) {
		m, r := new(lockedMap), random()
		return func(core int) { op(m, core, r[core]) }
	}}
}

// ofRWMutex is reads under a shared lock.
var ofRWMutex = way{"RWMutex", func() func(int) {
	l, v := new(sharedLock), new(atomics.Uint64)
	return func(int) { l.read(v) }
}}

func ofRegistry(op func(r *shardedregistry.Registry[int, int], core int, random *rand.Rand)) way {
	return way{"latchfree", func() func(int) {
		// Of a machine with so many cores.
		reg, r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 4 * keys}), random()
		for key := range keys {
			reg.Put(key, 0)
		}
		return func(core int) { op(reg, core, r[core]) }
	}}
}

func plusOne(v int) (int, error) { return v + 1, nil }

var structures = []structure{
	{"Breaker", []operation{
		{"a call that succeeds", []way{breaker(false), lockedCalls(false)}},
		{"a call that fails", []way{breaker(true), lockedCalls(true)}},
	}},
	{"Cache", []operation{
		{"a hit", []way{
			{"latchfree", func() func(int) {
				c := new(oncecache.Cache[int, int])
				c.Set(0, 7)
				return func(int) { c.GetOrCreate(0, nothing) }
			}},
			locked(func(m *lockedMap, _ int, _ *rand.Rand) { m.get(0) }),
			ofRWMutex,
		}},
	}},
	{"Tracker", []operation{
		{"Record", []way{
			{"latchfree", func() func(int) {
				t := new(cowchangeset.Tracker[uint64])
				t.Start(context.Background())
				return func(int) { t.Record(7) }
			}},
			{"mutex", func() func(int) {
				l := new(lockedLog)
				return func(int) { l.record(7) }
			}},
		}},
		{"Slice.Load", []way{
			{"latchfree", func() func(int) {
				s := new(cowchangeset.Slice[uint64])
				s.Append(7)
				return func(int) { s.Load() }
			}},
			locked(func(m *lockedMap, _ int, _ *rand.Rand) { m.get(0) }),
			ofRWMutex,
		}},
	}},
	{"Registry", []operation{
		{"Get", []way{
			ofRegistry(func(r *shardedregistry.Registry[int, int], _ int, _ *rand.Rand) { r.Get(0) }),
			locked(func(m *lockedMap, _ int, _ *rand.Rand) { m.get(0) }),
			ofRWMutex,
		}},
		{"Get, a tenth Update", []way{
			ofRegistry(func(r *shardedregistry.Registry[int, int], _ int, random *rand.Rand) {
				if key := random.IntN(keys); random.IntN(10) > 0 {
					r.Get(key)
				} else {
					r.Update(key, plusOne)
				}
			}),
			locked(func(m *lockedMap, _ int, random *rand.Rand) {
				if key := random.IntN(keys); random.IntN(10) > 0 {
					m.get(key)
				} else {
					m.update(key)
				}
			}),
		}},
		{"Update of own keys", []way{
			ofRegistry(func(r *shardedregistry.Registry[int, int], core int, _ *rand.Rand) { r.Update(core, plusOne) }),
			locked(func(m *lockedMap, core int, _ *rand.Rand) { m.update(core) }),
		}},
		{"Update of one key", []way{
			ofRegistry(func(r *shardedregistry.Registry[int, int], _ int, _ *rand.Rand) { r.Update(0, plusOne) }),
			locked(func(m *lockedMap, _ int, _ *rand.Rand) { m.update(0) }),
		}},
	}},
}

func nothing() (int, error) { return 0, nil }

func breaker(fails bool) way {
	return way{"latchfree", func() func(int) {
		b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(math.MaxInt32)})
		return func(int) {
			if p, err := b.Allow(); err == nil && fails {
				p.Failure()
			} else if err == nil {
				p.Success()
			}
		}
	}}
}

func lockedCalls(fail bool) way {
	return way{"mutex", func() func(int) {
		b := new(lockedBreaker)
		return func(int) { b.call(fail) }
	}}
}

// moved returns how many lines an operation moves, for each number of cores.
func (w way) moved() []float64 {
	moved := make([]float64, len(cores))
	for i, n := range cores {
		moved[i] = mc.Transfers(n, w.setup, func(op func(int), core int) { op(core) })
	}
	return moved
}

const (
	start = "<!-- the following is generated -->\n"
	end   = "<!-- up to here -->\n"
)

// README.md and the charts have what the sources cost. MC_UPDATE=1 writes them.
func TestCores(t *testing.T) {
	var text strings.Builder
	files := map[string]string{}
	for _, s := range structures {
		fmt.Fprintf(&text, "\n![cache lines moved by operations of a %s, by cores](%s.svg)\n\n", s.name, strings.ToLower(s.name))
		fmt.Fprintf(&text, "| %s | cores | %s |\n|---|---|%s\n", s.name, join(cores), strings.Repeat("--:|", len(cores)))
		var all [][][]float64
		for _, op := range s.operations {
			var of [][]float64
			for i, w := range op.ways {
				of = append(of, w.moved())
				name := ""
				if i == 0 {
					name = op.name
				}
				fmt.Fprintf(&text, "| %s | %s | %s |\n", name, w.impl, strings.Join(words(of[i]), " | "))
			}
			all = append(all, of)
		}
		files[strings.ToLower(s.name)+".svg"] = chart(s, all)
	}
	text.WriteString("\n")
	was, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(was), start)
	_, tail, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatal("README.md has no place for the table")
	}
	files["README.md"] = head + start + text.String() + end + tail
	for name, want := range files {
		is, _ := os.ReadFile(name)
		switch {
		case bytes.Equal(is, []byte(want)):
		case os.Getenv("MC_UPDATE") != "":
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is not of these sources; MC_UPDATE=1 writes it", name)
		}
	}
}

func join(numbers []int) string {
	var all []string
	for _, n := range numbers {
		all = append(all, strconv.Itoa(n))
	}
	return strings.Join(all, " | ")
}

func words(numbers []float64) (all []string) {
	for _, x := range numbers {
		all = append(all, strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64))
	}
	return all
}

// Measures of a chart.
const (
	width  = 760
	left   = 46.0
	top    = 30.0
	bottom = 190.0
	column = 166.0
	gap    = 12.0
)

// chart draws the operations of a structure side by side, on one scale: from nothing, at
// the bottom, in powers of ten.
func chart(s structure, moved [][][]float64) string {
	most := 10.0
	for _, op := range moved {
		for _, way := range op {
			for _, x := range way {
				most = max(most, x)
			}
		}
	}
	const ink, quiet, hair = "#7d8590", "#7d8590", "#8b949e"
	colours := map[string]string{"latchfree": "#1f83c9", "mutex": "#d9661f", "RWMutex": "#1f9e78"}
	c := svg.New(width, bottom+46, "Cache lines moved by operations of a "+s.name+", on 1 to 64 simulated cores")
	c.Plain(func(element, class string) string {
		switch {
		case element == "text" && class == "head":
			return fmt.Sprintf(`fill="%s" font-size="12" font-weight="600" font-family="sans-serif"`, ink)
		case element == "text":
			return fmt.Sprintf(`fill="%s" font-size="11" font-family="sans-serif"`, quiet)
		case class == "grid":
			return fmt.Sprintf(`stroke="%s" stroke-width="0.5" stroke-opacity="0.4"`, hair)
		case element == "line":
			return fmt.Sprintf(`stroke="%s" stroke-width="2"`, colours[class])
		}
		return fmt.Sprintf(`fill="%s"`, colours[class])
	})
	const least = 0.2 // all below is drawn as nothing
	scale := svg.NewLog(least, most*1.2, bottom, top)
	y := func(v float64) float64 {
		if v < least {
			return bottom
		}
		return scale.At(v)
	}
	for i, op := range s.operations {
		from := left + float64(i)*(column+gap)
		x := svg.NewLog(float64(cores[0]), float64(cores[len(cores)-1]), from+4, from+column-8)
		c.Text(from, 14, svg.Start, "head", op.name)
		for _, tick := range []float64{0, 1, 10, 100} {
			if tick > most {
				break
			}
			c.Line(from, y(tick), from+column, y(tick), "grid")
			if i == 0 {
				c.Text(left-6, y(tick)+4, svg.End, "tick", strconv.Itoa(int(tick)))
			}
		}
		for _, n := range cores {
			c.Text(x.At(float64(n)), bottom+15, svg.Middle, "tick", strconv.Itoa(n))
		}
		for k := len(op.ways) - 1; k >= 0; k-- { // ours on top
			for j := range cores {
				at, high := x.At(float64(cores[j])), y(moved[i][k][j])
				if j > 0 {
					c.Line(x.At(float64(cores[j-1])), y(moved[i][k][j-1]), at, high, op.ways[k].impl)
				}
				c.Marker(at, high, 3, svg.ShapeOf(k), op.ways[k].impl, fmt.Sprintf("%s, %d cores: %s", op.ways[k].impl, cores[j], words(moved[i][k][j : j+1])[0]))
			}
		}
	}
	at := left
	for k, impl := range []string{"latchfree", "mutex", "RWMutex"} {
		c.Marker(at+4, bottom+33, 3.5, svg.ShapeOf(k), impl, "")
		c.Text(at+13, bottom+37, svg.Start, "legend", impl)
		at += 86
	}
	c.Text(at, bottom+37, svg.Start, "legend", "cache lines moved by one operation; below: simulated cores")
	return c.String() + "\n"
}

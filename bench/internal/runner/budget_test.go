package runner

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// machine is a pretended one on which only its clock passes. What takes time on
// it is what takes time on a real one.
type machine struct {
	now     time.Time
	process time.Duration // for the start of each
	slow    float64       // everything takes so many times as long, after it was calibrated
	work    []work
	stalls  map[string]int // so many samples of a name end with their first iteration
	passes  int
}

// work is a leaf of the pretended benchmarks.
type work struct {
	name    string
	prepare time.Duration // once in each process and at each CPU count
	op      time.Duration
}

func (m *machine) binary(t *testing.T) *Binary {
	b := at("", t.TempDir())
	m.now = time.Unix(0, 0)
	b.now = func() time.Time { return m.now }
	b.start = m.start
	return b
}

func (m *machine) start(_ context.Context, p pass, line func(string)) error {
	pace := 1.0
	if m.passes++; m.passes > 1 {
		pace = max(m.slow, 1)
	}
	pass := func(d time.Duration) { m.now = m.now.Add(time.Duration(pace * float64(d))) }
	pass(m.process)
	for _, w := range m.work {
		selected := len(p.leaves) == 0
		for _, l := range p.leaves {
			selected = selected || l.Name == w.name
		}
		for _, cpus := range p.cpus {
			if !selected {
				continue
			}
			name := w.name
			if cpus > 1 {
				name = fmt.Sprintf("%s-%d", name, cpus)
			}
			pass(w.prepare)
			n, took := int(sampled(p.benchTime)/w.op), max(sampled(p.benchTime), w.op)
			n = max(n, 1)
			pass(took)
			if m.stalls[name] > 0 && m.passes > 1 {
				m.stalls[name]--
				n = 1
			}
			line(fmt.Sprintf("%s\t%d\t%d ns/op", name, n, int(took)/n))
		}
	}
	return nil
}

// Whatever the benchmarks cost, a run ends when it was asked to.
func TestBudgetIsKept(t *testing.T) {
	const budget = 220 * time.Second
	get := func(n int, prepare, op time.Duration) []work {
		var all []work
		for i := range n {
			for _, impl := range []string{"latchfree", "mutex", "other"} {
				all = append(all, work{fmt.Sprintf("BenchmarkXGet/keys=%d/impl=%s", i, impl), prepare, op})
			}
		}
		return all
	}
	grow := []work{{"BenchmarkXGrow/impl=latchfree", 0, 20 * time.Second}, {"BenchmarkXGrow/impl=mutex", 0, 2 * time.Second}}
	for name, c := range map[string]struct {
		machine machine
		leftOut []string
	}{
		"quick operations":            {machine: machine{work: get(60, 0, 50)}},
		"with preparation":            {machine: machine{work: get(60, 20*time.Millisecond, 50)}},
		"processes that start slowly": {machine: machine{work: get(60, 0, 50), process: 2 * time.Second}},
		"half as fast as calibrated":  {machine: machine{work: get(60, 20*time.Millisecond, 50), slow: 2}},
		"one iteration that is long":  {machine: machine{work: append(grow, get(60, 0, 50)...)}, leftOut: []string{"XGrow"}},
		"too much preparation": {machine: machine{work: append(get(3, 0, 50),
			work{"BenchmarkXHuge/keys=9/impl=mutex", 30 * time.Second, 50})}, leftOut: []string{"XHuge/keys=9"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &c.machine
			b := m.binary(t)
			began := m.now
			p := Plan{Bench: ".", CPUs: []int{1, 2}, Rounds: 10, Budget: budget}
			m.now = m.now.Add(15 * time.Second) // the build
			cal, err := b.Calibrate(t.Context(), p, began)
			require.NoError(t, err)
			p = p.Fit(cal)
			require.Equal(t, c.leftOut, p.LeftOut)
			done, err := b.Rounds(t.Context(), p, cal, io.Discard, quiet())
			require.NoError(t, err)
			require.GreaterOrEqual(t, done, MinRounds)
			took := m.now.Sub(began)
			require.LessOrEqual(t, took, budget*105/100)
			if p.longest < maxBenchTime {
				require.GreaterOrEqual(t, took, budget*85/100, "what there is of it is used")
			}
		})
	}
}

// A sample of one iteration, where many fit, is taken again.
func TestRounds_RepeatsSamplesThatWereCutShort(t *testing.T) {
	const get, grow = "BenchmarkXGet/impl=latchfree", "BenchmarkXGrow/impl=latchfree"
	m := &machine{
		work:   []work{{get, 0, 50}, {grow, 0, time.Second}},
		stalls: map[string]int{get + "-2": tries - 1},
	}
	b := m.binary(t)
	p := Plan{Bench: ".", CPUs: []int{1, 2}, Rounds: MinRounds, BenchTime: 10 * time.Millisecond, Budget: time.Hour}
	c, err := b.Calibrate(t.Context(), p, m.now)
	require.NoError(t, err)
	rounds := func() (raw strings.Builder, passes int) {
		before := m.passes
		_, err = b.Rounds(t.Context(), p, c, &raw, quiet())
		require.NoError(t, err)
		return raw, m.passes - before
	}
	raw, passes := rounds()
	require.Equal(t, 2*MinRounds+tries-1, passes, "what takes long has one iteration, and is not taken again")
	require.NotRegexp(t, get+`(-2)?\t1\t`, raw.String())
	require.Equal(t, MinRounds, strings.Count(raw.String(), get+"-2\t"))
	require.Equal(t, 2*MinRounds, strings.Count(raw.String(), "\t1\t1000000000 ns/op"))

	m.stalls[get] = tries
	raw, _ = rounds()
	require.Equal(t, 1, strings.Count(raw.String(), get+"\t1\t"), "in the end it is kept as it is")
}

func TestLeaf_CutShort(t *testing.T) {
	leaf := &Leaf{}
	leaf.note(result{iterations: 100_000}, minBenchTime)
	require.True(t, leaf.cutShort(result{iterations: 1}, minBenchTime))
	require.True(t, leaf.cutShort(result{iterations: 100}, 10*minBenchTime))
	require.False(t, leaf.cutShort(result{iterations: 10_000}, minBenchTime), "slow is slow")
	leaf = &Leaf{}
	leaf.note(result{iterations: 200}, 20*minBenchTime)
	require.False(t, leaf.cutShort(result{iterations: 10}, minBenchTime), "as many as fit")
	require.False(t, leaf.cutShort(result{iterations: 2}, minBenchTime))
	require.True(t, leaf.cutShort(result{iterations: 1}, minBenchTime))
}

//go:build modelcheck

package mc_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// peak keeps the largest number that it was given.
type peak struct{ word atomics.Uint64 }

// raise reports whether v is the new peak.
func (p *peak) raise(v uint64) bool {
	for {
		now := p.word.Load()
		if v <= now {
			return false
		}
		if p.word.CompareAndSwap(now, v) {
			return true
		}
	}
}

func (p *peak) get() uint64 { return p.word.Load() }

// tornPeak writes without looking whether the word is still what it was.
type tornPeak struct{ peak }

func (p *tornPeak) raise(v uint64) bool {
	if v <= p.word.Load() {
		return false
	}
	p.word.Store(v)
	return true
}

// raiser is what both the implementation and the model can do.
type raiser interface {
	raise(uint64) bool
	get() uint64
}

// model is obviously right, for one goroutine.
type model struct{ max uint64 }

func (m *model) raise(v uint64) bool {
	raised := v > m.max
	m.max = max(m.max, v)
	return raised
}

func (m *model) get() uint64 { return m.max }

var (
	raise3 = mc.Call[raiser]{Name: "raise(3)", Do: func(r raiser) any { return r.raise(3) }}
	raise5 = mc.Call[raiser]{Name: "raise(5)", Do: func(r raiser) any { return r.raise(5) }}
	get    = mc.Call[raiser]{Name: "get()", Do: func(r raiser) any { return r.get() }}
)

func TestPeakIsLinearizable(t *testing.T) {
	mc.Linearizable(t, mc.Config{}, mc.Program[raiser]{
		New:     func() raiser { return new(peak) },
		Model:   func() raiser { return new(model) },
		Threads: [][]mc.Call[raiser]{{raise3, get}, {raise5}, {get}},
		After:   []mc.Call[raiser]{get},
	})
}

func TestPeakNeverFalls(t *testing.T) {
	mc.Check(t, mc.Config{}, neverFalls(func() raiser { return new(peak) }))
}

func neverFalls(fresh func() raiser) func(*mc.M) {
	return func(m *mc.M) {
		p := fresh()
		m.Name("peak", p)
		m.Go(func() { p.raise(3) })
		m.Go(func() { p.raise(5) })
		m.Final(func() {
			if got := p.get(); got != 5 {
				m.Failf("the peak is %d, want 5", got)
			}
		})
	}
}

func TestPeakCosts(t *testing.T) {
	raise := func(v uint64) func() func(core int) {
		return func() func(int) {
			p := new(peak)
			p.raise(4)
			return func(int) { p.raise(v) }
		}
	}
	mc.CheckCost(t, "raise to no avail", raise(3), mc.Cost{Loads: 1}, 0)
	mc.CheckCost(t, "the first raise", raise(5), mc.Cost{Loads: 1, RMWs: 1}, 0)
}

// The README shows this file's code, and what the torn peak is answered.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 3 {
		t.Errorf("the README shows %d blocks of Go", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(string(source), b[1]) {
			t.Errorf("guide_test.go does not contain\n%s", b[1])
		}
	}
	r := mc.Explore(mc.Config{}, neverFalls(func() raiser { return new(tornPeak) }))
	line := regexp.MustCompile(`_test\.go:\d+`)
	if want := line.ReplaceAllString(r.Failure+"\n\n"+r.Trace, "_test.go:N"); r.Failure == "" ||
		!strings.Contains(line.ReplaceAllString(string(readme), "_test.go:N"), want) {
		t.Errorf("the README does not show\n%s\n\n%s", r.Failure, r.Trace)
	}
}

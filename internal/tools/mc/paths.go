//go:build modelcheck

package mc

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// path is an operation that callers do often, and what it costs.
type path struct {
	name  string
	cost  Cost
	moves [3]float64 // by pathCores
}

var pathCores = [3]int{2, 8, 64}

// CheckCost checks what an operation costs, exactly, and enters it in the
// book. Setup makes what it works on and returns the operation, which is given
// the number of the core that does it. Cost is that of the first call. Moves
// are Transfers at 2, 8 and 64 cores, to two decimals, or one number if it is
// the same for all. With -short, they are not checked.
func CheckCost(t testing.TB, name string, setup func() (op func(core int)), cost Cost, moves ...float64) {
	t.Helper()
	p := path{name: name, cost: cost}
	for i := range p.moves {
		p.moves[i] = moves[min(i, len(moves)-1)]
	}
	current.enterPath(t, p)
	defer measure()()
	op := setup()
	if got := Measure(func() { op(0) }); got != cost {
		t.Errorf("%s costs %v, want %v", name, got, cost)
	}
	if testing.Short() {
		return
	}
	var runs []contention
	for _, cores := range pathCores {
		if cores > coresAtMost() {
			break
		}
		runs = append(runs, contend(cores, setup))
	}
	all := heap()
	for i, r := range runs {
		// Nothing is not almost nothing.
		got, want := r.perCall(all), p.moves[i]
		if math.Round(got*100) != math.Round(want*100) || (got == 0) != (want == 0) {
			t.Errorf("%s moves %.2f cache lines at %d cores, want %.2f", name, got, pathCores[i], want)
		}
	}
}

// enterPath enters a path. A test that runs again, because of -count or -cpu,
// enters the same again.
func (b *book) enterPath(t testing.TB, p path) {
	if !b.begin() {
		return
	}
	defer b.mu.Unlock()
	if !b.busy[t] {
		b.busy[t] = true
		b.paths[t.Name()] = nil
	}
	b.paths[t.Name()] = append(b.paths[t.Name()], p)
}

const costsHead = `
## Costs

What one call does to shared words, counted, and how many cache lines it moves between cores when 2, 8 or 64 of them
call it all the time. They take turns at every step, which is worse than they would. The counts come from a model and
are the same on every machine. In it, a key of a table is one line, whatever the operation; the clock and the functions
that the user supplies cost nothing; an object of the heap begins a line of its own; and of a split counter each core
keeps a cell, as it tends to.
`

const costsTable = `| operation | loads | stores | RMWs | table reads | table writes | blocking | clock | lines moved at 2 cores | at 8 | at 64 |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`

func (b *book) costs(p *page, docs map[string]string) {
	if len(b.paths) == 0 {
		return
	}
	p.WriteString(costsHead)
	for _, test := range slices.Sorted(maps.Keys(b.paths)) {
		fmt.Fprintf(p, "\n### %s\n\n", test)
		if docs[test] != "" {
			fmt.Fprintf(p, "%s\n\n", docs[test])
		}
		p.WriteString(costsTable)
		for _, path := range b.paths[test] {
			c := path.cost
			fmt.Fprintf(p, "| %s | %d | %d | %d | %d | %d | %d | %d", cell(path.name),
				c.Loads, c.Stores, c.RMWs, c.TableReads, c.TableWrites, c.Blocking, c.Clock)
			for _, n := range path.moves {
				p.WriteString(" | " + strings.TrimSuffix(fmt.Sprintf("%.2f", n), ".00"))
			}
			p.WriteString(" |\n")
		}
	}
}

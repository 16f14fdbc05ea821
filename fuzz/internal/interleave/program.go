//go:build modelcheck

package interleave

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Program is a small concurrent program on one shared value.
type Program[R, S any] struct {
	New     func() R // the real value, fresh
	Model   func() S // what it should behave like, fresh
	Prelude []Op[R, S]
	Threads [][]Op[R, S]
	After   []Op[R, S]    // when the threads are done
	Tick    time.Duration // see Caller.Tick
}

// Sequential is the program with its threads one after the other.
func (p *Program[R, S]) Sequential() Program[R, S] {
	q := *p
	q.Prelude = append(slices.Clone(p.Prelude), slices.Concat(p.Threads...)...)
	q.Threads = nil
	return q
}

// body is the program for the checker. Reached counts what threads did, and work bounds how many
// moments are tried.
func (p *Program[R, S]) body(reached Reached, work int) func(*mc.M) {
	verdicts := map[string]bool{} // by class of histories: whether they are explained
	return func(m *mc.M) {
		real, clock := p.New(), &clock{tick: p.Tick}
		caller := func(thread int) *Caller[R, S] {
			return &Caller[R, S]{Real: real, Thread: thread, m: m, clock: clock}
		}
		first, last := caller(0), caller(0)
		first.alone(p.Prelude)
		all := []*Caller[R, S]{first}
		for i, ops := range p.Threads {
			c := caller(i + 1)
			all = append(all, c)
			m.Go(func() { c.do(ops) })
		}
		m.Final(func() {
			end := last.End()
			last.alone(p.After)
			var moments []*Moment[S]
			for _, c := range append(all, last) {
				moments = append(moments, c.all()...)
			}
			h := newHistory(moments, end)
			class := h.class()
			explained, seen := verdicts[class]
			if !seen {
				h.work = &work
				explained = h.explained(p.Model, nil, make([]bool, len(h.moments)))
				verdicts[class] = explained
				for _, c := range all[1:] { // what is reached by threads alone
					for _, m := range c.all() {
						reached.add(m.Op, m.Got)
					}
				}
			}
			if !explained {
				m.Failf("no order of these moments is right:\n%s", h)
			}
		})
	}
}

// String shows the operations by thread.
func (p *Program[R, S]) String() string {
	var text strings.Builder
	line := func(who string, ops []Op[R, S]) {
		names := make([]string, len(ops))
		for i, o := range ops {
			names[i] = o.Name
		}
		fmt.Fprintf(&text, "\t%s: %s\n", who, strings.Join(names, "; "))
	}
	line("first", p.Prelude)
	for i, ops := range p.Threads {
		line(fmt.Sprint("T", i), ops)
	}
	return text.String()
}

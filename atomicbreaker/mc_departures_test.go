//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Checks I11, I13: all tests of this file.

// However departures overlap with callers who look for one, none is missed, and none is
// seen of a key that has not departed, also when hashes are replaced meanwhile.
func TestDeparturesInEveryOrder(t *testing.T) {
	for name, before := range map[string]uint64{"the first": 0, "some have been replaced": keptDepartures - 1, "the next replaces the first": keptDepartures} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "add 1 ∥ add 2 ∥ look"}, func(m *mc.M) {
				var d departures
				d.add(3)
				d.count.Store(1 + before)
				since := d.count.Load()
				for hash := range uint64(2) {
					m.Go(func() {
						if n := d.add(hash + 1); !d.departed(n-1, hash+1) || d.departed(n, hash+1) {
							m.Failf("departure %d of %d", n, hash+1)
						}
					})
				}
				m.Go(func() {
					if d.departed(since, 3) {
						m.Failf("a key has departed twice")
					}
					if !d.departed(0, 3) {
						m.Failf("the first departure is not seen")
					}
				})
				m.Final(func() {
					if d.count.Load() != since+2 || !d.departed(since, 1) || !d.departed(since, 2) {
						m.Failf("%d departures", d.count.Load())
					}
				})
			})
		})
	}
}

// When ResetAll returns, what was admitted before it is late, whatever else happens to
// the key.
func TestResetAllInEveryOrder(t *testing.T) {
	for name, before := range map[string][]action{"absent": held, "failing": failing, "open": opened, "dying": closed2, "dead": dead} {
		for _, other := range []action{record(k, Failure), record(k, Success), allow(3, k), sweep, reset(k)} {
			t.Run(name+" and "+other.Name, func(t *testing.T) {
				mc.Check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: fmt.Sprintf("%s ∥ ResetAll, Failure of 0, 1 and 2", other.Name)}, func(m *mc.M) {
					c := &checked{t: t, Group: MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2), OpenTimeout: -1}})}
					plainly(&c.current().counters)
					for _, a := range before {
						a.Do(c)
					}
					m.Go(func() { other.Do(c) })
					m.Go(func() {
						c.ResetAll()
						for slot := range 3 {
							if v := c.permits[slot].Failure(); v != Late {
								m.Failf("%v of call %d from before ResetAll", v, slot)
							}
						}
					})
					m.Final(func() {
						if err := c.quiet(); err != nil {
							m.Failf("%v", err)
						}
					})
				})
			})
		}
	}
}

// A call that was admitted after ResetAll is good, also if its cell was about to be inserted
// before.
func TestCallsAfterResetAllAreGood(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 3, Operations: "RecordFailure ∥ ResetAll, Allow, Sweep, Failure"}
	mc.Check(t, cfg, func(m *mc.M) {
		g := MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2), OpenTimeout: -1}})
		plainly(&g.current().counters)
		g.RecordFailure("another") // so that there is a filter
		m.Go(func() { g.RecordFailure(k) })
		m.Go(func() {
			g.ResetAll()
			p, _ := g.Allow(k)
			g.Sweep()
			if v := p.Failure(); v == Late {
				m.Failf("%v of a call from after ResetAll", v)
			}
		})
	})
}

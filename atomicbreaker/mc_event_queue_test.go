//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// However callers overlap who publish the generations of a key, its listener
// is told of each in order, by one of them at a time, though the key's queue is
// thrown away whenever it is empty, and another takes its place.
func TestQueuesOfAKeyInEveryOrder(t *testing.T) {
	for name, threads := range map[string][][]uint32{
		"two winners":          {{1}, {2}},
		"the last comes first": {{1}, {3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := mc.Config{Operations: mc.Listed(threads, func(gen uint32) string { return fmt.Sprint("publish ", gen) })}
			mc.Check(t, cfg, func(m *mc.M) {
				e, last := &ear{m: m}, 0
				g := MustNewGroup(GroupConfig[string]{OnStateChange: func(_ string, v Event) { e.hear(v) }})
				ks := g.current()
				c := ks.obtain(k, ks.hash(k, 0), nil)
				for _, mine := range threads {
					last += len(mine)
					m.Go(func() {
						for _, gen := range mine {
							c.queue.push(gen, &Event{}).deliver()
						}
					})
				}
				c.word.Store(uint64(word(last).enter(open))) // not pristine, and nobody looks at it
				m.Final(func() {
					for i, v := range e.events {
						if v.Generation != uint64(i+1) {
							m.Failf("event %d is of generation %d", i+1, v.Generation)
						}
					}
					if n := len(e.events); n != last || c.queue.delivered.Load() != uint64(last) {
						m.Failf("told of %d generations of %d", n, last)
					}
				})
			})
		})
	}
}

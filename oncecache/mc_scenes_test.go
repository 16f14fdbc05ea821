//go:build modelcheck

package oncecache_test

import (
	"slices"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/internal/tools/scenes"
	"github.com/latchfree/latchfree/oncecache"
)

// Protocols are written by hand, and find what their author thinks of. Scenes are generated: three
// operations of the table, at once, in each of a few caches whose settings cover all pairs. So they
// find what comes of combinations.

// sceneFirsts says how many keys are set before.
var sceneFirsts = []string{"0 set", "1 set", "2 set"}

func sceneCast() *scenes.Cast {
	c := &scenes.Cast{
		Test: "TestScenes", Package: "./oncecache",
		Settings: sceneSettings, Firsts: sceneFirsts, Simpler: simpler,
		PairsOnly: true,
		Explore: func(s *scenes.Scene, cfg mc.Config) mc.Result {
			switch {
			case s.Has("pointers"):
				return play(cfg, s, pointerKind)
			case s.Has("structs"):
				return play(cfg, s, structKind)
			}
			return play(cfg, s, intKind)
		},
		Played: 20_000, Short: 500, Runs: 4,
	}
	for _, o := range operations[int]() {
		c.Operations = append(c.Operations, o.name)
	}
	c.Compose = func(s *scenes.Scene, three [3]string, d *scenes.Dice) {
		s.First = sceneFirsts[d.Below(len(sceneFirsts))]
		for t, o := range three {
			k := 1
			if t > 0 && d.Below(4) == 0 {
				k = 2
			}
			steps := []scenes.Step{{Operation: o, Key: k}}
			if d.Below(4) == 0 {
				second := c.Operations[d.Below(len(c.Operations))]
				steps = append(steps, scenes.Step{Operation: second, Key: 1 + d.Below(4)/3})
			}
			s.Threads = append(s.Threads, steps)
		}
	}
	return c
}

func play[V any](cfg mc.Config, s *scenes.Scene, k kind[V]) mc.Result {
	table, traits := map[string]operation[V]{}, 0
	for _, o := range operations[V]() {
		table[o.name] = o
	}
	for _, steps := range s.Threads {
		for _, o := range steps {
			traits |= table[o.Operation].traits
		}
	}
	return mc.Sample(cfg, func(m *mc.M) {
		w := &stage[V]{m: m, kind: k, scene: s, traits: traits}
		w.open()
		func() {
			defer scenes.Survives(m.Failf)
			for k := range slices.Index(sceneFirsts, s.First) {
				table["Set"].do(w, k+1)
			}
		}()
		for _, steps := range s.Threads {
			m.Go(func() {
				defer scenes.Survives(m.Failf)
				for _, o := range steps {
					table[o.Operation].do(w, o.Key)
				}
			})
		}
		m.Final(w.over)
	})
}

// TestScenes plays scenes of three threads.
func TestScenes(t *testing.T) { sceneCast().Play(t) }

// The settings of scenes are good, cover all pairs, and a scene can be made again from its name.
func TestScenesCoverPairs(t *testing.T) {
	sceneCast().Cover(t, func(s *scenes.Scene) {
		if _, err := oncecache.New(configure(&stage[int]{scene: s, kind: intKind})); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	})
}

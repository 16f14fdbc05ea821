//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/internal/scenes"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Protocols are written by hand, and find what their author thinks of. Scenes are generated: three
// operations of the table, at once or one after the other, on each of a few registries whose
// settings cover all pairs. So they find what comes of combinations.

func sceneCast(test string, inOrder bool, explore func(*scenes.Scene, mc.Config) mc.Result) *scenes.Cast {
	c := &scenes.Cast{
		Test: test, Package: "./shardedregistry",
		Settings: sceneSettings, Firsts: sceneFirsts, Simpler: sceneSimpler,
		Last:    func(op string) bool { return op == "Wait" },
		InOrder: inOrder, Explore: explore,
	}
	for _, o := range sceneOperations {
		c.Operations = append(c.Operations, o.name)
	}
	return c
}

// TestScenes plays scenes of three threads.
func TestScenes(t *testing.T) {
	c := sceneCast("TestScenes", false, func(s *scenes.Scene, cfg mc.Config) mc.Result {
		return mc.Sample(cfg, func(m *mc.M) {
			w := &stage{scene: s, m: m}
			w.ctx, w.cancel = atomics.WithCancel(context.Background())
			func() {
				defer w.survives()
				w.open()
				w.playing = len(s.Threads)
				for _, steps := range s.Threads {
					p := w.enlist()
					w.launch(func() { p.plays(steps) })
				}
				w.attend()
			}()
			m.Final(w.over)
		})
	})
	c.Played, c.Short, c.Runs = 10_000, 200, 4
	c.Play(t)
}

// TestScenesInOrder plays scenes of one thread, in which timers fire when they should.
func TestScenesInOrder(t *testing.T) {
	c := sceneCast("TestScenesInOrder", true, func(s *scenes.Scene, _ mc.Config) mc.Result {
		w := &stage{scene: s}
		synctest.Test(t, func(*testing.T) {
			w.ctx, w.cancel = context.WithCancel(context.Background())
			w.sleep = time.Sleep
			w.open()
			w.playing = 1
			p := w.enlist()
			w.attend()
			func() {
				defer w.survives()
				p.plays(s.Threads[0])
			}()
			synctest.Wait()
			w.cancel()
			synctest.Wait()
			w.over()
		})
		return mc.Result{Schedules: 1, Failure: w.failure}
	})
	c.Played, c.Short, c.Runs = 20_000, 300, 1
	c.Play(t)
}

// The settings of scenes are good, cover all pairs, and a scene can be made again from its name.
func TestScenesCoverPairs(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	if shardedregistry.Hash(r, sceneKeys[0])>>63 == shardedregistry.Hash(r, sceneKeys[1])>>63 {
		t.Error("the keys are in one shard")
	}
	for _, inOrder := range []bool{false, true} {
		sceneCast("", inOrder, nil).Cover(t, func(s *scenes.Scene) {
			if _, err := shardedregistry.New(sceneConfig(s)); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		})
	}
}

//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Loops come and go; the set finds those that are told of a key, whatever the hashes, and
// old sets stay as they are.
func TestTopicsAreAMap(t *testing.T) {
	for name, hash := range map[string]func(string) uint64{
		"random":      nil,
		"all equal":   func(string) uint64 { return 7 },
		"low bits":    func(k string) uint64 { return uint64(len(k)) },
		"high bits":   func(k string) uint64 { return uint64(len(k)) << 60 },
		"last branch": func(k string) uint64 { return uint64(len(k)%3)<<62 | 5 },
	} {
		rnd := rand.New(rand.NewPCG(1, 2))
		names := func() string { return "aaaaaaaaaaaaa"[:rnd.IntN(14)] + fmt.Sprint(rnd.IntN(40)) }
		type loop struct {
			filter model.Filter
			leave  func(shardedregistry.TopicSet) shardedregistry.TopicSet
		}
		set := shardedregistry.NewTopicSet(hash)
		loops := map[int]loop{}
		check := func(set shardedregistry.TopicSet, loops map[int]loop) {
			t.Helper()
			for range 20 {
				key := names()
				got := set.Told(key)
				slices.Sort(got)
				got = slices.Compact(got)
				var want []int
				for i, l := range loops {
					if l.filter.Accepts(key) {
						want = append(want, i)
					}
				}
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%s: of %q are told %v, want %v", name, key, got, want)
				}
				if hash == nil && set.Ignores(key) && want != nil {
					t.Fatalf("%s: %q is ignored", name, key)
				}
			}
		}
		var old shardedregistry.TopicSet
		var oldLoops map[int]loop
		for i := range 2000 {
			grows := i/500%2 == 0 // then it shrinks
			if rnd.IntN(10) < 2 == grows && len(loops) > 0 {
				for n, l := range loops {
					set = l.leave(l.leave(set)) // the second time it has left
					delete(loops, n)
					break
				}
			} else if grows {
				var f model.Filter
				for range rnd.IntN(3) {
					f.Keys = append(f.Keys, names())
				}
				for range rnd.IntN(3) {
					f.Prefixes = append(f.Prefixes, (names() + "a")[:1+rnd.IntN(2)])
				}
				l := loop{filter: f}
				set, l.leave = set.With(i, f.Filters()...)
				loops[i] = l
			}
			if i%50 == 0 {
				check(set, loops)
			}
			if i%400 == 200 {
				if oldLoops != nil {
					check(old, oldLoops)
				}
				old, oldLoops = set, map[int]loop{}
				for n, l := range loops {
					oldLoops[n] = l
				}
			}
		}
		for _, l := range loops {
			set = l.leave(set)
		}
		if !set.IsEmpty() {
			t.Errorf("%s: all loops have left, and something stays", name)
		}
		check(old, oldLoops)
	}
}

// The set stays flat and small, and the bitmap rules out most keys, also where loops have
// come and gone.
func TestTopicsShape(t *testing.T) {
	watched := func(i int) string { return fmt.Sprint("watched ", i) }
	set := shardedregistry.NewTopicSet(nil)
	var leave []func(shardedregistry.TopicSet) shardedregistry.TopicSet
	join := func(i int) {
		with, without := set.With(i, shardedregistry.Keys(watched(i)))
		set, leave = with, append(leave, without)
	}
	for i := range 20_000 {
		join(i)
		if n := i + 1; n == 10 || n == 100 || n == 1000 {
			depth, bytes := set.Depth()
			mistaken := set.Mistaken(func(i int) string { return fmt.Sprint("other ", i) }, 10_000)
			if mistaken > 800 || bytes > max(64, 4*n) || depth > 5 {
				t.Errorf("%d loops: the bitmap of %d bytes does not rule out %d of 10000, the depth is %d", n, bytes, mistaken, depth)
			}
		}
	}
	if depth, bytes := set.Depth(); depth > 10 || bytes > 4096 {
		t.Errorf("20000 loops: depth %d, bitmap of %d bytes", depth, bytes)
	}
	for _, f := range leave[:19_990] {
		set = f(set)
	}
	leave = leave[19_990:]
	for i := range 5000 { // few at a time
		join(i)
		set = leave[len(leave)-1](set)
	}
	if n := set.Mistaken(func(i int) string { return fmt.Sprint("other ", i) }, 10_000); n > 800 {
		t.Errorf("when most have left, the bitmap does not rule out %d of 10000", n)
	}
	if got := set.Told(watched(19_995)); !slices.Equal(got, []int{19_995}) {
		t.Errorf("of a key are told %v", got)
	}
}

// Loops that watch the same keys share topics, and each leaves for itself.
func TestTopicsAreShared(t *testing.T) {
	set := shardedregistry.NewTopicSet(nil)
	var leave []func(shardedregistry.TopicSet) shardedregistry.TopicSet
	for i := range 5000 {
		with, without := set.With(i, shardedregistry.Keys("a"), shardedregistry.Prefix("b/"))
		set, leave = with, append(leave, without)
	}
	for _, key := range []string{"a", "b/c"} {
		if got := set.Told(key); len(got) != 5000 || !slices.IsSorted(got) {
			t.Errorf("%d loops are told of %q", len(got), key)
		}
	}
	set = leave[10](set)
	if got := set.Told("a"); len(got) != 4999 || slices.Contains(got, 10) {
		t.Errorf("when one has left, %d are told", len(got))
	}
}

// A set is never extended in place: two loops that join the same one at the same time
// would overwrite one another, and one would miss changes for ever.
func TestTopicSetsKeepApart(t *testing.T) {
	set := shardedregistry.NewTopicSet(func(string) uint64 { return 7 })
	loop := 0
	for i := range 200 {
		for _, f := range [][2]shardedregistry.Filter[string]{
			{shardedregistry.Keys("shared"), shardedregistry.Keys("shared")},
			{shardedregistry.Keys(fmt.Sprint("a", i)), shardedregistry.Keys(fmt.Sprint("b", i))},
			{shardedregistry.Prefix("p"), shardedregistry.Prefix("p")},
			{shardedregistry.Prefix(fmt.Sprint("q", i)), shardedregistry.Prefix(fmt.Sprint("r", i))},
			{shardedregistry.Prefix(""), shardedregistry.Prefix("")},
		} {
			loop += 2
			first, _ := set.With(loop, f[0])
			second, _ := set.With(loop+1, f[1])
			for _, key := range []string{"shared", fmt.Sprint("a", i), fmt.Sprint("b", i), "p", fmt.Sprint("q", i), fmt.Sprint("r", i)} {
				if slices.Contains(first.Told(key), loop+1) || slices.Contains(second.Told(key), loop) {
					t.Fatalf("two sets made of one of %d loops overwrite one another", i)
				}
			}
			set = first
		}
	}
}

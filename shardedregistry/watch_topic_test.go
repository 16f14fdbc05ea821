//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
		names := func() string {
			if rnd.IntN(3) == 0 { // some differ only where the bitmap does not look
				return fmt.Sprintf("%020d/%d/%020d", rnd.IntN(2), rnd.IntN(40), rnd.IntN(2))
			}
			return "aaaaaaaaaaaaa"[:rnd.IntN(14)] + fmt.Sprint(rnd.IntN(40))
		}
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
				if hash == nil && set.Ignores(key) != (want == nil) {
					t.Fatalf("%s: of %q are told %v, and it is ignored: %v", name, key, want, set.Ignores(key))
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
					prefix := names() + "a"
					if len(prefix) < 40 {
						prefix = prefix[:1+rnd.IntN(2)]
					}
					f.Prefixes = append(f.Prefixes, prefix[:len(prefix)-rnd.IntN(2)])
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

// The bitmap rules out most prefixes, too.
func TestTopicsOfPrefixesShape(t *testing.T) {
	var prefixes []string
	for i := range 1000 {
		prefixes = append(prefixes, fmt.Sprintf("plans/%04d/", i))
	}
	rulesOut, mistaken := shardedregistry.RulesOut(prefixes...), 0
	for i := 1000; i < 10_000; i++ {
		if !rulesOut(fmt.Sprintf("plans/%04d/key", i)) {
			mistaken++
		}
	}
	if mistaken > 720 {
		t.Errorf("of 9000 keys, %d are not ruled out", mistaken)
	}
}

// The bitmap never rules out a prefix that is watched, wherever its text lies in memory.
func TestWatchedTopicsAreNotRuledOut(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.IntN(256))
		}
		return string(b)
	}
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 24, 31, 32, 33, 100, 300} {
		prefix := text(n)
		rulesOut := shardedregistry.RulesOut(prefix)
		for _, before := range []int{0, 1, 3} {
			for _, rest := range []int{0, 1, 9} {
				all := text(before) + prefix + text(rest)
				if rulesOut(all[before:]) {
					t.Errorf("a key with %d bytes more than a prefix of %d is ruled out", rest, n)
				}
			}
		}
	}
}

// Loops over prefixes of one length that are alone find the same as beside others, also where
// the bitmap cannot tell two prefixes apart.
func TestTopicsAlone(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 40} {
		text := strings.Repeat("x", n)
		last := text[:n-1] + "y"
		same := text // for the bitmap
		if n > 32 {
			same = text[:16] + strings.Repeat("z", n-32) + text[:16]
		}
		set, _ := shardedregistry.NewTopicSet(nil).With(1, shardedregistry.Prefix(text))
		set, _ = set.With(2, shardedregistry.Prefix(last))
		beside, _ := set.With(3, shardedregistry.Keys("a key"), shardedregistry.Prefix(strings.Repeat("another", 20)))
		for _, key := range []string{"", text, last, same, text[:n-1], text[:n-1] + "z", "y" + text[1:]} {
			watched := key == text || key == last
			for _, rest := range []string{"", "x", "a longer rest of the key"} {
				if text[:n-1] == key && rest == "x" {
					continue // is text
				}
				if got, other := set.Ignores(key+rest), beside.Ignores(key+rest); got == watched || other != got {
					t.Errorf("beside prefixes of %d bytes, that %q is ignored is %v, and beside others %v", n, key+rest, got, other)
				}
			}
		}
	}
}

// The hash of a prefix depends on 16 bytes at each end of it, and on its length.
func TestTopicHash(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	seen := map[uint64]string{}
	for n := range 80 {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(rnd.IntN(256))
		}
		is := func(what string, hash uint64) {
			t.Helper()
			what = fmt.Sprint(what, " of ", n)
			if other, ok := seen[hash]; ok {
				t.Errorf("%s has the hash of %s", what, other)
			}
			seen[hash] = what
		}
		both := func(what string) {
			t.Helper()
			is(what, shardedregistry.TopicHash(5, string(text)))
			if n > 0 {
				is(what+", another seed", shardedregistry.TopicHash(6, string(text)))
			}
		}
		both("a text")
		for i := range text {
			if i < 16 || i >= n-16 {
				text[i] ^= 1 << rnd.IntN(8)
				both(fmt.Sprint("a text with another byte ", i))
			}
		}
	}
	zeros := make([]byte, 80) // only their lengths differ
	for n := range zeros {
		hash := shardedregistry.TopicHash(7, string(zeros[:n]))
		if other, ok := seen[hash]; ok {
			t.Errorf("%d zeros have the hash of %s", n, other)
		}
		seen[hash] = fmt.Sprint(n, " zeros")
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
		got := set.Told(key)
		slices.Sort(got)
		if got = slices.Compact(got); len(got) != 5000 {
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

// Loops are told in the order in which they have joined, however many watch a key, and also when some
// have left.
func TestLoopsAreToldInOrder(t *testing.T) {
	set := shardedregistry.NewTopicSet(nil)
	var (
		leave []func(shardedregistry.TopicSet) shardedregistry.TopicSet
		want  []int
	)
	for i := range 5000 {
		with, without := set.With(i, shardedregistry.Keys("a"))
		set, leave = with, append(leave, without)
	}
	for i := range 5000 {
		if i%3 == 0 || i > 16 && i < 300 {
			set = leave[i](set)
		} else {
			want = append(want, i)
		}
	}
	if got := set.Told("a"); !slices.Equal(got, want) {
		t.Errorf("%d loops are told, want %d in order", len(got), len(want))
	}
}

// A loop that joins changes nothing in the bitmap of the set that writers may be reading.
func TestBitmapsKeepApart(t *testing.T) {
	old, _ := shardedregistry.NewTopicSet(nil).With(0, shardedregistry.Keys("a"))
	other := func(i int) string { return fmt.Sprint("other ", i) }
	before := old.Mistaken(other, 1000)
	old.With(1, shardedregistry.Keys(other(1), other(2), other(3), other(4)), shardedregistry.Prefix(other(5)))
	if after := old.Mistaken(other, 1000); after != before {
		t.Errorf("the bitmap does not rule out %d keys, and before a loop joined another set %d", after, before)
	}
}

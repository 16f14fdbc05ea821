//go:build !modelcheck

package cowchangeset_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// world is a state that changes apply to. What does not exist is not in it.
type world map[string]string

// apply makes changes, which must fit: each finds what it changes as it says.
func (w world) apply(changes []Change) error {
	for i, c := range changes {
		if w[c.Resource] != c.Before {
			return fmt.Errorf("change %d, %v, finds %q", i, c, w[c.Resource])
		}
		if w[c.Resource] = c.After; c.After == "" {
			delete(w, c.Resource)
		}
	}
	return nil
}

// mustApply returns what changes make of w, which stays as it is.
func mustApply(t *testing.T, w world, changes []Change) world {
	t.Helper()
	after := maps.Clone(w)
	if err := after.apply(changes); err != nil {
		t.Fatalf("%v, when %v are applied to %v", err, changes, w)
	}
	return after
}

// somewhere returns a random world of few resources.
func somewhere(random *rand.Rand) world {
	w := world{}
	for i := range 4 {
		if random.IntN(2) == 0 {
			w[fmt.Sprint(i)] = fmt.Sprint(random.IntN(3))
		}
	}
	return w
}

// happenings returns random changes that fit w, some of which change nothing.
func happenings(random *rand.Rand, w world) (changes []Change) {
	w = maps.Clone(w)
	for range random.IntN(20) {
		r := fmt.Sprint(random.IntN(4))
		c := Change{r, w[r], fmt.Sprint(random.IntN(3))}
		if random.IntN(3) == 0 {
			c.After = ""
		}
		if w.apply([]Change{c}) != nil {
			panic("it does not fit")
		}
		changes = append(changes, c)
	}
	return changes
}

func coalesced(changes []Change) []Change {
	return cowchangeset.Coalesce(slices.Values(changes), resourceOf, mergeChanges)
}

func inverted(t *testing.T, changes []Change) []Change {
	t.Helper()
	undo, err := cowchangeset.Invert(slices.Values(changes), undoChange)
	if err != nil {
		t.Fatal(err)
	}
	return undo
}

// The net effect has the effect of all changes, and the inverse undoes it.
func TestCoalesceAndInvertKeepTheirPromises(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		before := somewhere(random)
		changes := happenings(random, before)
		after := mustApply(t, before, changes)
		nets := coalesced(changes)
		if got := mustApply(t, before, nets); !maps.Equal(got, after) {
			t.Fatalf("%v make %v of %v; %v make %v", changes, after, before, nets, got)
		}
		if again := coalesced(nets); !slices.Equal(again, nets) {
			t.Fatalf("%v became %v", nets, again)
		}
		for _, done := range [][]Change{changes, nets} {
			if got := mustApply(t, after, inverted(t, done)); !maps.Equal(got, before) {
				t.Fatalf("the inverse of %v makes %v of %v", done, got, after)
			}
			if twice := inverted(t, inverted(t, done)); !slices.Equal(twice, done) {
				t.Fatalf("%v, inverted twice, became %v", done, twice)
			}
			if left := coalesced(slices.Concat(done, inverted(t, done))); len(slices.DeleteFunc(left, isNothing)) != 0 {
				t.Fatalf("of %v and its inverse, %v are left", done, left)
			}
		}
		more := happenings(random, after)
		if a, b := coalesced(slices.Concat(nets, more)), coalesced(slices.Concat(changes, more)); !slices.Equal(a, b) {
			t.Fatalf("%v, and then %v: %v in parts, %v at once", changes, more, a, b)
		}
	}
}

// isNothing reports whether c, which was recorded alone, changes nothing.
func isNothing(c Change) bool { return c.Before == c.After }

// naiveNets is Coalesce as one might think it: each entry asks what those of its key
// amount to that came before, and if that is nothing, what they do from it on.
func naiveNets(entries []string, key func(string) byte, merge func(a, b string) (string, bool)) (nets []string) {
	fold := func(es []string, k byte) (net string, live bool) {
		for _, e := range es {
			switch {
			case key(e) != k:
			case !live:
				net, live = e, true
			default:
				net, live = merge(net, e)
			}
		}
		return net, live
	}
	for i, e := range entries {
		_, begun := fold(entries[:i], key(e))
		if begun {
			continue
		}
		for j := i + 1; j <= len(entries); j++ {
			net, live := fold(entries[i:j], key(e))
			if !live {
				break
			}
			if j == len(entries) {
				nets = append(nets, net)
			}
		}
	}
	return nets
}

// Coalesce folds in order, whatever merge is: here it is neither commutative nor
// associative, and cancels at random.
func TestCoalesceFoldsInOrder(t *testing.T) {
	key := func(e string) byte { return strings.TrimLeft(e, "(")[0] }
	merge := func(a, b string) (string, bool) {
		net := "(" + a + b + ")"
		return net, (len(net)+int(b[1]))%3 != 0
	}
	longest := 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		entries := make([]string, random.IntN(16))
		for i := range entries {
			entries[i] = string([]byte{'a' + byte(random.IntN(3)), 'a' + byte(i)})
		}
		want := naiveNets(entries, key, merge)
		if got := cowchangeset.Coalesce(slices.Values(entries), key, merge); !slices.Equal(got, want) {
			t.Fatalf("%q: got %q, want %q", entries, got, want)
		}
		longest = max(longest, len(want))
	}
	if longest != 3 {
		t.Errorf("at most %d keys at once", longest)
	}
}

// Where the net effect of a key stands.
func TestCoalesceOrder(t *testing.T) {
	for _, tt := range []struct {
		name           string
		changes, wants []Change
	}{
		{"none", nil, nil},
		{"one", []Change{{"a", "", "1"}}, []Change{{"a", "", "1"}}},
		{"at the first of its key", []Change{{"a", "", "1"}, {"b", "", "1"}, {"a", "1", "2"}}, []Change{{"a", "", "2"}, {"b", "", "1"}}},
		{"cancelled", []Change{{"a", "", "1"}, {"b", "", "1"}, {"a", "1", ""}}, []Change{{"b", "", "1"}}},
		{"begun again behind others", []Change{{"a", "", "1"}, {"b", "", "1"}, {"a", "1", ""}, {"a", "", "2"}}, []Change{{"b", "", "1"}, {"a", "", "2"}}},
		{"cancelled again", []Change{{"a", "", "1"}, {"a", "1", ""}, {"a", "", "2"}, {"a", "2", ""}}, nil},
		{"deleted and made again", []Change{{"a", "1", ""}, {"b", "", "1"}, {"a", "", "2"}}, []Change{{"a", "1", "2"}, {"b", "", "1"}}},
		{"back as it was", []Change{{"a", "1", "2"}, {"a", "2", "3"}, {"a", "3", "1"}}, nil},
	} {
		if got := coalesced(tt.changes); !slices.Equal(got, tt.wants) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.wants)
		}
	}
}

// NaN is another key each time. Keys may have any type that can be compared.
func TestCoalesceOddKeys(t *testing.T) {
	type entry struct {
		k any
		n int
	}
	sum := func(a, b entry) (entry, bool) { return entry{a.k, a.n + b.n}, a.n+b.n != 0 }
	entries := []entry{{math.NaN(), 1}, {nil, 2}, {0.0, 4}, {math.NaN(), -1}, {nil, 8}, {math.Copysign(0, -1), 16}, {0, 32}}
	var got []int
	for _, e := range cowchangeset.Coalesce(slices.Values(entries), func(e entry) any { return e.k }, sum) {
		got = append(got, e.n)
	}
	if !slices.Equal(got, []int{1, 10, 20, -1, 32}) {
		t.Errorf("got %v", got)
	}
}

func TestCoalesceAndInvertNil(t *testing.T) {
	none := slices.Values([]Change(nil))
	for want, f := range map[string]func(){
		"cowchangeset: Coalesce called with a nil sequence":       func() { cowchangeset.Coalesce(nil, resourceOf, mergeChanges) },
		"cowchangeset: Coalesce called with a nil key function":   func() { cowchangeset.Coalesce[Change, string](none, nil, mergeChanges) },
		"cowchangeset: Coalesce called with a nil merge function": func() { cowchangeset.Coalesce(none, resourceOf, nil) },
		"cowchangeset: Invert called with a nil sequence":         func() { cowchangeset.Invert(nil, undoChange) },
		"cowchangeset: Invert called with a nil inverse function": func() { cowchangeset.Invert(none, nil) },
		"cowchangeset: Values called with a nil sequence":         func() { cowchangeset.Values[int, int](nil) },
	} {
		if p := mustPanic(t, f); p != want {
			t.Errorf("got %q, want %q", p, want)
		}
	}
}

// Functions are called as often as is said, and may panic, exit, or call again.
func TestCoalesceCalls(t *testing.T) {
	entries := []Change{{"a", "", "1"}, {"b", "", "1"}, {"a", "1", "2"}, {"a", "2", "3"}}
	keys, merges := 0, 0
	cowchangeset.Coalesce(slices.Values(entries),
		func(c Change) string { keys++; return c.Resource },
		func(a, b Change) (Change, bool) { merges++; coalesced(entries); return mergeChanges(a, b) })
	if keys != 4 || merges != 2 {
		t.Errorf("%d keys asked for, %d merged", keys, merges)
	}
	if p := mustPanic(t, func() {
		cowchangeset.Coalesce(slices.Values(entries), resourceOf, func(a, b Change) (Change, bool) { panic("mine") })
	}); p != "mine" {
		t.Error(p)
	}
	goexit(t, func() {
		cowchangeset.Coalesce(slices.Values(entries), func(Change) string { runtime.Goexit(); return "" }, mergeChanges)
	})
}

// Invert stops at the first error, says where it was, and returns nothing.
func TestInvertFails(t *testing.T) {
	asked := 0
	var entries iter.Seq[Change] = func(yield func(Change) bool) {
		for _, c := range []Change{{"a", "", "1"}, {"b", "dropped", ""}, {"c", "dropped", ""}} {
			asked++
			if !yield(c) {
				return
			}
		}
	}
	undo, err := cowchangeset.Invert(entries, undoChange)
	if undo != nil || !errors.Is(err, errNoBackup) || err.Error() != "cowchangeset: inverting entry 1: no backup" || asked != 2 {
		t.Errorf("%v, %v, after %d entries", undo, err, asked)
	}
	if undo, err := cowchangeset.Invert(slices.Values([]Change(nil)), undoChange); len(undo) != 0 || err != nil {
		t.Errorf("%v, %v", undo, err)
	}
}

func TestValues(t *testing.T) {
	var s cowchangeset.Slice[string]
	s.Append("a", "b", "c")
	values := cowchangeset.Values(s.All())
	for range 2 {
		if got := slices.Collect(values); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("got %v", got)
		}
	}
	for v := range values {
		if v == "b" {
			break
		}
	}
}

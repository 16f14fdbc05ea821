//go:build !modelcheck

package table_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"weak"
)

// The set grows with its cells and shrinks with them, also where all have one
// hash, and keeps nothing that has left.
func TestLinesFollowTheirSize(t *testing.T) {
	for name, hash := range hashes() {
		t.Run(name, func(t *testing.T) {
			p := newParts(hash)
			least := p.Chains()
			const n = 2000
			for i := range n {
				p.add(p.new(fmt.Sprint(i), i))
			}
			if c := p.Chains(); c < n/5 || c > n {
				t.Errorf("%d chains for %d cells", c, n)
			}
			gone := weak.Make(p.load("7"))
			for i := range n {
				p.remove(p.load(fmt.Sprint(i)))
			}
			if c := p.Chains(); c != least {
				t.Errorf("%d chains for no cells, want %d", c, least)
			}
			if runtime.GC(); gone.Value() != nil {
				t.Error("what has left is kept")
			}
			runtime.KeepAlive(p)
		})
	}
}

// Only a set of more chains than fit into a cache holds more cells in each.
func TestLinesOfFewChainsHoldFew(t *testing.T) {
	p := newParts(hashes()["good"])
	for _, tt := range []struct{ cells, chains int }{{12_000, 8192}, {30_000, 8192}, {32_000, 16_384}} {
		for i := p.Len(); i < tt.cells; i++ {
			p.add(p.new(fmt.Sprint(i), i))
		}
		if c := p.Chains(); c != tt.chains {
			t.Errorf("%d chains for %d cells, want %d", c, tt.cells, tt.chains)
		}
	}
}

// A chain takes what comes where another has left, in every bucket of it.
func TestLinesReuseSlots(t *testing.T) {
	p := newParts(func(string) uint64 { return 0 })
	for i := range 12 {
		p.add(p.new(fmt.Sprint(i), i))
	}
	for i := range 100 {
		k := fmt.Sprint(i % 12)
		p.remove(p.load(k))
		p.add(p.new(k, i))
	}
	if n := p.Buckets(0); n != 3 {
		t.Errorf("%d buckets for 12 cells, want 3", n)
	}
}

// A loop keeps nothing that has come and gone since it began, however often the
// set is resized meanwhile, but for the cells of the chain that it is at.
func TestLinesAllKeepsNothing(t *testing.T) {
	p := newParts(atoi)
	for i := range 20 {
		p.add(p.new(fmt.Sprint(i), i))
	}
	for range p.All() {
		var gone []weak.Pointer[part]
		for range 2 {
			for i := 20; i < 500; i++ {
				e := p.new(fmt.Sprint(i), i)
				p.add(e)
				gone = append(gone, weak.Make(e))
			}
			for i := 20; i < 500; i++ {
				p.remove(p.load(fmt.Sprint(i)))
			}
		}
		if n := kept(gone); n != 0 {
			t.Fatalf("%d of %d that have left are kept", n, len(gone))
		}
	}
	runtime.KeepAlive(p)
}

// Nor does it keep what was in a chain before, or a cell that it left out of this
// one, where chains have become fewer since it began.
func TestLinesAllKeepsNoOther(t *testing.T) {
	p := newParts(atoi)
	for i := range 21 {
		p.add(p.new(fmt.Sprint(i), i))
	}
	p.add(p.new("32", 32)) // more in the first chain than in the next
	many := p.Chains()
	other := fmt.Sprint(1 + many/2) // beside 1, when there are half as many
	var before []weak.Pointer[part]
	for e := range p.All() {
		switch e.n {
		case 0:
			for i := range 33 {
				if k := fmt.Sprint(i); k != "1" && k != other && p.load(k) != nil {
					before = append(before, weak.Make(p.load(k)))
					p.remove(p.load(k))
				}
			}
			if p.Chains() != many/2 {
				t.Fatalf("%d chains, want %d", p.Chains(), many/2)
			}
		case 1:
			if n := kept(before); n != 0 {
				t.Errorf("%d cells of chains before this one are kept", n)
			}
			gone := weak.Make(p.load(other))
			p.remove(p.load(other))
			if kept([]weak.Pointer[part]{gone}) != 0 {
				t.Errorf("%s, which is not of this chain, is kept", other)
			}
		}
	}
	runtime.KeepAlive(p)
}

// atoi hashes keys that are numbers, in the order of chains.
func atoi(k string) uint64 {
	n, _ := strconv.Atoi(k)
	return uint64(n)
}

// kept returns how many of them a collection leaves.
func kept(parts []weak.Pointer[part]) (n int) {
	runtime.GC()
	for _, p := range parts {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

// A set has the room that Init was asked for, and keeps it.
func TestLinesRoom(t *testing.T) {
	for room, want := range map[int]int{-1: 8, 0: 8, 20: 8, 21: 16, 1000: 512} {
		var p parts
		p.hash = func(k string) uint64 { return uint64(len(k)) }
		p.Init(p.seeded, room)
		if p.Chains() != want {
			t.Errorf("%d chains for %d cells, want %d", p.Chains(), room, want)
		}
		for i := range room {
			p.add(p.new(strings.Repeat("k", i), i))
		}
		if p.Chains() != want {
			t.Errorf("%d chains when %d cells are there, want %d", p.Chains(), room, want)
		}
		for i := range room {
			p.LoadAndDelete(p.key(strings.Repeat("k", i)))
		}
		if p.Chains() != want {
			t.Errorf("%d chains when %d cells have gone, want %d", p.Chains(), room, want)
		}
	}
}

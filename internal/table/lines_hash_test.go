//go:build !modelcheck

package table_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// No key is hashed while a mutex is held, by whom ever: while the set grows and
// shrinks, where chains have several buckets, and while All goes through them.
func TestLinesHashHoldingNothing(t *testing.T) {
	for name, inner := range hashes() {
		t.Run(name, func(t *testing.T) {
			p := newParts(inner)
			hashed, held := 0, 0
			p.hash = func(k string) uint64 {
				hashed++
				held += p.Held()
				return inner(k)
			}
			const n = 400
			for i := range n {
				p.add(p.new(fmt.Sprint(i), i))
				e := p.new(fmt.Sprint(i/2), i)
				p.Swap(p.key(e.key), e)
			}
			grown, _ := p.Resizes()
			for e := range p.All() {
				p.remove(e) // and it shrinks, so that some are in chains with others
			}
			if _, shrunk := p.Resizes(); grown < 5 || shrunk < 5 || p.Len() != 0 {
				t.Errorf("it grew %d times and shrank %d times", grown, shrunk)
			}
			if held != 0 {
				t.Errorf("%d mutexes were held while %d keys were hashed", held, hashed)
			}
		})
	}
}

// A set that shrinks hashes no key but that of the call.
func TestLinesShrinkHashingNothing(t *testing.T) {
	p, hashed := newNumbered(), 0
	p.hash = func(k string) uint64 {
		hashed++
		return atoi(k)
	}
	const n = 2000
	for i := range n {
		p.put(i)
	}
	grown, _ := p.Resizes()
	for i := range n {
		e := p.load(strconv.Itoa(i))
		k := p.key(e.key)
		hashed = 0
		if !p.CompareAndDelete(k, e) {
			t.Fatalf("%d is not there", i)
		}
		if hashed != 0 {
			t.Fatalf("to delete one of %d cells, %d keys are hashed", p.Len()+1, hashed)
		}
	}
	if _, shrunk := p.Resizes(); shrunk != grown || shrunk < 5 {
		t.Errorf("it grew %d times and shrank %d times", grown, shrunk)
	}
}

// A set that grows hashes no key the first three times, and few in total, again.
func TestLinesGrowHashingLittle(t *testing.T) {
	p, hashed := newNumbered(), 0
	p.hash = func(k string) uint64 {
		hashed++
		return atoi(k)
	}
	const n = 100_000
	for i := range n {
		e := p.new(strconv.Itoa(i), i)
		k := p.key(e.key)
		hashed--
		p.LoadOrStore(k, e)
		if p.Chains() <= 64 && hashed != 0 {
			t.Fatalf("with %d cells, %d have been hashed again", i+1, hashed)
		}
	}
	if grown, _ := p.Resizes(); grown != 12 && grown != 13 {
		t.Errorf("it grew %d times", grown)
	}
	if hashed < n/20 || hashed > n/4 {
		t.Errorf("%d of %d keys have been hashed again", hashed, n)
	}
}

// Checks L7.

// What a set needs to grow it knows again when it has shrunk.
func TestLinesGrowAgainHashingNothing(t *testing.T) {
	p, hashed := newNumbered(), 0
	const n, few = 160, 4 // as many as fit into 64 chains, and so few that 8 suffice
	for i := range n {
		p.put(i)
	}
	for i := few / 2; i < n-few/2; i++ { // the first have no ways, and the last have all
		p.take(i)
	}
	if p.Chains() != 8 || p.Len() != few {
		t.Fatalf("%d chains for %d cells, want 8 for %d", p.Chains(), p.Len(), few)
	}
	p.hash = func(k string) uint64 {
		hashed++
		return atoi(k)
	}
	for i := few / 2; i < n-few/2; i++ {
		p.put(i)
	}
	if p.Chains() != 64 || hashed != n-few {
		t.Errorf("%d chains, and %d keys have been hashed, want 64, and %d", p.Chains(), hashed, n-few)
	}
	if n := p.Wrong(); n != 0 {
		t.Errorf("%d cells have a wrong tag or wrong ways", n)
	}
}

// Checks L7.

// A set that has shrunk, so that its cells know some of the bits that they can, grows beyond that.
func TestLinesGrowPastWhatTheyKnow(t *testing.T) {
	for _, n := range []int{8, 16, 32} {
		p := newNumbered()
		for i := range 16 {
			p.put(i)
		}
		p.GrowTo(64) // so that no cell knows any bit
		for p.Chains() > n {
			p.Shrink()
		}
		if n := p.Wrong(); n != 0 {
			t.Errorf("%d cells have a wrong tag or wrong ways with %d chains", n, p.Chains())
		}
		p.GrowTo(1024)
		for i := range 16 {
			if e := p.load(strconv.Itoa(i)); e == nil {
				t.Errorf("%d is lost after %d chains", i, n)
			}
		}
	}
}

// A chain whose cells have moved together is as short as they allow.
func TestLinesMoveIntoFullBuckets(t *testing.T) {
	p := newNumbered()
	for i := range 16 {
		p.put(i << 16)
	}
	before := p.Buckets(0)
	p.GrowTo(1024)
	if n := p.Buckets(0); before != 4 || n != 4 {
		t.Errorf("16 cells are in %d buckets, and after they have moved in %d, want 4", before, n)
	}
}

// Checks L7.

// Who moves a chain moves what is there then, also what has come, or has replaced
// another cell, since he hashed the keys that were there before. A writer, whose
// Compute is in its function when the growth begins, makes the change; and who
// began it goes on when the writer has released the mutex and not moved the chain
// yet.
func TestLinesMoveWhatHasCome(t *testing.T) {
	const chains, chain = 16, 3
	type keys = []int
	for name, tt := range map[string]struct {
		before, gone keys // of the chain, between 3 and 19, which came from the array before, and 35
		key          int
		remove       bool
	}{
		"adds to the first half":    {nil, nil, 67, false},
		"adds to the second half":   {nil, nil, 51, false},
		"adds to a second bucket":   {keys{51, 67, 83, 99}, nil, 115, false},
		"adds where another was":    {keys{51}, keys{51}, 67, false},
		"adds where no other was":   {keys{67}, keys{67}, 51, false},
		"replaces one of the first": {nil, nil, 3, false},
		"replaces one that moved":   {nil, nil, 19, false},
		"replaces one that came":    {keys{51}, nil, 51, false},
		"removes":                   {keys{51}, nil, 51, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, all := newNumbered(), map[string]*part{}
			add := func(i int) {
				e := p.new(strconv.Itoa(i), i)
				if all[e.key] = e; !p.add(e) {
					t.Fatalf("%d is there already", i)
				}
			}
			for i := range 21 {
				add(i)
			}
			for _, i := range tt.before {
				add(i)
			}
			add(35)
			for _, i := range tt.gone {
				p.take(i)
				delete(all, strconv.Itoa(i))
			}
			i := 1 << 10
			for ; p.Len() < chains*5/2; i++ {
				if i%chains != chain {
					add(i)
				}
			}
			if p.Chains() != chains || p.Resizing() {
				t.Fatalf("%d chains, want %d", p.Chains(), chains)
			}

			inFunc, toGoOn := make(chan struct{}), make(chan struct{})
			hasChanged, hasMoved := make(chan struct{}), make(chan struct{})
			p.Forget()
			var calls atomic.Int32
			fresh := p.new(strconv.Itoa(tt.key), 1)
			key := p.key(fresh.key)
			p.hash = func(k string) uint64 {
				switch {
				case k == "35" && calls.CompareAndSwap(0, 1): // who has begun comes to the last of the chain
					close(toGoOn)
					<-hasChanged
				case calls.CompareAndSwap(1, 2): // the writer moves his first chain
					close(hasChanged)
					<-hasMoved
				}
				return atoi(k)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				p.Compute(key, func(*part) *part {
					close(inFunc)
					<-toGoOn
					if tt.remove {
						return nil
					}
					return fresh
				})
				if calls.CompareAndSwap(1, 2) { // it moves nothing where it only replaces
					close(hasChanged)
				}
			})
			<-inFunc
			if i%chains == chain {
				i++
			}
			add(i)
			if calls.CompareAndSwap(0, 3) {
				close(toGoOn)
			}
			if calls.Load() != 2 || p.Chains() != 2*chains {
				t.Errorf("%d chains, want %d; %d have paused, want 2", p.Chains(), 2*chains, calls.Load())
			}
			close(hasMoved)
			wg.Wait()
			if all[fresh.key] = fresh; tt.remove {
				delete(all, fresh.key)
			}
			for k, e := range all {
				if p.load(k) != e {
					t.Errorf("Load(%s) = %v, want %v", k, p.load(k), e)
				}
			}
			wantAll(t, p.parts, all)
		})
	}
}

//go:build !modelcheck

package table_test

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// Where a chain cannot move, because its mutex is held, nobody waits but who
// writes to it; and the set is resized when it can.
func TestLinesStuckChain(t *testing.T) {
	p := newParts(func(k string) uint64 { return uint64(k[0]) })
	all := map[string]*part{}
	add := func(keys string) {
		for _, k := range keys {
			e := p.new(string(k), 0)
			if all[e.key] = e; !p.add(e) {
				t.Errorf("%c is there already", k)
			}
		}
	}
	add("abcdefghijklmnopqrst") // as many as fit
	chains := p.Chains()
	release := p.Hold(int('c') % chains)
	add("zABDEFG")
	if !p.Resizing() || p.Gone() != chains-1 {
		t.Errorf("%d of %d chains have moved", p.Gone(), chains)
	}
	for _, k := range []string{"a", "A"} {
		if !p.remove(all[k]) {
			t.Errorf("CompareAndDelete(%s) does not find it", k)
		}
		delete(all, k)
	}
	for k, e := range all {
		if p.load(k) != e {
			t.Errorf("Load(%s) = %v, want %v", k, p.load(k), e)
		}
	}
	if p.Chains() != chains {
		t.Fatal("the chain that is held has moved")
	}
	release()
	add("H")
	if p.Chains() != 2*chains {
		t.Errorf("%d chains, want %d", p.Chains(), 2*chains)
	}
	wantAll(t, p, all)
}

// So it is where a chain cannot be merged with another, whose mutex is held.
func TestLinesStuckMerge(t *testing.T) {
	p := newNumbered()
	for i := range 21 {
		p.put(i)
	}
	if p.Chains() != 16 {
		t.Fatalf("%d chains, want 16", p.Chains())
	}
	for i := 20; i > 5; i-- {
		p.take(i)
	}
	p.take(5)
	p.Begin(8)
	other := p.HoldNext(1)
	p.take(4)
	if !p.Resizing() || p.Gone() != 14 {
		t.Fatalf("%d chains have moved, want 14: all but 1 and 9", p.Gone())
	}
	for i := range 4 {
		if p.load(strconv.Itoa(i)) == nil {
			t.Errorf("Load(%d) finds nothing", i)
		}
	}
	p.touch(1) // where it is
	if p.Gone() != 14 {
		t.Errorf("%d chains have moved, want 14", p.Gone())
	}
	other()
	p.touch(2)
	if p.Chains() != 8 {
		t.Errorf("%d chains, want 8", p.Chains())
	}
}

// Who begins to resize, and is stuck while it hashes the keys of a chain in order
// to move it, delays nobody, be it who works on that chain. The others move all
// chains, and the set is resized as often as is due.
func TestLinesStuckHelper(t *testing.T) {
	p := newNumbered()
	const chains = 1024
	n := chains * 5 / 2
	for i := range n {
		p.put(i)
	}
	var armed atomic.Bool
	entered, release := make(chan struct{}), make(chan struct{})
	const stuck = chains + 3 // in the third chain
	inner := p.hash
	p.hash = func(k string) uint64 {
		if k == strconv.Itoa(stuck) && armed.CompareAndSwap(true, false) {
			close(entered)
			<-release
		}
		return inner(k)
	}
	armed.Store(true)
	p.Forget()
	var wg sync.WaitGroup
	wg.Go(func() { p.put(n) })
	<-entered
	if !p.Resizing() || p.Gone() != 3 {
		t.Errorf("%d chains have moved, want 3", p.Gone())
	}
	if p.Held() != 0 {
		close(release)
		t.Fatal("a mutex is held while a key is hashed")
	}
	p.touch(3) // in the chain that it would move
	if p.Gone() < 4 {
		t.Errorf("%d chains have moved, want that of the writer too", p.Gone())
	}
	for i := n + 1; i < 3*n; i++ {
		p.put(i)
	}
	if p.Chains() != 4*chains || p.Resizing() {
		t.Errorf("%d chains, want %d", p.Chains(), 4*chains)
	}
	close(release)
	wg.Wait()
	if p.Chains() != 4*chains || p.Len() != 3*n {
		t.Errorf("%d chains for %d cells, want %d for %d", p.Chains(), p.Len(), 4*chains, 3*n)
	}
	for i := range 3 * n {
		if e := p.load(strconv.Itoa(i)); e == nil {
			t.Errorf("Load(%d) finds nothing", i)
		}
	}
}

// So it is with a writer that hashes the keys of its own chain in order to move
// it: others write to that chain meanwhile, and move it.
func TestLinesStuckWriter(t *testing.T) {
	p := newNumbered()
	for i := range 20 {
		p.put(i)
	}
	p.Begin(16)
	var armed atomic.Bool
	entered, release := make(chan struct{}), make(chan struct{})
	inner := p.hash
	p.hash = func(k string) uint64 {
		if k == "11" && armed.CompareAndSwap(true, false) {
			close(entered)
			<-release
		}
		return inner(k)
	}
	armed.Store(true)
	p.Forget()
	var wg sync.WaitGroup
	wg.Go(func() { p.touch(3) })
	<-entered
	if p.Held() != 0 {
		close(release)
		t.Fatal("a mutex is held while a key is hashed")
	}
	for _, i := range []int{3, 11, 19, 27, 35} {
		p.touch(i)
	}
	if p.Chains() != 16 || p.Resizing() {
		t.Errorf("%d chains, want 16", p.Chains())
	}
	close(release)
	wg.Wait()
	for _, i := range []int{3, 11, 19, 27, 35} {
		if e := p.load(strconv.Itoa(i)); e == nil {
			t.Errorf("Load(%d) finds nothing", i)
		}
	}
	if p.Len() != 22 {
		t.Errorf("%d cells, want 22", p.Len())
	}
}

// A call that takes a portion and does not move it, because it has been
// suspended, delays the resize for no longer than the others take to come round.
func TestLinesLeftPortion(t *testing.T) {
	p := newNumbered()
	const chains = 1024
	n := chains * 5 / 2
	for i := range n + 1 { // the last begins
		p.put(i)
	}
	grows, _ := p.Portion()
	p.Skip(grows)
	calls := 0
	for ; p.Chains() == chains && calls < chains; calls++ {
		p.touch(chains / 2) // not of that portion
	}
	if most := 2 * chains / grows; calls > most {
		t.Errorf("the chains have moved after %d calls, want %d", calls, most)
	}
}

// A chain moves when it is written to, though nobody has come to it.
func TestLinesWritersMoveTheirs(t *testing.T) {
	p := newNumbered()
	const chains = 1024
	n := chains * 5 / 2
	for i := range n + 1 {
		p.put(i)
	}
	release := p.Hold(chains - 1)
	gone, calls := p.Gone(), 0
	for ; calls < 5; calls++ {
		p.touch(chains - 10 - calls)
	}
	grows, _ := p.Portion()
	if want := gone + calls*(grows+1); p.Gone() != want {
		t.Errorf("%d chains have moved, want %d", p.Gone(), want)
	}
	release()
}

// What comes and goes while a resize cannot end is made up for by those who
// write after, also by who only replaces. Each moves a portion, be it of several
// arrays.
func TestLinesCatchUp(t *testing.T) {
	const stuck, first, n = 7, 8, 500
	state := func(t *testing.T, p numbered, chains, gone int) {
		t.Helper()
		if p.Chains() != chains || p.Gone() != gone || !p.Resizing() {
			t.Errorf("%d of %d chains have moved, want %d of %d", p.Gone(), p.Chains(), gone, chains)
		}
	}
	fits := func(t *testing.T, p numbered) {
		t.Helper()
		for range 10 {
			p.touch(first)
		}
		if p.Resizing() || !p.Fits() {
			t.Errorf("%d chains for %d cells", p.Chains(), p.Len())
		}
	}
	// grown has as many cells as fit into so many chains, and more that come while
	// one of these chains cannot move.
	grown := func(chains int) numbered {
		p := newNumbered()
		for i := range chains * 5 / 2 {
			p.put(i)
		}
		release := p.Hold(stuck)
		for i := chains * 5 / 2; i < n; i++ {
			if i%chains != stuck {
				p.put(i)
			}
		}
		state(t, p, chains, chains-1)
		release()
		return p
	}
	t.Run("small", func(t *testing.T) {
		p := grown(8)
		p.touch(first)
		state(t, p, 64, 64-8-16-32)
		fits(t, p)
	})
	t.Run("a portion", func(t *testing.T) {
		p := grown(64)
		p.touch(first)
		state(t, p, 128, 0) // the next has begun
		fits(t, p)
	})
	t.Run("shrinks", func(t *testing.T) {
		p := newNumbered()
		least := p.Chains()
		for i := range n {
			p.put(i)
		}
		many := p.Chains()
		if many != 256 {
			t.Fatalf("%d chains, want 256", many)
		}
		left := slices.Collect(p.All())
		for p.Len() > many*5/16 { // as few as that many chains may have
			if e := left[0]; e.n != first {
				p.take(e.n)
			}
			left = left[1:]
		}
		release := p.Hold(stuck)
		for _, e := range left {
			if e.n%many != stuck && e.n != first {
				p.take(e.n)
			}
		}
		state(t, p, many, many-1)
		release()
		p.touch(first)
		state(t, p, many/2, 0)
		fits(t, p)
		if p.Chains() != least {
			t.Errorf("%d chains for %d cells, want %d", p.Chains(), p.Len(), least)
		}
	})
}

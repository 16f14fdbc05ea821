package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/table"
)

// write and read are of a register.
type write int

func (w write) Kind() string          { return "write" }
func (w write) String() string        { return fmt.Sprintf("write(%d)", int(w)) }
func (w write) After(int) (int, bool) { return int(w), true }

type read int

func (r read) Kind() string            { return "read" }
func (r read) String() string          { return fmt.Sprintf("read() = %d", int(r)) }
func (r read) After(s int) (int, bool) { return s, s == int(r) }

// sum is the sum of all registers.
type sum int

func (r sum) Kind() string            { return "sum" }
func (r sum) String() string          { return fmt.Sprintf("sum() = %d", int(r)) }
func (r sum) After(s int) (int, bool) { return s, s == int(r) }

func (r sum) AfterAll(all Whole[int]) (Whole[int], bool) {
	n := 0
	for _, s := range all {
		n += s
	}
	return all, n == int(r)
}

func at(client, key int, from, to int64, e Event[int]) record[int] {
	return record[int]{key: key, client: client, from: from, to: to, event: e}
}

func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		whole   bool
		history []record[int]
		fails   bool
	}{
		"a read after a write":               {false, []record[int]{at(0, 0, 1, 2, write(1)), at(1, 0, 3, 4, read(1))}, false},
		"a stale read":                       {false, []record[int]{at(0, 0, 1, 2, write(1)), at(1, 0, 3, 4, read(0))}, true},
		"a read during a write, of before":   {false, []record[int]{at(0, 0, 1, 3, write(1)), at(1, 0, 2, 4, read(0))}, false},
		"a read during a write, of after":    {false, []record[int]{at(0, 0, 1, 4, write(1)), at(1, 0, 2, 3, read(1))}, false},
		"reads that go back":                 {false, []record[int]{at(0, 0, 1, 8, write(1)), at(1, 0, 2, 3, read(1)), at(2, 0, 4, 5, read(0))}, true},
		"another key's write":                {false, []record[int]{at(0, 0, 1, 2, write(1)), at(1, 1, 3, 4, read(1))}, true},
		"a sum of both keys":                 {true, []record[int]{at(0, 0, 1, 2, write(1)), at(0, 1, 3, 4, write(2)), at(1, AllKeys, 5, 6, sum(3))}, false},
		"a sum of the second key alone":      {true, []record[int]{at(0, 0, 1, 2, write(1)), at(0, 1, 3, 5, write(2)), at(1, AllKeys, 4, 6, sum(2))}, true},
		"a second half that needs the first": {false, []record[int]{at(0, 0, 1, 4, write(1)), {client: 0, second: true, from: 1, to: 4, event: read(1)}}, false},
	} {
		o := outcome[int]{whole: test.whole, parts: parts(test.history, test.whole)}
		f := o.judge()
		if fails := f != nil && f.illegal; fails != test.fails {
			t.Errorf("%s: fails: %v, want %v", name, fails, test.fails)
		}
	}
}

// register is broken if it writes in two steps, one of which is late.
type register struct {
	word   atomic.Int64
	broken bool
}

func (r *register) trial(*rand.Rand) Trial[int] {
	work := func(c *Client[int]) {
		v := 0
		c.Rounds(1, func(k int) {
			from := c.Now()
			if c.IntN(2) == 0 {
				c.Add(k, from, read(r.word.Load()))
				return
			}
			v++
			if r.broken {
				c.Add(k, from, write(v))
				runtime.Gosched()
			}
			r.word.Store(int64(v))
			if !r.broken {
				c.Add(k, from, write(v))
			}
		}, func() {})
	}
	r.word.Store(0)
	return Trial[int]{Clients: 3, Work: work}
}

func TestCheckAndReject(t *testing.T) {
	t.Setenv(timeVariable, "10ms")
	cover := Check(t, new(register).trial, "read", "write")
	if cover.Trials < leastTrials || cover.Events != 72*cover.Trials {
		t.Errorf("%d trials with %d events", cover.Trials, cover.Events)
	}
	Reject(t, (&register{broken: true}).trial)
}

// What is rare is waited for, but not for ever.
func TestEnough(t *testing.T) {
	const budget = time.Second
	kinds := []string{"often", "rare"}
	often, both := map[string]int{"often": 9}, map[string]int{"often": 9, "rare": 1}
	for _, c := range []struct {
		trials int
		kinds  map[string]int
		spent  time.Duration
		want   bool
	}{
		{leastTrials - 1, both, budget, false},
		{leastTrials, both, budget - 1, false},
		{leastTrials, both, budget, true},
		{leastTrials, often, budget, false},
		{patience*leastTrials - 1, often, patience * budget, false},
		{patience * leastTrials, often, patience*budget - 1, false},
		{patience * leastTrials, often, patience * budget, true},
	} {
		cover := Coverage{Trials: c.trials, Kinds: c.kinds}
		if got := cover.enough(kinds, c.spent, budget); got != c.want {
			t.Errorf("after %v and %d trials with %v: %t", c.spent, c.trials, c.kinds, got)
		}
	}
}

// The seed determines what clients do, and a failure tells the seed.
func TestSeeds(t *testing.T) {
	t.Setenv(seedVariable, "0x17")
	_, next := settings(t)
	if first, second := next(), next(); first != 0x17 || second != 0x17 {
		t.Error("the seed of the environment is not used")
	}
	kinds := func(seed uint64) string {
		o := run(t, seed, new(register).trial)
		var perClient [3]strings.Builder
		for _, r := range o.parts[0] {
			fmt.Fprint(&perClient[r.client], r.event.Kind(), " ")
		}
		return fmt.Sprint(perClient[0].String(), perClient[1].String(), perClient[2].String())
	}
	if one, again := kinds(1), kinds(1); one != again || one == kinds(2) {
		t.Error("what clients do is not what the seed determines")
	}
	f := failure{text: "text"}
	if got := f.describe(t, 0x17, 2, ""); !strings.Contains(got, "HISTORY_SEED=0x17 go test ./fuzz/histories -run '^TestSeeds$' -cpu 2") {
		t.Error(got)
	}
}

// A history that fails is drawn, as a page with the operations in it.
func TestDrawing(t *testing.T) {
	o := outcome[int]{parts: parts([]record[int]{at(0, 0, 1, 2, write(71)), at(1, 0, 3, 4, read(0))}, false)}
	f := o.judge()
	text := f.describe(t, 1, 1, t.TempDir())
	page, err := os.ReadFile(f.drawing)
	if err != nil || !strings.Contains(string(page), "write(71)") || !strings.Contains(text, f.drawing) {
		t.Errorf("%v, a page of %d bytes\n%s", err, len(page), text)
	}
}

// Clients that do not return, panic or exit are told, with what they found.
func TestBadClients(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	defer func(d time.Duration) { hung = d }(hung)
	for want, work := range map[string]func(*Client[int]){
		"does not return": func(*Client[int]) { <-release },
		"panics: oh":      func(*Client[int]) { panic("oh") },
		"exits":           func(*Client[int]) { runtime.Goexit() },
		"client 0: bad 7": func(c *Client[int]) { c.Errorf("bad %d", 7) },
	} {
		if hung = time.Minute; want == "does not return" {
			hung = time.Millisecond
		}
		o := run(t, 1, func(*rand.Rand) Trial[int] { return Trial[int]{Clients: 1, Work: work} })
		if f := o.judge(); f == nil || !strings.Contains(strings.Join(f.wrong, "\n"), want) {
			t.Errorf("%v, want %q", f, want)
		}
	}
}

func TestApart(t *testing.T) {
	c := new(Client[int])
	for name, test := range map[string]struct {
		f        func()
		returned bool
		panicked any
	}{
		"returns": {func() {}, true, nil},
		"panics":  {func() { panic(1) }, false, 1},
		"exits":   {runtime.Goexit, false, nil},
	} {
		if returned, panicked := c.Apart(test.f); returned != test.returned || panicked != test.panicked {
			t.Errorf("%s: returned %v, panicked %v", name, returned, panicked)
		}
	}
}

// All that Tide adds is removed, and nothing twice.
func TestTide(t *testing.T) {
	c := new(Client[int])
	there := map[int]bool{}
	most := 0
	for range 4 {
		c.Tide(func(k int) {
			if there[k] {
				t.Errorf("%d was added twice", k)
			}
			there[k] = true
			most = max(most, len(there))
		}, func(k int) {
			if !there[k] {
				t.Errorf("%d was removed though it was not there", k)
			}
			delete(there, k)
		})
	}
	if len(there) != 0 || most != tideKeys*tideSteps {
		t.Errorf("%d keys at most, and %d are left", most, len(there))
	}
}

func TestResizes(t *testing.T) {
	type deep struct {
		table atomic.Pointer[table.Table[int, int]]
		_     sync.Mutex
	}
	d := new(deep)
	if g, s := Resizes(d); g != 0 || s != 0 {
		t.Errorf("%d growths and %d shrinks of nothing", g, s)
	}
	d.table.Store(table.New[int, int](func(k int, _ uint64) uint64 { return uint64(k) * 0x9e3779b97f4a7c15 }, 0))
	for k := range 1000 {
		d.table.Load().Swap(k, new(int))
	}
	for k := range 1000 {
		d.table.Load().LoadAndDelete(k)
	}
	if g, s := Resizes([]any{d, d}); g < 2 || s < 1 || g > 6 {
		t.Errorf("%d growths and %d shrinks", g, s)
	}
}

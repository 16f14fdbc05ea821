//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Records of all shapes have links: with indexes and without, stored while a
// snapshot is being taken or not, alive and dead.
func TestStreamOfAllShapes(t *testing.T) {
	digits := func(_ string, v *int) []string { return []string{strconv.Itoa(*v)} }
	for name, config := range map[string]shardedregistry.Config[string, *int]{
		"bare":    {},
		"indexed": {Indexes: map[string]func(string, *int) []string{"n": digits}},
		"unique":  {UniqueIndexes: map[string]func(string, *int) []string{"n": digits}, Check: func(string, *int) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			r := transitions(config)
			s, slow := shardedregistry.OpenStream(r, 1000), shardedregistry.OpenStream(r, 1000)
			var taker shardedregistry.Taker[string, *int]
			var want, got []string
			take := func(s shardedregistry.Streamer[string, *int]) (got []string) {
				for _, e := range drain(t, s) {
					if e.Deleted {
						got = append(got, fmt.Sprint(e.Version, " deleted"))
						continue
					}
					got = append(got, fmt.Sprint(e.Version, " ", *e.Value))
				}
				return got
			}
			for i := range 60 {
				switch i % 20 {
				case 5:
					taker = shardedregistry.Join(r)
				case 9:
					taker.Collect()
				case 14:
					taker.Leave()
				}
				if i%7 == 6 {
					e, ok := r.Delete("a")
					if !ok {
						t.Fatal("the key is absent")
					}
					want = append(want, fmt.Sprint(e.Version+1, " deleted"))
				} else {
					v := i
					want = append(want, fmt.Sprint(mustPut(t, r, "a", &v), " ", i))
				}
				if i%3 == 0 {
					got = append(got, take(s)...)
				}
			}
			if got = append(got, take(s)...); !slices.Equal(got, want) {
				t.Errorf("yielded are %v, want %v", got, want)
			}
			if got := take(slow); !slices.Equal(got, want) {
				t.Errorf("a slow loop yields %v, want %v", got, want)
			}
			r.Delete("a")
			take(s)
			take(slow)
			s.Leave()
			slow.Leave()
			wantForgotten(t, r)
			if n := shardedregistry.Kept(r); n != 0 {
				t.Errorf("%d old records are kept for snapshots", n)
			}
		})
	}
}

// A loop that is stuck in its body for ever keeps no more than it may, before it
// has lagged and after.
func TestStreamMemory(t *testing.T) {
	const limit, keys = 20, 4
	r := transitions(shardedregistry.Config[string, *blob]{})
	var values []weak.Pointer[blob]
	put := func(i int) {
		v := new(blob)
		values = append(values, weak.Make(v))
		mustPut(t, r, key(i%keys), v)
	}
	alive := func() (n int) {
		runtime.GC()
		for _, v := range values {
			if v.Value() != nil {
				n++
			}
		}
		return n
	}
	begun := make(chan struct{})
	began(r, begun)
	go func() {
		<-begun
		r.Put("start", nil)
	}()
	for e := range r.Stream(t.Context(), limit) {
		if e.Key != "start" {
			t.Fatalf("%v is yielded", e)
		}
		for i := range limit {
			put(i)
		}
		if n := alive(); n != limit {
			t.Errorf("%d values are kept, want %d", n, limit)
		}
		for i := range 10 * limit {
			put(i)
		}
		if n := alive(); n != keys {
			t.Errorf("%d values are kept when the loop has lagged, want %d", n, keys)
		}
		break
	}
	wantForgotten(t, r)

	// A loop that keeps up keeps nothing.
	s := shardedregistry.OpenStream(r, limit)
	for i := range 10 * limit {
		put(i)
		drain(t, s)
	}
	if n := alive(); n != keys {
		t.Errorf("%d values are kept by a loop that keeps up, want %d", n, keys)
	}
	for i := range limit {
		put(i)
	}
	s.Leave()
	if n := alive(); n != keys {
		t.Errorf("%d values are kept by a loop that has left, want %d", n, keys)
	}
	runtime.KeepAlive(r)
}

// What keeps an old record keeps nothing that came later, and a snapshot keeps
// nothing that came before.
func TestStreamAndWhoKeepsRecords(t *testing.T) {
	r := transitions(shardedregistry.Config[string, *blob]{})
	s := shardedregistry.OpenStream(r, 100)
	first, third := new(blob), new(blob)
	before, after := weak.Make(first), weak.Make(third)
	mustPut(t, r, "a", first)
	mustPut(t, r, "a", new(blob))
	snapshot := r.Snapshot() // while both wait
	mustPut(t, r, "a", third)
	mustPut(t, r, "a", new(blob))
	first, third = nil, nil
	drain(t, s)
	runtime.GC()
	if before.Value() != nil || after.Value() != nil {
		t.Error("a snapshot keeps what it does not contain")
	}
	if snapshot.Len() != 1 {
		t.Error("the snapshot is empty")
	}

	second := new(blob)
	before = weak.Make(second)
	_, err := r.Update("a", func(old *blob) (*blob, error) {
		if second != nil {
			mustPut(t, r, "a", second) // stalls, while others go on
			second = nil
			mustPut(t, r, "a", new(blob))
			drain(t, s)
			if runtime.GC(); before.Value() != nil {
				t.Error("a call that is under way keeps what came later")
			}
		}
		return new(blob), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Leave()
	wantForgotten(t, r)
}

// A Ref of a deleted key keeps nothing that a stream has left behind.
func TestStreamEndsBesideARef(t *testing.T) {
	r := transitions(shardedregistry.Config[string, *blob]{})
	s := shardedregistry.OpenStream(r, 100)
	first := new(blob)
	before := weak.Make(first)
	mustPut(t, r, "a", first)
	first = nil
	ref := r.Ref("a")
	if _, ok := ref.Get(); !ok {
		t.Fatal("the key is absent")
	}
	mustPut(t, r, "a", new(blob))
	r.Delete("a")
	s.Leave()
	if runtime.GC(); before.Value() != nil {
		t.Error("a Ref keeps what its key held long ago")
	}
	runtime.KeepAlive(ref)
	wantForgotten(t, r)
}

// What Transitions cost a record.
func TestStreamRecordSizes(t *testing.T) {
	if bits.UintSize != 64 {
		t.Skip("words are smaller here")
	}
	without, with := shardedregistry.RecordSizes[*int]()
	for i := range with {
		if with[i] != without[i]+16 {
			t.Errorf("a record of %d bytes takes %d with links", without[i], with[i])
		}
	}
}

// Writers change, delete and create few keys. Each loop sees, of each key, exactly
// the versions that the writers got from their calls, in order, from some moment
// on, and all that came after it had begun.
func TestStressStream(t *testing.T) {
	const writers, loops, keys = 3, 3, 4
	r := transitions(shardedregistry.Config[int, int]{})
	n := iterations(20_000)
	type change struct {
		version shardedregistry.Version
		value   int // or -1
	}
	var (
		mu      sync.Mutex
		changes [keys][]change
		begun   atomic.Int32
		writing atomic.Int32
	)
	record := func(k int, c change) {
		mu.Lock()
		changes[k] = append(changes[k], c)
		mu.Unlock()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy, done := context.WithCancel(ctx) // until the writers are done
	defer done()
	const last = -1 // the key that ends the loops
	var seen [loops][keys][]change
	hammer(t, writers+loops+1, func(worker int) {
		switch {
		case worker < writers:
			for begun.Load() < loops {
				r.Put(last-1, 0) // so that loops begin
				runtime.Gosched()
			}
			rnd := rand.New(rand.NewPCG(uint64(worker), 2))
			for i := range n {
				k, v := rnd.IntN(keys), worker*n+i
				switch rnd.IntN(8) {
				case 0, 1:
					if e, ok := r.Delete(k); ok {
						record(k, change{e.Version + 1, -1})
					}
				case 2:
					if version, err := r.Create(k, v); err == nil {
						record(k, change{version, v})
					}
				case 3:
					if e, err := r.Update(k, func(int) (int, error) { return v, nil }); err == nil {
						record(k, change{e.Version, v})
					}
				case 4:
					own := 10 + worker*n + i // comes and goes
					r.Create(own, i)
					r.Delete(own)
				default:
					record(k, change{mustPut(t, r, k, v), v})
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
			if writing.Add(1) == writers {
				for range 2 * keys { // two looks later everything has been seen
					r.Put(last, 1)
				}
				done()
			}
		case worker < writers+loops:
			loop, first := worker-writers, true
			over := false
			for e, err := range r.Stream(ctx, 1<<30) {
				if err != nil {
					t.Error(err)
				}
				if first {
					first = false
					begun.Add(1)
				}
				switch {
				case e.Key == last:
					over = true
				case e.Key >= 0 && e.Key < keys && e.Deleted:
					seen[loop][e.Key] = append(seen[loop][e.Key], change{e.Version, -1})
				case e.Key >= 0 && e.Key < keys:
					seen[loop][e.Key] = append(seen[loop][e.Key], change{e.Version, e.Value})
				}
				if over {
					break
				}
				if loop == 0 {
					runtime.Gosched()
				}
			}
		default: // loops that lag or end soon, and snapshots
			for busy.Err() == nil {
				i := 0
				for _, err := range r.Stream(busy, 5) {
					if i++; err != nil || i > 50 {
						break
					}
				}
				r.Snapshot()
			}
		}
	})
	for k := range keys {
		slices.SortFunc(changes[k], func(x, y change) int { return int(x.version) - int(y.version) })
		for loop := range loops {
			got := seen[loop][k]
			// The last key's notification may come before others that were told earlier
			// only if those were taken with it; what is missing is at the end.
			if len(got) > len(changes[k]) || !slices.Equal(got, changes[k][:len(got)]) {
				t.Fatalf("loop %d: key %d: the versions are not those of the writers", loop, k)
			}
			if len(got) < len(changes[k]) {
				t.Errorf("loop %d: key %d: %d of %d changes", loop, k, len(got), len(changes[k]))
			}
		}
	}
	wantForgotten(t, r)
	if n := shardedregistry.Kept(r); n != 0 {
		t.Errorf("%d old records are kept for snapshots", n)
	}
}

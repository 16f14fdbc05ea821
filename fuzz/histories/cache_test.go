//go:build !modelcheck

package histories_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	"github.com/latchfree/latchfree/oncecache"
)

// cache is what is used of an oncecache.Cache.
type cache interface {
	GetOrCreate(k int, create func() (int, error)) (int, error)
	Get(k int) (int, bool)
	Set(k, v int) (old int, replaced bool)
	SetIfAbsent(k, v int) (actual int, stored bool)
	Delete(k int) (int, bool)
	CompareAndDelete(k, v int) bool
	All() iter.Seq2[int, int]
	Len() int
}

type realCache struct{ *oncecache.Cache[int, int] }

func (c realCache) CompareAndDelete(k, v int) bool {
	return oncecache.CompareAndDelete(c.Cache, k, v)
}

const cacheKeys = 3

// cacheTrial uses a cache with three keys, and many more to resize its table.
func cacheTrial(fresh func() cache) func(*rand.Rand) history.Trial[cacheState] {
	return func(*rand.Rand) history.Trial[cacheState] {
		c := fresh()
		return history.Trial[cacheState]{
			Clients: cacheClients, Value: c,
			Work: func(client *history.Client[cacheState]) {
				w := &cacheClient{Client: client, cache: c}
				w.Rounds(cacheKeys, w.operate, w.tide)
			},
			After: func(client *history.Client[cacheState]) {
				w := &cacheClient{Client: client, cache: c}
				n := 0
				for k := range cacheKeys {
					if w.get(k) {
						n++
					}
				}
				if got := c.Len(); got != n {
					w.Errorf("in the end Len is %d, want %d", got, n)
				}
			},
		}
	}
}

// cacheClient is a goroutine that uses a cache.
type cacheClient struct {
	*history.Client[cacheState]
	cache cache
	made  int            // values, all different
	knows [cacheKeys]int // the values last seen

	// looksAgain says that a call that created, but whose creation Set has
	// ended, need not get what Set has set: if that is gone, it looks again.
	looksAgain bool

	// overtakes says that Set may come while a Refresh is under way.
	overtakes bool
}

func (w *cacheClient) fresh() int {
	w.made++
	return 1000*(1+w.ID) + w.made
}

func (w *cacheClient) operate(k int) {
	if w.IntN(3) == 0 {
		w.getOrCreate(k)
		return
	}
	if w.IntN(16) == 0 {
		w.all()
		return
	}
	w.simple(k)
}

// simple is an operation that does not wait, and may be one of a create
// function's.
func (w *cacheClient) simple(k int) {
	e := cacheEvent{op: "Get"}
	from := w.Now()
	switch w.IntN(7) {
	case 0:
		e.op, e.value = "Set", w.fresh()
		e.got, e.ok = w.cache.Set(k, e.value)
	case 1:
		e.op, e.value = "SetIfAbsent", w.fresh()
		e.got, e.ok = w.cache.SetIfAbsent(k, e.value)
	case 2:
		e.op = "Delete"
		e.got, e.ok = w.cache.Delete(k)
	case 3, 4:
		if w.knows[k] != 0 {
			e.op, e.value = "CompareAndDelete", w.knows[k]
			e.ok = w.cache.CompareAndDelete(k, e.value)
			break
		}
		fallthrough
	default:
		w.get(k)
		return
	}
	w.Add(k, from, e)
	if w.overtakes && e.op == "Set" {
		w.Add(k, w.Now(), cacheEvent{op: "overtook", value: e.value})
	}
}

func (w *cacheClient) get(k int) bool {
	from := w.Now()
	v, ok := w.cache.Get(k)
	w.Add(k, from, cacheEvent{op: "Get", got: v, ok: ok})
	w.knows[k] = v
	return ok
}

var errRefusal = errors.New("connection refused")

// run is one run of a create function.
type run struct {
	began, ended int64
	value        int // that it returned, if it did
	old          int // that it was to make anew
}

// getOrCreate gets or creates k. Its create function may use the cache, and
// create keys above k.
func (w *cacheClient) getOrCreate(k int) {
	ending := inValue
	if w.IntN(3) == 0 {
		ending = inError + cacheEnding(w.IntN(3))
	}
	var runs []run
	call := func() (int, error) {
		return w.cache.GetOrCreate(k, func() (int, error) {
			r := run{began: w.Now(), value: w.fresh()}
			w.Pause()
			switch nested := w.IntN(8); {
			case nested == 0:
				w.simple(k)
			case nested == 1 && k+1 < cacheKeys:
				w.getOrCreate(k + 1)
			}
			runtime.Gosched()
			r.ended = w.Now()
			runs = append(runs, r)
			switch ending {
			case inError:
				return r.value, errRefusal
			case inPanic:
				panic(errRefusal)
			case inGoexit:
				runtime.Goexit()
			}
			return r.value, nil
		})
	}
	var got promise
	from := w.Now()
	if ending == inPanic || ending == inGoexit {
		returned, panicked := w.Apart(func() { got = w.gets(k, call) })
		if len(runs) > 0 && (returned || (panicked != nil) != (ending == inPanic)) {
			w.Errorf("create on key %d ended %v, but the call returned: %v, panicked: %v", k, ending, returned, panicked)
		}
	} else {
		got = w.gets(k, call)
	}
	w.called(k, from, w.Now(), runs, ending, got)
}

// called notes a GetOrCreate. If its function ran more than once, it took
// notice of what it got the first times and looked again.
func (w *cacheClient) called(k int, from, to int64, runs []run, ending cacheEnding, got promise) {
	if len(runs) == 0 {
		w.AddSpan(k, from, to, cacheEvent{op: "begin", client: w.ID})
		w.AddSecond(k, from, to, cacheEvent{op: "end", client: w.ID, gets: got})
		return
	}
	if len(runs) > 1 && !w.looksAgain {
		w.Errorf("create ran %d times for key %d", len(runs), k)
	}
	for i, r := range runs {
		end := cacheEvent{op: "end", client: w.ID, gets: got, alone: ending == inPanic || ending == inGoexit}
		until := to
		if i+1 < len(runs) {
			until = runs[i+1].began
		}
		if w.looksAgain && (until != to || got != getsUnknown && got != ending.shared(r.value)) {
			end.gets = getsAnything
		}
		w.AddSpan(k, from, r.began, cacheEvent{op: "begin", client: w.ID, ok: true, value: r.value})
		w.created(k, from, r, until, ending)
		w.AddSecond(k, r.ended, until, end)
		from = r.ended
	}
}

// created notes a creation of a call from some time on, which was through by
// another.
func (w *cacheClient) created(k int, from int64, r run, through int64, ending cacheEnding) {
	w.AddSecond(k, r.ended, through, cacheEvent{op: "ran", value: r.value})
	w.AddSecond(k, from, through, cacheEvent{op: "settled", value: r.value, ending: ending})
}

// gets tells what a call returns.
func (w *cacheClient) gets(k int, call func() (int, error)) promise {
	v, err := call()
	var panicked *oncecache.PanicError
	switch {
	case err == nil:
		w.knows[k] = v
		return gets + promise(v)
	case v != 0:
		w.Errorf("GetOrCreate(%d) = %d with the error %v", k, v, err)
	case err == errRefusal:
		return getsError
	case err == context.Canceled:
		return getsContextError
	case err == oncecache.ErrGoexit:
		return getsGoexitError
	case err == oncecache.ErrNotFound:
		return getsNotFound
	case errors.As(err, &panicked) && panicked.Value == errRefusal:
		return getsPanicError
	}
	w.Errorf("GetOrCreate(%d): %v", k, err)
	return 0
}

// all notes what All says of each key: what was there when it was yielded, or
// nothing at some moment of the loop.
func (w *cacheClient) all() {
	from := w.Now()
	var yielded [cacheKeys]bool
	for k, v := range w.cache.All() {
		if k >= cacheKeys {
			continue
		}
		if yielded[k] {
			w.Errorf("All yields %d twice", k)
		}
		yielded[k] = true
		w.Add(k, from, cacheEvent{op: "All", got: v, ok: true})
	}
	for k, there := range yielded {
		if !there {
			w.Add(k, from, cacheEvent{op: "All"})
		}
	}
}

func (w *cacheClient) tide() {
	const beyond = 1 << 20 // the values of other keys
	w.Tide(func(k int) {
		if v, err := w.cache.GetOrCreate(k, func() (int, error) { return beyond + k, nil }); v != beyond+k || err != nil {
			w.Errorf("GetOrCreate(%d) = %d, %v", k, v, err)
		}
	}, func(k int) {
		if v, ok := w.cache.Delete(k); v != beyond+k || !ok {
			w.Errorf("Delete(%d) = %d, %v", k, v, ok)
		}
	})
}

func TestCacheHistories(t *testing.T) {
	cover := history.Check(t, cacheTrial(func() cache { return realCache{new(oncecache.Cache[int, int])} }),
		"Get true", "Get false", "Set true", "Set false", "SetIfAbsent true", "SetIfAbsent false",
		"Delete true", "Delete false", "CompareAndDelete true", "CompareAndDelete false", "All true", "All false",
		"begin true", "begin false", "settled in a value", "settled in an error", "settled in a panic", "settled in an exit",
		"end gets a value", "end gets the error", "end gets a PanicError", "end gets ErrGoexit", "end gets nothing")
	cover.RequireResizes(t)
}

//go:build !modelcheck

package histories_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	cc "github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/fuzz/internal/history"
)

// list is what is used of a cc.Slice.
type list interface {
	Load() []byte
	Len() int
	Snapshot() cc.Snapshot[byte]
	Append(items ...byte) int
	Update(fn func(old []byte) []byte)
	CompareAndSwap(old cc.Snapshot[byte], items []byte) bool
	Set(i int, item byte)
	Delete(i int)
}

// contents is the state of a slice. Every item and every replacement adds one
// to the version.
type contents struct {
	items   string
	version int
}

// sliceEvent is an operation of a slice.
type sliceEvent struct {
	op      string
	items   string // appended or set, or what the contents are replaced by
	read    string // returned, or what fn was given in its last run
	n       int    // returned, or the index
	version int    // returned, or asked for
	ok      bool   // returned, or whether it, or fn, returned
}

func (e sliceEvent) Kind() string { return fmt.Sprint(e.op, " ", e.ok) }

func (e sliceEvent) String() string {
	switch e.op {
	case "Append":
		return fmt.Sprintf("Append(%v) = %d", []byte(e.items), e.n)
	case "Len":
		return fmt.Sprintf("Len() = %d", e.n)
	case "Update":
		return fmt.Sprintf("Update(%v → %v), done: %v", []byte(e.read), []byte(e.items), e.ok)
	case "Set", "Delete":
		return fmt.Sprintf("%s(%d, %v), in range: %v", e.op, e.n, []byte(e.items), e.ok)
	case "CompareAndSwap":
		return fmt.Sprintf("CompareAndSwap(version %d, %v) = %v", e.version, []byte(e.items), e.ok)
	}
	return fmt.Sprintf("%s() = %v, version %d", e.op, []byte(e.read), e.version)
}

func (e sliceEvent) After(c contents) (contents, bool) {
	switch e.op {
	case "Load":
		return c, e.read == c.items
	case "Snapshot":
		return c, e.read == c.items && e.version == c.version
	case "Len":
		return c, e.n == len(c.items)
	case "Append":
		return contents{c.items + e.items, c.version + len(e.items)}, e.n == len(c.items)
	case "Update":
		if !e.ok {
			return c, e.read == c.items
		}
		return contents{e.items, c.version + 1}, e.read == c.items
	case "Set", "Delete":
		if !e.ok {
			return c, e.n >= len(c.items)
		}
		if e.n >= len(c.items) {
			return c, false
		}
		return contents{c.items[:e.n] + e.items + c.items[e.n+1:], c.version + 1}, true
	case "CompareAndSwap":
		if !e.ok {
			return c, e.version != c.version
		}
		return contents{e.items, c.version + 1}, e.version == c.version
	}
	panic(e.op)
}

// sliceTrial uses a slice, which grows, is replaced and shrinks.
func sliceTrial(fresh func() list) func(*rand.Rand) history.Trial[contents] {
	return func(*rand.Rand) history.Trial[contents] {
		s := fresh()
		return history.Trial[contents]{
			Clients: 4,
			Work: func(c *history.Client[contents]) {
				w := &sliceClient{Client: c, slice: s, made: byte(60 * c.ID)}
				for range 2 {
					w.Meet(1)
					for range 4 {
						w.operate()
						w.Pause()
					}
				}
				for i, items := range w.kept {
					if string(items) != w.were[i] {
						w.Errorf("what was %v is now %v", []byte(w.were[i]), items)
					}
				}
			},
			After: func(c *history.Client[contents]) {
				w := &sliceClient{Client: c, slice: s}
				w.snapshot()
			},
		}
	}
}

// sliceClient is a goroutine that uses a slice.
type sliceClient struct {
	*history.Client[contents]
	slice list
	made  byte // items, nearly all different
	snap  cc.Snapshot[byte]
	kept  [][]byte // what Load returned, and what it was then
	were  []string
}

func (w *sliceClient) fresh(n int) []byte {
	items := make([]byte, n)
	for i := range items {
		w.made++
		items[i] = w.made
	}
	return items
}

func (w *sliceClient) operate() {
	var e sliceEvent
	from := w.Now()
	switch w.IntN(14) {
	case 0, 1, 2, 3:
		items := w.fresh(w.IntN(6))
		e.op, e.items = "Append", string(items)
		e.n = w.slice.Append(items...)
		clear(items) // they were copied
	case 4:
		w.update()
		return
	case 5:
		items := w.fresh(w.IntN(3))
		e.op, e.items, e.version = "CompareAndSwap", string(items), int(w.snap.Version())
		e.ok = w.slice.CompareAndSwap(w.snap, items)
	case 6, 9:
		e.op = "Len"
		e.n = w.slice.Len()
	case 7, 8:
		w.edit()
		return
	case 10, 11:
		items := w.slice.Load()
		e.op, e.read = "Load", string(items)
		w.kept, w.were = append(w.kept, items), append(w.were, e.read)
	default:
		w.snapshot()
		return
	}
	w.Add(0, from, e)
}

func (w *sliceClient) snapshot() {
	from := w.Now()
	w.snap = w.slice.Snapshot()
	to := w.Now()
	e := sliceEvent{op: "Snapshot", version: int(w.snap.Version())}
	for _, item := range w.snap.Items() {
		e.read += string([]byte{item})
	}
	w.AddSpan(0, from, to, e)
}

// edit sets or deletes an item that may not be there.
func (w *sliceClient) edit() {
	e := sliceEvent{op: "Delete", n: w.IntN(12)}
	do := func() { w.slice.Delete(e.n) }
	if w.IntN(3) > 0 {
		item := w.fresh(1)
		e.op, e.items = "Set", string(item)
		do = func() { w.slice.Set(e.n, item[0]) }
	}
	from := w.Now()
	e.ok, _ = w.Apart(do)
	w.Add(0, from, e)
}

// update runs an Update whose function takes its time, keeps some of what it
// was given, and ends in every way.
func (w *sliceClient) update() {
	e := sliceEvent{op: "Update"}
	ending := cacheEnding(w.IntN(6))
	more := w.fresh(w.IntN(3))
	keep := w.IntN(12)
	call := func() {
		w.slice.Update(func(old []byte) []byte {
			e.read = string(old)
			runtime.Gosched()
			switch ending {
			case inPanic:
				panic(errFunction)
			case inGoexit:
				runtime.Goexit()
			}
			items := old[:min(keep, len(old))] // which it may return, but not write to
			if len(more) > 0 {
				items = slices.Concat(items, more)
			}
			e.items = string(items)
			return items
		})
	}
	from := w.Now()
	e.ok, _ = w.Apart(call)
	if e.ok == (ending == inPanic || ending == inGoexit) {
		w.Errorf("Update returned: %v, though its function ended %v", e.ok, ending)
	}
	w.Add(0, from, e)
}

func TestSliceHistories(t *testing.T) {
	history.Check(t, sliceTrial(func() list { return new(cc.Slice[byte]) }),
		"Load false", "Snapshot false", "Len false", "Append false", "Update true", "Update false",
		"CompareAndSwap true", "CompareAndSwap false", "Set true", "Set false", "Delete true", "Delete false")
}

func TestBrokenSliceHistories(t *testing.T) {
	for name, broken := range map[string]func() list{
		"an Append that is lost":          func() list { return lostAppend{new(cc.Slice[byte])} },
		"an Update that is lost":          func() list { return lostSliceUpdate{new(cc.Slice[byte])} },
		"items one by one":                func() list { return oneByOne{new(cc.Slice[byte])} },
		"a CompareAndSwap in two steps":   func() list { return tornSwap{new(cc.Slice[byte])} },
		"a Set that loses others":         func() list { return lostSet{new(cc.Slice[byte])} },
		"a Delete by a stale index":       func() list { return staleDelete{new(cc.Slice[byte])} },
		"a length that is counted before": func() list { return &countsBefore{Slice: new(cc.Slice[byte])} },
	} {
		t.Run(name, func(t *testing.T) { history.Reject(t, sliceTrial(broken)) })
	}
}

type lostAppend struct{ *cc.Slice[byte] }

func (s lostAppend) Append(items ...byte) int {
	old := slices.Clone(s.Load())
	runtime.Gosched()
	if len(items) > 0 {
		s.Slice.Update(func([]byte) []byte { return append(old, items...) })
	}
	return len(old)
}

type lostSliceUpdate struct{ *cc.Slice[byte] }

func (s lostSliceUpdate) Update(fn func([]byte) []byte) {
	items := fn(s.Load())
	s.Slice.Update(func([]byte) []byte { return items })
}

type oneByOne struct{ *cc.Slice[byte] }

func (s oneByOne) Append(items ...byte) int {
	first := s.Len()
	for i, item := range items {
		at := s.Slice.Append(item)
		if i == 0 {
			first = at
		}
		runtime.Gosched()
	}
	return first
}

type tornSwap struct{ *cc.Slice[byte] }

func (s tornSwap) CompareAndSwap(old cc.Snapshot[byte], items []byte) bool {
	if s.Snapshot().Version() != old.Version() {
		return false
	}
	runtime.Gosched()
	s.Slice.Update(func([]byte) []byte { return items })
	return true
}

type lostSet struct{ *cc.Slice[byte] }

func (s lostSet) Set(i int, item byte) {
	items := slices.Clone(s.Load())
	runtime.Gosched()
	items[i] = item
	s.Slice.Update(func([]byte) []byte { return items })
}

type staleDelete struct{ *cc.Slice[byte] }

// Delete finds what is at the index first, and removes that item later.
func (s staleDelete) Delete(i int) {
	item := s.Load()[i]
	runtime.Gosched()
	s.Slice.Update(func(old []byte) []byte {
		if i = slices.Index(old, item); i < 0 {
			return old
		}
		return slices.Concat(old[:i], old[i+1:])
	})
}

// countsBefore keeps the length beside the items, and one operation behind.
type countsBefore struct {
	*cc.Slice[byte]
	length atomic.Int64
}

func (s *countsBefore) Len() int { return int(s.length.Load()) }

func (s *countsBefore) Append(items ...byte) int {
	s.length.Store(int64(s.Slice.Len()))
	return s.Slice.Append(items...)
}

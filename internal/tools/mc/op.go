//go:build modelcheck

package mc

import "unsafe"

// Mode is what a step does to a word.
type Mode uint8

// The modes. Two accesses of one word conflict, that is, their order can
// matter, unless both are Reads or both are Commutes.
const (
	None    Mode = iota
	Read         // leaves the word as it was
	Write        // may change it, and may depend on it
	Commute      // changes it such that the order among Commutes does not show
)

// Access is one word that a step touches. Addr identifies the word for the
// duration of one execution and keeps it from being collected and reused.
type Access struct {
	Addr unsafe.Pointer
	Mode Mode
}

// Op is a step that a thread is about to take.
type Op struct {
	Verb     string // for traces
	Class    Class  // for Measure
	On, Also Access // what it may touch; see Did

	// A step with Blocks is enabled only while *Gate == Want, or *AlsoGate ==
	// Want if it has two gates. Gate belongs to the word On, AlsoGate to the
	// word Also, and a gate changes only by steps that Write its word. Every
	// step on that word names it, because the search asks what it was before
	// them.
	Gate, AlsoGate *int32
	Want           int32
	Blocks         bool
}

// pending is an Op as the search sees it: words are numbered in the order in
// which the execution first mentions them, from 1, so that numbers mean the
// same in every execution with the same beginning.
type pending struct {
	on, also access
	want     int32
	blocks   bool
	sign     uint64 // tells words and modes apart
}

type access struct {
	word int32 // 0: none
	mode Mode
	gate *int32 // nil: none
}

//go:norace
func (a access) conflicts(b access) bool {
	return a.word != 0 && a.word == b.word && (a.mode != b.mode || a.mode == Write)
}

// conflicts reports whether the order of two steps of different threads can
// matter.
//
//go:norace
func (p *pending) conflicts(q *pending) bool {
	if p.also.word|q.also.word == 0 { // mostly
		return p.on.conflicts(q.on)
	}
	return p.on.conflicts(q.on) || p.also.conflicts(q.also) ||
		p.on.conflicts(q.also) || p.also.conflicts(q.on)
}

//go:norace
func (p *pending) enabled() bool {
	return !p.blocks || open(p.on.gate, p.want) || open(p.also.gate, p.want)
}

//go:norace
func (o *Op) enabled() bool { return !o.Blocks || open(o.Gate, o.Want) || open(o.AlsoGate, o.Want) }

//go:norace
func open(gate *int32, want int32) bool { return gate != nil && *gate == want }

// pend sets p to o as the search sees it.
//
//go:norace
func (m *M) pend(o *Op, p *pending) {
	p.on.word, p.on.mode, p.on.gate = m.words.number(o.On.Addr), o.On.Mode, o.Gate
	p.also.word, p.also.mode, p.also.gate = m.words.number(o.Also.Addr), o.Also.Mode, o.AlsoGate
	p.want, p.blocks = o.Want, o.Blocks
	p.sign = uint64(p.on.word)<<34 ^ uint64(p.on.mode)<<32 ^ uint64(p.also.word)<<2 ^ uint64(p.also.mode)
}

// words numbers addresses: an open-addressed hash table, because the race
// detector would see a Go map.
type words struct {
	addr []unsafe.Pointer // keeps what it holds alive: no address is reused
	num  []int32
	n    int32
}

//go:norace
func (w *words) reset() {
	clear(w.addr)
	w.n = 0
}

//go:norace
func (w *words) number(p unsafe.Pointer) int32 {
	if p == nil {
		return 0
	}
	if int(w.n)*2 >= len(w.addr) {
		w.grow()
	}
	i := w.find(p)
	if w.addr[i] == nil {
		w.n++
		w.addr[i], w.num[i] = p, w.n
	}
	return w.num[i]
}

// find returns the place of p, or the free place where it belongs.
//
//go:norace
func (w *words) find(p unsafe.Pointer) int {
	mask := len(w.addr) - 1
	i := int(uint64(uintptr(p))*0x9e3779b97f4a7c15>>40) & mask
	for w.addr[i] != nil && w.addr[i] != p {
		i = (i + 1) & mask
	}
	return i
}

//go:norace
func (w *words) grow() {
	old := *w
	size := max(64, 2*len(old.addr))
	w.addr, w.num = make([]unsafe.Pointer, size), make([]int32, size)
	for i, p := range old.addr {
		if p != nil {
			j := w.find(p)
			w.addr[j], w.num[j] = p, old.num[i]
		}
	}
}

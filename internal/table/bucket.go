package table

import (
	"math/bits"

	"github.com/latchfree/latchfree/internal/atomics"
)

// bucket is one cache line. A chain of them holds the cells whose hashes end
// alike; the root of the chain is an element of an array, and its mutex guards
// the whole chain against other writers. Readers take no lock.
type bucket[E any] struct {
	// tags says what is in the slots: see tags. Writers store it, a tag before the
	// slot is filled and before it is emptied. Everybody reads.
	tags atomics.Uint64

	slots [slotsPerBucket]atomics.Pointer[E]

	// next goes on with the chain. It is set once.
	next atomics.Pointer[bucket[E]]

	mu atomics.Mutex // only that of a root is used
}

// Five make a bucket a line of 64 bytes.
const slotsPerBucket = 5

// tags say of each slot of a bucket seven bits of the hash, the tag, and which way
// the cell goes when the set grows.
//
//	63      60  59      56   43    40 39       8 7     0
//	+---------+--------+-----+-------+-----+-----+-----+
//	| moved   | ways 4 | ... | ways 0| tag4| ... | tag0|
//	+---------+--------+-----+-------+-----+-----+-----+
//
// A tag is 0 if its slot is empty, and otherwise has its top bit set. Moved is
// set in a root only, and then nothing else is: what the chain held is in the
// next array, and what the slots still say is of the past.
type tags uint64

const (
	moved     tags = 1 << 63
	ones      tags = 0x01_01_01_01_01
	tops      tags = 0x80_80_80_80_80
	tagShift       = 40 // low bits choose the bucket, high ones may have chosen the table
	waysShift      = 40
)

// ways are the bits of a hash that follow those that choose the chain, bitsAhead or
// fewer, below a 1 that says how many they are. The lowest of them is the next that
// the set needs to grow.
type ways tags

// unknown are no bits. Only a cell that has moved has no more.
const unknown ways = 1

// half returns to which of two chains the cell moves when the set grows, 0 or 1.
func (w ways) half() int { return int(w & 1) }

// grown returns what is left when the set has grown.
func (w ways) grown() ways { return w >> 1 }

// shrunk returns w with the bit that no longer chooses the chain.
func (w ways) shrunk(half ways) ways {
	w = w<<1 | half
	if w>>bitsAhead > 1 { // one too many
		w = 1<<bitsAhead | w&(1<<bitsAhead-1)
	}
	return w
}

// tag returns the tag of a cell with that hash.
func tag(hash uint64) tags { return tags(hash>>tagShift)&0x7f | 0x80 }

// having returns a set of the slots whose tag is the one given, and perhaps of
// others.
func (t tags) having(one tags) slotSet {
	diff := t ^ one*ones
	return slotSet((diff - ones) &^ diff & tops)
}

// free returns the set of the empty slots.
func (t tags) free() slotSet { return slotSet(^t & tops) }

// tagAt and waysAt say where those of slot i are. That they are below 64 is seen here, so
// that no shift asks for it.
func tagAt(i int) uint  { return uint(8*i) & 63 }
func waysAt(i int) uint { return uint(waysShift+4*i) & 63 }

// of returns the tag of slot i, and ways its ways.
func (t tags) of(i int) tags   { return t >> tagAt(i) & 0xff }
func (t tags) ways(i int) ways { return ways(t >> waysAt(i) & 0xf) }

// with returns t with slot i holding a cell of that tag and those ways; a tag of 0
// empties it.
func (t tags) with(i int, one tags, w ways) tags {
	return t&^(0xff<<tagAt(i)|0xf<<waysAt(i)) | one<<tagAt(i) | tags(w)<<waysAt(i)
}

// slotSet has the top bit of the i-th byte set if it contains slot i.
type slotSet uint64

func (s slotSet) first() int       { return bits.TrailingZeros64(uint64(s)) / 8 }
func (s slotSet) rest() slotSet    { return s & (s - 1) }
func (b *bucket[E]) load() tags    { return tags(b.tags.Load()) }
func (b *bucket[E]) store(to tags) { b.tags.Store(uint64(to)) }

// put stores e in a free slot of the chain that begins with b, which is locked.
//
// The slot comes last: a reader that saw the tag of the slot's last cell may read the new
// cell, and a reader that looks after that must see a tag.
func (b *bucket[E]) put(one tags, w ways, e *E) {
	for {
		t := b.load()
		if free := t.free(); free != 0 {
			i := free.first()
			b.store(t.with(i, one, w))
			b.slots[i].Store(e)
			return
		}
		next := b.next.Load()
		if next == nil {
			fresh := new(bucket[E])
			fresh.slots[0].Store(e)
			fresh.store(tags(0).with(0, one, w))
			b.next.Store(fresh)
			return
		}
		b = next
	}
}

// cells appends the cells of the chain that begins with b, which is locked.
func (b *bucket[E]) cells(to []*E) []*E {
	for ; b != nil; b = b.next.Load() {
		for s := slotSet(b.load() & tops); s != 0; s = s.rest() {
			to = append(to, b.slots[s.first()].Load())
		}
	}
	return to
}

// filler fills an empty chain, which nobody else knows yet, with one store for
// the tags of a bucket. B is its last bucket, or nil.
type filler[E any] struct {
	b    *bucket[E]
	tags tags
	n    int // slots of b that are in use
}

func (f *filler[E]) add(one tags, w ways, e *E) {
	if f.n == slotsPerBucket {
		f.end()
		fresh := new(bucket[E])
		f.b.next.Store(fresh)
		*f = filler[E]{b: fresh}
	}
	f.b.slots[f.n].Store(e)
	f.tags = f.tags.with(f.n, one, w)
	f.n++
}

// end stores what is left to store.
func (f *filler[E]) end() {
	if f.b != nil {
		f.b.store(f.tags)
	}
}

package cowchangeset

// word is the one mutable word of a Slice's array:
//
//	 63                                   2        1         0
//	+--------------------------------------+--------+---------+
//	|                length                | frozen | claimed |
//	+--------------------------------------+--------+---------+
//
// Length is the number of published items. Claimed: one Append owns the items
// from length on. Frozen: the length is final, and the claim, if any, is void.
type word uint64

const (
	claimed word = 1 << iota
	frozen
	lengthShift = iota
)

// lengthWord panics if a word has no room for n: only items without a size can
// be so many. Nobody has claimed anything when it does.
func lengthWord(n uint64) word {
	if n>>(64-lengthShift) != 0 {
		panic("cowchangeset: a Slice cannot have 2^62 items")
	}
	return word(n << lengthShift)
}

func (w word) length() uint64 { return uint64(w >> lengthShift) }

// slotState is the one mutable word of a log's slot:
//
//	 63                                          2   1    0
//	+----------------------------------------------+--------+
//	|                     span                     |  kind  |
//	+----------------------------------------------+--------+
//
// Span is the number of consecutive slots, this one first, whose outcome the word
// tells; their own words are not looked at. It is 1 but for batches. A batch
// that is killed gives up its span: its slots are killed one by one.
//
//	vacant ─┬─────────────────┬─> published(span)
//	        ├─> pending(span) ┤
//	        └─────────────────┴─> dead
//
// Published and dead are final: such a slot is decided. The zero word is
// vacant.
type slotState uint64

const (
	vacant    slotState = iota // nothing published; perhaps not even reserved
	pending                    // a batch is being copied in
	published                  // the slots hold entries, visible to all
	killed                     // a cut gave up on the writer, which goes elsewhere

	kindMask  = 1<<spanShift - 1
	spanShift = 2

	single = published | 1<<spanShift
	dead   = killed | 1<<spanShift
)

func spanning(kind slotState, span uint64) slotState { return kind | slotState(span<<spanShift) }

func (s slotState) kind() slotState { return s & kindMask }

func (s slotState) span() uint64 { return uint64(s >> spanShift) }

func (s slotState) decided() bool { return s.kind() >= published }

// sealed is the top bit of a log's reservation word; the bits below it count
// reserved slots. One word for both makes every reservation tell whether it
// came before the seal.
const sealed = 1 << 63

// maxBatch keeps the count away from the sealed bit, although entries without a
// size could fill any batch: each call adds no more than this after the seal,
// or before it without making as many slots.
const maxBatch = 1 << 40

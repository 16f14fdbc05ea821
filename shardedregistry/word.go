package shardedregistry

// word is the version of a record and three flags: whether the record is a
// deletion, whether it is dated, and whether it is the
// deletion of what has expired.
//
//	63                     3    2        1      0
//	+------------------------+---------+-------+------+
//	| version                | expired | dated | dead |
//	+------------------------+---------+-------+------+
//
// Every change of a key adds one to the version. It would wrap after 2^61
// changes.
type word uint64

const (
	deadBit word = 1 << iota
	datedBit
	expiredBit

	versionShift = iota
)

// intentBits is what the word of an intent has of these flags, and that of no record:
// only what is dead has expired. The other bits are the intent's own.
const intentBits = datedBit | expiredBit

// firstWord is the word of a key that is created above version last.
func firstWord(last Version) word { return word(last+1) << versionShift }

func (w word) version() Version { return Version(w >> versionShift) }
func (w word) dead() bool       { return w&deadBit != 0 }
func (w word) expired() bool    { return w&expiredBit != 0 }
func (w word) intent() bool     { return w&(deadBit|datedBit|expiredBit) == intentBits }

// changed and deleted return the next word of a live record's key.
func (w word) changed() word { return w&^datedBit + 1<<versionShift }
func (w word) deleted() word { return w.changed() | deadBit }

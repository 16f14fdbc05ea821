package breaker

import "sync/atomic"

// Hints counts what a group and the engine have told each other.
type Hints struct {
	Published int64 // hints that the engine has stored
	Waiting   int   // hints that are to be published
	Dropped   int64 // hints that nobody will hear of: too many waited, their time had passed, the key has over 1,024 bytes, they are too large for the stream, or the group was closed
	Heard     int64 // messages of the stream, foreign ones and those of this replica among them
	Applied   int64 // messages that have changed something here
	Connected bool  // whether the group follows the stream
}

type counts struct {
	published, dropped, heard, applied atomic.Int64
	connected                          atomic.Bool
}

// Hints returns the counts.
//
// Hints is blocking on the mutex of the hints that wait. It takes effect for each count
// when that is read.
func (g *Group[K]) Hints() Hints {
	return Hints{
		Published: g.counts.published.Load(), Waiting: g.outbox.count(), Dropped: g.counts.dropped.Load(),
		Heard: g.counts.heard.Load(), Applied: g.counts.applied.Load(), Connected: g.counts.connected.Load(),
	}
}

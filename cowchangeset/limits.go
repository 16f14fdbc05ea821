package cowchangeset

import "github.com/latchfree/latchfree/internal/atomics"

// Chunks double from firstChunk to maxChunk slots: little changesets are cheap,
// and no more than half of a large one's slots, or maxChunk, lie idle. With
// 1,024 for maxChunk, changesets of 1,000 entries took half as much memory
// again and a tenth more time; those of 100,000 differed by a tenth either way.
func firstChunk() int { return atomics.Limit(16, 1) }

func maxChunk() int { return atomics.Limit(256, 4) }

// How long one operation waits for others that are about to finish, before it
// goes on without them. The window waited for is a copy of one entry and one
// atomic instruction. The loads cover it while its goroutine is running; the
// yields, while it is runnable on this processor. More would only delay the
// caller behind a goroutine that is not going to run soon.
//
// In the model, cuts look twice before they kill.
func spinLoads() int { return atomics.Limit(64, 1) }

func spinYields() int { return atomics.Limit(4, 0) }

// loadsPerEntry is for the entries of a batch: a load of a cached word is
// several times cheaper than a copy.
func loadsPerEntry() int { return atomics.Limit(4, 0) }

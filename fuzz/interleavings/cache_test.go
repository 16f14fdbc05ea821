//go:build modelcheck

package interleavings

import (
	"context"
	"iter"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/oncecache"
)

// FuzzCacheInterleavings runs threads on a Cache in every order. The first byte
// has the settings.
func FuzzCacheInterleavings(f *testing.F) { fuzzInterleavings(f, cacheProgram(newCache)) }

type (
	cacheConfig = oncecache.Config[int, int]
	cacheLease  = oncecache.Lease[int, int]
	createFunc  = func(context.Context, int) (int, error)
	refreshFunc = func(ctx context.Context, k, old int, exists bool) (int, error)
)

// cache is what a Cache does.
type cache interface {
	GetOrCreate(int, func() (int, error)) (int, error)
	GetOrCreateContext(context.Context, int, createFunc) (int, error)
	Acquire(context.Context, int, createFunc) (cacheLease, error)
	Wait(context.Context, int) (int, error)
	Refresh(context.Context, int, refreshFunc) (int, error)
	GetOrCreateMany(context.Context, []int, func(context.Context, []int) (map[int]int, error)) (map[int]int, error)
	Get(int) (int, bool)
	Set(int, int) (int, bool)
	SetIfAbsent(int, int) (int, bool)
	Delete(int) (int, bool)
	CompareAndDelete(k, old int) bool
	All() iter.Seq2[int, int]
	Len() int
	Close(context.Context) error
}

type realCache struct{ *oncecache.Cache[int, int] }

func newCache(c cacheConfig) cache { return realCache{oncecache.MustNew(c)} }

func (c realCache) CompareAndDelete(k, old int) bool {
	return oncecache.CompareAndDelete(c.Cache, k, old)
}

// cacheBounded is the setting of a cache with room for one value.
const cacheBounded = 4

// sharedCache is a cache, and what each thread did to it.
type sharedCache struct {
	cache
	closes   bool               // there is a Close function
	ways     int                // to explain an operation
	closings [200]atomics.Int32 // its calls by value
	contexts [2]context.Context
	cancels  [2]context.CancelFunc

	seen      [4]int // the latest value
	leases    [4][]*heldLease
	owned     [4][]int // values that became the cache's own
	creations [4][]*cacheCreation
	ends      [4][]interval // what may end creations that still run

	overtakers [4][]overtaker // what ends a Refresh in another value
}

type heldLease struct {
	cacheLease
	key int
}

// overtaker is a Set of a key.
type overtaker struct {
	key int
	interval
}

// interval is between two marks.
type interval struct{ from, to int64 }

type (
	cacheCaller = interleave.Caller[*sharedCache, *cacheModel]
	cacheOp     = interleave.Op[*sharedCache, *cacheModel]
)

func cacheProgram(fresh func(cacheConfig) cache) decoder[*sharedCache, *cacheModel] {
	return func(program []byte) (p interleave.Program[*sharedCache, *cacheModel], ok bool) {
		if len(program) == 0 {
			return p, false
		}
		settings := program[0]
		p, ok = interleave.Decode(program[1:], decodeCache)
		if settings&cacheBounded != 0 { // which has more ways to explain what happens
			p.Prelude = p.Prelude[:min(len(p.Prelude), 3)]
			p.Threads = p.Threads[:min(len(p.Threads), 2)]
			for i, ops := range p.Threads {
				p.Threads[i] = ops[:min(len(ops), 2)]
			}
		}
		p.New = func() *sharedCache { return newSharedCache(fresh, settings) }
		p.Model = newCacheModel
		p.After = []cacheOp{cacheLoop, cacheQuietLen, cacheOverlaps,
			cacheCreate(0, 90, inValue, plainly, nothing), cacheReleaseAll, cacheClose(true), cacheGet(0), cacheClosings}
		return p, ok
	}
}

func newSharedCache(fresh func(cacheConfig) cache, settings byte) *sharedCache {
	c := &sharedCache{closes: settings&1 == 1, ways: cacheWays}
	config := cacheConfig{}
	if c.closes {
		config.Close = func(_, v int) error { c.closings[v].Add(1); return nil }
	}
	if settings&cacheBounded != 0 {
		config.MaxEntries, c.ways = 1, cacheWays*cacheEvictions
	}
	for i := range c.contexts {
		c.contexts[i], c.cancels[i] = atomics.WithCancel(context.Background())
	}
	c.cache = fresh(config)
	return c
}

func decodeCache(code interleave.Code, id int, inside func() (cacheOp, bool)) cacheOp {
	key := int(code.Arg % 4 / 3) // mostly 0, since keys share little
	if code.Op >= firstOther {
		return decodeCacheOther(code, key, id)
	}
	switch op := code.Op % 18; op {
	case 0, 1, 2, 3, 4:
		inner := nothing
		if code.Arg/4%8 >= 6 {
			if o, ok := inside(); ok {
				inner = o
			}
		}
		flavours := [...]flavour{plainly, plainly, asOneOfFirst, leasing, leasing}
		if code.Arg >= 128 {
			flavours = [...]flavour{plainly, plainly, asOneOfSecond, leasingAsOneOfFirst, leasing}
		}
		return cacheCreate(key, id, creationEnding(code.Arg/32%4), flavours[op], inner)
	case 5:
		return cacheGet(key)
	case 6, 7:
		return cacheSet(key, id)
	case 8:
		return cacheSetIfAbsent(key, id)
	case 9, 10:
		return cacheDelete(key)
	case 11:
		return cacheCompareAndDelete(key, int(code.Arg/64))
	case 12:
		return [...]cacheOp{cacheLoop, cacheLen}[code.Arg%2]
	case 13, 14:
		return cacheRelease
	case 15:
		return cacheDiscard
	case 16:
		return cacheCancel(int(code.Arg % 2))
	default:
		return cacheClose(false)
	}
}

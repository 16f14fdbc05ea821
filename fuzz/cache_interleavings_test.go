//go:build modelcheck

package fuzz

import (
	"iter"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	"github.com/latchfree/latchfree/fuzz/internal/model"
	"github.com/latchfree/latchfree/oncecache"
)

// FuzzCacheInterleavings runs threads on a Cache in every order.
func FuzzCacheInterleavings(f *testing.F) {
	fuzzInterleavings(f, cacheProgram(newCache))
}

func newCache() cache { return new(realCache) }

// cache is what a Cache does.
type cache interface {
	GetOrCreate(int, func() (int, error)) (int, error)
	Get(int) (int, bool)
	Set(int, int) (int, bool)
	SetIfAbsent(int, int) bool
	Delete(int) (int, bool)
	CompareAndDelete(k, old int) bool
	All() iter.Seq2[int, int]
	Len() int
}

type realCache struct{ oncecache.Cache[int, int] }

func (c *realCache) CompareAndDelete(k, old int) bool {
	return oncecache.CompareAndDelete(&c.Cache, k, old)
}

// sharedCache is a cache, and what each thread did to it.
type sharedCache struct {
	cache
	seen      [4]int // the latest value
	creations [4][]cacheCreation
	ends      [4][]interval // what may end creations that still run
}

// interval is between two marks.
type interval struct{ from, to int64 }

// cacheCreation is a call of GetOrCreate whose function ran.
type cacheCreation struct {
	key    int
	called int64
	ran    interval
}

// cacheModel is the model, with what calls take part in.
type cacheModel struct {
	*model.Cache
	calls map[*cacheCreation]*model.Flight
}

type (
	cacheCaller = interleave.Caller[*sharedCache, *cacheModel]
	cacheOp     = interleave.Op[*sharedCache, *cacheModel]
)

func cacheProgram(fresh func() cache) decoder[*sharedCache, *cacheModel] {
	return func(program []byte) (interleave.Program[*sharedCache, *cacheModel], bool) {
		p, ok := interleave.Decode(program, decodeCache)
		p.New = func() *sharedCache { return &sharedCache{cache: fresh()} }
		p.Model = func() *cacheModel {
			return &cacheModel{model.NewCache(), map[*cacheCreation]*model.Flight{}}
		}
		p.After = []cacheOp{cacheLoop, cacheQuietLen, cacheAudit, cacheCreate(0, 99, inValue, cacheOp{})}
		return p, ok
	}
}

func decodeCache(code interleave.Code, id int, inside func() (cacheOp, bool)) cacheOp {
	key := int(code.Arg % 4 / 3) // mostly 0, since keys share nothing but counters
	switch code.Op % 12 {
	case 0, 1, 2, 3:
		var inner cacheOp
		if code.Arg/4%8 >= 6 {
			inner, _ = inside()
		}
		return cacheCreate(key, id, creationEnding(code.Arg/32%4), inner)
	case 4:
		return cacheGet(key)
	case 5, 6:
		return cacheSet(key, id)
	case 7:
		return cacheSetIfAbsent(key, id)
	case 8, 9:
		return cacheDelete(key)
	case 10:
		return cacheCompareAndDelete(key, int(code.Arg/64))
	default:
		return [...]cacheOp{cacheLoop, cacheLen}[code.Arg%2]
	}
}

package peers

import (
	"hash/maphash"
	"sync"

	xsync3 "github.com/puzpuzpuz/xsync/v3"
	xsync4 "github.com/puzpuzpuz/xsync/v4"

	"github.com/latchfree/latchfree/internal/table"
)

// unit is what a registry keeps for a key: an identity, through which the value
// is read and changed.
type unit struct {
	Key   string
	value *action
}

// units is a table that finds units by their keys.
type units interface {
	load(k string) *unit
	add(u *unit) (added bool)
	remove(u *unit) (removed bool)
}

// lines is the table of shardedregistry, used as that uses it.
type lines struct {
	table.Lines[string, unit]
	keys table.Keys[string]
}

func newLines() *lines {
	t := &lines{keys: table.NewKeys[string]()}
	t.Init(t.keys.Hasher("peers"), 0)
	return t
}

func (t *lines) key(k string) table.Hashed[string] {
	return table.Hashed[string]{Hash: t.keys.Hash(k), Key: k}
}

func (t *lines) load(k string) *unit {
	u, _ := t.Find(&t.keys, k)
	return u
}

func (t *lines) add(u *unit) bool {
	_, loaded := t.LoadOrStore(t.key(u.Key), u)
	return !loaded
}

func (t *lines) remove(u *unit) bool { return t.CompareAndDelete(t.key(u.Key), u) }

// xsync3Units keeps them in an xsync v3 map, hashed as ours are.
type xsync3Units struct{ m *xsync3.MapOf[string, *unit] }

func newXsync3Units() xsync3Units {
	seed := maphash.MakeSeed()
	return xsync3Units{xsync3.NewMapOfWithHasher[string, *unit](func(k string, _ uint64) uint64 { return maphash.String(seed, k) })}
}

func (t xsync3Units) load(k string) *unit {
	u, _ := t.m.Load(k)
	return u
}

func (t xsync3Units) add(u *unit) bool {
	_, loaded := t.m.LoadOrStore(u.Key, u)
	return !loaded
}

func (t xsync3Units) remove(u *unit) (removed bool) {
	t.m.Compute(u.Key, func(now *unit, loaded bool) (*unit, bool) {
		removed = loaded && now == u
		return now, !loaded || removed
	})
	return removed
}

// xsync4Units keeps them in an xsync v4 map, which hashes keys itself.
type xsync4Units struct{ m *xsync4.Map[string, *unit] }

func newXsync4Units() xsync4Units { return xsync4Units{xsync4.NewMap[string, *unit]()} }

func (t xsync4Units) load(k string) *unit {
	u, _ := t.m.Load(k)
	return u
}

func (t xsync4Units) add(u *unit) bool {
	_, loaded := t.m.LoadOrStore(u.Key, u)
	return !loaded
}

func (t xsync4Units) remove(u *unit) (removed bool) {
	t.m.Compute(u.Key, func(now *unit, loaded bool) (*unit, xsync4.ComputeOp) {
		if removed = loaded && now == u; removed {
			return now, xsync4.DeleteOp
		}
		return now, xsync4.CancelOp
	})
	return removed
}

// syncUnits keeps them in a sync.Map.
type syncUnits struct{ m sync.Map }

func (t *syncUnits) load(k string) *unit {
	if u, ok := t.m.Load(k); ok {
		return u.(*unit)
	}
	return nil
}

func (t *syncUnits) add(u *unit) bool {
	_, loaded := t.m.LoadOrStore(u.Key, u)
	return !loaded
}

func (t *syncUnits) remove(u *unit) bool { return t.m.CompareAndDelete(u.Key, u) }

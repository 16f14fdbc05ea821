//go:build !modelcheck

package oncecache_test

import (
	"errors"
	"testing"

	"github.com/latchfree/latchfree/oncecache"
)

// The budgets: an entry, the flight of a creation, and the table's own cell
// for a key are one allocation each.
func TestAllocs(t *testing.T) {
	const key = "postgres://plans@db-001:5432/tenant"
	var c oncecache.Cache[string, *int]
	one := new(int)
	c.Set(key, one)
	captured := 0
	fails := errors.New("no route to host")

	for _, tt := range []struct {
		name string
		want float64
		op   func()
	}{
		{"GetOrCreate hit with a capturing closure", 0, func() {
			v, err := c.GetOrCreate(key, func() (*int, error) { captured++; return new(int), nil })
			if v != one || err != nil {
				t.Error(v, err)
			}
		}},
		{"Get", 0, func() { c.Get(key) }},
		{"Get of an absent key", 0, func() { c.Get("absent") }},
		{"Len", 0, func() { c.Len() }},
		{"Delete of an absent key", 0, func() { c.Delete("absent") }},
		{"SetIfAbsent of a present key", 0, func() { c.SetIfAbsent(key, one) }},
		{"CompareAndDelete of another value", 0, func() { oncecache.CompareAndDelete(&c, key, nil) }},
		{"Set", 2, func() { c.Set(key, one) }},
		{"GetOrCreate of a new key, and Delete", 3, func() {
			c.GetOrCreate("new", func() (*int, error) { captured++; return one, nil })
			c.Delete("new")
		}},
		{"GetOrCreate that fails", 4, func() {
			c.GetOrCreate("new", func() (*int, error) { captured++; return nil, fails })
		}},
	} {
		if got := testing.AllocsPerRun(100, tt.op); got != tt.want {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.want)
		}
	}
}

func TestAllocsOfOtherKeys(t *testing.T) {
	type id struct {
		tenant uint32
		name   string
	}
	var ints oncecache.Cache[int, int]
	var structs oncecache.Cache[id, int]
	var anys oncecache.Cache[any, int]
	var key any = id{7, "billing"}
	captured := 0
	create := func() (int, error) { captured++; return 1, nil }

	for name, op := range map[string]func(){
		"int":    func() { ints.GetOrCreate(1<<20, create) },
		"struct": func() { structs.GetOrCreate(id{7, "billing"}, create) },
		"any":    func() { anys.GetOrCreate(key, create) },
	} {
		op()
		if got := testing.AllocsPerRun(100, op); got != 0 {
			t.Errorf("hit with a key of type %s: %v allocations, want 0", name, got)
		}
	}
	if captured != 3 {
		t.Errorf("%d creations, want 3", captured)
	}
	if got := testing.AllocsPerRun(100, func() { anys.SetIfAbsent(key, 1) }); got != 0 {
		t.Errorf("SetIfAbsent of a present key of type any: %v allocations, want 0", got)
	}
}

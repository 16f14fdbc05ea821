package main

import (
	"container/list"

	"github.com/maypok86/otter/v2"

	"github.com/latchfree/latchfree/oncecache"
)

// cache is what a trace needs.
type cache interface {
	get(k int) bool
	add(k int)
}

// policies are the caches that are compared.
var policies = []struct {
	name string
	make func(entries int) cache
}{
	{"latchfree (SIEVE)", newOurs},
	{"otter (W-TinyLFU)", newOtter},
	{"LRU", newLRU},
}

// hitRate returns which part of the keys a cache has when they are asked for. It adds those
// that it has not.
func hitRate(c cache, keys []int) float64 {
	hits := 0
	for _, k := range keys {
		if c.get(k) {
			hits++
		} else {
			c.add(k)
		}
	}
	return float64(hits) / float64(len(keys))
}

type ours struct{ *oncecache.Cache[int, int] }

func newOurs(entries int) cache {
	return ours{oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: entries})}
}

func (c ours) get(k int) bool { _, ok := c.Get(k); return ok }
func (c ours) add(k int)      { c.Set(k, k) }

type others struct{ *otter.Cache[int, int] }

func newOtter(entries int) cache {
	return others{otter.Must(&otter.Options[int, int]{
		MaximumSize: entries,
		Executor:    func(f func()) { f() },
	})}
}

func (c others) get(k int) bool { _, ok := c.GetIfPresent(k); return ok }
func (c others) add(k int)      { c.Set(k, k) }

// lru is a list of keys, the last used first.
type lru struct {
	entries int
	at      map[int]*list.Element
	keys    *list.List
}

func newLRU(entries int) cache { return &lru{entries, map[int]*list.Element{}, list.New()} }

func (c *lru) get(k int) bool {
	e, ok := c.at[k]
	if ok {
		c.keys.MoveToFront(e)
	}
	return ok
}

func (c *lru) add(k int) {
	if len(c.at) == c.entries {
		oldest := c.keys.Back()
		delete(c.at, c.keys.Remove(oldest).(int))
	}
	c.at[k] = c.keys.PushFront(k)
}

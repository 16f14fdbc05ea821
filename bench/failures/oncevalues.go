package main

import (
	"context"

	"github.com/latchfree/latchfree/bench/peers/homemade"
)

var oncePeer = peer{
	name: "OnceValues",
	uses: "`sync.Map` of `sync.OnceValues`; whoever gets an error deletes the entry it got it from, by identity; " +
		"where a case is about it, `Clear`",
	lacks: map[feature]string{
		contexts:       "`OnceValues` takes no context",
		cancels:        "`OnceValues` takes no context",
		listener:       "no notice of values that leave",
		closes:         "cannot be closed",
		leases:         "no leases",
		captures:       "up to the code around it",
		refreshes:      "no refresh",
		renewals:       "no refresh",
		lives:          "values do not expire",
		hooks:          "nobody is told of creations",
		askedRefreshes: "no refresh",
		batches:        "one key at a time",
		bounds:         "no bound",
		expiry:         "values do not expire",
		keptErrors:     "errors are deleted, as a choice of the program",
		peeks:          "an entry does not say whether its function has returned",
		waiting:        "nobody waits without creating",
		reloads:        "no refresh",
		idleness:       "values do not expire",
		exclusives:     "no notice of values that leave",
	},
	open:  newOnce[string, *engine],
	pairs: newOnce[pair, *engine],
	anys:  newOnce[string, any],
}

type onceCache[K comparable, V any] struct{ onces *homemade.Onces[K, V] }

func newOnce[K comparable, V any](c config[K, V]) cache[K, V] {
	onces := homemade.NewOnces(func(key K) (V, error) { return c.create(context.Background(), key) })
	onces.Missed = c.missed
	return onceCache[K, V]{onces}
}

func (c onceCache[K, V]) get(_ context.Context, key K) (V, error) { return c.onces.Get(key) }
func (c onceCache[K, V]) set(key K, v V)                          { c.onces.Set(key, v) }
func (c onceCache[K, V]) delete(key K)                            { c.onces.Delete(key) }
func (c onceCache[K, V]) clear()                                  { c.onces.Clear() }
func (c onceCache[K, V]) each(f func(K) bool)                     { c.onces.Keys(f) }

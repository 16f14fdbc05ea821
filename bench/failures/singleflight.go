package main

import (
	"context"

	"github.com/latchfree/latchfree/bench/peers/homemade"
)

var plainPeer = peer{
	name:   "singleflight",
	module: "golang.org/x/sync",
	uses:   "`Group.Do` behind a map with a `sync.RWMutex`, the short way: look into the map, else `Do` a function that creates and stores",
	lacks: ownMapLacks(map[feature]string{
		contexts: "`Do` takes no context",
		cancels:  "`Do` takes no context",
		deletes:  "the short way deletes from the map only",
	}),
	open: newPlain[*engine],
	anys: newPlain[any],
}

var carefulPeer = peer{
	name:   "singleflight, with care",
	module: "golang.org/x/sync",
	uses:   "`Group.DoChan` in a `select` with the caller's context; the flight has a context without cancellation and looks into the map once more; deleting is also `Forget`",
	lacks: ownMapLacks(map[feature]string{
		cancels: "a flight does not know who waits for it, so that its context had better not end",
	}),
	open: newCareful[*engine],
	anys: newCareful[any],
}

// ownMapLacks adds what a program's own map behind a singleflight.Group lacks.
func ownMapLacks(lacks map[feature]string) map[feature]string {
	lacks[pairKeys] = "keys are strings"
	lacks[captures] = "up to the code around it"
	for _, f := range []feature{
		listener, loops, closes, leases, refreshes, askedRefreshes, reloads, batches, bounds, expiry, idleness, keptErrors,
		waiting, clears, exclusives, renewals, lives, hooks,
	} {
		lacks[f] = "the map is the program's own"
	}
	return lacks
}

func newFlights[V any](c config[string, V]) *homemade.Flights[V] {
	flights := homemade.NewFlights(c.create)
	flights.Missed = c.missed
	return flights
}

type plainCache[V any] struct{ flights *homemade.Flights[V] }

func newPlain[V any](c config[string, V]) cache[string, V] { return plainCache[V]{newFlights(c)} }

func (c plainCache[V]) get(_ context.Context, key string) (V, error) { return c.flights.Get(key) }
func (c plainCache[V]) set(key string, v V)                          { c.flights.Set(key, v) }
func (c plainCache[V]) delete(key string)                            { c.flights.Delete(key) }
func (c plainCache[V]) peek(key string) (V, bool)                    { return c.flights.Peek(key) }

type carefulCache[V any] struct{ flights *homemade.Flights[V] }

func newCareful[V any](c config[string, V]) cache[string, V] { return carefulCache[V]{newFlights(c)} }

func (c carefulCache[V]) get(ctx context.Context, key string) (V, error) {
	return c.flights.GetContext(ctx, key)
}
func (c carefulCache[V]) set(key string, v V)       { c.flights.Set(key, v) }
func (c carefulCache[V]) delete(key string)         { c.flights.Forget(key) }
func (c carefulCache[V]) peek(key string) (V, bool) { return c.flights.Peek(key) }

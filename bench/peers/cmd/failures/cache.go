package main

import "context"

// engine is what cases keep in caches: a value that must be the only one of
// its key. Serial is the number of the creation that made it, or 0.
type engine struct {
	key    string
	serial int
}

// pair is a key of two words. Two pairs may print alike and yet differ.
type pair struct{ first, second string }

// config is what a case asks of a cache. Everything but create is optional.
type config[K comparable, V any] struct {
	// create makes the value of a key. It is given beforehand to caches that
	// want it so, and at each call to the others. Its context is the cache's
	// choice, and context.Background if the cache has none.
	create func(context.Context, K) (V, error)
	// left is told of a value that is no longer the cache's, as a program would
	// that closes it then. Only caches with a listener call it.
	left func(K, V)
	// missed is called by a caller that has not found its key, before it goes on
	// to create the value or to wait for it. Only caches with a stop call it.
	missed func()
}

// cache is what all cases use of a cache.
type cache[K comparable, V any] interface {
	// get returns the value of key, which it creates if there is none.
	get(ctx context.Context, key K) (V, error)
	set(key K, v V)
	delete(key K)
}

// What only some caches have.
type (
	// ranger calls f for keys that have a value, and stops when it returns false.
	ranger interface{ each(f func(key string) bool) }

	// closer refuses callers from now on, and waits for what is under way if the
	// cache does that.
	closer interface{ close(context.Context) }

	// lessor gives the right to use a value, until release is called.
	lessor interface {
		acquire(ctx context.Context, key string) (e *engine, release func(), err error)
	}

	// capturer asks for a key that is there, with a create function made at the
	// call, which captures serial.
	capturer interface {
		hit(key string, serial int) error
	}
)

// feature is something that not every cache claims to do.
type feature string

const (
	contexts feature = "contexts" // a context ends the wait of its caller
	failures feature = "failures" // a create function can return an error
	pairKeys feature = "pairs"    // keys may be structs
	deletes  feature = "deletes"  // a deletion ends a creation under way
	cancels  feature = "cancels"  // the context of create can end
	listener feature = "listener" // there is notice of values that leave
	stops    feature = "stops"    // a case can hold a caller between its look and its flight
	loops    feature = "loops"    // one can loop over the keys
	closes   feature = "closes"   // the cache can be closed
	leases   feature = "leases"   // a value can be in use
	captures feature = "captures" // the create function is given at each call
)

// peer is one of the caches compared.
type peer struct {
	name   string // of the column, and on the command line
	module string // its path; "" for the standard library
	uses   string // how it is used here
	// lacks says why a feature is not asked of this cache.
	lacks map[feature]string

	open  func(config[string, *engine]) cache[string, *engine]
	pairs func(config[pair, *engine]) cache[pair, *engine] // nil if pairKeys is lacking
	anys  func(config[string, any]) cache[string, any]
}

// peers lists the columns.
var peers = []*peer{
	&latchfreePeer, &otterPeer, &theinePeer, &sturdycPeer, &ttlcachePeer, &plainPeer, &carefulPeer, &oncePeer,
}

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

// part is a value that is a struct with padding: two that are equal may differ
// in bytes that no field has.
type part struct {
	kind   uint8
	serial int64
	rest   [2]int64 // so that copies are copies of bytes
}

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
	// created is told of a creation that has ended well, as a program would that
	// counts them. Only caches with such a hook call it.
	created func()
	// over reports whether the time of a value is over when it is stored. Others
	// stay. Only caches where values have lives of their own ask it.
	over func(V) bool
	// createMany makes the values of several keys. It is asked of caches with
	// batches only.
	createMany func(context.Context, []K) (map[K]V, error)
	// refreshes says that the case is about refreshes.
	refreshes bool
	// renews says that a value is made anew in the background when it is used after
	// fresh, and may be used until stale.
	renews bool
	// writesBack says that left writes a value back, from where create reads the
	// next one.
	writesBack bool
	// bound is how many values may stay; 0 means any number.
	bound int
	// expires says that values leave some time after they were created, or last
	// used, if that is what the cache counts.
	expires bool
	// idles says that values leave when nobody has used them for idleLife.
	idles bool
	// exclusive says that the next value of a key must not be created before left
	// has returned.
	exclusive bool
	// keepsErrors says that an error of create answers for some time.
	keepsErrors bool
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

	// refresher makes a new value of a key that has one. It returns what its
	// caller gets, or nil before that is done.
	refresher interface {
		refresh(key string) (*engine, error)
	}

	// reloader refreshes a key by a function that gets the value that is there,
	// looks at it, and says that it is still right.
	reloader interface {
		reload(key string, look func(*engine)) (*engine, error)
	}

	// clearer deletes all keys.
	clearer interface{ clear() }

	// batcher asks for several keys at once.
	batcher interface {
		getMany(ctx context.Context, keys []string) (map[string]*engine, error)
	}

	// expirer lets so much time pass that what is there is too old, and looks for
	// what is too old. Some caches do the latter by themselves.
	expirer interface {
		expire()
		sweep()
	}

	// renewer lets a value become due to be made anew, and uses it.
	renewer interface {
		renew(key string) (*engine, error)
	}

	// peeker looks for a value and creates none.
	peeker interface {
		peek(key string) (*engine, bool)
	}

	// waiter waits for a creation that is under way, and begins none.
	waiter interface {
		wait(ctx context.Context, key string) (*engine, error)
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
	contexts       feature = "contexts"        // a context ends the wait of its caller
	failures       feature = "failures"        // a create function can return an error
	pairKeys       feature = "pairs"           // keys may be structs
	deletes        feature = "deletes"         // a deletion ends a creation under way
	cancels        feature = "cancels"         // the context of create can end
	listener       feature = "listener"        // there is notice of values that leave
	stops          feature = "stops"           // a case can hold a caller between its look and its flight
	loops          feature = "loops"           // one can loop over the keys
	closes         feature = "closes"          // the cache can be closed
	leases         feature = "leases"          // a value can be in use
	captures       feature = "captures"        // the create function is given at each call
	refreshes      feature = "refreshes"       // a value can be made anew while it serves
	askedRefreshes feature = "asked refreshes" // that begins when a caller wants it
	reloads        feature = "reloads"         // that function gets the old value
	batches        feature = "batches"         // one call asks for several keys
	bounds         feature = "bounds"          // there can be a bound on the number of values
	expiry         feature = "expiry"          // values can leave after some time
	idleness       feature = "idleness"        // that time can count from the last use
	keptErrors     feature = "kept errors"     // an error can answer for some time
	clears         feature = "clears"          // one call deletes all keys
	exclusives     feature = "exclusives"      // a key can be kept until its old value is closed
	renewals       feature = "renewals"        // what is used can be made anew in the background, and has an end
	lives          feature = "lives"           // a value can have a time of its own
	hooks          feature = "hooks"           // somebody can be told of creations
	peeks          feature = "peeks"           // one can look without creating
	waiting        feature = "waiting"         // one can wait without creating
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
	parts func(config[string, part]) cache[string, part]   // nil if listener is lacking
	anys  func(config[string, any]) cache[string, any]
}

// peers lists the columns.
var peers = []*peer{
	&latchfreePeer, &otterPeer, &theinePeer, &sturdycPeer, &ttlcachePeer, &plainPeer, &carefulPeer, &oncePeer,
}

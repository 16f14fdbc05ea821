// Package oncecache keeps one value for each key, and creates it once however many callers ask for
// it together: a database handle per URL, a client per tenant, a parsed template per name.
//
// The module has four packages. Choose by what your goroutines share:
//   - atomicbreaker: a dependency that fails. It stops the calls to it until it has recovered.
//   - cowchangeset: changes. It records who changed what, and shares slices that are mostly read.
//   - oncecache: resources (meters, engines, clients). It creates one per key, and closes it after its last use.
//   - shardedregistry: data with versions. It compares, updates, indexes and watches entities.
//
// A cache needs no settings:
//
//	var engines oncecache.Cache[string, *sql.DB]
//
//	func engine(url string) (*sql.DB, error) {
//		return engines.GetOrCreate(url, func() (*sql.DB, error) {
//			return sql.Open("sqlite", url)
//		})
//	}
//
// # When to use it
//
// Use a cache when two values for one key would be wrong, not only wasteful, or when a value takes
// long to make and other keys must not wait for that; and when nearly all calls find the value there.
//
// # Callers that must not wait for ever
//
// [Cache.GetOrCreateContext] is for callers whose context may end. That ends the caller's wait; the
// creation goes on for the others, and is cancelled when all have left. No caller gets an error
// because others have left: a caller that comes while a cancelled creation still runs waits for its
// end, and begins anew if there is no value.
//
// # Values that must be closed
//
// A cache with a Config.Close function owns its values, and [Cache.Acquire] gives a [Lease] of one:
//
//	engines := oncecache.MustNew(oncecache.Config[string, *sql.DB]{
//		Close: func(_ string, db *sql.DB) error { return db.Close() },
//	})
//	…
//	lease, err := engines.Acquire(ctx, url, open)
//	if err != nil {
//		return err
//	}
//	defer lease.Release()
//
// A value is closed once, when it has left the cache and no lease holds it. So engines may be
// deleted, replaced or discarded while others use them. [Cache.Close] closes the rest, and waits
// for the leases; a cache without a Close function need not be closed. A slow Close function delays
// only the call that removed the value; evicted and idle values are closed on goroutines of the
// cache. With Config.CloseBeforeCreate, a key's next value is created when the Close function of the
// last one has returned.
//
// # Values that do not stay
//
// Config.MaxEntries bounds the number of values, Config.MaxWeight the sum of their sizes, and
// Config.IdleTimeout the time that a value stays without use. Leased values stay. Config.TTL says how long each value may be returned; with Config.Renew, a value that is used near
// its end is made anew in the background, and serves until then. [Cache.Refresh] makes a new value while the old one serves, and
// [Cache.Reload] makes it from the old one. Config.ErrorTTL keeps an error for a while, so that
// fewer callers ask a server that is down.
//
// Config.OnRemove is told of each value that leaves the cache, and why: to count, or to log. A cache
// that has it owns its values, as with Close. Write a changed value back in Config.Close, with
// Config.CloseBeforeCreate, and change it under a lease: in OnRemove, the next creation of the key may
// have read its source before the write.
//
// # Metrics
//
// [Cache.Stats] counts what has happened, [Cache.Len] and [Cache.InFlight] show what is there. With
// Config.RecordStats, Stats also counts hits and misses, and Config.OnCreate is told how long each
// creation took, for a histogram.
//
// # Creations that need each other
//
// A create function may ask for other keys, of any cache, if it hands on its context. The call that
// would close a cycle of waits gets a [*CycleError] with the keys on the way. Without contexts, a
// function that asks for its own key gets it on amd64 and arm64, and a cycle over several goroutines
// is not found: its callers hang. Config.CreateTimeout bounds how long callers wait, and
// [Cache.InFlight] shows the creations that are under way.
//
// # When not to use it
//
// When making a value twice does no harm and takes less than a microsecond: sync.Map is enough. When all
// values can be made in advance: a plain map is enough. When a value must not be returned a millisecond
// after its end: a timer ends a TTL, and may be late, so compare times yourself. Without MaxEntries, MaxWeight and IdleTimeout,
// values stay until a call removes them: where outsiders choose keys, set one of these. When look-ups
// go round in a loop that does not fit: SIEVE then hits nothing, and a cache with W-TinyLFU does.
//
// # Guarantees
//
// Create functions of one key never run at the same time, unless [Cache.Set], [Cache.Delete],
// [Cache.Clear] or a timeout has ended a creation whose function still runs, and not even then with
// Config.CloseBeforeCreate. No second creation can begin between the end of one and the publication
// of its value.
//
// Every value that a create function returns is kept, or given to the callers that asked for it, or
// dropped; and with a Config.Close function each is closed in the end. However a create function
// ends (error, panic, [runtime.Goexit]), all its waiters get a value or an error, and the key is
// free again.
//
// No function of the user runs under a lock. A slow creation delays only the callers of its own
// key.
//
// # Memory model
//
// What a create function did before it returned, or a caller before [Cache.Set] or
// [Cache.SetIfAbsent], happens before the return of every call that returns the value.
//
// # Costs
//
// A hit is one map look-up and two atomic loads. It writes nothing shared, waits for no other call
// and allocates nothing, even if the create function of GetOrCreate captures variables.
//
// A lease takes one read-modify-write to acquire and one to release, on a word of the key's own,
// which is split by processors once two users collide on it.
//
// With RecordStats, a hit has one read-modify-write more, on a counter that is split by processors.
//
// With MaxEntries, MaxWeight or IdleTimeout, a hit has one load more, and one store if the value has not been
// used since the last search for values to remove. Calls that create or remove a value take one
// mutex.
//
// A ready entry takes 8 bytes beside its key and its value, and 26 to 51 in the table, or 17 to 34
// if there are more than 10,000. A value that is to be closed, or told to OnRemove, takes 80 bytes more, one in a cache
// with bounds 128, and one of both kinds 144.
//
// A creation makes two allocations, and more if keys are or contain interfaces. The first waiter
// adds those of a channel. A creation whose caller can leave runs on a goroutine of its own.
//
// # References
//
// The one-table design is that of cmd/internal/par.Cache in the Go tree. The treatment of panics is
// that of [sync.OnceFunc]. The count of leases is that of percpu_ref in the Linux kernel, which is
// split by processors until it is killed. The table is a Cache-Line Hash Table, https://github.com/LPD-EPFL/CLHT,
// with the tags of xsync, whose buckets point to the entries themselves.
package oncecache

// Package oncecache keeps one value per key and creates it once, however many callers ask for it at
// the same time: a database handle for each URL, a client for each tenant, a parsed template for
// each name.
//
// The module has four packages. Choose by what your goroutines share:
//   - atomicbreaker: a dependency that fails. It stops the calls to it until it has recovered.
//   - cowchangeset: changes. It records who changed what, and shares slices that are mostly read.
//   - oncecache: resources (meters, engines, clients). It creates one per key, and closes it after its last use.
//   - shardedregistry: data with versions. It compares, updates, indexes and watches entities.
//
// A cache needs no settings:
//
//		var engines oncecache.Cache[string, *sql.DB]
//
//		func engine(url string) (*sql.DB, error) {
//			return engines.GetOrCreate(url, func() (*sql.DB, error) {
//				return sql.Open("sqlite", url)
//			})
//		}
//
//	  - [Cache.GetOrCreate] gets a value, or makes it. [Cache.Load] makes it by Config.Create.
//	  - [Cache.Get], [Cache.Set] and [Cache.Delete] are those of a map.
//	  - [Cache.Acquire] gets a value that is not closed before you release it.
//	  - [Cache.Refresh] makes a new value while the old one serves.
//	  - [Cache.GetOrCreateMany] makes many values by one call.
//
// # When to use it
//
// Without bounds, IdleTimeout or TTL, values stay: if outsiders choose the keys, set one. A cyclic
// scan larger than MaxEntries hits nothing. Use a cache when two values for one key would be wrong,
// or when a value takes long to make and other keys must not wait for that. If a value is cheap and
// may be made twice, sync.Map is enough.
//
// # Values that must be closed
//
// A cache with a Config.Close function owns its values, and Acquire gives a [Lease] of one:
//
//	engines := oncecache.MustNew(oncecache.Config[string, *sql.DB]{
//		Create: open,
//		Close:  func(_ string, db *sql.DB) error { return db.Close() },
//	})
//	…
//	lease, err := engines.Acquire(ctx, url, nil)
//	if err != nil {
//		return err
//	}
//	defer lease.Release()
//
// A value is closed once, when it has left the cache and no lease holds it. [Cache.Close] closes the
// rest, and waits for leases. To write changed values back, see Config.Close.
//
// # Values that do not stay
//
// MaxEntries bounds how many values there are, MaxWeight their total size. IdleTimeout removes
// values that nobody has used for a while. TTL is how long a value may be returned; RenewAhead
// makes a new one in the background before it expires. ErrorTTL keeps errors for a while.
//
// # Guarantees
//
// Create functions of one key do not run at the same time, unless [Cache.Set], Delete, [Cache.Clear],
// [CompareAndDelete], Discard or a timeout has ended one that still runs. However a create function ends
// (error, panic, [runtime.Goexit]), its callers get a value or an error, and the key is free again. No
// function of yours runs under a lock; a slow one delays the callers of its own keys only, until 16
// Close functions hang. What happened before a create function returned, or before Set, happens
// before any call returns that value.
//
// # Costs
//
// A hit is one map look-up and two atomic loads. It writes nothing shared and allocates nothing; with
// bounds or IdleTimeout, the first hit after the evictor has passed a value sets a mark. A lease
// adds two atomic operations on a word of its key, and RecordStats one. A value takes 16 bytes
// beside its key, 26 to 51 in the table, and 80 more if it is closed, 144 with bounds, or 208 with
// times. Besides the mutex of a bucket, a method may take that of the eviction order, while values
// are evicted, and that of what is being closed.
//
// # References
//
// The one-table design is that of cmd/internal/par.Cache in the Go tree, the treatment of panics that of
// [sync.OnceFunc], eviction SIEVE (NSDI 2024), leases percpu_ref of the Linux kernel, and the table a
// Cache-Line Hash Table, https://github.com/LPD-EPFL/CLHT.
package oncecache

// Package oncecache keeps one value for each key, and creates it once however
// many callers ask for it together: a database handle per URL, a client per
// tenant, a parsed template per name.
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
// When two values for one key would be wrong, not only wasteful; when a value
// takes long to make and other keys must not wait for that; when nearly all
// calls find the value there.
//
// # Callers who may not want to wait
//
// [Cache.GetOrCreateContext] is for callers whose context may end. That ends
// their wait; the creation goes on for the others, and is cancelled when all
// have left. Whoever asks for the key while a cancelled creation still runs
// waits for its end, uses what it made after all, and otherwise starts anew:
// nobody gets an error because others have left.
//
// # Values that must be closed
//
// A cache with a Config.Close function owns its values, and [Cache.Acquire]
// gives a [Lease] of one:
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
// A value is closed once: when it is no longer the key's, and nobody holds a
// lease of it. So an engine may be deleted, replaced, or discarded as broken
// while others use it. [Cache.Close] closes what is left, and waits for those
// who still use it. A Close function that takes its time holds up only the call
// that has removed the value, and none if it goes for want of room or use. With
// Config.CloseBeforeCreate the next value of a key is made when it has returned.
//
// # Values that do not stay
//
// Config.MaxEntries bounds the number of values, and Config.IdleTimeout the time
// that one stays without use; what a lease holds stays. [Cache.Refresh] makes a
// value anew while the old one serves, and [Cache.Reload] from it. Config.ErrorTTL lets an error answer for a
// while, so that a server that is down is not asked by every caller.
//
// # Creations that need each other
//
// A create function may ask for other keys, of this cache and of others, if it
// hands on the context that it was given. If that goes round, the call that
// would close the circle gets a [*CycleError] with the keys on the way, and
// nobody hangs. Without contexts a function that asks for its own key is told so
// on amd64 and arm64, and what goes round over several goroutines is not found.
//
// Config.CreateTimeout bounds the time that anyone waits for a creation, and
// [Cache.InFlight] shows those that are under way and since when.
//
// # When not to use it
//
// When values go out of date by the clock: there is no time to live, only
// Refresh and Delete. When making a value twice does no harm and takes less
// than a microsecond: sync.Map does. When the values can be made before the
// goroutines start: a plain map does.
//
// # Guarantees
//
// Each key has one entry, which is both the place where its callers meet and
// the value that they get, so there is no moment between a creation and its
// value at which a second creation could begin. Create functions of one key never
// run at the same time, unless [Cache.Set], [Cache.Delete], [Cache.Clear] or a
// timeout ended the creation of one that still runs, and not even then with
// Config.CloseBeforeCreate.
//
// Every value that a create function returns is kept, or given to those who
// asked for it, or dropped; and if there is a Config.Close function, closed in
// the end, whichever of these it was.
//
// Every call that returns has either a value that was created or set, or an
// error. However a create function ends — error, panic, [runtime.Goexit] —
// everyone who waits for it is woken and the key is free again.
//
// No function of the user runs under a lock. A slow creation delays nobody but
// the callers of its own key.
//
// # Memory model
//
// What a create function did before it returned, or a caller before
// [Cache.Set] or [Cache.SetIfAbsent], happens before the return of every call
// that returns the value.
//
// # Costs
//
// A hit is one map look-up and two atomic loads. It writes nothing shared,
// waits for nobody and allocates nothing, even if the create function captures
// variables: it never leaves the caller's stack. GetOrCreateContext costs the
// same, but its create function should take what it needs from its arguments,
// because one that captures variables is allocated.
// So may be that of GetOrCreate if it is called in a closure that the compiler
// inlines into another package, with the function that returns the closure
// (https://go.dev/issue/79592).
//
// A lease takes one read-modify-write to acquire and one to release, on a word
// that is the key's own, and split by processors once two users of a key have
// collided on it.
//
// With MaxEntries or IdleTimeout, a hit has one load more, and one store if the
// value has not been used since the last search for what can go. Whoever
// creates or removes a value takes the mutex of the list of all.
//
// A ready entry takes 8 bytes beside its key and its value, and 26 to 51 in the
// table, or 17 to 34 if there are more than 10,000. A creation makes two
// allocations, and more if keys are or contain interfaces, because it checks that
// the key can be compared; whoever must wait for it adds those of a channel. A
// creation whose caller can leave runs on a goroutine of its own. A value that is to be closed takes 80 bytes
// more, one in a cache with bounds 128, and one of both kinds 144.
//
// # References
//
// The one-table design is that of cmd/internal/par.Cache in the Go tree. The
// treatment of panics is that of [sync.OnceFunc]. The count of leases is that
// of percpu_ref in the Linux kernel, which is split until it is killed. The table
// is a Cache-Line Hash Table, https://github.com/LPD-EPFL/CLHT, with the tags of
// xsync, whose buckets point to the entries themselves.
package oncecache

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
// # When not to use it
//
// When the values go out of date or must not grow in number: nothing leaves
// the cache by itself. When making a value twice does no harm and takes less
// than a microsecond: sync.Map does. When the values can be made before the
// goroutines start: a plain map does.
//
// # Guarantees
//
// Each key has one entry, which is both the place where its callers meet and
// the value that they get, so there is no moment between a creation and its
// value at which a second creation could begin. Create functions of one key never
// run at the same time, unless [Cache.Set] or [Cache.Delete] ended the creation
// of one that still runs.
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
// variables: it never leaves the caller's stack.
//
// A ready entry takes 8 bytes beside its value, and the table one cell with
// the key. A creation makes three allocations, and more if keys are or contain
// interfaces, because it checks that the key can be compared; whoever must
// wait for it adds those of a channel.
//
// # References
//
// The one-table design is that of cmd/internal/par.Cache in the Go tree. The
// treatment of panics is that of [sync.OnceFunc]. The table is a Cache-Line
// Hash Table, https://github.com/LPD-EPFL/CLHT, by way of xsync.
package oncecache

// Package shardedregistry is a concurrent map of named entities that loses no create and no update: Create
// never overwrites, Update applies a function atomically, and every value has a [Version], so that a caller
// can change exactly the value that it has read.
//
// The module has four packages. Choose by what your goroutines share:
//   - atomicbreaker: a dependency that fails. It stops the calls to it until it has recovered.
//   - cowchangeset: changes. It records who changed what, and shares slices that are mostly read.
//   - oncecache: resources (meters, engines, clients). It creates one per key, and closes it after its last use.
//   - shardedregistry: data with versions. It compares, updates, indexes and watches entities.
//
// The zero Registry is ready to use:
//
//	var actions shardedregistry.Registry[string, Action]
//
//	version, err := actions.Create("backup", Action{Run: 1})
//	entry, err := actions.Update("backup", func(a Action) (Action, error) {
//		a.Run++
//		return a, nil
//	})
//	version, err = actions.UpdateIf("backup", entry.Version, Action{Run: 9})
//
// For values that are written once and then only read, [sync.Map] is enough.
//
// # What to know first
//
// The registry hands out the values that it holds. If V is or contains a pointer, a slice or a map, nobody may
// change what it refers to: neither in what was stored nor in what was returned. Copy it, and Update.
//
// A function given to Update, Compute or Transact runs again when another operation has changed its
// key meanwhile, or a transaction has used it: it should have no side effects. Contention does not
// fail a call: a million runs are allowed, which only a function needs that changes its own key.
//
// Len, loops, DeleteFunc, Clear and Replace see each key at another moment. Snapshot and Transact see all at one.
//
// The registry keeps the key that created an entry; in a transaction, the one by which it was first used. If that
// is a substring of a large string, clone it first.
//
// # Guarantees
//
// Every operation on one key is linearizable, and so are Snapshot, LookupBy and Transact: each takes effect at one
// instant between its call and its return, which its doc names; while a snapshot is being taken, a change does when
// its record gets a date, after it is stored. A key is read when its record is, or, if it is absent,
// when the table is, or when its last record was stored. A method that stores a value synchronizes before every method
// that returns it. Finding a key absent establishes no such order.
//
// A wait-free operation takes a bounded number of steps, whatever others do. Of lock-free
// operations one always makes progress. Blocking on a hash bucket means waiting for its mutex,
// which is held for a handful of loads and stores.
//
// Functions that callers supply, and the bodies of loops, run on the caller's goroutine, outside every lock, and may
// use the registry. So they delay no other key. If such a function, or Config.Check, returns an error, the method
// returns that error as it is. Then, and when the function panics or calls [runtime.Goexit], nothing has changed,
// except other keys in methods that work key by key.
//
// # What else there is
//
//   - [Registry.Transact] changes several keys at one instant; [Registry.Snapshot] shows all at one. A whole new state
//     at one instant is a new registry behind an [atomic.Pointer]: see the example of Replace.
//   - [Registry.Watch], [Registry.WatchSnapshot], [Registry.WatchFrom] and [Registry.Wait] wait for changes, without a
//     goroutine or polling. No other operation waits for them.
//   - [Registry.ByIndex] finds entities by what they contain; in unique indexes each value has at most one key.
//   - Config.TTL makes entities expire. With [Registry.Renew], and versions as fencing tokens, a key is a lock.
//   - [slices.SortedFunc] of a snapshot's Entries sorts it. Package snapfile keeps snapshots in a file.
//   - Several tenants have a registry each, or keys that are a struct of tenant and name.
//
// # Invalid keys
//
// A key that cannot be found again (a NaN, or an interface that holds a slice, a map or a function), or that
// Config.Normalize rejects, is invalid. Methods that return an error then return one that matches [ErrInvalidKey];
// others find the key absent.
//
// # Costs
//
// Get, Peek and Lookup write nothing shared, unless a snapshot is being taken, and allocate nothing. Update and Put
// allocate the new record, 8 bytes and the value.
// Create allocates a record and a cell, the key and 16 bytes; if Normalize has changed the key, also its spelling and
// 24 bytes. The table takes 26 to 51 bytes for each key, and 17 to 34 beyond 10,000 keys. With indexes, TTL or
// History, and while a snapshot is being taken, a record takes some 80 bytes more.
//
// An index takes 3.1 KB, and for each value of an entity 180 bytes if no other entity has it, or 90 if
// many have.
//
// If there are more entities than the processor's caches hold, and many updates, cache misses and
// garbage collection can cost more than a lock around a map.
package shardedregistry

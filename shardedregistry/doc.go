// Package shardedregistry is a concurrent map of named entities. It never loses a create or an update: Create
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
// For values that are written once and then only read, [sync.Map] is enough. A map that one goroutine writes
// in bulk and others only read is better served by an atomic pointer to a map.
//
// # Guarantees
//
//	method                               progress
//	Get Lookup Len ByIndex LookupBy      wait-free
//	GetOrCreate of a present key         wait-free
//	UpdateIf                             wait-free; lock-free while others watch or wait, or with
//	                                     History, or beside a transaction
//	Update; Put of a present key         lock-free
//	Create Put GetOrCreate               blocking on the mutex of a hash bucket
//	    of an absent key
//	Delete DeleteIf                      others see the key absent without waiting;
//	                                     then blocking on that mutex
//	Renew                                lock-free; blocking on a mutex if it brings the
//	                                     deadline forward
//	Compute                              as Put, or, if it deletes, as Delete
//	All Entries Keys IndexValues         blocking on one bucket's mutex at a time,
//	    Snapshot DeleteFunc Clear        never while the loop's body runs
//	    Replace
//	Transact                             lock-free for present keys; blocking on the
//	                                     mutex of a hash bucket for others
//	Watch WatchSnapshot WatchFrom Wait   blocking: they wait for changes; nobody waits for them
//
// With indexes or TTL, a method that changes a key may block as [Config] says, and so may each that helps a
// transaction which is about to change its key: on the bucket's mutex of a key that was absent. A bucket's mutex is held
// for a handful of loads and stores. No function that a caller supplies runs under it. So a function that is slow,
// panics, calls [runtime.Goexit] or calls back into the registry delays no other key.
//
// Every operation on one key is linearizable, and so are Snapshot, LookupBy and Transact: each takes effect at one
// instant between its call and its return. Len, loops, DeleteFunc, Clear and Replace are not atomic over keys. The
// versions of a key strictly increase for ever, also across its deletion and re-creation.
//
// A function given to Update or Compute runs again when another operation has changed the key meanwhile. It must
// not modify what its argument refers to, because all readers share that. Contention alone never
// fails a call. Only a function that changes its own key in run after run does, with [ErrTooManyRetries].
//
// # Transactions
//
// [Registry.Transact] runs a function that reads and stores several keys, and makes all that it has stored take
// effect at one instant, or nothing. Its function sees what the keys hold at one moment, and runs again if one of
// them has changed. No reader waits, and none sees a part: a transfer between two accounts is never half done in Get,
// Lookup, Snapshot or another transaction. It takes some four times as long as an Update of each key.
//
// [Registry.Clear] deletes all keys, and [Registry.Replace] makes the registry contain what an iterator yields and
// nothing else, both key by key. A whole new state at one instant is a new registry behind an [atomic.Pointer]: an
// example of Replace shows that.
//
// # Snapshots
//
// [Registry.Snapshot] returns what all keys held at one instant, without stopping anybody: if A is changed
// and then B, it never shows the change of B without that of A. A loop over All sees each key at another
// moment.
//
// A snapshot is in no order. [slices.SortedFunc] of its Entries sorts them, by key, value or version.
//
// [Restore] makes a registry of a snapshot's entries with their versions. Package snapfile saves a registry in a file and
// loads it again.
//
// # Expiry
//
// With Config.TTL each version of an entity has a deadline. When that has passed, the registry deletes the
// entity, and [Event].Expired says so to all loops. [Registry.Renew] puts the deadline of a version off without
// a change: an instance of a service that sends heartbeats, or the owner of a lock, loses its key when it stops.
// The versions of a key are fencing tokens, because they increase for ever. No entity expires early. It is
// present until a timer has deleted it, some milliseconds later; no read looks at a clock.
//
// # Watching
//
// [Registry.Watch] yields the keys that change, with what they hold. [Registry.WatchSnapshot] yields first
// what all keys held when it began. [Registry.Wait] sleeps until one key has changed. None of them polls or
// starts a goroutine, and a registry needs no closing. A loop that is slower than the writers skips what a
// key held in between, and never misses what a key holds in the end, or its deletion.
//
// Loops may be given filters: [Keys], [Prefix], [Matching]. A loop that watches other keys costs a change a
// hash, however many there are.
//
// With Config.History, [Registry.WatchFrom] yields every change, once and in order, with the last value of
// what was deleted. It begins after a [Revision]: that of a [Snapshot], or of the last change that the caller
// has seen. If too much has changed since, it ends with an error that matches [ErrCompacted].
//
// # Indexes
//
// Config.Indexes are functions that return the values by which an entity is found: its owner, its tags, its
// state. [Registry.ByIndex] loops over the keys that have a value, without looking at other keys. It yields
// an entity only if that has the value then, and always if it has the value throughout. In
// Config.UniqueIndexes each value has at most one key; [Registry.LookupBy] finds it. Config.Check may reject
// an entity. If Check rejects it, a function panics, or another key has a unique value, nothing has changed.
//
// # Keys
//
// Config.Normalize maps the spellings of a key to one and rejects invalid keys, in every method. A key that
// cannot be found again (a NaN, or an interface that holds a slice, a map or a function) is invalid, too.
// Methods that return an error then return one that matches [ErrInvalidKey]; Get, Lookup and Delete find
// the key absent.
//
// A [Ref] is a handle to one key. Reading through it takes two loads instead of normalising, hashing and
// probing, and it follows its key through deletions and creations.
//
// Several tenants have a registry each, which keeps their loops, counts, indexes and unique values apart, or, if
// one Snapshot or transaction must show all, keys that are a struct of tenant and name.
//
// # Values that contain pointers
//
// The registry hands out the values that it holds. If V is or contains a pointer, a slice or a map, nobody may
// change what it refers to: neither in what was stored nor in what was returned, nor what Peek points to. To
// change such a value, copy it and Update.
//
// # Memory model
//
// A method that stores a value synchronizes before every method that returns it: whatever the writer did
// before its call is visible to the reader. Finding a key absent establishes no such order.
//
// # Costs
//
// Get, Peek and Lookup write nothing shared and allocate nothing. Update and Put allocate the new record, 8 bytes
// and the value, and change the key by one compare-and-swap. Create allocates a record and a cell, which is
// the key and 16 bytes; if Normalize has changed the key, also its spelling and 48 bytes. The table takes 26
// to 51 bytes for each key, and 17 to 34 beyond 10,000 keys.
//
// The registry keeps the key that created an entry. If that is part of a large string, copy it first.
//
// An index takes 3.1 KB, and for each value of an entity about 200 bytes if no other entity has it, or 110 if
// many have. Writers that move keys to or from one value contend for one word, and copy about 1 KB if it has
// 20,000 keys.
//
// Each entity is two small objects. With more entities than the caches hold and many updates, cache misses
// and garbage collection can cost more than a lock around a map. Shards do not make reads faster. Copying a
// map under a lock takes less time than a Snapshot, but all other operations wait for it.
package shardedregistry

// Package shardedregistry is a concurrent map of named entities that never
// loses a create or an update.
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
// Create never overwrites, Update applies a function atomically, and every
// value carries a [Version], so that what was read can be changed only if it
// is still what was read. Keys are normalised in every entry point, or in none.
//
// # When to use
//
// Entities that several goroutines create, change and delete by name: actions,
// plans, sessions, connections, jobs.
//
// # When not to use
//
// For values that are written once and then only read, [sync.Map] is enough. For
// a value that is built on first use exactly once, see package oncecache. A map
// that one goroutine writes in bulk and others only read is better served by an
// atomic pointer to a plain map.
//
// # Guarantees
//
//	method                              progress
//	Get Lookup Len                      wait-free
//	GetOrCreate on a present key        wait-free
//	UpdateIf                            wait-free; lock-free while others watch or
//	                                    wait
//	Update Put Upsert on a present key  lock-free
//	Create Put Upsert GetOrCreate       blocking on the mutex of a hash bucket
//	    on an absent key
//	Delete DeleteIf                     others see the key absent without
//	                                    waiting; then blocking on the same mutex
//	All Entries DeleteMatching          blocking on one bucket's mutex at a time,
//	                                    never while the loop body runs
//	Snapshot                            likewise; nobody waits for it
//	Watch WatchSnapshot Stream Wait     blocking: they wait for changes; nobody
//	                                    waits for them
//	ByIndex LookupBy                    wait-free
//	what stores, with indexes           likewise blocking where it is the first
//	                                    or the last under a value: see Config
//
// A bucket's mutex is held for a handful of loads and stores; a table that grows
// or shrinks moves one bucket at a time, and who creates or deletes a key waits
// for no other. No function that a caller supplies runs under it, so one that is
// slow, panics, calls [runtime.Goexit] or calls back into the registry delays no
// other key and freezes nobody.
//
// Every operation on one key is linearizable, and so are Snapshot and LookupBy:
// each takes effect at one instant between its call and its return. Len, loops
// and the batches CreateMany and DeleteMatching are not atomic over keys. The
// versions of a key strictly increase for ever, also across its deletion and
// re-creation, so that a version names one value of that key.
//
// A function given to Update or Upsert may run several times, because it runs
// without a lock and starts over when another operation changed the key
// meanwhile. It must not modify what it is given: a value is shared by all who
// read it. Contention alone never fails a call, however heavy. Only a function
// that changes its own key in run after run does, with [ErrTooManyRetries].
//
// # Snapshots
//
// A loop over All sees each key at another moment. [Registry.Snapshot] returns
// what all keys held at one instant, with their versions, without stopping
// anybody: if A is changed and then B, it never shows the change of B without
// that of A. It is a copy that may be kept, read from many goroutines, and
// forgotten. While it is being taken, a change costs two compare-and-swaps more,
// both on the new record, and what the keys held at the instant is kept; changes
// take effect a moment after their record is stored. Before and after, a change
// costs one load for it, and a read nothing.
//
// # Watching
//
// [Registry.Watch] yields the keys that change, with what they hold, while the
// loop over it runs; [Registry.WatchSnapshot] yields first what all keys held
// when it began; [Registry.Wait] sleeps until one key has changed. None of them
// polls or starts a goroutine, a loop that is left leaves nothing behind, and
// writers never wait for them. A loop that is slower than the writers skips what
// a key held in between, so what waits for it is bounded by keys; it never misses
// what a key holds in the end, or that it was deleted. While nobody watches, a
// change costs one load for it.
//
// [Registry.Stream] yields every change instead, each once and in order, also what
// a key held only for a moment. What waits for such a loop is bounded by a number
// that it is given: if it is so slow that more waits, it ends with an error that
// matches [ErrLagged], and never skips a change. The registry must be made with
// Config.Transitions, which costs each record 16 bytes.
//
// # Indexes
//
// Config.Indexes name functions of an entity, by whose results it is found: its
// owner, its tags, its state. [Registry.ByIndex] loops over what the keys hold
// now that has a value, without looking at other keys. What it yields matches
// when it is yielded, and what matches throughout is yielded, whatever others
// change meanwhile. Config.UniqueIndexes are indexes whose values have one key
// each, as a user's address or a port; [Registry.LookupBy] finds it.
//
// What an index function has returned for a value is kept with the value.
// Config.Check may reject a value before it is asked. Where it panics, or another
// key has a unique value, nothing has changed and nothing is left in an index.
// An index keeps no more than the values that its keys have: a value that nobody
// has any more takes no memory.
//
// # Keys
//
// Config.Normalize maps the spellings of a key to one, and rejects what is no
// key. It is applied to the key that every method is given, never twice to the
// same, and should return its own results unchanged. A key that cannot be found
// again (a NaN, or an interface that holds a slice, a map or a function) is
// invalid. Methods that return an error return one that matches [ErrInvalidKey]
// for an invalid key; Get, Lookup and Delete report that it is absent.
//
// # Handles and namespaces
//
// A [Ref] is a handle to one key: it is resolved when it is made, and reading
// through it takes two loads instead of normalising, hashing and probing. It
// follows its key through deletions and creations.
//
// A registry whose keys are [Scoped] can be divided by [Namespace] into views,
// each with the methods of a registry, whose keys cannot meet. A View yields,
// finds and is told of its own keys alone, and its errors show no others.
//
// # Values that contain pointers
//
// The registry hands out the values that it holds. If V is or contains a
// pointer, a slice or a map, what is behind it must not be changed, or
// Config.Clone must copy it on the way in and out. Config.Fingerprint, in tests,
// finds who changes it nevertheless, and panics with key and version.
//
// # Memory model
//
// A method that returns a value synchronises after the method that stored it:
// whatever the writer did before the call is visible to the reader after it.
// Finding a key absent establishes no such order.
//
// # Costs
//
// Get and Lookup write nothing shared and allocate nothing. An Update or Put
// allocates the new record, 8 bytes and the value, and changes the key by one
// compare-and-swap. A Create allocates a record, a cell of the key and 16 bytes,
// and, if Normalize has changed the key, its spelling and 48 bytes; and the table
// takes 26 to 51 bytes for each key, and 17 to 34 if there are more than 10,000.
// A shard costs 8 bytes, and 88 when a key of it has been created. A Ref to a string costs 80 bytes.
//
// The registry keeps the key with which an entry was created, and none of those
// that are given to find it. A string that is a part of a large one keeps all of
// that, so copy it before you create a key with it.
//
// An index costs 3.1 KB, and for each value of an entity about 200 bytes if no
// other has it, and 110 if many have. Who moves a key from one value to another
// copies a few nodes of the sets of keys under both, together about 1 KB if there
// are 20,000, and replaces them by compare-and-swap: there all meet who move keys
// to or from one value at once. A change that leaves the values as they are runs
// the function and costs nothing else.
//
// Each entity is two small objects, where a map behind a lock is one large
// one. With many entities, more than the caches hold, and a large share of
// updates, cache misses and garbage collection can cost more than the lock did.
//
// Shards do not make reads faster. They divide the words in which creations and
// deletions are counted.
//
// A Snapshot looks at every entity three times, and builds an index of the keys
// when a key is first looked for in it. A copy of a map under a lock takes less
// time, in which all wait.
package shardedregistry

package shardedregistry

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math/bits"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// constraints are the indexes of a registry. They are immutable but for what is inside.
type constraints[K comparable, V any] struct {
	indexes []index[K, V] // in the order of their names, those that are unique last
	values  table.Keys[string]
	locks   *valueLocks // nil if no index is unique
}

// constraints returns the constraints, or nil if there are none.
func (c *Config[K, V]) constraints() (*constraints[K, V], error) {
	if len(c.Indexes) == 0 && len(c.UniqueIndexes) == 0 {
		return nil, nil
	}
	cs := &constraints[K, V]{values: table.NewKeys[string]()}
	for _, name := range slices.Sorted(maps.Keys(c.Indexes)) {
		if c.Indexes[name] == nil {
			return nil, fmt.Errorf("shardedregistry: Config.Indexes[%q]: must not be nil", name)
		}
		cs.add(name, false, c.Indexes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.UniqueIndexes)) {
		if c.UniqueIndexes[name] == nil {
			return nil, fmt.Errorf("shardedregistry: Config.UniqueIndexes[%q]: must not be nil", name)
		}
		if _, both := c.Indexes[name]; both {
			return nil, fmt.Errorf("shardedregistry: Config.UniqueIndexes[%q]: must not be in Config.Indexes too", name)
		}
		cs.add(name, true, c.UniqueIndexes[name])
		cs.locks = new(valueLocks)
	}
	return cs, nil
}

func (cs *constraints[K, V]) add(name string, unique bool, values func(K, V) []string) {
	cs.indexes = append(cs.indexes, index[K, V]{name, unique, values, table.New[hkey[string], postingList[K]](
		func(v hkey[string], _ uint64) uint64 { return v.Hash }, 0)})
}

// number returns the number of an index, or -1.
func (cs *constraints[K, V]) number(name string) int {
	if cs == nil {
		return -1
	}
	return slices.IndexFunc(cs.indexes, func(x index[K, V]) bool { return x.name == name })
}

// indexKey returns the index key for a value of an index.
func (cs *constraints[K, V]) indexKey(index int, value string) indexKey {
	return indexKey{index, hkey[string]{Hash: cs.values.Hash(value), Key: value}}
}

// indexKeys runs the user's functions on what is to be stored. It returns old if the
// result is the same.
func (cs *constraints[K, V]) indexKeys(key K, value V, old []indexKey) []indexKey {
	var all []indexKey
	for i := range cs.indexes {
		for _, v := range cs.indexes[i].values(key, value) {
			all = append(all, cs.indexKey(i, v))
		}
	}
	slices.SortFunc(all, indexKey.compare)
	all = slices.Compact(all)
	if slices.Equal(all, old) {
		return old // so that all becomes garbage, and the record shares old
	}
	return all
}

// pin pins k on those of index keys that are not in others. A writer does so with the new and the
// old ones before it stores. unpin drops these pins: with the same if it has failed, with the old
// and the new ones if it has stored.
func (cs *constraints[K, V]) pin(k hkey[K], keys, others []indexKey) {
	missing(keys, others, func(t indexKey) { cs.indexes[t.index].pin(t.value, k) })
}

func (cs *constraints[K, V]) unpin(k hkey[K], keys, others []indexKey) {
	missing(keys, others, func(t indexKey) { cs.indexes[t.index].drop(t.value, k) })
}

// ByIndex returns an iterator over the entries of the keys that have value in an index. A loop
// yields each key at most once, with an entry that has the value. It yields every key that has the
// value throughout.
//
// ByIndex panics if the registry has no index of that name.
//
// ByIndex is wait-free, and so is the loop. It takes effect, for each key, when the key is read,
// or, if it skips the key, when the loop begins.
func (r *Registry[K, V]) ByIndex(index, value string) iter.Seq[Entry[K, V]] {
	rt, cs, number := r.indexed("ByIndex", index)
	found := query[K, V]{rt, cs, cs.indexKey(number, value)}
	return func(yield func(Entry[K, V]) bool) {
		found.each(found.keys(), func(k hkey[K], rec *record[K, V]) bool { return yield(rec.entry(k.Key)) })
	}
}

// LookupBy returns the entry of the key that has value in a unique index, and whether there is one.
//
// LookupBy panics if the registry has no unique index of that name.
//
// LookupBy is lock-free. It takes effect when the key is read, or, if there is none, when the index
// is read or the last key has lost the value.
func (r *Registry[K, V]) LookupBy(index, value string) (entry Entry[K, V], ok bool) {
	rt, cs, number := r.indexed("LookupBy", index)
	if !cs.indexes[number].unique {
		panic(fmt.Sprintf("shardedregistry: LookupBy of the index %q, which is not unique", index))
	}
	// One pass is not enough: a transaction may move the value from a key that is read later to one
	// that was read before. But who gains the value pins its key first, under the value's lock. So
	// while the postings are the same, at most one key gains it. If two passes find the same ones,
	// none has gained it during one of these, and when that ended no key had it.
	q := query[K, V]{rt, cs, cs.indexKey(number, value)}
	var before *postings[K]
	for keys := q.keys(); keys != nil; { // twice, but for writers that change the postings
		q.each(keys, func(k hkey[K], rec *record[K, V]) bool {
			entry, ok = rec.entry(k.Key), true
			return false
		})
		if ok {
			break
		}
		now := q.keys()
		if before == keys && keys == now {
			break
		}
		before, keys = keys, now
	}
	return entry, ok
}

// IndexValues returns an iterator over the values of an index, in no particular order. A loop
// yields once each value that some key has throughout, and none that no key has had meanwhile.
//
// IndexValues panics if the registry has no index of that name.
//
// IndexValues is wait-free; the loop is blocking on one hash bucket at a time. It takes effect, for
// each value, when a key that has it is read.
func (r *Registry[K, V]) IndexValues(index string) iter.Seq[string] {
	rt, cs, number := r.indexed("IndexValues", index)
	return func(yield func(string) bool) {
		for value := range cs.indexes[number].lists.All() {
			had := false
			// LP(IndexValues): a record is read.
			q := query[K, V]{rt, cs, indexKey{number, value}}
			q.each(q.keys(), func(hkey[K], *record[K, V]) bool { had = true; return false })
			if had && !yield(value.Key) {
				return
			}
		}
	}
}

// indexed returns the root, its constraints and the number of an index, for a method.
func (r *Registry[K, V]) indexed(method, index string) (*root[K, V], *constraints[K, V], int) {
	if rt := r.root.Load(); rt != nil {
		cs := rt.constraints
		if i := cs.number(index); i >= 0 {
			return rt, cs, i
		}
	}
	panic(fmt.Sprintf("shardedregistry: %s of the index %q, which is not in Config", method, index))
}

// query asks for the keys that have an index key.
type query[K comparable, V any] struct {
	root        *root[K, V]
	constraints *constraints[K, V]
	key         indexKey
}

// keys returns the keys that are pinned now.
func (q query[K, V]) keys() *postings[K] {
	// LP(ByIndex), a key that is not yielded: the keys are read.
	// LP(LookupBy), none: likewise, or when the last key lost the value.
	return q.constraints.indexes[q.key.index].on(q.key.value)
}

// each yields those of the keys that have the index key, with their records.
//
// The keys that were pinned include all that had it then. The record shows whether a key has
// lost it since.
func (q query[K, V]) each(keys *postings[K], yield func(hkey[K], *record[K, V]) bool) {
	keys.all(func(one posting[K]) bool {
		// LP(ByIndex): the record is read.
		// LP(LookupBy): the record is read.
		c, rec := q.root.loadLive(one.key)
		if !slices.Contains(rec.indexKeys(), q.key) {
			return true
		}
		return yield(c.named(one.key.Hash), rec)
	})
}

// valueLocks are the mutexes of the values of unique indexes: each value has one, by
// its hash. A writer whose record gives a key a unique value holds the value's lock
// from looking for another key that has it until the record is stored. So no other key
// gains the value meanwhile. A write that keeps or loses a value needs no lock, and no
// function of a user runs under one.
//
// There are 64, so that a set of them is a word.
type valueLocks [64]struct {
	atomics.Mutex
	_ atomics.CacheLinePad
}

// valueLockSet is a set of locks.
type valueLockSet uint64

// swap is target.swap under the constraints.
func (cs *constraints[K, V]) swap(t target[K, V], k hkey[K], c *cell[K, V], old, next *record[K, V]) (stored bool, err error) {
	keys, others := next.indexKeys(), old.indexKeys()
	held := cs.lock(keys, others)
	if by := cs.rival(t.root, keys, others, nil); by != nil {
		cs.unlock(held)
		if c.rec.Load() != old {
			return false, nil // the error would depend on a record that is no longer there
		}
		return false, by.taken()
	}
	cs.pin(k, keys, others)
	// LP(Update, UpdateIf, Put, Compute): the new record is stored.
	stored = c.rec.CompareAndSwap(old, next)
	cs.unlock(held)
	if !stored {
		cs.unpin(k, keys, others)
	}
	return stored, nil
}

// enlist is publish under the constraints.
func (cs *constraints[K, V]) enlist(t target[K, V], fresh *cell[K, V], rec *record[K, V]) (c *cell[K, V], present *record[K, V], err error) {
	rt, k, keys := t.root, t.key, rec.indexKeys()
	held := cs.lock(keys, nil)
	for { // at most once for each index key, which nobody gains meanwhile
		by := cs.rival(rt, keys, nil, nil)
		if by == nil {
			break
		}
		c, present = rt.loadLive(k)
		if present == nil && rt.holder(by.key, by.indexKey) == nil {
			continue // it may have lost the value while k was present
		}
		cs.unlock(held)
		if present == nil {
			err = by.taken()
		}
		return c, present, err
	}
	cs.pin(k, keys, nil)
	c, present = rt.publish(k, fresh, rec)
	cs.unlock(held)
	if c != fresh {
		cs.unpin(k, keys, nil)
	}
	return c, present, nil
}

// decide is transaction.decide under the constraints. It pins what is to be stored before,
// and holds the locks of the unique values that keys gain. If it leaves the transaction
// undecided, no intent was stored; an error says that a value is taken.
func (cs *constraints[K, V]) decide(tx *transaction[K, V]) (status uint32, err error) {
	var (
		held  valueLockSet
		wants = make([][]indexKey, tx.n()) // what keys have afterwards; of next, which its owner must not read while others decide
	)
	for i := range tx.n() {
		u := tx.at(i)
		if wants[i] = u.before().indexKeys(); u.written() {
			wants[i] = u.next.indexKeys()
		}
		held |= cs.locksOf(wants[i], u.before().indexKeys())
	}
	for i := range tx.n() {
		if by := cs.rivalWithin(tx, i, wants); by != nil {
			return undecided, by.taken()
		}
	}
	cs.lockAll(held)
	for i := range tx.n() {
		by := cs.rival(tx.root, wants[i], tx.at(i).before().indexKeys(), tx)
		if by == nil {
			continue
		}
		if tx.still() && tx.root.holder(by.key, by.indexKey) != nil {
			err = by.taken()
		}
		cs.unlock(held)
		return undecided, err
	}
	for i := range tx.n() {
		u := tx.at(i)
		cs.pin(tx.key(u), wants[i], u.before().indexKeys())
	}
	status = tx.decide()
	cs.unlock(held)
	if status != committed {
		for i := range tx.n() {
			u := tx.at(i)
			cs.unpin(tx.key(u), wants[i], u.before().indexKeys())
		}
	}
	return status, nil
}

// rivalWithin returns another key of the transaction that has afterwards a unique value which use i
// gains, or nil. That is an error whatever others do: either fn has stored both, or it has read the
// other together with what it has read last.
func (cs *constraints[K, V]) rivalWithin(tx *transaction[K, V], i int, wants [][]indexKey) (by *rival[K, V]) {
	missing(wants[i], tx.at(i).before().indexKeys(), func(t indexKey) {
		for j := range tx.n() {
			if cs.indexes[t.index].unique && j != i && slices.Contains(wants[j], t) {
				by = &rival[K, V]{cs.indexes[t.index].name, t, tx.key(tx.at(j))}
			}
		}
	})
	return by
}

// lock takes the locks of the unique values among those of index keys that are not
// in others, in the order of their numbers, so that no two wait for each other.
func (cs *constraints[K, V]) lock(keys, others []indexKey) (held valueLockSet) {
	held = cs.locksOf(keys, others)
	cs.lockAll(held)
	return held
}

// locksOf returns the locks that lock takes.
func (cs *constraints[K, V]) locksOf(keys, others []indexKey) (set valueLockSet) {
	if cs.locks == nil {
		return 0
	}
	missing(keys, others, func(t indexKey) {
		if cs.indexes[t.index].unique {
			set |= 1 << (t.value.Hash % uint64(len(cs.locks)))
		}
	})
	return set
}

func (cs *constraints[K, V]) lockAll(set valueLockSet) {
	for ; set != 0; set &= set - 1 {
		cs.locks[bits.TrailingZeros64(uint64(set))].Lock()
	}
}

// unlock unlocks what lock has locked.
func (cs *constraints[K, V]) unlock(held valueLockSet) {
	for ; held != 0; held &= held - 1 {
		cs.locks[bits.TrailingZeros64(uint64(held))].Unlock()
	}
}

// rival is a key that has a unique value which another key wants.
type rival[K comparable, V any] struct {
	index    string // its name
	indexKey indexKey
	key      hkey[K]
}

// taken returns the error of an operation that wants the rival's value.
func (by *rival[K, V]) taken() error {
	return &UniqueError{Index: by.index, Value: by.indexKey.value.Key, Key: by.key.Key}
}

// rival returns a key that has one of the unique values among index keys that are not
// in others, or nil. It is not the caller's key, unless that has changed meanwhile, and none
// that tx uses, which is nil outside of transactions.
func (cs *constraints[K, V]) rival(rt *root[K, V], keys, others []indexKey, tx *transaction[K, V]) (found *rival[K, V]) {
	missing(keys, others, func(t indexKey) {
		x := &cs.indexes[t.index]
		if found != nil || !x.unique {
			return
		}
		x.on(t.value).all(func(one posting[K]) bool {
			if tx != nil && tx.known(one.key.Key) != nil {
				return true
			}
			if c := rt.holder(one.key, t); c != nil {
				found = &rival[K, V]{x.name, t, c.named(one.key.Hash)}
			}
			return found == nil
		})
	})
	return found
}

// holder returns the cell of k if k has an index key now, or nil. A caller that holds
// the index key's lock and finds one twice knows that k has had the index key in
// between.
func (rt *root[K, V]) holder(k hkey[K], t indexKey) *cell[K, V] {
	c, rec := rt.loadLive(k)
	if !slices.Contains(rec.indexKeys(), t) {
		return nil
	}
	return c
}

// index is one index of a registry. It is immutable but for what is in its
// table.
//
// Its postings are counts: a record that a key holds has a pin on each value
// that it is found by, and so has a record that is about to be stored. A writer
// pins before it stores a record, and drops the pins of the replaced one afterwards.
// So a key is found under a value as long as it holds a record with that value,
// whatever others have in progress; and when no operation is in progress, the
// postings are those of the records and no others.
type index[K comparable, V any] struct {
	name   string
	unique bool
	values func(K, V) []string

	// lists holds a posting list for each value that something has a pin on.
	lists *table.Table[hkey[string], postingList[K]]
}

// on returns the keys under a value now.
func (x *index[K, V]) on(value hkey[string]) *postings[K] {
	s := x.lists.Load(value)
	if s == nil {
		return nil
	}
	return s.keys.Load()
}

// pin adds a pin of k on value. It is repeated only when another operation has
// changed what is under the value.
func (x *index[K, V]) pin(value hkey[string], k hkey[K]) {
	one := posting[K]{k, 1}
	for {
		var now *postings[K]
		s := x.lists.Load(value)
		if s != nil {
			now = s.keys.Load()
		}
		if now == nil {
			if x.tryPin(value, one) {
				return
			}
			continue
		}
		if s.keys.CompareAndSwap(now, now.plus(one, 0)) {
			return
		}
	}
}

// tryPin puts a posting list with one posting into the table, unless there is one that
// is not empty, and reports whether it did.
func (x *index[K, V]) tryPin(value hkey[string], one posting[K]) bool {
	fresh := new(postingList[K])
	fresh.keys.Store((*postings[K])(nil).plus(one, 0))
	return fresh == x.lists.Compute(value, func(now *postingList[K]) *postingList[K] {
		if now != nil && now.keys.Load() != nil {
			return now
		}
		return fresh
	})
}

// drop removes a pin of k on value, which there is: so the posting list is in the table
// until it is dropped. It is repeated only when another operation has changed
// what is under the value.
func (x *index[K, V]) drop(value hkey[string], k hkey[K]) {
	s := x.lists.Load(value)
	for {
		now := s.keys.Load()
		rest := now.minus(k, 0)
		if !s.keys.CompareAndSwap(now, rest) {
			continue
		}
		if rest == nil {
			x.lists.CompareAndDelete(value, s) // or another pin has replaced it
		}
		return
	}
}

// postingList is one life of one value of one index: the keys under it.
type postingList[K comparable] struct {
	// keys is not nil when the posting list enters its table. Calls of pin and drop
	// replace it by CAS. Nil is final: the posting list is empty, and leaves the table
	// or is replaced there. Everybody reads.
	keys atomics.Pointer[postings[K]]
}

// indexKey is a value of an index.
type indexKey struct {
	index int // its number in constraints
	value hkey[string]
}

func (k indexKey) compare(other indexKey) int {
	if c := cmp.Compare(k.index, other.index); c != 0 {
		return c
	}
	return cmp.Compare(k.value.Key, other.value.Key)
}

// missing calls f for each of index keys that is not in others. Both are ordered.
func missing(keys, others []indexKey, f func(indexKey)) {
	for _, t := range keys {
		for len(others) > 0 && others[0].compare(t) < 0 {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != t {
			f(t)
		}
	}
}

// Sizes of a trie of postings. Four bits of the hash for each level make a
// change of one key among 100,000 copy four nodes of 16 pointers. A leaf of 8
// postings takes as long to copy as one such node. Leaves are made of branches
// only when half of that is left, so that a key which comes and goes does not
// split and gather a leaf each time.
const (
	fanBits  = 4
	fan      = 1 << fanBits
	leafSize = 8
	levels   = 64 / fanBits // what is below has used up the hash
)

// postings is an immutable set of keys, each with the number of records that
// count on it. Nil is the empty set. It is a leaf, or a branch that leads on by
// the next bits of the keys' hashes.
type postings[K comparable] struct {
	n    int // the keys
	leaf []posting[K]
	kids *[fan]*postings[K] // nil in a leaf
}

// posting is a key, and how many records want to be found by it: the one that is
// the key's, if that has the value, and those about to be stored.
type posting[K comparable] struct {
	key  hkey[K]
	pins int // at least 1
}

// len returns the number of keys.
func (p *postings[K]) len() int {
	if p == nil {
		return 0
	}
	return p.n
}

// plus returns the set with the pins of one more, at a level of the trie.
func (p *postings[K]) plus(one posting[K], level int) *postings[K] {
	if p == nil {
		return &postings[K]{n: 1, leaf: []posting[K]{one}}
	}
	if p.kids != nil {
		kid := p.kid(one.key, level)
		return p.with(one.key, level, kid.plus(one, level+1))
	}
	i := p.find(one.key)
	if i >= 0 {
		leaf := slices.Clone(p.leaf)
		leaf[i].pins += one.pins
		return &postings[K]{n: p.n, leaf: leaf}
	}
	if p.n < leafSize || level == levels {
		leaf := make([]posting[K], p.n+1)
		copy(leaf, p.leaf)
		leaf[p.n] = one
		return &postings[K]{n: p.n + 1, leaf: leaf}
	}
	branch := &postings[K]{kids: new([fan]*postings[K])}
	for _, each := range p.leaf {
		branch = branch.plus(each, level)
	}
	return branch.plus(one, level)
}

// minus returns the set with one pin of k less, at a level of the trie. K has
// one.
func (p *postings[K]) minus(k hkey[K], level int) *postings[K] {
	if p.kids != nil {
		rest := p.with(k, level, p.kid(k, level).minus(k, level+1))
		if rest.n > leafSize/2 {
			return rest
		}
		leaf := make([]posting[K], 0, rest.n)
		rest.all(func(one posting[K]) bool { leaf = append(leaf, one); return true })
		return &postings[K]{n: rest.n, leaf: leaf}
	}
	i := p.find(k)
	leaf := slices.Clone(p.leaf)
	if leaf[i].pins--; leaf[i].pins > 0 {
		return &postings[K]{n: p.n, leaf: leaf}
	}
	if p.n == 1 {
		return nil
	}
	return &postings[K]{n: p.n - 1, leaf: slices.Delete(leaf, i, i+1)}
}

// find returns the place of k in a leaf, or -1.
func (p *postings[K]) find(k hkey[K]) int {
	return slices.IndexFunc(p.leaf, func(one posting[K]) bool { return one.key == k })
}

// kid returns where a branch leads for k.
func (p *postings[K]) kid(k hkey[K], level int) *postings[K] {
	return p.kids[k.Hash>>(fanBits*level)%fan]
}

// with returns a copy of a branch that leads to kid for k.
func (p *postings[K]) with(k hkey[K], level int, kid *postings[K]) *postings[K] {
	kids := *p.kids
	kids[k.Hash>>(fanBits*level)%fan] = kid
	return &postings[K]{n: p.n + kid.len() - p.kid(k, level).len(), kids: &kids}
}

// all calls f for each posting until it returns false, and reports whether it
// never did.
func (p *postings[K]) all(f func(posting[K]) bool) bool {
	if p == nil {
		return true
	}
	for _, one := range p.leaf {
		if !f(one) {
			return false
		}
	}
	if p.kids != nil {
		for _, kid := range p.kids {
			if !kid.all(f) {
				return false
			}
		}
	}
	return true
}

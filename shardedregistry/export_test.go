package shardedregistry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unsafe"
	"weak"
)

// MaxAttempts is how often a function runs that changes its own key.
var MaxAttempts = maxAttempts()

// SetHash makes an empty registry hash with f.
func SetHash[K comparable, V any](r *Registry[K, V], f func(K) uint64) {
	rt := r.install()
	rt.hasher, rt.open, rt.light = f, false, false
}

// IsLight reports whether operations of r choose their shortest paths.
func IsLight[K comparable, V any](r *Registry[K, V]) bool { return r.install().light }

// Shards returns the number of shards.
func Shards[K comparable, V any](r *Registry[K, V]) int { return len(r.install().shards) }

// DefaultShards returns the default number of shards for procs processors.
func DefaultShards(procs int) int { return defaultShards(procs) }

// HistorySize returns how many changes are remembered.
func HistorySize(n int) (int, error) { return (&Config[string, int]{History: n}).history() }

// Linked returns the number of cells in the table, dead or alive.
func Linked[K comparable, V any](r *Registry[K, V]) (n int) {
	for range r.install().cells.All() {
		n++
	}
	return n
}

// Counted returns what the word that all creations share says of the number of cells.
func Counted[K comparable, V any](r *Registry[K, V]) int { return r.install().cells.Counted() }

// Intents returns the number of cells in the table that hold an intent.
func Intents[K comparable, V any](r *Registry[K, V]) (n int) {
	for c := range r.install().cells.All() {
		if c.rec.Load().intent() {
			n++
		}
	}
	return n
}

// Kill does the first half of Delete, up to the instant at which it takes
// effect, and returns the second half.
func Kill[K comparable, V any](r *Registry[K, V], key K) (rest func()) { return DraftKill(r, key)() }

// DraftKill is Kill by a deleter that is slow: it has asked whether a snapshot is being taken, and
// stores later.
func DraftKill[K comparable, V any](r *Registry[K, V], key K) (kill func() (rest func())) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	rt, k := t.root, t.key
	c, old := rt.loadLive(k)
	dead := rt.tombstone(rt.snapshotting(), old)
	return func() (rest func()) {
		if !c.rec.CompareAndSwap(old, dead) {
			panic("another operation has changed the key")
		}
		rt.shard(k.Hash).live.Add(-1)
		return func() { rt.bury(k, c, old, dead) }
	}
}

// GivenUp runs a transaction that stores value for two keys, the first of which is present,
// has the lower hash, and gets its intent. The other is absent, but the owner has found it
// present, since somebody has created and deleted it meanwhile. GivenUp returns the rest, which
// gives up, unless others have committed the transaction.
func GivenUp[K comparable, V any](r *Registry[K, V], present, absent K, value V) (rest func()) {
	fn := newTx[K, V](r.install())
	tx := &fn.t
	if err := errors.Join(fn.Put(present, value), fn.Put(absent, value), tx.prepare()); err != nil {
		panic(err)
	}
	tx.sort()
	tx.count(1)
	tx.install(tx.at(0))
	return func() {
		tx.status.CompareAndSwap(undecided, aborted)
		gone := tx.status.Load() == aborted // or others have committed it
		if gone {
			tx.count(-1)
		}
		for i := range tx.n() {
			tx.withdraw(tx.at(i))
		}
		if !gone {
			tx.tell()
		}
	}
}

// Committed runs a transaction that reads a key and stores value for another, up to the instant at
// which it has committed, and returns the rest.
func Committed[K comparable, V any](r *Registry[K, V], read, stored K, value V) (rest func()) {
	fn := newTx[K, V](r.install())
	tx := &fn.t
	fn.Get(read)
	if err := errors.Join(fn.Put(stored, value), tx.prepare()); err != nil {
		panic(err)
	}
	tx.sort()
	tx.count(1)
	tx.decide()
	return func() {
		for i := range tx.n() {
			tx.withdraw(tx.at(i))
		}
		tx.tell()
	}
}

// Begun runs a transaction up to the instant at which it is decided: all its intents are stored.
// Decide goes on up to the instant at which it has committed, or was aborted, and rest to the end,
// and reports whether it has committed.
func Begun[K comparable, V any](r *Registry[K, V], fn func(tx *Tx[K, V]) error) (decide func() (rest func() bool)) {
	return begun(r, math.MaxInt, fn)
}

// Started is Begun, but that only the first intent is stored.
func Started[K comparable, V any](r *Registry[K, V], fn func(tx *Tx[K, V]) error) (decide func() (rest func() bool)) {
	return begun(r, 1, fn)
}

func begun[K comparable, V any](r *Registry[K, V], intents int, fn func(tx *Tx[K, V]) error) (decide func() (rest func() bool)) {
	own := newTx[K, V](r.install())
	tx := &own.t
	if err := errors.Join(fn(own), tx.prepare()); err != nil {
		panic(err)
	}
	tx.sort()
	tx.count(1)
	for i := range min(tx.n(), intents) {
		tx.install(tx.at(i))
	}
	return func() (rest func() bool) {
		done := tx.decide() == committed
		return func() bool {
			if !done {
				tx.count(-1)
			}
			for i := range tx.n() {
				tx.withdraw(tx.at(i))
			}
			if done {
				tx.tell()
			}
			return done
		}
	}
}

// Taking is a call of Snapshot that can be stopped between its steps.
type Taking[K comparable, V any] struct{ t *collector[K, V] }

// Join does the first part of Snapshot, up to and with its first look.
func Join[K comparable, V any](r *Registry[K, V]) Taking[K, V] {
	col := newCollector(r.install())
	col.collect()
	return Taking[K, V]{col}
}

// Collect makes a cut and looks, and reports whether it need not do so again.
func (t Taking[K, V]) Collect() bool { return t.t.collect() }

// Cut does the first part of Collect.
func (t Taking[K, V]) Cut() {
	t.t.cut = t.t.root.updateClock(func(s snapshotClock) snapshotClock { return s.advanced(t.t.cut) }).time
	t.t.next, t.t.unsure = 0, false
}

// Look does the rest of Collect.
func (t Taking[K, V]) Look() (sure bool) {
	t.t.walk()
	t.t.observe()
	return !t.t.unsure
}

// Snapshotting reports whether writers are told that a snapshot is being taken.
func Snapshotting[K comparable, V any](r *Registry[K, V]) bool { return r.install().snapshotting() }

// Found returns the snapshot without leaving.
func (t Taking[K, V]) Found() *Snapshot[K, V] {
	s, col := new(Snapshot[K, V]), *t.t
	col.keys.keys, col.heads = slices.Clone(col.keys.keys), slices.Clone(col.heads) // fill changes them
	col.fill(&s.contents)
	return s
}

// Leave does the rest of Snapshot.
func (t Taking[K, V]) Leave() *Snapshot[K, V] {
	s := new(Snapshot[K, V])
	t.t.finish(&s.contents)
	return s
}

// Stored makes value the value of key, which is present, as Update does, up to
// the instant at which it is stored, and returns the rest.
func Stored[K comparable, V any](r *Registry[K, V], key K, value V) (rest func()) {
	return Drafted(r, key, value)()
}

// Drafted is Stored by a writer that is slow: it has asked whether a snapshot is being taken, and
// stores later.
func Drafted[K comparable, V any](r *Registry[K, V], key K, value V) (store func() (rest func())) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	rt, k := t.root, t.key
	c, old := rt.loadLive(k)
	next := rt.draft(rt.snapshotting(), value)
	if err = rt.prepare(k, next, old, old.changed()); err != nil {
		panic(err)
	}
	return func() (rest func()) {
		if !c.rec.CompareAndSwap(old, next) {
			panic("another operation has changed the key")
		}
		return func() { rt.changed(k, c, old, next) }
	}
}

// Published creates key, which is absent, as Create does, up to the instant at which its cell is in
// the table, and returns the rest.
func Published[K comparable, V any](r *Registry[K, V], key K, value V) (rest func()) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	rt, k := t.root, t.key
	fresh := rt.draft(rt.snapshotting(), value)
	mine := &cell[K, V]{key: k.Key}
	mine.rec.Store(fresh)
	if c, _ := rt.publish(k, mine, fresh); c != mine {
		panic("the key is present")
	}
	return func() { rt.changed(k, mine, nil, fresh) }
}

// CreateLate does the first half of Create, up to where it has found key absent, and returns the
// second half.
func CreateLate[K comparable, V any](r *Registry[K, V], key K, value V) (rest func() error) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	if _, rec := t.root.loadLive(t.key); rec != nil {
		panic("the key is present")
	}
	fresh := t.root.draft(t.root.snapshotting(), value)
	return func() error {
		c, rec, created, err := t.create(fresh)
		if err == nil && !created {
			return t.exists(c, rec).exists
		}
		return err
	}
}

// Kept returns the number of records that are reachable only because a
// snapshot needed them.
func Kept[K comparable, V any](r *Registry[K, V]) (n int) {
	for c := range r.install().cells.All() {
		for d := c.rec.Load().dated(); d != nil; {
			old := d.prev.Load()
			if old == nil {
				break
			}
			n++
			d = old.dated()
		}
	}
	return n
}

// Undated returns what is wrong with the dates in r, or "".
func Undated[K comparable, V any](r *Registry[K, V]) string {
	for c := range r.install().cells.All() {
		for d := c.rec.Load().dated(); d != nil; {
			old := d.prev.Load()
			if old == nil || old.dated() == nil {
				break
			}
			since, until := old.dated().date.Load(), d.date.Load()
			if since == 0 || until != 0 && since > until {
				return fmt.Sprintf("%v: what is dated %d has replaced what is dated %d", c.key, until, since)
			}
			d = old.dated()
		}
	}
	return ""
}

// Remembers reports whether a Ref remembers a cell.
func Remembers[K comparable, V any](r Ref[K, V]) bool { return r.anchor.cell.Load() != nil }

// UsedShards returns the number of shards that have had a key.
func UsedShards[K comparable, V any](r *Registry[K, V]) (n int) {
	for i := range r.install().shards {
		if r.root.Load().shards[i].Load() != nil {
			n++
		}
	}
	return n
}

// Watcher is a loop over Watch that can be stopped between its steps.
type Watcher[K comparable, V any] struct{ w *watcher[K, V] }

// Subscribe does the first part of a loop.
func Subscribe[K comparable, V any](r *Registry[K, V]) Watcher[K, V] {
	return Watcher[K, V]{newWatcher(r.install(), interest[K]{all: true})}
}

// Run yields events, until yield returns false or ctx is done.
func (w Watcher[K, V]) Run(ctx context.Context, yield func(Event[K, V]) bool) { run(ctx, w.w, yield) }

// Drain returns the events that there are.
func (w Watcher[K, V]) Drain() (events []Event[K, V]) {
	for {
		n := w.w.next()
		if n == nil {
			return events
		}
		if k, rec := w.w.look(n); rec != nil {
			events = append(events, rec.event(k))
		}
	}
}

// Take takes a notification out of the inbox, and returns what the watcher does next: it looks, and
// returns the event to yield, if there is one.
func (w Watcher[K, V]) Take() (look func() (event Event[K, V], ok bool)) {
	n := w.w.next()
	return func() (event Event[K, V], ok bool) {
		k, rec := w.w.look(n)
		if rec == nil {
			return event, false
		}
		return rec.event(k), true
	}
}

// Sleep sleeps as a loop does that has found nothing.
func (w Watcher[K, V]) Sleep(ctx context.Context) { w.w.sleep(ctx) }

// Doze does what a loop does that falls asleep, and returns whether it was woken.
func (w Watcher[K, V]) Doze() (woken func() bool) { return w.w.waker.Event().Fired }

// Leave does the rest of the loop.
func (w Watcher[K, V]) Leave() { w.w.close() }

// Kept returns how many keys the watcher remembers.
func (w Watcher[K, V]) Kept() int { return len(w.w.subscriptions) }

// Notifications returns how many notifications are in the watcher's inbox.
func (w Watcher[K, V]) Notifications() (n int) {
	for p := w.w.inbox.Load(); p != nil && p != &w.w.closed; p = p.next {
		n++
	}
	return n
}

// Traces returns what watchers and waiters have left in r: members of the
// subscribers, subscriptions, waitlists, and dead cells.
func Traces[K comparable, V any](r *Registry[K, V]) (n int) {
	rt := r.install()
	if s := rt.subscribers.Load(); s != nil {
		n += Watchers(r) + s.waiters
	}
	if t := rt.waitlists.Load(); t != nil {
		n += t.Len()
	}
	return n + Subscriptions(r) + Linked(r) - r.Len()
}

// Watchers returns the number of loops among the subscribers, where one counts for each
// topic that it watches.
func Watchers[K comparable, V any](r *Registry[K, V]) (n int) {
	s := r.install().subscribers.Load()
	if s == nil || s.watchers == nil {
		return 0
	}
	set := s.watchers
	n = set.all.len() + watchersAt(&set.keys)
	for i := range set.prefixes {
		n += watchersAt(&set.prefixes[i].topicNode)
	}
	return n
}

func watchersAt[T comparable, W member](node *topicNode[T, W]) (n int) {
	for _, t := range node.tip {
		n += t.watchers.len()
	}
	if node.below != nil {
		for i := range node.below {
			n += watchersAt(&node.below[i])
		}
	}
	return n
}

// Subscriptions returns the number of subscriptions at the cells that are in a table.
func Subscriptions[K comparable, V any](r *Registry[K, V]) (n int) {
	for c := range r.install().cells.All() {
		n += c.meta.Load().subscribed().len()
	}
	return n
}

func (s *members[M]) len() (n int) {
	s.each(func(M) { n++ })
	return n
}

// Hash returns the hash of a key.
func Hash[K comparable, V any](r *Registry[K, V], key K) uint64 { return r.install().hash(key) }

// Waiters returns the number of calls of Wait that may sleep.
func Waiters[K comparable, V any](r *Registry[K, V]) int {
	if s := r.install().subscribers.Load(); s != nil {
		return s.waiters
	}
	return 0
}

// Await makes r what it is while a call of Wait sleeps for some key, until leave
// is called.
func Await[K comparable, V any](r *Registry[K, V]) (leave func()) {
	rt := r.install()
	rt.installWaitlists()
	count := func(n int) { rt.changeSubscribers(func(s *subscribers[K, V]) { s.waiters += n }) }
	count(1)
	return func() { count(-1) }
}

// Changed tells of a change of key again, as an operation does that has stalled.
func Changed[K comparable, V any](r *Registry[K, V], key K) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	if s := t.root.subscribers.Load(); s != nil {
		t.root.notify(s, t.key)
	}
}

// Tidy does the last thing that a snapshot does that has seen a deletion of key.
func Tidy[K comparable, V any](r *Registry[K, V], key K) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	t.root.tidy(t.key, 0)
}

// SubscribeAfter is Subscribe by a loop over WatchSnapshot, which has yielded its snapshot.
func SubscribeAfter[K comparable, V any](r *Registry[K, V]) Watcher[K, V] {
	w := Subscribe(r)
	w.w.baseline = newBaseline(&snapshot(w.w.root).contents)
	return w
}

// Pushed tells the first subscription at key of a change, as an operation does that has found
// nothing waiting before another one told it, and stalls then.
func Pushed[K comparable, V any](r *Registry[K, V], key K) {
	t, _ := r.locate(key)
	s := t.root.cells.Load(t.key).meta.Load().subscribed().few[0]
	s.watcher.push(&notification[K, V]{subscription: s})
}

// SubscribeTo is Subscribe by a loop that is told of one key only.
func SubscribeTo[K comparable, V any](r *Registry[K, V], key K) Watcher[K, V] {
	return SubscribeFiltered(r, Keys(key))
}

// SubscribeFiltered is Subscribe by a loop with filters.
func SubscribeFiltered[K comparable, V any](r *Registry[K, V], filters ...Filter[K]) Watcher[K, V] {
	rt := r.install()
	return Watcher[K, V]{newWatcher(rt, interestOf(rt, filters))}
}

// IsDone reports whether the notification of the first subscription at key says that its watcher has
// looked.
func IsDone[K comparable, V any](r *Registry[K, V], key K) bool {
	t, _ := r.locate(key)
	return t.root.cells.Load(t.key).meta.Load().subscribed().few[0].latest.Load().stage.Load() == done
}

// IsDated reports whether what key holds, which was stored while a snapshot was
// being taken, has its date.
func IsDated[K comparable, V any](r *Registry[K, V], key K) bool {
	t, _ := r.locate(key)
	return t.root.cells.Load(t.key).rec.Load().dated().date.Load() != 0
}

// KeepsApart reports whether two lists that were made of one of n subscriptions, by
// goroutines of which one then fails, have each what was added to it.
func KeepsApart(n int) bool {
	var (
		list *members[*subscription[int, int]]
		next uint64
	)
	fresh := func() []*subscription[int, int] {
		next++
		return []*subscription[int, int]{{watcher: &watcher[int, int]{number: next}}}
	}
	for range n {
		list = list.with(fresh())
	}
	added := append(fresh(), fresh()...)
	first, second := added[0], added[1]
	one, other := list.with(added[:1]), list.with(added[1:])
	return one.has(first) && !one.has(second) && other.has(second) && !other.has(first)
}

// Members is a set of subscriptions by itself. Each has a rank; other loops may have had the same.
type Members struct {
	m *members[*subscription[int, int]]
}

// With returns a set with more, sorted by their ranks, and a function for each that takes it away.
func (s Members) With(ranks ...uint64) (with Members, without []func(Members) Members) {
	var more []*subscription[int, int]
	for _, rank := range ranks {
		one := &subscription[int, int]{watcher: &watcher[int, int]{number: rank}}
		more = append(more, one)
		without = append(without, func(s Members) Members {
			if !s.m.has(one) {
				panic("a member is not found")
			}
			if s.m = s.m.without(one); s.m.has(one) {
				panic("a member that was removed is found")
			}
			return s
		})
	}
	return Members{s.m.with(more)}, without
}

// Ranks returns the ranks of all.
func (s Members) Ranks() (ranks []uint64) {
	s.m.each(func(m *subscription[int, int]) { ranks = append(ranks, m.rank()) })
	return ranks
}

// IsEmpty reports whether the set is what it was when it was new.
func (s Members) IsEmpty() bool { return s.m == nil }

// Depth returns the length of the longest path.
func (s Members) Depth() int { return membersDepth(s.m) }

func membersDepth[M member](s *members[M]) (depth int) {
	if s == nil || s.below == nil {
		return 0
	}
	for _, below := range s.below {
		depth = max(depth, 1+membersDepth(below))
	}
	return depth
}

// Asked returns how many subscriptions w asks whether they need the dead cell of key.
func (w Watcher[K, V]) Asked(key K) (n int) {
	t, _ := w.w.root.hashed(key)
	c := w.w.root.cells.Load(t)
	c.meta.Load().subscribed().some(w.w.number, func(s *subscription[K, V]) bool {
		n++
		return s.latest.Load().stage.Load() != done
	})
	return n
}

// PauseTimers lets no timer of r start any more.
func PauseTimers[K comparable, V any](r *Registry[K, V]) { r.install().expiry.paused = true }

// OnStop calls f, too, when the timer of key's schedule is stopped.
func OnStop[K comparable, V any](r *Registry[K, V], key K, f func()) {
	t, _ := r.locate(key)
	s := t.root.expiry.schedule(t.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	stop := s.timer.stop
	s.timer.stop = func() { stop(); f() }
}

// TimerOf returns whether the timer that key's schedule has now is in use or kept, later.
func TimerOf[K comparable, V any](r *Registry[K, V], key K) (left func() bool) {
	t, _ := r.locate(key)
	s := t.root.expiry.schedule(t.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	timer := weak.Make(s.timer)
	return func() bool { return timer.Value() != nil }
}

// EnterWaitlist is what a call of Wait does before it sleeps. Sleeping reports whether a call would sleep that comes now.
func EnterWaitlist[K comparable, V any](r *Registry[K, V], key K) (sleeping func() bool, exit func()) {
	t, _ := r.locate(key)
	in := t.root.enter(t.key)
	return func() bool {
		now := t.root.waitlists.Load().Load(t.key)
		return now == nil || !now.waker.Fired()
	}, func() { t.root.exit(t.key, in) }
}

// LocksOf returns how many locks a writer takes for a value of an index.
func LocksOf[K comparable, V any](r *Registry[K, V], index, value string) int {
	cs := r.install().constraints
	return bits.OnesCount64(uint64(cs.locksOf([]indexKey{cs.indexKey(cs.number(index), value)}, nil)))
}

// Expire does what a timer does for key.
func Expire[K comparable, V any](r *Registry[K, V], key K) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	if c := t.root.cells.Load(t.key); c != nil {
		t.root.expiry.expire(t.root, c)
	}
}

// ExpireAll does what timers do that fire now.
func ExpireAll[K comparable, V any](r *Registry[K, V]) {
	rt := r.install()
	for i := range rt.expiry.schedules {
		expireDue(rt, i, nil)
	}
}

// Claim is the part of a timer's work by which a present key can no longer be renewed.
func Claim[K comparable, V any](r *Registry[K, V], key K) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	_, rec := t.root.loadLive(t.key)
	rec.ext().lease.until.Store(expired)
}

// Scheduled returns the number of cells that timers will look at, and for how many the
// schedules have room. It panics if a cell is not in its place.
func Scheduled[K comparable, V any](r *Registry[K, V]) (n, space int) {
	x := r.install().expiry
	for i := range x.schedules {
		s := &x.schedules[i]
		s.mu.Lock()
		for j, a := range s.heap {
			if a.alarm.position != j+1 || a.alarm.at.Load() != a.at || j > 0 && s.heap[(j-1)/2].at > a.at {
				panic("a cell is not in its place")
			}
		}
		n, space = n+len(s.heap), space+cap(s.heap)
		s.mu.Unlock()
	}
	return n, space
}

// Overlooked returns the keys whose deadline is before the time at which a timer looks at
// them.
func Overlooked[K comparable, V any](r *Registry[K, V]) (keys []K) {
	rt := r.install()
	for c := range rt.cells.All() {
		if rec := rt.live(c.rec.Load()); rec != nil {
			if l := &rec.ext().lease; l.until.Load() < l.alarm.at.Load() {
				keys = append(keys, c.key)
			}
		}
	}
	return keys
}

// Schedules is the number of schedules of a registry.
var Schedules = schedules()

// Pins returns what the indexes keep: values that have a posting list, keys under them,
// and pins of these.
func Pins[K comparable, V any](r *Registry[K, V]) (lists, keys, pins int) {
	for _, x := range r.install().constraints.indexes {
		for _, s := range x.lists.All() {
			lists++
			s.keys.Load().all(func(one posting[K]) bool { keys++; pins += one.pins; return true })
		}
	}
	return lists, keys, pins
}

// Pinned does what a writer does before it stores what key is found by under a
// value of an index, and returns what it does if it has not stored.
func Pinned[K comparable, V any](r *Registry[K, V], key K, index, value string) (undo func()) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	rt, k := t.root, t.key
	cs := rt.constraints
	keys := []indexKey{cs.indexKey(cs.number(index), value)}
	cs.pin(k, keys, nil)
	return func() { cs.unpin(k, keys, nil) }
}

// Postings is a set of pins by itself. The hash of a key is the key.
type Postings struct{ p *postings[uint64] }

// Plus adds a pin, and Minus removes one.
func (s Postings) Plus(k uint64) Postings {
	return Postings{s.p.plus(posting[uint64]{hkey[uint64]{Hash: k, Key: k}, 1}, 0)}
}

func (s Postings) Minus(k uint64) Postings {
	return Postings{s.p.minus(hkey[uint64]{Hash: k, Key: k}, 0)}
}

// Map returns the pins by key, and Len the keys.
func (s Postings) Map() map[uint64]int {
	all := map[uint64]int{}
	s.p.all(func(one posting[uint64]) bool { all[one.key.Key] += one.pins; return true })
	return all
}

func (s Postings) Len() int { return s.p.len() }

// First returns how often a loop that ends after n postings gets one, and whether
// it is told that it has seen all.
func (s Postings) First(n int) (seen int, whole bool) {
	whole = s.p.all(func(posting[uint64]) bool { seen++; return seen < n })
	return seen, whole
}

// Nodes returns the number of branches and leaves.
func (s Postings) Nodes() (branches, leaves int) { return nodes(s.p) }

func nodes[K comparable](p *postings[K]) (branches, leaves int) {
	switch {
	case p == nil:
		return 0, 0
	case p.kids == nil:
		return 0, 1
	}
	branches = 1
	for _, kid := range p.kids {
		b, l := nodes(kid)
		branches, leaves = branches+b, leaves+l
	}
	return branches, leaves
}

// SameIndexKeys reports whether what key holds shares its index keys after do with what it
// held before.
func SameIndexKeys[K comparable, V any](r *Registry[K, V], key K, do func()) bool {
	keys := func() []indexKey {
		_, rec := r.root.Load().find(key)
		return rec.indexKeys()
	}
	before := keys()
	do()
	after := keys()
	return &before[0] == &after[0]
}

// Revisions is a loop over WatchFrom that can be stopped between its steps.
type Revisions[K comparable, V any] struct{ rr *revisionReader[K, V] }

// OpenRevisions does the first part of a loop.
func OpenRevisions[K comparable, V any](r *Registry[K, V], after Revision, filters ...Filter[K]) Revisions[K, V] {
	rt := r.install()
	return Revisions[K, V]{newRevisionReader(rt, after, interestOf(rt, filters))}
}

// Next returns the next change or bookmark, or a zero one if there is none.
func (r Revisions[K, V]) Next() (Change[K, V], error) {
	change, err := r.rr.next()
	switch {
	case change != nil:
		return change.event(), nil
	case err == nil && r.rr.bookmarkDue():
		return Change[K, V]{Revision: r.rr.bookmark(), Bookmark: true}, nil
	}
	return Change[K, V]{}, err
}

// A Feed is a loop over WatchFrom that begins now.
type Feed[K comparable, V any] struct{ Revisions[K, V] }

// OpenFeed begins a Feed.
func OpenFeed[K comparable, V any](r *Registry[K, V], filters ...Filter[K]) Feed[K, V] {
	return Feed[K, V]{OpenRevisions(r, r.install().history.revision(), filters...)}
}

// Drain returns the changes that there are, and whether any are lost.
func (f Feed[K, V]) Drain() (events []Event[K, V], lost bool) {
	for {
		switch change, err := f.Next(); {
		case err != nil:
			return events, true
		case change.Bookmark:
		case change.Revision == 0:
			return events, false
		default:
			events = append(events, change.Event)
		}
	}
}

// Finished puts the last change of key into the changelog, as an operation does that helps its
// maker, and stalls before it wakes the loops.
func Finished[K comparable, V any](r *Registry[K, V], key K) {
	r.install().history.finish(Unfinished(r, key))
}

// Unfinished puts the last change of key into its slot of the changelog, as an operation does that
// stalls then.
func Unfinished[K comparable, V any](r *Registry[K, V], key K) *remembered[K, V] {
	rt := r.install()
	c, rec := rt.find(key)
	l := rt.history
	change := &remembered[K, V]{key: rt.rehashed(c.key), rec: rec, revision: l.revision() + 1}
	l.slot(change.revision).Store(change)
	return change
}

// Sleep sleeps as a loop does that has found nothing.
func (r Revisions[K, V]) Sleep(ctx context.Context) { r.rr.log.sleep(ctx, r.rr.at) }

// Doze does what a loop over WatchFrom does that falls asleep, and returns whether it was woken.
func (r Revisions[K, V]) Doze() (woken func() bool) { return r.rr.log.waker.Event().Fired }

// TransactionSize returns the size of a transaction of two keys.
func TransactionSize() uintptr { return unsafe.Sizeof(Tx[string, int]{}) }

// TopicSet is a set of loops with filters, as the subscribers have it. Loops have numbers.
// It is immutable.
type TopicSet struct {
	rt    *root[string, int]
	set   *watcherSet[string, int]
	loops map[*watcher[string, int]]int // shared by all versions
}

// NewTopicSet returns an empty set, in a registry that hashes with hash if that is not nil.
func NewTopicSet(hash func(string) uint64) TopicSet {
	rt := new(Registry[string, int]).install()
	if hash != nil {
		rt.hasher = hash
	}
	return TopicSet{rt, nil, map[*watcher[string, int]]int{}}
}

// With returns a set with a loop more, and one without that again.
func (s TopicSet) With(loop int, filters ...Filter[string]) (with TopicSet, without func(TopicSet) TopicSet) {
	w := &watcher[string, int]{root: s.rt, interest: interestOf(s.rt, filters)}
	s.loops[w] = loop
	s.set = s.set.with(w)
	return s, func(s TopicSet) TopicSet {
		s.set = s.set.without(w)
		return s
	}
}

// Notified returns the loops that are told of key, some perhaps twice.
func (s TopicSet) Notified(key string) (loops []int) {
	s.set.each(s.rt.rehashed(key), func(w *watcher[string, int]) { loops = append(loops, s.loops[w]) })
	return loops
}

// Ignores reports whether the set says that no loop is told of key, where it hashes keys as
// New makes it.
func (s TopicSet) Ignores(key string) bool {
	return s.set == nil || s.set.ignores(s.rt.keys.Hash(key), key)
}

// IsEmpty reports whether the set is what it was when it was new.
func (s TopicSet) IsEmpty() bool { return s.set == nil }

// Depth returns the length of the longest path in the tries, and how many topics lie together at most.
func (s TopicSet) Depth() (depth, together int) {
	if s.set == nil {
		return 0, 0
	}
	depth, together = depthOf(&s.set.keys)
	for i := range s.set.prefixes {
		d, n := depthOf(&s.set.prefixes[i].topicNode)
		depth, together = max(depth, d), max(together, n)
	}
	return depth, together
}

func depthOf[T comparable, W member](n *topicNode[T, W]) (depth, together int) {
	if n.below == nil {
		return 0, len(n.tip)
	}
	for i := range n.below {
		d, n := depthOf(&n.below[i])
		depth, together = max(depth, 1+d), max(together, n)
	}
	return depth, together
}

// ScheduledDead returns the number of dead cells that timers will look at.
func ScheduledDead[K comparable, V any](r *Registry[K, V]) (n int) {
	x := r.install().expiry
	for i := range x.schedules {
		s := &x.schedules[i]
		s.mu.Lock()
		for _, a := range s.heap {
			if a.cell.rec.Load().dead() {
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

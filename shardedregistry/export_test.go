package shardedregistry

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/internal/atomics"
)

// What the tests must know to reach the rare paths.
var (
	Patience = patience()
	Proofs   = proofs()
)

// SetHash makes an empty registry hash with f.
func SetHash[K comparable, V any](r *Registry[K, V], f func(K) uint64) {
	o := r.install()
	o.hash, o.open, o.light = f, false, false
}

// Shards returns the number of shards.
func Shards[K comparable, V any](r *Registry[K, V]) int { return len(r.install().shards) }

// DefaultShards returns the default number of shards for procs processors.
func DefaultShards(procs int) int { return defaultShards(procs) }

// Linked returns the number of cells in the table, dead or alive.
func Linked[K comparable, V any](r *Registry[K, V]) (n int) {
	for range r.install().cells.All() {
		n++
	}
	return n
}

// Suspects returns the number of calls that are listed as suspects.
func Suspects[K comparable, V any](r *Registry[K, V]) (n int) {
	for p := r.install().suspects.Load(); p != nil; p = p.next {
		n++
	}
	return n
}

// Kill does the first half of Delete, up to the instant at which it takes
// effect, and returns the second half.
func Kill[K comparable, V any](r *Registry[K, V], key K) (rest func()) {
	p, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	o, k := p.root, p.key
	c, old := o.loadLive(k)
	dead := o.grave(o.taking(), old)
	c.rec.Store(dead)
	o.shard(k.Hash).live.Add(-1)
	return func() { o.bury(k, c, old, dead) }
}

// Listed calls f while a suspect for key is listed, as change.prove does.
func Listed[K comparable, V any](r *Registry[K, V], key K, f func(own *bool)) {
	p, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	p.root.listed(p.key, f)
}

// SuspectList is a list of suspects by itself.
type SuspectList struct{ p atomics.Pointer[suspect[int]] }

// Push lists a suspect, and returns a function that reports whether it is
// listed and one that drops it.
func (l *SuspectList) Push() (listed func() bool, remove func()) {
	own := new(bool)
	push(&l.p, &suspect[int]{own: own})
	listed = func() bool {
		for p := l.p.Load(); p != nil; p = p.next {
			if p.own == own {
				return true
			}
		}
		return false
	}
	return listed, func() { drop(&l.p, own) }
}

// Taker is a call of Snapshot that can be stopped between its steps.
type Taker[K comparable, V any] struct {
	t     *taker[K]
	clone func(V) V
}

// Join does the first part of Snapshot, up to and with its first look.
func Join[K comparable, V any](r *Registry[K, V]) Taker[K, V] {
	t := newTaker(r.install())
	t.collect()
	joined := Taker[K, V]{t: t}
	if u := r.root.Load().custody; u != nil {
		joined.clone = cloneOf[V](u)
	}
	return joined
}

// Collect makes a cut, and reports whether that was the last.
func (t Taker[K, V]) Collect() bool { return t.t.collect() }

// Found returns the snapshot without leaving.
func (t Taker[K, V]) Found() *Snapshot[K, V] {
	s := &Snapshot[K, V]{clone: t.clone}
	t.t.develop(&s.picture, plain[V])
	return s
}

// Leave does the rest of Snapshot.
func (t Taker[K, V]) Leave() *Snapshot[K, V] {
	s := &Snapshot[K, V]{clone: t.clone}
	t.t.leave(&s.picture, plain[V])
	return s
}

// Stored makes value the value of key, which is present, as Update does, up to
// the instant at which it is stored, and returns the rest.
func Stored[K comparable, V any](r *Registry[K, V], key K, value V) (rest func()) {
	o, k, c, old, next := replaced(r, key, value)
	return func() { o.changed(k, c, old, next) }
}

// replaced stores next in place of old, which the cell c of key holds.
func replaced[K comparable, V any](r *Registry[K, V], key K, value V) (o *root[K], k hkey[K], c *cell[K], old, next *record) {
	p, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	o, k = p.root, p.key
	c, old = o.loadLive(k)
	next = draft(o, o.taking(), nil, value)
	if err = o.prepare(k, next, old, old.changed()); err != nil {
		panic(err)
	}
	c.rec.Store(next)
	return o, k, c, old, next
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

// Imprints returns the number of values that are remembered for Fingerprint.
func Imprints[K comparable, V any](r *Registry[K, V]) int {
	return r.root.Load().prints.(*prints[K]).byKey.Len()
}

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
type Watcher[K comparable, V any] struct{ w *watcher[K] }

// Subscribe does the first part of a loop.
func Subscribe[K comparable, V any](r *Registry[K, V]) Watcher[K, V] {
	return Watcher[K, V]{r.install().watch(nil)}
}

// Run yields events, until yield returns false or ctx is done.
func (w Watcher[K, V]) Run(ctx context.Context, yield func(Event[K, V]) bool) { run(ctx, w.w, yield) }

// Drain returns the events that there are.
func (w Watcher[K, V]) Drain() (events []Event[K, V]) {
	for {
		p := w.w.shift()
		if p == nil {
			return events
		}
		if k, rec := w.w.look(p); rec != nil {
			events = append(events, eventOf[V](w.w.root, k, rec))
		}
	}
}

// Sleep sleeps as a loop does that has found nothing.
func (w Watcher[K, V]) Sleep(ctx context.Context) { w.w.sleep(ctx) }

// Leave does the rest of the loop.
func (w Watcher[K, V]) Leave() { w.w.leave() }

// Kept returns how many keys the watcher remembers.
func (w Watcher[K, V]) Kept() int { return len(w.w.seats) }

// Piled returns how many slips are on the watcher's pile.
func (w Watcher[K, V]) Piled() (n int) {
	for p := w.w.pile.Load(); p != nil && p != &w.w.over; p = p.next {
		n++
	}
	return n
}

// Traces returns what watchers and waiters have left in r: members of the
// audience, seats, rooms, and dead cells.
func Traces[K comparable, V any](r *Registry[K, V]) (n int) {
	o := r.install()
	if a := o.audience.Load(); a != nil {
		n += len(a.watchers) + a.waiters
	}
	if t := o.rooms.Load(); t != nil {
		n += t.Len()
	}
	return n + Seats(r) + Linked(r) - r.Len()
}

// Seats returns the number of seats at the cells that are in a table.
func Seats[K comparable, V any](r *Registry[K, V]) (n int) {
	for c := range r.install().cells.All() {
		n += len(c.side.Load().now().seats)
	}
	return n
}

// Hash returns the hash of a key.
func Hash[K comparable, V any](r *Registry[K, V], key K) uint64 { return r.install().hash(key) }

// Waiters returns the number of calls of Wait that may sleep.
func Waiters[K comparable, V any](r *Registry[K, V]) int {
	if a := r.install().audience.Load(); a != nil {
		return a.waiters
	}
	return 0
}

// Await makes r what it is while a call of Wait sleeps for some key, until leave
// is called.
func Await[K comparable, V any](r *Registry[K, V]) (leave func()) {
	o := r.install()
	lobby[K]{o}.install()
	count := func(n int) {
		o.attend(func(a audience[K]) audience[K] { return a.waiting(lobby[K]{o}, n) })
	}
	count(1)
	return func() { count(-1) }
}

// Changed tells of a change of key again, as an operation does that has stalled.
func Changed[K comparable, V any](r *Registry[K, V], key K) {
	p, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	if a := p.root.audience.Load(); a != nil {
		p.root.announce(a, p.key)
	}
}

// Tidy does the last thing that a snapshot does that has seen a deletion of key.
func Tidy[K comparable, V any](r *Registry[K, V], key K) {
	p, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	p.root.tidy(p.key)
}

// SubscribeTo is Subscribe by a loop that is told of one key only.
func SubscribeTo[K comparable, V any](r *Registry[K, V], key K) Watcher[K, V] {
	return Watcher[K, V]{r.install().watch(func(k hkey[K]) bool { return k.Key == key })}
}

// IsDone reports whether the slip of the first seat at key says that its watcher has
// looked.
func IsDone[K comparable, V any](r *Registry[K, V], key K) bool {
	p, _ := r.locate(key)
	return p.root.cells.Load(p.key).side.Load().seats[0].slip.Load().stage.Load() == done
}

// IsDated reports whether what key holds, which was stored while a snapshot was
// being taken, has its date.
func IsDated[K comparable, V any](r *Registry[K, V], key K) bool {
	p, _ := r.locate(key)
	return p.root.cells.Load(p.key).rec.Load().dated().date.Load() != 0
}

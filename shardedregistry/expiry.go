package shardedregistry

import (
	"math"
	"runtime"
	"slices"
	"time"
	"weak"

	"github.com/latchfree/latchfree/internal/atomics"
)

// expiry deletes what its time to live is over for. It is immutable but for what is inside
// the schedules, and paused.
type expiry[K comparable, V any] struct {
	ttl       func(K, V) time.Duration // Config.TTL
	began     time.Time                // what times count from
	schedules []schedule[K, V]

	// paused says that no timer is to be started. Only Restore sets it, before others
	// have the registry.
	paused bool
}

// lease is the part that each live record has with Config.TTL.
type lease struct {
	// until is the deadline: a time since expiry.began, never, or expired. Set before
	// publication. Calls of Renew replace it by CAS, unless it is expired, which is final:
	// the timer, by CAS, when it has passed. Writers of the key and Renew read it.
	until atomics.Int64

	// alarm is shared by the records of a cell. It never changes.
	alarm *alarm
}

// Deadlines that are none. The first is one that has passed whenever it is looked at.
const (
	atOnce  int64 = 0
	never   int64 = math.MaxInt64
	expired int64 = math.MinInt64
)

// expiryTick is how exact deadlines are: as those of package oncecache. Those within one
// tick share a run of the timer.
const expiryTick = int64(time.Millisecond)

// expiry returns what makes the entities of c expire, or nil.
func (c *Config[K, V]) expiry() *expiry[K, V] {
	if c.TTL == nil {
		return nil
	}
	x := &expiry[K, V]{ttl: c.TTL, began: atomics.Now(), schedules: make([]schedule[K, V], schedules())}
	for i := range x.schedules {
		x.schedules[i].number = i
	}
	return x
}

// now returns the time since the registry was made.
func (x *expiry[K, V]) now() int64 { return int64(atomics.Since(x.began)) }

// deadline returns the deadline of what has a time to live of ttl from now on.
func (x *expiry[K, V]) deadline(ttl time.Duration) int64 {
	switch {
	case ttl <= 0:
		return atOnce
	case int64(ttl) == never:
		return never
	}
	until := x.now() + int64(ttl)
	if until < 0 || until > never-expiryTick { // some centuries
		return never
	}
	return (until + expiryTick - 1) / expiryTick * expiryTick
}

// grant returns the time to live of rec, a draft that is to replace old or, if old is nil, to be the
// first record of a cell. It runs Config.TTL.
func (x *expiry[K, V]) grant(key K, rec, old *record[K, V]) time.Duration {
	l := &rec.ext().lease
	if old != nil {
		l.alarm = old.ext().lease.alarm
	} else {
		l.alarm = newAlarm()
	}
	return x.ttl(key, rec.value)
}

// begin gives rec, which others have not seen, the deadline of a time to live that begins now.
func (x *expiry[K, V]) begin(rec *record[K, V], ttl time.Duration) {
	atomics.InitInt64(&rec.ext().lease.until, x.deadline(ttl))
}

// oversee is called by each operation that has stored rec in c, the cell of k, in place
// of old or, if old is nil, as the first one.
func (x *expiry[K, V]) oversee(rt *root[K, V], k hkey[K], c *cell[K, V], old, rec *record[K, V]) {
	switch {
	case !rec.dead():
		l := &rec.ext().lease
		x.watch(rt, k, c, l, l.until.Load())
	case old != nil:
		x.schedule(k).close(old.ext().lease.alarm)
	}
}

// watch makes sure that a timer looks at c, the cell of k, at a deadline that l, which its record
// has, was given. It is called when the record, or the deadline, was stored. Another call of Renew
// may have replaced the deadline since: it calls watch too, and nobody waits for it here.
//
// A timer first takes the cell out of its schedule, and then reads what the cell holds. So
// if the cell is in the schedule here, the timer will find what was stored.
func (x *expiry[K, V]) watch(rt *root[K, V], k hkey[K], c *cell[K, V], l *lease, until int64) {
	if until == expired || l.alarm.at.Load() <= until {
		return
	}
	x.schedule(k).look(rt, x, c, l.alarm, until)
}

// expire deletes what c holds if its deadline has come, and else sees to it that it is
// looked at then. A timer calls it, when it has taken c out of its schedule.
func (x *expiry[K, V]) expire(rt *root[K, V], c *cell[K, V]) {
	k := rt.rehashed(c.key)
	for { // until no other operation changes k, or its deadline, in between
		rec := rt.live(c.cleared(c.rec.Load()))
		if rec == nil {
			return // who has deleted it has closed its alarm, or is about to
		}
		l := &rec.ext().lease
		until := l.until.Load()
		if until > x.now() {
			x.watch(rt, k, c, l, until)
			return
		}
		if until != expired && !l.until.CompareAndSwap(until, expired) {
			continue
		}
		if killExpired(rt, k, c, rec) {
			return
		}
	}
}

// killExpired is kill for a timer, or who helps it. The deadline of old has become expired,
// so nobody renews it. No function of the user's runs.
func killExpired[K comparable, V any](rt *root[K, V], k hkey[K], c *cell[K, V], old *record[K, V]) bool {
	rt.recall(k, c, old)
	dead := rt.tombstone(rt.snapshotting(), old) // in this order, as in kill
	dead.word |= expiredBit
	if !c.rec.CompareAndSwap(old, dead) {
		return false
	}
	rt.shard(k.Hash).live.Add(-1)
	rt.bury(k, c, old, dead)
	return true
}

// resume starts the timers of a registry that was paused.
func (x *expiry[K, V]) resume(rt *root[K, V]) {
	x.paused = false
	for i := range x.schedules {
		s := &x.schedules[i]
		s.mu.Lock()
		s.arm(rt, x)
		s.mu.Unlock()
	}
}

// Renew extends or shortens the deadline of key's entry, if that has the given version: ttl counts
// from now. Zero or less expires it immediately, [math.MaxInt64] never. The version stays, and
// watchers see nothing. If key has another version, the error is a [*ConflictError]; if it is
// absent, [ErrNotFound].
//
// So an owner that has created key holds it while its calls of Renew return no error. A stopped
// owner may not notice that it has lost the key: what it writes to should reject versions below the
// highest that it has seen.
//
// Renew panics if the registry is without Config.TTL.
//
// Renew is lock-free; if the new deadline comes before the time at which the timer looks at key
// next, it is blocking on a mutex, see [Config], and where key expires meanwhile, or it helps a
// transaction, on a hash bucket. It takes effect when the deadline is stored, or, if key has
// changed meanwhile, when key is read.
func (r *Registry[K, V]) Renew(key K, version Version, ttl time.Duration) error {
	rt := r.install()
	if rt.expiry == nil {
		panic("shardedregistry: Renew without Config.TTL")
	}
	var t target[K, V]
	if err := rt.aim(&t, key); err != nil {
		return err
	}
	return renew(&t, version, ttl)
}

// renew runs Renew.
//
// Between reading the record and storing the deadline another operation may replace or delete
// what the key holds. Then this call has taken effect when the record was read: the deadline
// of what has been replaced no longer matters. The record cannot have expired in between,
// because the timer replaces the deadline first.
func renew[K comparable, V any](t *target[K, V], version Version, ttl time.Duration) error {
	x := t.root.expiry
	until := x.deadline(ttl)
	for { // until no other call of Renew replaces the deadline, or the timer, in between
		// LP(Renew), absent or another version: loadIf reads the record.
		c, rec, err := t.loadIf(version)
		if err != nil {
			return err
		}
		k, l := c.named(t.key.Hash), &rec.ext().lease
		old := l.until.Load()
		if old == expired {
			killExpired(t.root, k, c, rec) // for the timer, which may have stalled
			continue
		}
		// LP(Renew): the deadline is stored.
		if l.until.CompareAndSwap(old, until) {
			x.watch(t.root, k, c, l, until)
			return nil
		}
	}
}

// schedules returns the number of schedules of a registry. With 16 it is unlikely that two
// creations or deletions meet in one.
func schedules() int { return atomics.Limit(16, 1) }

// fewExpired bounds how many cells a timer takes out of a schedule at once, while others
// wait for its mutex.
const fewExpired = 64

// schedule has the cells of some keys in the order in which a timer looks at them. A cell
// may be there for an earlier time than its deadline, because changes that put a deadline
// off leave it where it is.
type schedule[K comparable, V any] struct {
	number int // in expiry.schedules. Immutable.

	mu    atomics.Mutex
	heap  appointments[K, V] // under mu: ordered as a binary heap
	timer *expiryTimer       // under mu; nil: there is none
	wakes int64              // under mu: when the timer fires
	_     atomics.CacheLinePad
}

// expiryTimer is a timer that was started. It refers to the registry weakly. It does not
// change after arm.
type expiryTimer struct {
	stop     func()
	unneeded runtime.Cleanup // stops it when the registry is garbage
}

// cancel is called when the timer is no longer that of its schedule, and may have fired.
func (t *expiryTimer) cancel() {
	t.stop()
	t.unneeded.Stop()
}

// alarm says when a timer looks at a cell. The records of the cell share it.
type alarm struct {
	// at is when a timer will look; never, if the cell is in no schedule; or closed, if the
	// cell is dead, which is final. Written under schedule.mu. Writers of the key read it.
	at atomics.Int64

	position int // in schedule.heap, plus one; 0: none. Under schedule.mu.
}

// closed is before each deadline: nobody wants a timer to look earlier.
const closed = expired

func newAlarm() *alarm {
	a := new(alarm)
	atomics.InitInt64(&a.at, never)
	return a
}

// appointment is a place in a schedule.
type appointment[K comparable, V any] struct {
	at    int64 // as in alarm
	alarm *alarm
	cell  *cell[K, V]
}

// schedule returns that of k.
func (x *expiry[K, V]) schedule(k hkey[K]) *schedule[K, V] {
	return &x.schedules[k.Hash%uint64(len(x.schedules))]
}

// look makes a timer look at c at a time, or before.
func (s *schedule[K, V]) look(rt *root[K, V], x *expiry[K, V], c *cell[K, V], a *alarm, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.at.Load() <= at {
		return
	}
	a.at.Store(at)
	if a.position == 0 {
		s.heap = append(s.heap, appointment[K, V]{at, a, c})
		a.position = len(s.heap)
	}
	s.heap[a.position-1].at = at
	s.heap.fix(a.position - 1)
	s.arm(rt, x)
}

// close takes a dead cell out of the schedule, for good.
func (s *schedule[K, V]) close(a *alarm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.at.Store(closed)
	s.remove(a)
}

// remove takes a cell out of the heap, if it is there. The caller holds mu.
func (s *schedule[K, V]) remove(a *alarm) {
	i, last := a.position-1, len(s.heap)-1
	if i < 0 {
		return
	}
	s.heap.swap(i, last)
	s.heap[last] = appointment[K, V]{}
	s.heap = s.heap[:last]
	a.position = 0
	if i < last {
		s.heap.fix(i)
	}
	if cap(s.heap) > fewExpired && last < cap(s.heap)/4 {
		s.heap = append(slices.Grow(appointments[K, V](nil), 2*last), s.heap...)
	}
}

// arm starts a timer for the first of the heap, unless one fires before. The caller holds
// mu. The timer does not keep the registry alive, and goes with it: unless it was made in a
// bubble of testing/synctest, outside of which nobody may stop it.
func (s *schedule[K, V]) arm(rt *root[K, V], x *expiry[K, V]) {
	if len(s.heap) == 0 || x.paused {
		return
	}
	next := s.heap[0].at
	if s.timer != nil {
		if s.wakes <= next {
			return
		}
		s.timer.cancel()
	}
	i, root, t := s.number, weak.Make(rt), new(expiryTimer)
	t.stop = atomics.After(time.Duration(max(0, next-x.now())), func() {
		if rt := root.Value(); rt != nil {
			expireDue(rt, i, t)
		}
	})
	if atomics.Bubble() == 0 {
		t.unneeded = atomics.WhenGone(rt, func(stop func()) { stop() }, t.stop)
	}
	s.timer, s.wakes = t, next
}

// expireDue looks at the first cells in schedule i whose time has come, and starts the next
// timer, for the others at once. A timer runs it.
func expireDue[K comparable, V any](rt *root[K, V], i int, by *expiryTimer) {
	x := rt.expiry
	s := &x.schedules[i]
	for _, c := range s.due(x.now()) {
		x.expire(rt, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == by && by != nil {
		by.unneeded.Stop()
		s.timer = nil
	}
	s.arm(rt, x)
}

// due takes a few cells out of the schedule that are to be looked at now.
func (s *schedule[K, V]) due(now int64) (cells []*cell[K, V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(cells) < fewExpired && len(s.heap) > 0 && s.heap[0].at <= now {
		first := s.heap[0]
		first.alarm.at.Store(never)
		s.remove(first.alarm)
		cells = append(cells, first.cell)
	}
	return cells
}

// appointments is a binary heap, the earliest first.
type appointments[K comparable, V any] []appointment[K, V]

// fix moves appointment i to where it belongs when its time has changed.
func (h appointments[K, V]) fix(i int) {
	for i > 0 && h[i].at < h[(i-1)/2].at {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		first := 2*i + 1
		if first+1 < len(h) && h[first+1].at < h[first].at {
			first++
		}
		if first >= len(h) || h[i].at <= h[first].at {
			return
		}
		h.swap(i, first)
		i = first
	}
}

func (h appointments[K, V]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].alarm.position, h[j].alarm.position = i+1, j+1
}

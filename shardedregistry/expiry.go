package shardedregistry

import (
	"math"
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// expirer has the methods of an expiry that every store of a value needs. Like a
// constrainer it is an interface that New alone puts something into.
type expirer[K comparable] interface {
	// lifetime returns the time to live of rec, a draft, in nanoseconds: a Duration would
	// bring its methods into every program. It runs Config.TTL.
	lifetime(key K, rec *record) (ttl int64)
	// grant gives rec, a draft that is to replace old or, if old is nil, to be the first
	// record of a cell, the deadline that follows from its time to live.
	grant(rec, old *record, ttl int64)
	// oversee is called by each operation that has stored rec in c, the cell of k, in place
	// of old or, if old is nil, as the first one.
	oversee(rt *root[K], k hkey[K], c *cell[K], old, rec *record)
}

// expiry deletes what its time to live is over for. It is immutable but for what is inside
// the schedules, and paused.
type expiry[K comparable] struct {
	ttl       func(K, *record) time.Duration // Config.TTL of a value
	began     time.Time                      // what times count from
	parts     uintptr                        // what lies between a lease and its plain record
	schedules []schedule[K]

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

// leasedRecord is a record with a lease. H is record, or one of the types that end with it.
type leasedRecord[H any] struct {
	//lint:ignore U1000 found by its offset
	lease
	head H
}

const leasedSize = unsafe.Sizeof(leasedRecord[record]{}) - unsafe.Sizeof(record{})

// freshLeased is freshLarge for records that have a lease besides the parts of a layout.
func freshLeased[V any](s layout) func(snapshotting bool) *record {
	return func(snapshotting bool) *record {
		switch {
		case s == 0 && !snapshotting:
			return &new(boxed[leasedRecord[record], V]).head.head
		case s == 0:
			return withDate(&new(boxed[leasedRecord[datedRecord], V]).head.head.record)
		case s == isIndexed && !snapshotting:
			return &new(boxed[leasedRecord[indexedRecord], V]).head.head.record
		case s == isIndexed:
			return withDate(&new(boxed[leasedRecord[datedIndexedRecord], V]).head.head.record)
		case s == isRecorded && !snapshotting:
			return &new(boxed[leasedRecord[recordedRecord], V]).head.head.record
		case s == isRecorded:
			return withDate(&new(boxed[leasedRecord[datedRecordedRecord], V]).head.head.record)
		case !snapshotting:
			return &new(boxed[leasedRecord[indexedRecordedRecord], V]).head.head.record
		}
		return withDate(&new(boxed[leasedRecord[datedIndexedRecordedRecord], V]).head.head.record)
	}
}

// expirer returns what makes the entities of c expire, or nil. Besides a lease records have
// the parts of a layout.
func (c *Config[K, V]) expirer(s layout) expirer[K] {
	if c.TTL == nil {
		return nil
	}
	ttl := c.TTL
	x := &expiry[K]{
		ttl:       func(key K, rec *record) time.Duration { return ttl(key, *valueOf[V](rec)) },
		began:     atomics.Now(),
		schedules: make([]schedule[K], schedules()),
	}
	for i := range x.schedules {
		x.schedules[i].number = i
	}
	if s&isIndexed != 0 {
		x.parts += indexedSize
	}
	if s&isRecorded != 0 {
		x.parts += recordedSize
	}
	return x
}

// expiryOf returns the expiry of a registry, or nil without Config.TTL.
func expiryOf[K comparable](rt *root[K]) *expiry[K] {
	x, _ := rt.expiry.(*expiry[K])
	return x
}

// lease returns the lease of rec, which is live.
func (x *expiry[K]) lease(rec *record) *lease {
	size := leasedSize + x.parts
	if rec.word&datedBit != 0 {
		size += datedSize
	}
	// Safety: where there is an expiry, freshLeased alone makes live records, each with its
	// lease before all that is counted here.
	return (*lease)(rec.before(size))
}

// now returns the time since the registry was made.
func (x *expiry[K]) now() int64 { return int64(atomics.Since(x.began)) }

// deadline returns the deadline of what has a time to live of ttl from now on.
func (x *expiry[K]) deadline(ttl time.Duration) int64 {
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

// lifetime implements expirer.
func (x *expiry[K]) lifetime(key K, rec *record) int64 { return int64(x.ttl(key, rec)) }

// grant implements expirer.
func (x *expiry[K]) grant(rec, old *record, ttl int64) {
	l := x.lease(rec)
	atomics.InitInt64(&l.until, x.deadline(time.Duration(ttl)))
	if old != nil {
		l.alarm = x.lease(old).alarm
	} else {
		l.alarm = newAlarm()
	}
}

// oversee implements expirer.
func (x *expiry[K]) oversee(rt *root[K], k hkey[K], c *cell[K], old, rec *record) {
	switch {
	case !rec.dead():
		x.watch(rt, k, c, x.lease(rec))
	case old != nil:
		x.schedule(k).close(x.lease(old).alarm)
	}
}

// watch makes sure that a timer looks at c, the cell of k, when the deadline of l has come,
// which its record has. It is called when the record, or the deadline, was stored.
//
// A timer first takes the cell out of its schedule, and then reads what the cell holds. So
// if the cell is in the schedule here, the timer will find what was stored.
func (x *expiry[K]) watch(rt *root[K], k hkey[K], c *cell[K], l *lease) {
	until := l.until.Load()
	if until == expired || l.alarm.at.Load() <= until {
		return
	}
	x.schedule(k).look(rt, x, c, l.alarm, until)
}

// expire deletes what c holds if its deadline has come, and else sees to it that it is
// looked at then. A timer calls it, when it has taken c out of its schedule.
func (x *expiry[K]) expire(rt *root[K], c *cell[K]) {
	k := rt.rehashed(c.key)
	for { // until no other operation changes k, or its deadline, in between
		rec := rt.live(c.cleared(c.rec.Load()))
		if rec == nil {
			return // who has deleted it has closed its alarm, or is about to
		}
		l := x.lease(rec)
		until := l.until.Load()
		if until > x.now() {
			x.watch(rt, k, c, l)
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
func killExpired[K comparable](rt *root[K], k hkey[K], c *cell[K], old *record) bool {
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
func (x *expiry[K]) resume(rt *root[K]) {
	x.paused = false
	for i := range x.schedules {
		s := &x.schedules[i]
		s.mu.Lock()
		s.arm(rt, x)
		s.mu.Unlock()
	}
}

package shardedregistry

import (
	"math"
	"time"

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

// grant gives rec, a draft that is to replace old or, if old is nil, to be the first
// record of a cell, the deadline of its key. It runs Config.TTL.
func (x *expiry[K, V]) grant(key K, rec, old *record[K, V]) {
	l := &rec.ext.lease
	atomics.InitInt64(&l.until, x.deadline(x.ttl(key, rec.value)))
	if old != nil {
		l.alarm = old.ext.lease.alarm
	} else {
		l.alarm = newAlarm()
	}
}

// oversee is called by each operation that has stored rec in c, the cell of k, in place
// of old or, if old is nil, as the first one.
func (x *expiry[K, V]) oversee(rt *root[K, V], k hkey[K], c *cell[K, V], old, rec *record[K, V]) {
	switch {
	case !rec.dead():
		x.watch(rt, k, c, &rec.ext.lease)
	case old != nil:
		x.schedule(k).close(old.ext.lease.alarm)
	}
}

// watch makes sure that a timer looks at c, the cell of k, when the deadline of l has come,
// which its record has. It is called when the record, or the deadline, was stored.
//
// A timer first takes the cell out of its schedule, and then reads what the cell holds. So
// if the cell is in the schedule here, the timer will find what was stored.
func (x *expiry[K, V]) watch(rt *root[K, V], k hkey[K], c *cell[K, V], l *lease) {
	until := l.until.Load()
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
		l := &rec.ext.lease
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

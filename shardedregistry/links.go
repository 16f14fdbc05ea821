package shardedregistry

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// links is what each record has besides where there is Config.Transitions: what
// streams need to know of the past of a key.
type links[V any] struct {
	// prev is what the key held before, dead or alive, also in an earlier cell;
	// nil if there was nothing or no stream needs it. Set before publication,
	// then nil, once, by those who tell of the record or have read it for a
	// stream.
	prev atomics.Pointer[record[V]]

	// told becomes 1 when every stream that had joined before the record took
	// effect has a seat that does not come after it; and then all that is older
	// in the chain of prev has told 1, too. Set by all who tell of the record or
	// of a newer one. Creators read it under a bucket's mutex.
	told atomics.Uint32
}

// A record that has links is the first field of one of these.
type (
	linked[V any] struct {
		record[V]
		links links[V]
	}
	datedLinked[V any] struct {
		dated[V]
		links links[V]
	}
	termedLinked[V any] struct {
		termed[V]
		links links[V]
	}
	datedTermedLinked[V any] struct {
		datedTermed[V]
		links links[V]
	}
)

// transitions reports whether records have links.
func (o *root[K, V]) transitions() bool { return o.shut != nil }

// links returns those of r. It is called only where records have them.
func (o *root[K, V]) links(r *record[V]) *links[V] {
	termed := o.rules != nil && !r.dead()
	switch {
	case termed && r.mark&datedBit != 0:
		// Safety: with Config.Transitions, draftLinkedTerms alone makes live
		// records where there are rules, and sets the bit in those that are the
		// first field of a datedTermedLinked.
		return &(*datedTermedLinked[V])(unsafe.Pointer(r)).links
	case termed:
		// Safety: likewise, and the others are that of a termedLinked.
		return &(*termedLinked[V])(unsafe.Pointer(r)).links
	case r.mark&datedBit != 0:
		// Safety: with Config.Transitions, draftLinked alone makes all other
		// records, and sets the bit in those that are the first field of a
		// datedLinked.
		return &(*datedLinked[V])(unsafe.Pointer(r)).links
	}
	// Safety: likewise, and the others are that of a linked.
	return &(*linked[V])(unsafe.Pointer(r)).links
}

// draftLinked is bare with links.
func draftLinked[V any](taking bool, old *record[V], m mark, value V) *record[V] {
	if !taking {
		d := &linked[V]{record: record[V]{m, value}}
		d.links.prev.Store(old)
		return &d.record
	}
	d := new(datedLinked[V])
	d.record = record[V]{m | datedBit, value}
	d.dated.prev.Store(old)
	d.links.prev.Store(old)
	return &d.record
}

// draftLinkedTerms is draftTermed with links.
func draftLinkedTerms[V any](taking bool, old *record[V], m mark, value V, terms []term) *record[V] {
	if !taking {
		d := &termedLinked[V]{termed: termed[V]{record[V]{m, value}, terms}}
		d.links.prev.Store(old)
		return &d.record
	}
	d := new(datedTermedLinked[V])
	d.record = record[V]{m | datedBit, value}
	d.terms = terms
	d.dated.prev.Store(old)
	d.links.prev.Store(old)
	return &d.record
}

// untold returns the oldest of rec and what it replaced that is not told, or nil
// if rec is. There are no more of them than calls that have stored and not told.
func (o *root[K, V]) untold(rec *record[V]) (oldest *record[V]) {
	for rec != nil {
		l := o.links(rec)
		if l.told.Load() != 0 {
			break
		}
		oldest, rec = rec, l.prev.Load()
	}
	return oldest
}

// hasTold notes that rec is told, and before that what is older. If rec has no
// prev, then either there is nothing older, or somebody else has noted all of it.
func (o *root[K, V]) hasTold(rec *record[V]) {
	l := o.links(rec)
	if l.told.Load() != 0 {
		return
	}
	if old := l.prev.Load(); old != nil {
		o.hasTold(old)
	}
	l.told.Store(1)
}

// trim forgets what no stream needs of the chain of rec, which c holds or held,
// unless some stream needs what comes right after version since.
//
// What is older than a record is forgotten only if that is found told, and no
// stream found after that which needs more: every stream that had joined before
// the record took effect is seated by then, and one that is seated later needs
// nothing older. Before it is told somebody may be about to seat one.
func (o *root[K, V]) trim(c *cell[K, V], rec *record[V], since Version) {
	first := o.first(c, rec)
	if first <= since {
		return
	}
	for rec != nil && rec.version() > first {
		rec = o.links(rec).prev.Load()
	}
	if rec == nil {
		return
	}
	l := o.links(rec)
	if l.prev.Load() != nil && l.told.Load() != 0 && o.first(c, rec) == rec.version() {
		l.prev.Store(nil)
	}
}

// relax forgets what no stream needs of k any more.
func (o *root[K, V]) relax(k hkey[K]) {
	if c := o.shard(k.Hash).load(k); c != nil {
		o.trim(c, c.rec.Load(), 0)
	}
}

// ends returns a copy of d that takes no seat any more: its cell leaves the
// table.
func (d *side[K, V]) ends() *side[K, V] {
	next := d.now()
	next.gone = true
	return &next
}

// part makes sure that no seat is added to c, which is dead and told, before it
// is unlinked, and reports whether it may be. It is retried only when a seat has
// come or gone. Without Config.Transitions whoever comes late may add one in vain.
func (o *root[K, V]) part(c *cell[K, V], dead *record[V]) bool {
	if !o.transitions() {
		return true
	}
	for {
		now := c.side.Load()
		switch {
		case now == nil:
			if c.side.CompareAndSwap(nil, o.shut) {
				return true
			}
		case now.gone:
			return true
		case now.needed(dead):
			return false
		case c.side.CompareAndSwap(now, now.ends()):
			return true
		}
	}
}

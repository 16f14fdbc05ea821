package shardedregistry

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// rewriting is one call of Clear or Replace: a transaction that uses all keys, those of
// which it does not know too.
//
// While it runs, the shards are sealed, so that no other operation makes a key present that
// was absent. So all cells that may be alive are those that one walk has found when the
// shards were sealed. From the first intent that is stored on, others read it, and help: it is
// immutable then, but for status, date, ready, and won of its steps. It never aborts.
type rewriting[K comparable] struct {
	root *root[K]
	to   *contentsToBe[K]

	// status is undecided, then committed for ever. Set by CAS by the owner and all that
	// help. Everybody reads who meets an intent.
	status atomics.Uint32

	// dated says that what is stored is dated, because a snapshot was being taken when all
	// cells were found.
	dated bool

	// date is that of a transaction. Only if dated.
	date atomics.Uint64

	// ready is a number of steps that are done, from the first on: not always the highest
	// that there was. Stored by those that help.
	ready atomics.Int64

	// cells is a step for each cell that was found, and comes first: it puts an intent there
	// if the cell is alive. keys is one for each key that is to be present, of to.keys: it
	// puts a cell with an intent into the table, if no step has put one on the key.
	cells []rewriteStep[K]
	keys  []rewriteStep[K]
}

// rewriteStep is one step of a rewriting, and then what has come of that.
type rewriteStep[K comparable] struct {
	cell *cell[K] // nil where the step is of a key
	key  int      // what the cell's key, or the key, is in to.keys; -1 if it is to be deleted

	// won is the intent that stands for the key, nil if there is none. It is set once, by
	// CAS, by those that have stored the intent or found it, before they go on. Of a cell whose
	// key is to be present, it is in the step of that key.
	won atomics.Pointer[rewriteIntent[K]]
}

// rewriteIntent is the intent of a rewriting for one key. Those that help make their own;
// one is stored. It is immutable then.
type rewriteIntent[K comparable] struct {
	intent
	cell *cell[K] // which holds it

	// old is what it stands for until the rewriting commits, and next from then on. Old is
	// nil, or dead, if the cell is the rewriting's.
	old, next *record
}

// stepsPerNote is how many steps are done between two stores of ready. In the model there
// are few.
func stepsPerNote() int { return atomics.Limit(64, 1) }

// rewrite makes the registry contain what to says. It returns how many keys it has deleted.
// An error is that of the constraints, and then nothing has changed.
//
// It runs functions of the user's, and only before the first lock and when all is done.
//
// It is not a method of the root, nor are others that name the types of this file: see "Shell
// and core" in DESIGN.md.
func rewrite[K comparable](rt *root[K], to *contentsToBe[K]) (deleted int, err error) {
	held, err := to.prepare(rt)
	if err != nil {
		return 0, err
	}
	rw := &rewriting[K]{root: rt, to: to}
	rt.sealing.Lock()
	rt.seal()
	rw.find()
	rw.decide()
	if rw.dated {
		rw.time() // before any later creation has a date
	}
	rt.unseal()
	rt.sealing.Unlock()
	if cs := constraintsOf(rt); cs != nil {
		constrained[K]{cs}.unlock(held)
	}
	return rw.conclude(), nil
}

// find finds all cells, and plans the steps. The walk meets each cell that a creator puts
// into the table that has found the shard unsealed, because it did so under the mutex of a
// bucket. So no cell that it has not met is alive, up to the moment when the shards are
// unsealed.
//
// Whether a snapshot is being taken is asked afterwards, as in kill: a plain record deletes
// only what was in the table before any collector joined that might miss it.
func (rw *rewriting[K]) find() {
	rt := rw.root
	rw.cells = make([]rewriteStep[K], 0, rt.cells.Len())
	for c := range rt.cells.Settled() {
		rw.cells = append(rw.cells, rewriteStep[K]{cell: c, key: -1})
	}
	if len(rw.to.keys) > 0 {
		for i := range rw.cells {
			s := &rw.cells[i]
			s.key = rw.to.find(rt.rehashed(s.cell.key))
		}
	}
	rw.keys = make([]rewriteStep[K], len(rw.to.keys))
	for i := range rw.keys {
		rw.keys[i].key = i
	}
	rw.dated = rt.snapshotting()
}

// decide takes all steps, and commits. The owner calls it, and all that find the rewriting
// undecided where they want to store something.
func (rw *rewriting[K]) decide() {
	var (
		spare []rewriteIntent[K]
		found [lookAhead]*record // in the cells of the next steps
	)
	first, all := int(rw.ready.Load()), len(rw.cells)+len(rw.keys)
	for i := first; i < all && rw.status.Load() == undecided; i++ {
		if len(spare) == 0 {
			spare = make([]rewriteIntent[K], min(all-i, stepsPerNote()))
		}
		var used bool
		if i < len(rw.cells) {
			if i == first || i%lookAhead == 0 {
				rw.readAhead(i, &found)
			}
			used = rw.install(&rw.cells[i], found[i%lookAhead], &spare[0])
		} else {
			used = rw.insert(&rw.keys[i-len(rw.cells)], &spare[0])
		}
		if used {
			spare = spare[1:]
		}
		if (i+1)%stepsPerNote() == 0 {
			rw.ready.Store(int64(i + 1)) // what was stored meanwhile may be more: that does no harm
		}
	}
	// LP(Clear): the rewriting commits. Each key that is present holds an intent of it, and
	// none is withdrawn before.
	// LP(Replace): likewise.
	rw.status.CompareAndSwap(undecided, committed)
}

// readAhead reads what is in cell i, and in those after it up to a multiple of lookAhead, so that
// the processor can wait for many of them at once. Found has nil for a cell that is dead for ever.
func (rw *rewriting[K]) readAhead(i int, found *[lookAhead]*record) {
	cells := rw.cells[i:min(i-i%lookAhead+lookAhead, len(rw.cells))]
	now := found[i%lookAhead:]
	for j := range cells {
		now[j] = cells[j].cell.rec.Load()
	}
	for j := range cells {
		if now[j].dead() {
			now[j] = nil
		}
	}
}

// result returns where the intent of s's key is noted.
func (rw *rewriting[K]) result(s *rewriteStep[K]) *atomics.Pointer[rewriteIntent[K]] {
	if s.key >= 0 {
		return &rw.keys[s.key].won
	}
	return &s.won
}

// mine returns the intent of rw that rec is, or nil.
func (rw *rewriting[K]) mine(rec *record) *rewriteIntent[K] {
	if rec == nil || !rec.intent() || asIntent(rec).of != decider(rw) {
		return nil
	}
	return rewriteIntentOf[K](rec)
}

// install puts an intent on a cell that was found, unless that is dead. Rec is what was read
// there. It reports whether it has used spare for that.
//
// A transaction that is in the way is aborted. To finish it could need this rewriting.
func (rw *rewriting[K]) install(s *rewriteStep[K], rec *record, spare *rewriteIntent[K]) (used bool) {
	c := s.cell
	for ; ; rec = c.rec.Load() { // until no other operation changes the key between reading and storing
		if it := rw.mine(rec); it != nil {
			rw.result(s).CompareAndSwap(nil, it)
			return false
		}
		if rw.status.Load() != undecided { // read after rec: what the rewriting has stored must stay
			return false
		}
		if rec != nil && rec.intent() {
			asIntent(rec).of.abort(rec)
			if rec = resolved(rec); rec != nil && !rec.dead() {
				continue
			}
		}
		if rec == nil || rec.dead() {
			return false // for ever: the cell of an absent key
		}
		rw.root.date(rec)
		rw.root.recall(rw.root.rehashed(c.key), c, rec)
		rw.make(spare, c)
		spare.old, spare.next = rec, rw.next(s.key, rec)
		if c.rec.CompareAndSwap(rec, &spare.record) {
			rw.result(s).CompareAndSwap(nil, spare)
			return true
		}
	}
}

func (rw *rewriting[K]) make(it *rewriteIntent[K], c *cell[K]) {
	it.word, it.of = intentBits, rw
	it.cell = c
}

// next returns what replaces old, which is alive, where the rewriting commits.
func (rw *rewriting[K]) next(key int, old *record) *record {
	if key < 0 {
		return rw.root.tombstone(rw.dated, old)
	}
	return rw.drafted(key, old, old.changed())
}

func (rw *rewriting[K]) drafted(key int, old *record, m word) *record {
	rec := rw.to.draft(key, rw.dated)
	rw.root.link(rec, old, m)
	if rw.root.constraints != nil {
		*rec.indexed() = rw.to.keys[key].indexKeys
	}
	if rw.root.expiry != nil {
		rw.root.expiry.grant(rec, old, rw.to.keys[key].ttl)
	}
	return rec
}

// insert puts a cell with an intent for a key into the table, unless there is an intent for
// it. It reports whether it has used spare for that. It is to a transaction's insert as
// install is to its install.
//
// Status is read under the mutex of the bucket. While it is undecided there, an intent for
// the key is in the table, or has never been, and the rewriting cannot commit before the
// mutex is unlocked.
func (rw *rewriting[K]) insert(s *rewriteStep[K], spare *rewriteIntent[K]) (used bool) {
	if s.won.Load() != nil {
		return false
	}
	var (
		rt, k  = rw.root, &rw.to.keys[s.key]
		at     = rt.installShard(k.key.Hash)
		next   = rw.drafted(s.key, nil, 0)
		c      = &cell[K]{key: k.key.Key}
		heirs  subscriptions[K]
		found  *record // what was in the way, or nil
		buried *record // a dead record of which all have been told
	)
	if spelled := rt.spelling(k.key, k.given); spelled != nil {
		c.meta.Store(&cellMeta[K]{spelled: spelled})
	}
	rw.make(spare, c)
	spare.next = next
	c.rec.Store(&spare.record)
	for rw.status.Load() == undecided { // until nothing that was in the way is
		found = nil
		now := rt.cells.Compute(k.key, func(now *cell[K]) *cell[K] {
			if rw.status.Load() != undecided {
				return now
			}
			last := Version(at.floor.Load()) &^ sealedBit
			var dead *record
			if now != nil {
				dead = now.rec.Load()
				if dead != buried {
					found = dead
					return now
				}
				last, heirs = rt.supersede(c, next, now, dead, last)
			}
			next.word |= firstWord(last)
			spare.old, used = dead, true
			at.live.Add(1)
			return c
		})
		switch {
		case used:
			s.won.CompareAndSwap(nil, spare)
			if heirs != nil {
				heirs.handedOn(rt)
			}
			return true
		case rw.mine(found) != nil:
			s.won.CompareAndSwap(nil, rw.mine(found))
			return false
		case found != nil && found.intent():
			asIntent(found).of.abort(found)
		case found == nil, !found.dead(): // the rewriting has committed: install has put intents on all that were alive
			return false
		default:
			rt.helpBury(k.key, now, found)
			buried = found
		}
	}
	return false
}

// rewriteIntentOf returns the intent whose record is rec.
func rewriteIntentOf[K comparable](rec *record) *rewriteIntent[K] {
	// Safety: rec is the first field of an intent whose decider is a rewriting. Make alone makes
	// such intents, each the first field of a rewriteIntent.
	return (*rewriteIntent[K])(unsafe.Pointer(rec))
}

// outcome implements decider.
func (rw *rewriting[K]) outcome(of *record) *record {
	it := rewriteIntentOf[K](of)
	if rw.status.Load() != committed {
		return it.old
	}
	if rw.dated {
		it.next.dated().date.CompareAndSwap(0, rw.time())
	}
	return it.next
}

// time is transaction.time.
func (rw *rewriting[K]) time() uint64 {
	if t := rw.date.Load(); t != 0 {
		return t
	}
	// LP(Clear), committed while a snapshot is being taken: the clock is read.
	// LP(Replace), likewise.
	now := rw.root.clock.Load()
	if rw.date.CompareAndSwap(0, now.time) {
		return now.time
	}
	return rw.date.Load()
}

// finish implements decider.
func (rw *rewriting[K]) finish(of *record) {
	rw.decide()
	rw.withdraw(rewriteIntentOf[K](of))
}

// abort implements decider. A rewriting does not abort, and needs nobody to be finished.
func (rw *rewriting[K]) abort(of *record) { rw.finish(of) }

// withdraw takes an intent out of its cell, if it is there. The rewriting has committed.
func (rw *rewriting[K]) withdraw(it *rewriteIntent[K]) {
	it.cell.rec.CompareAndSwap(&it.record, rw.outcome(&it.record))
}

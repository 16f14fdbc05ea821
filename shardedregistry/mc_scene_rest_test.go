//go:build modelcheck

package shardedregistry_test

import (
	"slices"

	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// What must hold when all players of a scene are done.

// over looks at what is left when all players are done.
func (w *stage) over() {
	defer w.survives()
	p := w.enlist()
	if w.scene.Has("TTL") && w.m != nil {
		shardedregistry.ExpireAll(w.r)
	}
	if w.scene.Has("Snapshot kept") {
		found := ordered(slices.Collect(w.taker.Found().Entries()))
		if got := w.showAll(found); got != w.kept {
			w.failf("the snapshot that is kept has %s, and had %s", got, w.kept)
		}
		w.taker.Leave()
	}
	p.expires()
	var there []model.Entry
	for _, k := range sceneKeys {
		p.does("Lookup "+k, func(r registry) any { return results(r.Lookup(k)) })
		if e, ok := w.r.Lookup(k); ok {
			there = append(there, e)
		}
	}
	var loops []*sceneLoop
	for _, q := range w.players {
		loops = append(loops, q.loops...)
	}
	for _, l := range loops {
		if l.feeds {
			l.drain(p)
		} else {
			l.events = append(l.events, p.only(l.watcher.Drain())...)
		}
	}
	w.keepsNothing()
	for _, l := range loops {
		p.ends(l, there)
	}
	w.atRest(there)
	p.feedsFromTheBeginning()
	p.goesOn()
	w.explain()
}

// keepsNothing looks at what is left of changes, when all loops have looked, and none has ended: but
// for what was changed behind the walk of a snapshot, and the next one takes away, nothing.
func (w *stage) keepsNothing() {
	n := w.r.Len()
	w.left = shardedregistry.Kept(w.r) + shardedregistry.Linked(w.r) - n
	if w.left > 0 {
		w.r.Snapshot()
	}
	if kept, linked := shardedregistry.Kept(w.r), shardedregistry.Linked(w.r); kept != 0 || linked != n {
		w.failf("%d old records are kept, and %d cells for %d keys", kept, linked, n)
	}
}

// atRest looks at a registry that nobody uses.
func (w *stage) atRest(there []model.Entry) {
	n := len(there)
	if e, ok := w.r.Lookup(lastKey); ok {
		there, n = append(slices.Clip(there), e), n+1
	}
	if got := w.r.Len(); got != n {
		w.failf("Len is %d, and %d keys are there", got, n)
	}
	if got := shardedregistry.Intents(w.r); got != 0 {
		w.failf("%d intents are left", got)
	}
	if got := shardedregistry.Undated(w.r); got != "" {
		w.failf("%s", got)
	}
	if linked := shardedregistry.Linked(w.r); linked != n {
		w.failf("%d cells are in the table, and %d keys are there", linked, n)
	}
	if got := shardedregistry.Traces(w.r); got != 0 {
		w.failf("%d traces of loops are left", got)
	}
	w.finds(there)
	if w.scene.Has("Indexes", "UniqueIndexes") {
		w.agrees(there)
	}
	if w.scene.Has("TTL") {
		shardedregistry.Scheduled(w.r) // which looks at the order
		if left, dead := shardedregistry.Overlooked(w.r), shardedregistry.ScheduledDead(w.r); len(left) > 0 || dead > 0 {
			w.failf("no timer looks at %v, and one will at %d cells that are dead", left, dead)
		}
	}
}

// finds compares what all ways to read find.
func (w *stage) finds(there []model.Entry) {
	all := slices.Collect(w.r.Entries())
	for _, e := range there {
		v, ok := w.r.Get(e.Key)
		at := w.r.Peek(e.Key)
		if !ok || v != e.Value || at == nil || *at != e.Value || !slices.Contains(all, e) {
			w.failf("%v is there, and Get finds %d, %t, Entries %v", e, v, ok, all)
		}
	}
	if len(all) != len(there) {
		w.failf("Entries yields %v, and there is %v", all, there)
	}
	for _, k := range sceneKeys {
		e, ok := w.refs[k].Lookup()
		if i := slices.IndexFunc(there, func(e model.Entry) bool { return e.Key == k }); ok != (i >= 0) || ok && there[i] != e {
			w.failf("a Ref finds %v, %t, and there is %v", e, ok, there)
		}
	}
}

// agrees compares indexes with what there is.
func (w *stage) agrees(there []model.Entry) {
	c := sceneConfig(w.scene)
	lists, pins := 0, 0
	compare := func(index string, values func(string, int) []string) {
		has := map[string][]model.Entry{}
		for _, e := range there {
			for _, v := range values(e.Key, e.Value) {
				has[v] = append(has[v], e)
				pins++
			}
		}
		lists += len(has)
		for v, want := range has {
			got := slices.Collect(w.r.ByIndex(index, v))
			if len(got) != len(want) || slices.ContainsFunc(want, func(e model.Entry) bool { return !slices.Contains(got, e) }) {
				w.failf("ByIndex(%q, %q) yields %v, and there is %v", index, v, got, there)
			}
		}
		if got := slices.Collect(w.r.IndexValues(index)); len(got) != len(has) {
			w.failf("IndexValues(%q) yields %v, and there is %v", index, got, there)
		}
	}
	for index, values := range c.Indexes {
		compare(index, values)
	}
	for index, values := range c.UniqueIndexes {
		compare(index, values)
		slots := map[string]bool{}
		for _, e := range there {
			for _, v := range values(e.Key, e.Value) {
				if slots[v] {
					w.failf("two keys have %q: %v", v, there)
				}
				slots[v] = true
				if got, ok := w.r.LookupBy(index, v); !ok || got != e {
					w.failf("LookupBy(%q) finds %v, %t, and there is %v", v, got, ok, there)
				}
			}
		}
	}
	if shelves, _, n := shardedregistry.Pins(w.r); shelves != lists || n != pins {
		w.failf("indexes keep %d values and %d pins, and there are %d and %d", shelves, n, lists, pins)
	}
}

// goesOn does a little more when all are done, which tells what the next versions are.
func (p *player) goesOn() {
	for _, k := range sceneKeys {
		v := valueOf(9, 0, 0, 0, 1)
		p.does("then Put "+k, func(r registry) any { return results(r.Put(k, v)) })
		p.does("then Delete "+k, func(r registry) any { return results(r.Delete(k)) })
		p.does("then Create "+k, func(r registry) any { return results(r.Create(k, v)) })
		p.does("then Lookup "+k, func(r registry) any { return results(r.Lookup(k)) })
	}
}

// behind returns the number of keys that may have been created and changed behind the walk of a
// snapshot, which then leaves something.
func (w *stage) behind(end *world) (n int) {
	if w.m == nil || !w.snapshots {
		return 0
	}
	for i, k := range sceneKeys {
		_, there := w.before.Get(k)
		deleted := slices.ContainsFunc(end.changes[i], func(e model.Event) bool { return e.Deleted })
		if !there || deleted {
			n++
		}
	}
	return n
}

// explain looks for an order that explains all.
func (w *stage) explain() {
	h := &history{lives: w.scene.Has("TTL"), clock: &w.clock}
	for _, p := range w.players {
		h.acts = append(h.acts, p.acts...)
	}
	slices.SortStableFunc(h.acts, func(a, b *act) int { return int(a.begin - b.begin) })
	start := &world{Registry: w.before.Copy()}
	start.note()
	for i, k := range sceneKeys { // what happened to it before
		if last, ok := start.Last(k); ok && last.Deleted {
			first := last
			first.Deleted = false
			first.Version--
			start.changes[i] = []model.Event{first, last}
		}
	}
	switch {
	case h.explains(start):
		if most := w.behind(h.last); w.left > most {
			w.failf("%d old records and dead cells are left, and could be of %d keys", w.left, most)
		}
	case h.budget < 0:
		w.failf("too many orders to look through\n%s", h)
	default:
		w.failf("no order explains what was seen\n%s", h)
	}
}

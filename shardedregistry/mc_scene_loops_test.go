//go:build modelcheck

package shardedregistry_test

import (
	"slices"

	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/internal/scenes"
	"github.com/latchfree/latchfree/shardedregistry"
)

// What loops of scenes are told of, and what they must have been told in the end.

// sceneLoop is a loop of a player, which goes on when all are done.
type sceneLoop struct {
	mine    int
	accepts []string
	watcher shardedregistry.Watcher[string, int]
	feed    shardedregistry.Revisions[string, int]
	feeds   bool
	lost    bool
	view    map[string]model.Entry // of a loop that began with a snapshot, or nil
	events  []model.Event
}

// watches begins a loop over Watch, of one key or all, and takes what there is.
func (p *player) watches(keys ...string) {
	l := &sceneLoop{mine: p.memory(), accepts: sceneKeys[:]}
	begin := p.now(false)
	if keys != nil {
		l.accepts = keys
		l.watcher = shardedregistry.SubscribeFiltered(p.r, shardedregistry.Keys(keys...))
	} else {
		l.watcher = shardedregistry.Subscribe(p.r)
	}
	p.begins(l, begin)
	begin = p.now(false)
	l.events = p.only(l.watcher.Drain())
	var parts []part
	for i, e := range l.events {
		parts = append(parts, part{rank: i, do: p.last(e)})
	}
	if parts != nil {
		p.saw("its events", begin, results(l.events), 0, parts)
	}
}

// begins enters that a loop has begun.
func (p *player) begins(l *sceneLoop, begin int64) {
	p.loops = append(p.loops, l)
	p.saw(p.doing+" begins", begin, nil, l.mine, []part{{do: func(w *world) bool {
		w.began[l.mine] = [2]int{len(w.changes[0]), len(w.changes[1])}
		return true
	}}})
}

// only leaves out the last key.
func (p *player) only(events []model.Event) []model.Event {
	return slices.DeleteFunc(events, func(e model.Event) bool { return e.Key == lastKey })
}

// last is that e is the last change of its key.
func (p *player) last(e model.Event) func(*world) bool {
	return func(w *world) bool {
		last, _ := w.Last(e.Key)
		return p.show(last) == p.show(e)
	}
}

// reads begins a loop over WatchFrom, and takes what there is.
func (p *player) reads() {
	if !p.feeds() {
		p.watches()
		return
	}
	l := &sceneLoop{mine: p.memory(), accepts: sceneKeys[:], feeds: true}
	begin := p.now(false)
	l.feed = shardedregistry.OpenFeed(p.r).Revisions
	p.begins(l, begin)
	l.drain(p)
}

func (w *stage) feeds() bool { return w.scene.Has("History 2", "History 32") }

// snapsAndReads takes a snapshot, and goes on from there by a feed.
func (p *player) snapsAndReads() {
	s := p.snaps(p.r.Snapshot)
	if !p.feeds() {
		return
	}
	l := &sceneLoop{accepts: sceneKeys[:], feeds: true, view: map[string]model.Entry{}}
	for e := range s.Entries() {
		l.view[e.Key] = e
	}
	l.feed = shardedregistry.OpenRevisions(p.r, s.Revision())
	p.loops = append(p.loops, l)
	l.drain(p)
}

// drain takes what there is in a feed.
func (l *sceneLoop) drain(p *player) {
	if l.lost {
		return
	}
	events, lost := shardedregistry.Feed[string, int]{Revisions: l.feed}.Drain()
	l.events, l.lost = append(l.events, p.only(events)...), lost
	if lost && !p.scene.Has("History 2") {
		p.failf("a feed has lost changes")
	}
}

// attended is what a loop knows that watches from the beginning.
type attended struct {
	*player
	accepts []string
	view    map[string]model.Event // what it has been told
	strict  bool                   // it is told of each change
	shown   bool                   // it began with a snapshot
	ended   bool
	over    bool // it has seen the last key
	began   int64
}

// sees takes an event, and reports whether there will be more.
func (l *attended) sees(e model.Event) (more bool) {
	if e.Key == lastKey {
		l.over = true
	} else {
		l.takes(e)
	}
	if !l.over {
		return true
	}
	if l.scene.Has("TTL") {
		return false // timers may come yet
	}
	for _, k := range l.accepts {
		if now, ok := l.r.Lookup(k); !l.knows(k, now, ok) {
			return true
		}
	}
	return false
}

// knows reports whether the loop knows what a key holds.
func (l *attended) knows(k string, now model.Entry, ok bool) bool {
	last, notified := l.view[k]
	if !ok {
		return !notified || last.Deleted
	}
	return notified && !last.Deleted && last.Version == now.Version && last.Value == now.Value
}

func (l *attended) takes(e model.Event) {
	last, notified := l.view[e.Key]
	switch {
	case !slices.Contains(l.accepts, e.Key):
		l.failf("a loop is told of %v", e)
	case notified && e.Version <= last.Version:
		l.failf("a loop is told of %v after %v", e, last)
	case l.strict && notified && !last.Deleted && e.Version != last.Version+1:
		l.failf("a feed has %v after %v", e, last)
	case l.shown && e.Deleted && (!notified || last.Deleted):
		l.failf("a loop is told of %v, and has not shown the key", e)
	}
	l.view[e.Key] = e
	begin := l.began
	l.began = l.now(false)
	l.saw("told", begin, e, 0, []part{{do: func(w *world) bool {
		if !l.strict {
			return l.last(e)(w)
		}
		i := slices.Index(sceneKeys[:], e.Key)
		return slices.ContainsFunc(w.changes[i], func(c model.Event) bool { return l.show(c) == l.show(e) })
	}}})
}

// attendLoop starts the loop of the settings.
func (w *stage) attendLoop() {
	if w.scene.Has("Wait") {
		if w.m == nil {
			return // nobody waits where one thread does all
		}
		p := w.enlist()
		e, _ := w.r.Lookup("a")
		w.playing++
		w.launch(func() { p.waitsFor("a", e.Version) })
		return
	}
	if !w.scene.Has("Watch", "Watch of a", "WatchFrom", "WatchSnapshot") {
		return
	}
	l := &attended{player: w.enlist(), accepts: sceneKeys[:], view: map[string]model.Event{}}
	for e := range w.before.Entries() {
		have, _ := w.r.Lookup(e.Key)
		l.view[e.Key] = model.Event{Key: e.Key, Value: e.Value, Version: have.Version}
	}
	l.began = l.now(false)
	end := func() { l.ended = true }
	filtered := []shardedregistry.Filter[string]{shardedregistry.Prefix("a"), shardedregistry.Keys(lastKey)}
	switch {
	case w.scene.Has("WatchFrom") && w.feeds():
		l.strict = true
		after := w.r.Revision()
		w.launch(func() {
			defer end()
			for c, err := range w.r.WatchFrom(w.ctx, after) {
				if err != nil {
					if !w.scene.Has("History 2") {
						w.failf("a feed ends with %v", err)
					}
					return
				}
				if c.Revision <= after {
					w.failf("revision %d comes after %d", c.Revision, after)
				}
				if after = c.Revision; !l.sees(c.Event) {
					return
				}
			}
		})
	case w.scene.Has("WatchSnapshot"):
		clear(l.view)
		l.shown = true
		w.launch(func() {
			defer end()
			for s, e := range w.r.WatchSnapshot(w.ctx) {
				if s == nil {
					if !l.sees(e) {
						return
					}
					continue
				}
				l.sawSnapshot(l.began, s)
				for e := range s.Entries() {
					l.view[e.Key] = model.Event{Key: e.Key, Value: e.Value, Version: e.Version}
				}
				delete(l.view, lastKey)
				if l.began = l.now(false); len(slices.Collect(s.Keys())) > len(l.view) {
					return // all was over
				}
			}
		})
	default:
		watcher := shardedregistry.Subscribe(w.r)
		if w.scene.Has("Watch of a") {
			l.accepts = sceneKeys[:1]
			watcher.Leave()
			watcher = shardedregistry.SubscribeFiltered(w.r, filtered...)
		}
		w.launch(func() {
			defer end()
			defer watcher.Leave()
			watcher.Run(w.ctx, l.sees)
		})
	}
}

// ends looks at what a loop has been told when all are done.
func (p *player) ends(l *sceneLoop, there []model.Entry) {
	switch {
	case l.view != nil:
		p.endsView(l, there)
		return
	case !l.feeds:
		l.watcher.Leave()
	}
	notified := [2][]model.Event{}
	for _, e := range l.events {
		i := slices.Index(sceneKeys[:], e.Key)
		if n := len(notified[i]); n > 0 && e.Version <= notified[i][n-1].Version || !slices.Contains(l.accepts, e.Key) {
			p.failf("a loop is told of %v", l.events)
		}
		notified[i] = append(notified[i], e)
	}
	if l.lost {
		return
	}
	p.saw("a loop ends", p.now(false), results(l.events), 0, []part{{do: func(w *world) bool {
		for i, k := range sceneKeys {
			n, changes, since := len(notified[i]), w.changes[i], w.began[l.mine][i]
			switch {
			case !slices.Contains(l.accepts, k):
			case !l.feeds && n == 0:
				if len(changes) != since {
					return false
				}
			case !l.feeds:
				if last, _ := w.Last(k); p.show(last) != p.show(notified[i][n-1]) {
					return false
				}
			default: // each change since it began, and perhaps some whose calls had not returned
				if n > len(changes) || n < len(changes)-since {
					return false
				}
				for j, e := range notified[i] {
					if p.show(changes[len(changes)-n+j]) != p.show(e) {
						return false
					}
				}
			}
		}
		return true
	}}})
}

// endsView looks at what a snapshot is with the changes since.
func (p *player) endsView(l *sceneLoop, there []model.Entry) {
	if l.lost {
		return
	}
	last := map[string]model.Version{}
	for k, e := range l.view {
		last[k] = e.Version
	}
	delete(l.view, lastKey)
	for _, e := range l.events {
		if e.Version <= last[e.Key] {
			continue
		}
		last[e.Key] = e.Version
		l.view[e.Key] = model.Entry{Key: e.Key, Value: e.Value, Version: e.Version}
		if e.Deleted {
			delete(l.view, e.Key)
		}
	}
	same := len(l.view) == len(there)
	for _, e := range there {
		same = same && l.view[e.Key] == e
	}
	if !same {
		p.failf("a snapshot with the changes since is not what there is:\n%v after %v, and there is %v", l.view, l.events, there)
	}
}

// feedsFromTheBeginning reads all changes that are remembered: all that there were, if so many are.
func (p *player) feedsFromTheBeginning() {
	if !p.feeds() {
		return
	}
	l := &sceneLoop{feed: shardedregistry.OpenRevisions(p.r, 0)}
	all, lost := shardedregistry.Feed[string, int]{Revisions: l.feed}.Drain()
	if lost {
		p.failf("a feed from the beginning has lost changes")
	}
	others := len(all)
	all = p.only(all)
	others -= len(all)
	p.saw("all changes", p.now(false), results(all), 0, []part{{do: func(w *world) bool {
		total := len(w.changes[0]) + len(w.changes[1])
		want := total
		if p.scene.Has("History 2") {
			want = min(total, 2-others)
		}
		notified := [2][]model.Event{}
		for _, e := range all {
			i := slices.Index(sceneKeys[:], e.Key)
			notified[i] = append(notified[i], e)
		}
		for i, events := range notified {
			changes := w.changes[i]
			if len(events) > len(changes) {
				return false
			}
			for j, e := range events {
				if p.show(changes[len(changes)-len(events)+j]) != p.show(e) {
					return false
				}
			}
		}
		return len(all) == want
	}}})
}

// What must hold when all players of a scene are done.

// over looks at what is left when all players are done.
func (w *stage) over() {
	defer scenes.Survives(w.failf)
	p := w.enlist()
	if w.scene.Has("TTL") && w.m != nil {
		shardedregistry.ExpireAll(w.r)
	}
	if w.scene.Has("Snapshot kept") {
		found := ordered(slices.Collect(w.taking.Found().Entries()))
		if got := w.showAll(found); got != w.kept {
			w.failf("the snapshot that is kept has %s, and had %s", got, w.kept)
		}
		w.taking.Leave()
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

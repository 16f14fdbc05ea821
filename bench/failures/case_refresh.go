package main

import (
	"slices"
	"sync"
)

// refreshing opens a cache with a value of "a", the first creation, and begins
// a refresh, the second.
func (t *trial) refreshing(c config[string, *engine]) (refresh *caller, d *studio) {
	c.refreshes = true
	d = t.openWith(c)
	first := t.ask("a")
	d.await(1).returns()
	t.join("the first caller", first)
	refresh = t.refresh()
	d.await(2)
	t.settle()
	return refresh, d
}

func (t *trial) refresh() *caller {
	c := t.cache.(refresher)
	return t.call(func() (*engine, error) { return c.refresh("a") })
}

// refreshServes asks ten times for a key while it is made anew, and once more
// afterwards. Pass: nobody waits for the new value while there is an old one,
// and who asks later gets the new one. What refreshes are for.
func refreshServes(t *trial) {
	refresh, d := t.refreshing(config[string, *engine]{})
	callers := t.askMany(10, "a")
	waited := !t.wait(callers...)
	d.release()
	t.join("callers", append(callers, refresh)...)
	t.settle()
	if waited {
		t.end(fail, "who asks during a refresh waits for it")
	}
	for _, c := range callers {
		if c.v == nil || c.v.serial != 1 {
			t.end(wrong, "who asks during a refresh %v", c)
		}
	}
	if kept := t.kept("a"); kept.serial != 2 {
		t.end(fail, "after the refresh, a caller gets engine %d", kept.serial)
	}
}

// refreshShared lets three callers refresh one key at a time. Pass: one new
// value is made, as one is when three ask for an absent key.
func refreshShared(t *trial) {
	refresh, d := t.refreshing(config[string, *engine]{})
	others := []*caller{t.refresh(), t.refresh()}
	t.settle()
	n := d.count() - 1
	d.release()
	t.join("who refreshes", append(others, refresh)...)
	if n != 1 {
		t.end(fail, "%d new values are made at the same time", n)
	}
}

// refreshFails lets a refresh fail, and the next one succeed. Pass: the old
// value stays until there is a new one, as the documentation of all that
// refresh promises.
func refreshFails(t *trial) {
	oldValueSurvives(t, func(c *creation) { c.fails(errCreate) })
}

// refreshPanics lets a refresh panic, and the next one succeed. Pass: whoever
// does not refresh is not touched, the process least of all, and the next
// refresh works.
func refreshPanics(t *trial) {
	oldValueSurvives(t, (*creation).panics)
}

// refreshExits does the same with runtime.Goexit. Pass: as after a panic.
func refreshExits(t *trial) {
	oldValueSurvives(t, (*creation).exits)
}

func oldValueSurvives(t *trial, end func(*creation)) {
	refresh, d := t.refreshing(config[string, *engine]{})
	end(d.await(2))
	t.settle()
	d.others()
	if kept := t.kept("a"); kept.serial != 1 {
		t.end(fail, "after the failure, a caller gets engine %d", kept.serial)
	}
	d.release()
	again := t.refresh()
	t.join("who refreshes, now or later", refresh, again)
	t.settle()
	if kept := t.kept("a"); kept.serial == 1 {
		t.end(fail, "the next refresh makes no new value")
	}
}

// refreshDeleted deletes a key during its refresh. Pass: the deletion is not
// undone: what the refresh makes, from a source that has changed since, is not
// kept, and the key can be created anew. The former is open in Guava, for
// loads, since 2014; there too, invalidating all keys during a refresh was
// reported to keep them from being loaded ever again.
func refreshDeleted(t *trial) {
	refresh, d := t.refreshing(config[string, *engine]{})
	deletion := t.do(func() { t.cache.delete("a") })
	t.settle()
	d.release()
	t.join("who refreshes, and who deletes", refresh, deletion)
	t.settle()
	if kept := t.kept("a"); kept.serial <= 2 {
		t.end(wrong, "after the deletion, engine %d is there again", kept.serial)
	}
}

// refreshSet sets a value during a refresh. Pass: the value that was set stays:
// it is newer than what the refresh set out to replace.
func refreshSet(t *trial) {
	refresh, d := t.refreshing(config[string, *engine]{})
	given := &engine{key: "a"}
	set := t.do(func() { t.cache.set("a", given) })
	t.settle()
	d.release()
	t.join("who refreshes, and who sets", refresh, set)
	t.settle()
	if kept := t.kept("a"); kept != given {
		t.end(fail, "what the refresh made replaces the value that was set meanwhile")
	}
}

// refreshTold looks what the listener is told that closes values, after a
// refresh. Pass: it is told once of the old value, and not of the new one that
// is in use.
func refreshTold(t *trial) {
	var told told
	refresh, d := t.refreshing(config[string, *engine]{left: told.left})
	d.release()
	t.join("who refreshes", refresh)
	t.settle()
	kept := t.kept("a")
	t.waitFor(func() bool { return len(told.serials()) > 0 })
	t.settle()
	switch got := told.serials(); {
	case slices.Contains(got, kept.serial):
		t.end(wrong, "the listener is told of the value that is kept")
	case len(got) == 0:
		t.end(fail, "the listener is not told of the old value")
	case len(got) > 1:
		t.end(fail, "the listener is told %d times of the old value", len(got))
	}
}

// refreshOrphan deletes the key during such a refresh. Pass: nothing is
// orphaned: what the refresh made is with a caller, in the cache, or told to
// the listener that closes values.
func refreshOrphan(t *trial) {
	var told told
	refresh, d := t.refreshing(config[string, *engine]{left: told.left})
	deletion := t.do(func() { t.cache.delete("a") })
	t.settle()
	d.release()
	t.join("who refreshes, and who deletes", refresh, deletion)
	t.settle()
	kept := t.kept("a")
	if refresh.v != nil && refresh.v.serial == 2 {
		return // its caller has it
	}
	if kept.serial != 2 && !t.waitFor(func() bool { return slices.Contains(told.serials(), 2) }) {
		t.end(fail, "the value that the refresh made is dropped: the listener is not told")
	}
}

// refreshExpired lets the time of a value be over while it is made anew, and asks
// for the key. Pass: there is one creation of the key at a time, because what is
// being made is new enough for whoever asks, who has what the cache keeps.
func refreshExpired(t *trial) {
	refresh, d := t.refreshing(config[string, *engine]{expires: true})
	x := t.cache.(expirer)
	x.expire()
	sweep := t.do(x.sweep)
	t.wait(sweep)
	next := t.askMany(2, "a")
	t.settle()
	n := d.overlap("a")
	d.release()
	t.join("callers", append(next, refresh, sweep)...)
	t.settle()
	if n > 1 {
		t.end(fail, "who asks begins a creation while the refresh makes a value: %d run at a time", n)
	}
	for _, c := range next {
		if c.v == nil || c.v.serial == 1 {
			t.end(wrong, "who asks %v", c)
		}
		if kept := t.kept("a"); c.v != kept {
			t.end(fail, "who asks %v, and the cache keeps engine %d", c, kept.serial)
		}
	}
}

// refreshSame lets a refresh return the very value that is there: a connection
// that is still good. Pass: it stays, and the listener that closes values is not
// told of it.
func refreshSame(t *trial) {
	var told told
	d := t.openWith(config[string, *engine]{refreshes: true, left: told.left})
	first := t.ask("a")
	d.await(1).returns()
	t.join("the first caller", first)
	refresh := t.refresh()
	d.await(2).ends(func() (*engine, error) { return first.v, nil })
	t.join("who refreshes", refresh)
	t.settle()
	d.release()
	if kept := t.kept("a"); kept != first.v {
		t.end(fail, "the value does not stay")
	}
	if len(told.serials()) > 0 {
		t.end(wrong, "the listener is told of the value that is there")
	}
}

// renewalServes has values that are fresh for a time, and usable for eight times as
// long, as an answer that should be five minutes old and may be a day while its
// source is down. It uses one that is due, whose renewal succeeds, and then one whose
// renewal fails. Pass: who uses the value gets the old one at once, while it is
// renewed and when that has failed, and the new one when there is one; when its whole
// time is over, nobody gets it any more.
func renewalServes(t *trial) {
	d := t.openWith(config[string, *engine]{renews: true})
	r := t.cache.(renewer)
	first := t.ask("a")
	d.await(1).returns()
	t.join("the first caller", first)
	gets := func(when string, serial int, callers ...*caller) {
		if !t.wait(callers...) {
			t.end(fail, "who uses the value %s waits", when)
		}
		for _, c := range callers {
			if c.v == nil || c.v.serial != serial {
				t.end(fail, "who uses the value %s %v", when, c)
			}
		}
	}
	user := t.call(func() (*engine, error) { return r.renew("a") })
	renewal := d.await(2)
	gets("while it is renewed", 1, user, t.ask("a"))
	renewal.returns()
	t.settle()
	gets("when it was renewed", 2, t.ask("a"))
	user = t.call(func() (*engine, error) { return r.renew("a") })
	d.await(3).fails(errCreate)
	d.others()
	t.settle()
	gets("when its renewal has failed", 2, user, t.ask("a"))
	t.settle()
	t.cache.(expirer).expire()
	if kept := t.kept("a"); kept.serial <= 2 {
		t.end(wrong, "who asks when the time of the value is over gets it")
	}
}

// renewalHangs lets such a renewal hang, in a function that returns when its context
// ends: a source that does not answer. Pass: when the time of the old value is over,
// who asks for the key gets a new one, and nobody waits for ever for a renewal that
// nobody has asked for.
func renewalHangs(t *trial) {
	d := t.openWith(config[string, *engine]{renews: true})
	d.obedient = true
	r := t.cache.(renewer)
	first := t.ask("a")
	d.await(1).returns()
	t.join("the first caller", first)
	user := t.call(func() (*engine, error) { return r.renew("a") })
	d.await(2)
	t.join("who uses the value", user)
	d.others()
	t.wait(t.do(t.cache.(expirer).expire))
	next := t.ask("a")
	t.join("who asks when the time of the old value is over", next)
	if next.v == nil || next.v.serial == 1 {
		t.end(wrong, "who asks when the time of the old value is over %v", next)
	}
}

// reloadRight refreshes a key by a function that gets the value that is there, and
// finds it still right: a source that answers "not modified". Pass: the function
// gets that value, and it stays.
func reloadRight(t *trial) {
	d := t.openWith(config[string, *engine]{refreshes: true})
	first := t.ask("a")
	d.await(1).returns()
	t.join("the first caller", first)
	var old *engine
	d.others()
	r := t.cache.(reloader)
	refresh := t.call(func() (*engine, error) { return r.reload("a", func(e *engine) { old = e }) })
	t.join("who refreshes", refresh)
	t.settle()
	if old != first.v {
		t.end(fail, "the function does not get the value that is there")
	}
	if kept := t.kept("a"); kept != first.v || refresh.v != first.v {
		t.end(fail, "who refreshes %v, and the cache keeps engine %d", refresh, kept.serial)
	}
}

// told is a listener that remembers what it was told of.
type told struct {
	mu  sync.Mutex
	all []int
}

func (l *told) left(_ string, e *engine) {
	l.mu.Lock()
	l.all = append(l.all, e.serial)
	l.mu.Unlock()
}

// serials returns the serials of the engines that it was told of.
func (l *told) serials() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

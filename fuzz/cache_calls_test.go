package fuzz

import (
	"context"
	"slices"
	"testing/synctest"

	model "github.com/latchfree/latchfree/internal/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

// call begins a call of a kind. How it comes is in two bits: with a context
// that can end, one that cannot, or one that has.
func (r *cacheRun) call(kind cacheKind, makes, comes int, keys ...int) {
	if r.m.CreateTimeout > 0 {
		r.pass() // so that no two calls take too long at one time
	}
	k := &cacheCall{m: r.m, kind: kind, keys: keys, makes: makes}
	k.ctx, k.leave = context.WithCancel(r.t.Context())
	r.calls = append(r.calls, k)
	if !k.refreshes() {
		r.looked(keys...)
	}
	late := comes%4 == 3 && kind != asksPlainly
	switch {
	case late:
		k.leave()
		r.arriveLate(k)
	case comes%4 == 2 || kind == asksPlainly:
		k.ctx, k.stays = context.Background(), true
		fallthrough
	default:
		r.arrive(k)
	}
	go k.run(r.c)
}

// arrive lets k take part in what its keys have.
func (r *cacheRun) arrive(k *cacheCall) {
	var mine []*cachePart
	for i, key := range k.keys {
		if slices.Contains(k.keys[:i], key) {
			continue
		}
		p := &cachePart{key: key}
		k.parts = append(k.parts, p)
		if r.take(k, p, false) {
			mine = append(mine, p)
		}
	}
	r.begin(k, mine)
}

// take lets k take part in what a key has, and reports whether it creates it.
func (r *cacheRun) take(k *cacheCall, p *cachePart, again bool) (creates bool) {
	switch v, there := r.m.All()[p.key]; {
	case k.kind == waits && again:
		p.flight = r.m.Absent()
	case k.kind == waits:
		p.flight = r.m.Look(p.key)
	case k.refreshes() && again && r.m.Renews(p.flight):
		p.flight, creates = r.m.RenewAgain(p.key)
	case again && there && !k.leases() && k.kind != asksForMany: // which does not mark it as used
		p.flight = &model.Flight{Over: true, Value: v}
	case k.refreshes() && !again:
		p.flight, creates = r.m.Renew(p.key)
	default:
		p.flight, creates = r.m.Find(p.key, k.kind == asksPlainly && r.m.Renewal(p.key) == nil)
	}
	p.own, p.lost = nil, false
	if p.flight.Err == errRefused {
		r.saw(k.kind, "the error that is kept")
	}
	if !p.flight.Over && !creates && !r.m.Renews(p.flight) {
		r.joined++
	}
	p.aboard = true
	r.m.Board(p.flight, k.leases())
	p.held = k.leases() && p.flight.Over && p.flight.Err == nil
	return creates
}

// begin begins a function that creates parts of a call, or waits for its turn.
func (r *cacheRun) begin(k *cacheCall, parts []*cachePart) {
	if len(parts) == 0 {
		return
	}
	f := &cacheFunction{call: k}
	for _, p := range parts {
		p.own = f
		f.parts = append(f.parts, &functionPart{key: p.key, flight: p.flight})
	}
	k.waiting = f
	r.waiting = append(r.waiting, f)
	r.turn(f)
}

// turn calls a function if nothing is left for it to wait for: a Refresh of each
// of its keys, one after the other. Those that were called off meanwhile are none
// of its keys any more. It reports whether the function waits no longer.
func (r *cacheRun) turn(f *cacheFunction) (over bool) {
	k := f.call
	for ; f.next < len(f.parts); f.next++ {
		p := f.parts[f.next]
		renews := r.m.Renews(p.flight)
		if p.renewal == nil && !renews {
			if p.renewal = r.m.Renewal(p.key); p.renewal == nil {
				continue
			}
			r.m.Board(p.renewal, false)
			r.saw("a creation", "waits for a renewal")
		}
		if p.dropped = !renews && r.m.CalledOff(p.flight); !p.dropped && !renews && !p.renewal.Over {
			return false
		}
		if !renews && !p.renewal.Over {
			r.m.Leave(p.renewal, false)
		}
	}
	k.waiting = nil
	r.waiting = slices.DeleteFunc(r.waiting, func(other *cacheFunction) bool { return other == f })
	for _, p := range f.parts {
		if p.dropped {
			r.m.Drop(p.flight)
			r.saw("a creation that waits is called off, given a value", p.flight.Given)
		}
	}
	f.parts = slices.DeleteFunc(f.parts, func(p *functionPart) bool { return p.dropped })
	if len(f.parts) == 0 {
		return true
	}
	f.index = len(k.functions)
	k.functions = append(k.functions, f)
	r.open = append(r.open, f)
	if flight := f.parts[0].flight; k.kind == reloads && r.m.Renews(flight) {
		r.m.HoldBase(flight)
	}
	return true
}

// refreshes reports whether the call makes values anew.
func (k *cacheCall) refreshes() bool { return k.kind == refreshes || k.kind == reloads }

// arriveLate is arrive for a call whose context has ended. It gets what is
// there.
func (r *cacheRun) arriveLate(k *cacheCall) {
	k.left, k.values, k.errs = true, map[int]int{}, map[int]error{}
	failure := error(context.Canceled)
	for _, key := range k.keys {
		if k.kind == asksForMany || k.kind == waits || k.refreshes() {
			r.m.Expire(key)
		}
		if k.kind == waits && !r.m.Occupied(key) {
			failure = r.m.Look(key).Err
		}
		if k.refreshes() {
			r.m.OvertakeOther(key)
			continue
		}
		if v, ok := r.m.Get(key); ok {
			k.values[key] = v
			r.m.Board(r.m.Look(key), k.kind == acquires)
		}
	}
	for _, key := range k.keys {
		if _, ok := k.values[key]; !ok {
			k.errs[key] = failure
		}
	}
}

// leave ends the context of one of the callers who wait and can leave.
func (r *cacheRun) leave(n int) {
	waiting := slices.DeleteFunc(slices.Clone(r.calls), func(k *cacheCall) bool { return k.over() || k.stays })
	if len(waiting) == 0 {
		return
	}
	k := waiting[n%len(waiting)]
	for _, p := range k.parts {
		if r.hold(k, p); p.aboard && !p.flight.Over {
			r.m.Leave(p.flight, k.leases())
		}
	}
	k.gather()
	for _, p := range k.parts {
		if !p.flight.Over {
			k.errs[p.key] = context.Canceled
		}
	}
	for _, p := range k.again() { // if the value is there by now, it still gets that
		r.m.Expire(p.key)
		if v, ok := r.m.Get(p.key); ok {
			k.values[p.key] = v
		} else {
			k.errs[p.key] = context.Canceled
		}
	}
	k.left = true
	r.putBack(k)
	k.leave()
}

// end tells the i-th function that runs how to end.
func (r *cacheRun) end(i int, how cacheEnding) {
	f := r.open[i]
	k := f.call
	r.open = slices.Delete(r.open, i, i+1)
	how = how.of(k.kind)
	first := f.parts[0].flight
	if !r.m.Renews(first) || !r.m.Closes {
		if how == same {
			how = endsInValue
		}
	}
	if k.stays {
		k.panics, k.exits = how == endsInPanic, how == endsInGoexit
	}
	if how == same {
		k.begun[f.index].same = r.m.Base(first)
	}
	if k.kind == reloads && r.m.Renews(first) {
		r.m.PutBackBase(first)
	}
	heard := r.finish(f, how)
	if how == endsInPanic && !k.stays && !heard {
		r.unheard = true
	}
	if how == adds {
		r.m.Dispose(k.value(f.index, beyond))
	}
	f.ended = true
	if k.panics || k.exits {
		r.abandon(k, k.parts)
	}
	k.begun[f.index].end <- how
	synctest.Wait()
}

// finish tells the model how a function ends.
func (r *cacheRun) finish(f *cacheFunction, how cacheEnding) (heard bool) {
	var ends []model.Ending
	for i, p := range f.parts {
		e := model.Ending{Flight: p.flight, Value: f.call.value(f.index, p.key), Err: how.failure(), Cut: how.cut()}
		last := i > 0 && i == len(f.parts)-1
		switch {
		case how == same:
			e.Value = r.m.Base(p.flight)
		case how == leavesOut && i == 0, how == speaks && last:
			e.Err = oncecache.ErrNotFound
		case how == speaks && i == 0:
			defer r.m.Dispose(e.Value)
		case how == failsBeside && i > 0, how == speaks:
			e.Err = nil
		}
		if r.m.Renews(p.flight) {
			heard = r.m.FinishRenewal(e)
			r.saw("a renewal replaces", r.m.All()[p.key] == e.Value)
			return heard
		}
		ends = append(ends, e)
	}
	return r.m.Finish(ends...)
}

// settle follows what others have done to calls, until nothing follows from it.
func (r *cacheRun) settle() {
	for more := true; more; {
		more = false
		for _, f := range slices.Clone(r.waiting) {
			more = r.turn(f) || more
		}
		for _, k := range r.calls {
			for _, p := range k.parts {
				if k.left || k.runs() != nil || !p.flight.Over || p.thrown() {
					break
				}
				r.hold(k, p)
			}
		}
		more = r.lookAgain() || more
	}
	for _, k := range r.calls {
		if k.over() {
			r.putBack(k)
		}
	}
}

// hold makes a call one of the users of a value that it has waited for.
func (r *cacheRun) hold(k *cacheCall, p *cachePart) {
	if k.leases() && !k.putBack && !k.left && !k.panics && !k.exits && p.flight.Over && p.flight.Err == nil && !p.held && !p.lost && !r.m.LooksAgain(p.flight) {
		p.held = r.m.Hold(p.flight)
		p.lost = !p.held
	}
}

// putBack ends the leases that a call has of several values until it returns.
func (r *cacheRun) putBack(k *cacheCall) {
	if k.putBack || k.kind != asksForMany {
		return
	}
	k.putBack = true
	for _, p := range k.parts {
		if p.held {
			p.held = false
			r.m.Release(p.flight.Value)
		}
	}
}

// lookAgain lets those look again who must, and ends those that have come to a panic.
// Of several who find a key free, the one whose function was called came first.
func (r *cacheRun) lookAgain() (any bool) {
	looking := slices.DeleteFunc(slices.Clone(r.calls), func(k *cacheCall) bool {
		return k.over() || k.runs() != nil || k.awaits() != nil
	})
	mine := make([][]*cachePart, len(looking))
	for _, first := range []bool{true, false} {
		for i, k := range looking {
			for _, p := range k.again() {
				any = true
				if k.claims(p.key) == first && r.take(k, p, true) {
					mine[i] = append(mine[i], p)
				}
			}
		}
	}
	for i, k := range looking {
		r.begin(k, mine[i])
	}
	for _, k := range r.calls {
		if k.left || k.runs() != nil || k.awaits() != nil {
			continue
		}
		if i := slices.IndexFunc(k.parts, (*cachePart).thrown); i >= 0 {
			r.abandon(k, k.parts[i+1:])
		}
	}
	return any
}

// abandon leaves what a batch still takes part in that ends in a panic, or in
// runtime.Goexit.
func (r *cacheRun) abandon(k *cacheCall, parts []*cachePart) {
	for _, p := range parts {
		if p.aboard && !p.flight.Over {
			r.m.Leave(p.flight, k.leases())
		} else if p.aboard && p.flight.Err == nil && !p.flight.Given && !r.m.LooksAgain(p.flight) {
			p.held = k.leases() // it was counted
		}
		p.aboard = false
	}
}

// claims reports whether the call has called a function for a key of which the
// model does not know yet.
func (k *cacheCall) claims(key int) bool {
	i := len(k.functions)
	return i < len(k.begun) && slices.Contains(k.begun[i].keys, key)
}

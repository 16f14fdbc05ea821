package sequences

import (
	"context"
	"slices"
	"testing/synctest"

	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
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
			r.repeat(k, key)
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

// repeat lets a batch find a key again: it holds the value twice.
func (r *cacheRun) repeat(k *cacheCall, key int) {
	for _, p := range k.parts {
		if p.key == key && p.held {
			r.m.Board(p.flight, true)
			p.twice = true
		}
	}
}

// take lets k take part in what a key has, and reports whether it creates it.
func (r *cacheRun) take(k *cacheCall, p *cachePart, again bool) (creates bool) {
	v, there := r.m.All()[p.key]
	anew := k.refreshes() && (!again || p.anew)
	p.anew = anew && there
	switch {
	case k.kind == waits && again:
		p.flight = r.m.Absent()
	case k.kind == waits:
		p.flight = r.m.Look(p.key)
	case anew:
		p.flight, creates = r.m.Renew(p.key)
	case again && there && !k.leases() && k.kind != asksForMany: // which does not mark it as used
		p.flight = &model.Flight{Over: true, Value: v}
	default:
		p.flight, creates = r.m.Find(p.key, k.kind == asksPlainly)
	}
	p.own, p.lost = nil, false
	if p.flight.Err == errRefused {
		r.saw(k.kind, "the error that is kept")
	}
	if !p.flight.Over && !creates && !p.anew {
		r.joined++
	}
	p.aboard = true
	r.m.Board(p.flight, k.leases())
	p.held = k.leases() && p.flight.Over && p.flight.Err == nil
	return creates
}

// begin begins a function that creates parts of a call.
func (r *cacheRun) begin(k *cacheCall, parts []*cachePart) {
	if len(parts) == 0 {
		return
	}
	f := &cacheFunction{call: k, index: len(k.functions)}
	for _, p := range parts {
		p.own = f
		f.parts = append(f.parts, &functionPart{key: p.key, flight: p.flight})
	}
	k.functions = append(k.functions, f)
	r.open = append(r.open, f)
}

// refreshes reports whether the call makes values anew.
func (k *cacheCall) refreshes() bool { return k.kind == refreshes || k.kind == renews }

// arriveLate is arrive for a call whose context has ended. It gets what is
// there.
func (r *cacheRun) arriveLate(k *cacheCall) {
	k.left, k.values, k.errs = true, map[int]int{}, map[int]error{}
	failure := error(context.Canceled)
	for _, key := range k.keys {
		if k.kind == waits && !r.m.Occupied(key) {
			failure = r.m.Look(key).Err
		}
		if k.refreshes() {
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
	if how == same && (r.m.Base(first) == 0 || !r.m.Closes) {
		how = endsInValue
	}
	if k.stays {
		k.panics, k.exits = how == endsInPanic, how == endsInGoexit
	}
	if how == same {
		k.begun[f.index].same = r.m.Base(first)
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
		ends = append(ends, e)
	}
	heard = r.m.Finish(ends...)
	if p := f.parts[0]; r.m.Base(p.flight) != 0 {
		r.saw("a renewal replaces", r.m.All()[p.key] == ends[0].Value)
	}
	return heard
}

// settle follows what others have done to calls, until nothing follows from it.
func (r *cacheRun) settle() {
	for more := true; more; {
		for _, k := range r.calls {
			for _, p := range k.parts {
				if k.left || k.runs() != nil || !p.flight.Over || p.thrown() {
					break
				}
				r.hold(k, p)
			}
		}
		more = r.lookAgain()
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
			r.m.Release(p.flight.Value)
		}
		if p.held && p.twice {
			r.m.Release(p.flight.Value)
		}
		p.held = false
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

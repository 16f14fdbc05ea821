package fuzz

import (
	"context"
	"slices"
	"testing/synctest"

	"github.com/latchfree/latchfree/fuzz/internal/model"
	"github.com/latchfree/latchfree/oncecache"
)

// call begins a call of a kind. How it comes is in two bits: with a context
// that can end, one that cannot, or one that has.
func (r *cacheRun) call(kind cacheKind, makes, comes int, keys ...int) {
	k := &cacheCall{m: r.m, kind: kind, keys: keys, makes: makes}
	k.ctx, k.leave = context.WithCancel(r.t.Context())
	r.calls = append(r.calls, k)
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
	case k.kind == refreshes && again && r.m.Renews(p.flight):
		p.flight, creates = r.m.RenewAgain(p.key)
	case again && there && k.kind != asksForMany: // which does not mark it as used
		p.flight = &model.Flight{Over: true, Value: v}
	case k.kind == refreshes && !again:
		p.flight, creates = r.m.Renew(p.key)
	default:
		p.flight, creates = r.m.Find(p.key, k.kind == asksPlainly)
	}
	p.own, p.lost = nil, false
	if p.flight.Err == errRefused {
		r.saw(k.kind, "the error that is kept")
	}
	p.aboard = true
	r.m.Board(p.flight, k.kind == acquires)
	if creates && k.kind == acquires && k.stays {
		r.m.Busy(p.flight)
	}
	return creates
}

// begin begins a function that creates parts of a call.
func (r *cacheRun) begin(k *cacheCall, parts []*cachePart) {
	if len(parts) == 0 {
		return
	}
	f := &cacheFunction{call: k, index: len(k.functions), parts: parts}
	for _, p := range parts {
		p.own = f
	}
	k.functions = append(k.functions, f)
	r.open = append(r.open, f)
}

// arriveLate is arrive for a call whose context has ended. It gets what is
// there.
func (r *cacheRun) arriveLate(k *cacheCall) {
	k.left, k.values = true, map[int]int{}
	failure := error(context.Canceled)
	for _, key := range k.keys {
		if k.kind == asksForMany {
			r.m.Expire(key)
		}
		if k.kind == waits && !r.m.Occupied(key) {
			failure = r.m.Look(key).Err
		}
		if k.kind == refreshes {
			continue
		}
		if v, ok := r.m.Get(key); ok {
			k.values[key] = v
			r.m.Board(r.m.Look(key), k.kind == acquires)
		}
	}
	for _, key := range k.keys {
		if _, ok := k.values[key]; !ok {
			k.errs = []error{failure}
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
		if p.aboard && !p.flight.Over {
			r.m.Leave(p.flight, k.kind == acquires)
		}
	}
	k.gather()
	k.errs = append(k.errs, context.Canceled)
	for _, p := range k.again() { // if the value is there by now, it still gets that
		if v, ok := r.m.Get(p.key); ok {
			k.values[p.key] = v
		} else {
			k.errs = []error{context.Canceled}
		}
	}
	k.left = true
	k.leave()
}

// end tells the i-th function that runs how to end.
func (r *cacheRun) end(i int, how cacheEnding) {
	f := r.open[i]
	k := f.call
	r.open = slices.Delete(r.open, i, i+1)
	if how %= manyEndings; k.kind != asksForMany {
		how %= cacheEndings
	}
	if k.stays {
		k.panics, k.exits = how == endsInPanic, how == endsInGoexit
	}
	set := k.kind == acquires && k.stays && f.parts[0].flight.Over && f.parts[0].flight.Err == nil
	heard := r.finish(f, how)
	if set && !how.cut() {
		f.parts[0].lost = !r.m.Hold(f.parts[0].flight)
	}
	if how == endsInPanic && !k.stays && !heard {
		r.unheard = true
	}
	if how == adds {
		r.m.Dispose(k.value(f.index, beyond))
	}
	f.ended = true
	if k.panics || k.exits {
		r.abandon(k.parts)
	}
	k.begun[f.index].end <- how
	synctest.Wait()
}

// finish tells the model how a function ends.
func (r *cacheRun) finish(f *cacheFunction, how cacheEnding) (heard bool) {
	var ends []model.Ending
	for i, p := range f.parts {
		e := model.Ending{Flight: p.flight, Value: f.call.value(f.index, p.key), Err: how.failure(), Cut: how.cut()}
		if how == leavesOut && i == 0 {
			e.Err = oncecache.ErrNotFound
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

// settle lets those look again who must, and ends those that have come to a panic.
// Of several who find a key free, the one whose function was called came first.
func (r *cacheRun) settle() {
	looking := slices.DeleteFunc(slices.Clone(r.calls), func(k *cacheCall) bool {
		return k.over() || k.runs() != nil || k.awaits() != nil
	})
	mine := make([][]*cachePart, len(looking))
	for _, first := range []bool{true, false} {
		for i, k := range looking {
			for _, p := range k.again() {
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
			r.abandon(k.parts[i+1:])
		}
	}
}

// abandon leaves what a batch still takes part in that ends in a panic, or in
// runtime.Goexit.
func (r *cacheRun) abandon(parts []*cachePart) {
	for _, p := range parts {
		if p.aboard && !p.flight.Over {
			r.m.Leave(p.flight, false)
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

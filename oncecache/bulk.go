package oncecache

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/goid"
)

// GetOrCreateMany returns the values of keys. It calls create once with those
// that nobody has and nobody creates, if there are any, keeps what create
// returns for them, and waits for the others. Keys for which create returns no
// value are left out: whoever else waits for them gets [ErrNotFound]. What it
// returns for keys that it was not asked for is dropped, and closed, if there is
// a Config.Close function.
//
// If create fails, by an error, a panic or [runtime.Goexit], that is what each
// of its keys gets, as with [Cache.GetOrCreateContext]. GetOrCreateMany returns
// the values that it has beside the error, which joins the errors of all keys
// without equal ones. When ctx ends, it returns the values that it has, and
// ctx.Err().
//
// Create is called again for keys that it was not asked for if those who created
// them have failed after all their callers had left. A create that itself fails
// with ErrNotFound has left out all keys.
//
// Keys may be repeated. Two calls never wait for each other, whatever keys they
// share: each has called its function before it waits. The context of create is
// that of GetOrCreateContext, and is cancelled when nobody wants any of its
// keys. With a Config.Close function, hold values by [Cache.Acquire].
//
// GetOrCreateMany panics if ctx or create is nil.
//
// GetOrCreateMany is wait-free for each key that has a value, and otherwise
// blocking: it waits for create, for the creations of others or until ctx ends,
// and for the mutex of one bucket at a time. It takes effect for each key as
// GetOrCreateContext does.
func (c *Cache[K, V]) GetOrCreateMany(ctx context.Context, keys []K, create func(context.Context, []K) (map[K]V, error)) (map[K]V, error) {
	if ctx == nil {
		panic("oncecache: nil context")
	}
	if create == nil {
		panic("oncecache: nil create function")
	}
	r := c.shared()
	found := make(map[K]V, len(keys))
	var errs []error
	for left := keys; len(left) > 0; {
		b := &batch[K, V]{root: r, part: partOf(ctx)}
		var asked map[K]bool // the keys of b.places
		for _, k := range left {
			r.storable(k) // panics if k cannot be compared
			if _, ok := found[k]; ok || asked[k] {
				continue // repeated
			}
			e := r.find(k) // LP(GetOrCreateMany): a hit
			if e != nil {
				if v, ok := e.use(); ok {
					found[k] = v
					continue
				}
				e = r.current(e)
			}
			if asked == nil {
				asked, b.places = make(map[K]bool, len(left)), make([]place[K, V], 0, len(left))
			}
			asked[k] = true
			b.places = append(b.places, place[K, V]{key: k, entry: e})
		}
		if len(b.places) == 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		b.claim(c, ctx)
		b.start(ctx, create)
		left = b.gather(ctx, found, &errs)
	}
	if len(errs) == 1 {
		return found, errs[0]
	}
	return found, errors.Join(errs...)
}

// batch is what one call of GetOrCreateMany has to wait for.
type batch[K comparable, V any] struct {
	root   *root[K, V]
	part   *flight // the creation that the caller is part of
	places []place[K, V]
	claims []creation[K, V] // those that the caller creates itself; no element moves once the function is called
	thrown PanicError       // how the function ended, on a goroutine of its own
	spare  map[K]V          // values to be closed that no claim has

	// scope is the context of the create function. Its part stands for the
	// creations of all keys.
	scope scope
	all   flight

	// wanted is the number of claims that nobody has called off, and of the
	// claim that is being made.
	wanted atomics.Int64
}

// place is a key of a batch, and the entry that has its outcome.
type place[K comparable, V any] struct {
	key   K
	entry *entry[K, V] // nil: not yet known
	who   caller
}

// claim finds the entries of all places, and enters those that there are not.
func (b *batch[K, V]) claim(c *Cache[K, V], ctx context.Context) {
	var cancel context.CancelCauseFunc
	b.scope.Context, cancel = atomics.WithCancelCause(context.WithoutCancel(ctx))
	b.scope.part = &b.all
	b.wanted.Store(1)
	b.claims = make([]creation[K, V], 0, len(b.places))
	for i := range b.places {
		at := &b.places[i]
		at.who = caller{ctx: ctx, seat: oneCaller, part: b.part}
		if b.part != nil {
			at.who.key = at.key
		}
		if at.entry != nil {
			at.entry.board(&at.who)
			continue
		}
		both := new(struct {
			phase[K, V]
			share
		})
		p := &both.phase
		both.share = share{wanted: &b.wanted, cancel: cancel}
		p.lead, p.cancel = &b.all, both.share.callOff
		p.aboard.Store(uint64(oneCaller | b.root.extra))
		if ctx.Done() == nil {
			p.by = goid.Token()
		}
		b.wanted.Add(1)
		e, mine := c.enter(b.root, at.key, p)
		if at.entry = e; mine {
			at.who.aboard = &p.flight
			b.claims = append(b.claims, creation[K, V]{root: b.root, key: at.key, entry: e, phase: p})
		} else {
			p.cancel(nil)
			e.board(&at.who)
		}
	}
	if b.wanted.Add(-1) == 0 {
		cancel(nil)
	}
}

// share is what one claim has in the function's context. The last one that is
// called off takes the function with it.
type share struct {
	over   atomics.Bool
	wanted *atomics.Int64 // of the batch
	cancel context.CancelCauseFunc
}

func (s *share) callOff(cause error) {
	if !s.over.Swap(true) && s.wanted.Add(-1) == 0 {
		s.cancel(cause)
	}
}

// start calls the function for the claims, if there are any.
func (b *batch[K, V]) start(ctx context.Context, create func(context.Context, []K) (map[K]V, error)) {
	switch {
	case len(b.claims) == 0:
	case ctx.Done() != nil:
		atomics.Go(func() { b.runAlone(create) })
	default:
		returned := false
		defer func() {
			if !returned {
				b.abandon(b.places)
			}
		}()
		if b.part != nil {
			if d, err := b.part.depend(&b.claims[0].phase.flight, b.claims[0].key, calls); err == nil {
				defer d.end()
			}
		}
		b.run(create)
		returned = true
	}
}

// run is creation.run for all claims together.
func (b *batch[K, V]) run(create func(context.Context, []K) (map[K]V, error)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		thrown := recover()
		if thrown == nil {
			b.end(b.each(ending[V]{err: ErrGoexit, cut: true}))
			return
		}
		b.end(b.each(ending[V]{err: &PanicError{Value: thrown, Stack: debug.Stack()}, cut: true}))
		panic(thrown)
	}()
	ends := b.call(create)
	returned = true
	b.end(ends)
}

// runAlone is creation.runAlone for all claims together.
func (b *batch[K, V]) runAlone(create func(context.Context, []K) (map[K]V, error)) {
	for i := range b.claims {
		b.claims[i].phase.runAlone()
	}
	ends := b.each(ending[V]{err: ErrGoexit, cut: true}) // until create returns
	defer func() {
		if x := recover(); x != nil {
			b.thrown = PanicError{Value: x, Stack: debug.Stack()}
			ends = b.each(ending[V]{err: &b.thrown, cut: true})
			b.root.books.begin(onePending) // Close waits until it is known whether anybody hears of it
			defer b.root.books.finish(onePending)
			if !b.end(ends) {
				b.root.books.note(&b.thrown)
			}
			return
		}
		b.end(ends)
	}()
	ends = b.call(create)
}

// call calls the function, and returns how it ended for each claim.
func (b *batch[K, V]) call(create func(context.Context, []K) (map[K]V, error)) []ending[V] {
	r, keys := b.root, make([]K, len(b.claims))
	for i := range b.claims {
		b.claims[i].watch()
		keys[i] = b.claims[i].key
	}
	made, err := create(&b.scope, keys)
	if err == nil && r.close != nil {
		b.spare = maps.Clone(made) // until it is known how each key ends
	}
	ends := make([]ending[V], len(b.claims))
	for i := range b.claims {
		n := &b.claims[i]
		v, ok := made[n.key]
		if err == nil && !ok {
			ends[i] = r.ending(n.key, v, ErrNotFound)
		} else {
			ends[i] = r.ending(n.key, v, err)
		}
	}
	for i := range b.claims {
		delete(b.spare, b.claims[i].key)
	}
	return ends
}

func (b *batch[K, V]) each(how ending[V]) []ending[V] {
	return slices.Repeat([]ending[V]{how}, len(b.claims))
}

// end settles all claims, and reports whether anybody hears of the outcome of
// one. It runs Close functions after that, and all of them, even if some call
// runtime.Goexit.
func (b *batch[K, V]) end(ends []ending[V]) (heard bool) {
	r := b.root
	var then []func()
	for k, v := range b.spare {
		r.books.begin(onePending)
		then = append(then, func() { r.dispose(k, v) })
	}
	for i := range b.claims {
		n := &b.claims[i]
		r.books.count(ends[i].err, ends[i].cut)
		l := n.conclude(ends[i])
		if heard = heard || l.heard; l.drop || l.stays && r.order != nil {
			then = append(then, func() { n.follow(ends[i].value, l) })
		}
	}
	insist(len(then), func(i int) { then[i]() })
	return heard
}

// insist calls f for 0 to n-1, even if f calls runtime.Goexit.
func insist(n int, f func(i int)) {
	i := 0
	defer func() {
		if i < n {
			insist(n-i-1, func(j int) { f(i + 1 + j) })
		}
	}()
	for ; i < n; i++ {
		f(i)
	}
}

// gather waits for the outcomes. It returns the keys that have to be looked for
// again.
func (b *batch[K, V]) gather(ctx context.Context, found map[K]V, errs *[]error) (again []K) {
	for i := range b.places {
		at := &b.places[i]
		last, _, err := at.entry.outcome(&at.who)
		switch {
		case err == nil:
			found[at.key] = last.value
		case err == errAgain:
			again = append(again, at.key)
		case err == error(&b.thrown):
			b.abandon(b.places[i+1:])
			panic(rethrown{&b.thrown})
		case err == ErrNotFound:
		default:
			err = explain(err, at.key)
			if !slices.ContainsFunc(*errs, func(e error) bool { return errors.Is(e, err) }) {
				*errs = append(*errs, err)
			}
		}
	}
	return again
}

// abandon leaves the flights that the caller is aboard.
func (b *batch[K, V]) abandon(places []place[K, V]) {
	for i := range places {
		if who := &places[i].who; who.aboard != nil {
			who.aboard.leave(who.seat)
		}
	}
}

package sequences

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

var (
	errRefused  = errors.New("connection refused")
	errPanicked = errors.New("disk full")
)

// cacheEnding is how a create function ends.
type cacheEnding byte

const (
	endsInValue cacheEnding = iota
	endsInError
	endsInPanic
	endsInGoexit
	cacheEndings

	leavesOut   = cacheEndings     // the first of several keys
	adds        = cacheEndings + 1 // a key that nobody asked for
	failsBeside = cacheEndings + 2 // in an error, beside values of all keys but the first
	speaks      = cacheEndings + 3 // in an error of the first key, beside values of all but the last
	manyEndings = cacheEndings + 4

	notModified    = manyEndings     // in ErrNotModified
	same           = manyEndings + 1 // in the very value that is there
	refreshEndings = cacheEndings + 2
)

// of returns the ending that a number stands for in a call of a kind.
func (e cacheEnding) of(k cacheKind) cacheEnding {
	switch k {
	case asksForMany:
		return e % manyEndings
	case refreshes, renews:
		if e %= refreshEndings; e >= cacheEndings {
			return notModified + e - cacheEndings
		}
		return e
	}
	return e % cacheEndings
}

// cut tells that the function does not return.
func (e cacheEnding) cut() bool { return e == endsInPanic || e == endsInGoexit }

// cacheKind is by which method a call asks.
type cacheKind byte

const (
	asksPlainly     cacheKind = iota // GetOrCreate
	asksWithContext                  // GetOrCreateContext
	acquires                         // Acquire
	waits                            // Wait
	refreshes                        // Refresh
	asksForMany                      // GetOrCreateMany
	loads                            // Load
	renews                           // Refresh by Config.Create
)

func (k cacheKind) String() string {
	return [...]string{"GetOrCreate", "GetOrCreateContext", "Acquire", "Wait", "Refresh", "GetOrCreateMany", "Load", "Refresh by Create"}[k]
}

// cacheCall is one call that may create, on a goroutine of its own. For most
// there is one key.
type cacheCall struct {
	m     *model.Owner
	kind  cacheKind
	keys  []int
	makes int // a number for its values

	ctx   context.Context
	leave context.CancelFunc
	stays bool // its context cannot end
	left  bool
	seen  bool // it has returned, and was compared

	// What it takes part in, according to the model.
	parts     []*cachePart
	functions []*cacheFunction // that were called
	values    map[int]int      // that it has
	errs      map[int]error    // that it has, by key
	putBack   bool             // it has no leases any more
	given     map[int]int      // by Set, for a batch that had not come to them when the cache was closed
	panics    bool
	exits     bool

	mu    sync.Mutex
	begun []*begunFunction

	// Written by the goroutine, and read after done.
	done     atomic.Bool
	returned bool
	got      map[int]int
	lease    *oncecache.Lease[int, int]
	err      error
	panicked any
}

// cachePart is a call and one of its keys.
type cachePart struct {
	key    int
	flight *model.Flight
	aboard bool           // counted among the flight's callers
	own    *cacheFunction // that creates it; nil: another call's
	anew   bool           // it is a Refresh that has found a value
	held   bool           // the call has a lease of the value
	twice  bool           // the key was asked for twice, when the value was there
	lost   bool           // there is no value any more to hold
}

// cacheFunction is a run of a create function, according to the model.
type cacheFunction struct {
	call  *cacheCall
	index int // in call.begun
	parts []*functionPart
	ended bool
}

// functionPart is a function and one of its keys. Its call may look for another
// flight of the key, when Set has ended this one.
type functionPart struct {
	key    int
	flight *model.Flight
}

// begunFunction is one that was called.
type begunFunction struct {
	keys []int
	old  int              // what it is to make anew; 0: nothing, or it does not know
	end  chan cacheEnding // how it is told to end
	same int              // what it returns then, in place of what it makes; 0: nothing
}

// leases reports whether the call is among the users of its values.
func (k *cacheCall) leases() bool { return k.kind == acquires || k.kind == asksForMany && k.m.Closes }

// value is what a function makes for a key.
func (k *cacheCall) value(function, key int) int { return 1000*k.makes + 10*function + key }

// beyond is a key that nobody asks for.
const beyond = 9

func (k *cacheCall) run(c *oncecache.Cache[int, int]) {
	defer func() {
		k.panicked = recover()
		k.done.Store(true)
	}()
	key := k.keys[0]
	anew := func(_ context.Context, key, old int, exists bool) (int, error) {
		if exists != (old != 0) {
			panic(fmt.Sprintf("Refresh says of %d that it exists: %v", old, exists))
		}
		return k.one(key, old)
	}
	one := func(_ context.Context, key int) (int, error) { return k.one(key, 0) }
	v, found := 0, true
	switch k.kind {
	case asksPlainly:
		v, k.err = c.GetOrCreate(key, func() (int, error) { return k.one(key, 0) })
	case asksWithContext:
		v, k.err = c.GetOrCreateContext(k.ctx, key, one)
	case acquires:
		var l oncecache.Lease[int, int]
		if l, k.err = c.Acquire(k.ctx, key, one); k.err == nil {
			k.lease, v = &l, l.Value()
		}
	case waits:
		v, k.err = c.Wait(k.ctx, key)
	case refreshes:
		v, k.err = c.Refresh(k.ctx, key, anew)
	case asksForMany:
		found = false
		k.got, k.err = c.GetOrCreateMany(k.ctx, k.keys, func(_ context.Context, keys []int) (map[int]int, error) { return k.create(keys, 0) })
	case loads:
		v, k.err = c.Load(context.WithValue(k.ctx, callKey{}, k), key)
	case renews:
		v, k.err = c.Refresh(context.WithValue(k.ctx, callKey{}, k), key, nil)
	}
	if found && (k.err == nil || v != 0) {
		k.got = map[int]int{key: v}
	}
	k.returned = true
}

type callKey struct{}

// createOfCache is Config.Create: it is that of the call whose context it gets.
func createOfCache(ctx context.Context, key int) (int, error) {
	return ctx.Value(callKey{}).(*cacheCall).one(key, 0)
}

// one is create for one key.
func (k *cacheCall) one(key, old int) (int, error) {
	made, err := k.create([]int{key}, old)
	return made[key], err
}

// create is the function. It makes values of those that it also returns beside
// an error.
func (k *cacheCall) create(keys []int, old int) (map[int]int, error) {
	f := &begunFunction{keys: slices.Clone(keys), old: old, end: make(chan cacheEnding)}
	k.mu.Lock()
	index := len(k.begun)
	k.begun = append(k.begun, f)
	k.mu.Unlock()
	how := <-f.end
	switch how {
	case endsInPanic:
		panic(errPanicked)
	case endsInGoexit:
		runtime.Goexit()
	}
	made := map[int]int{}
	for _, key := range keys {
		made[key] = k.value(index, key)
	}
	switch how {
	case endsInError:
		if k.kind == asksForMany {
			return nil, errRefused
		}
	case leavesOut, failsBeside:
		delete(made, keys[0])
	case adds:
		made[beyond] = k.value(index, beyond)
	case speaks:
		if n := len(keys); n > 1 {
			delete(made, keys[n-1])
		}
		return made, fmt.Errorf("some: %w", oncecache.KeyErrors[int]{keys[0]: errRefused})
	case same:
		if f.same != 0 {
			made[keys[0]] = f.same
		}
	}
	return made, how.failure()
}

// runs returns the function that the call runs on its own goroutine, if it does.
func (k *cacheCall) runs() *cacheFunction {
	if n := len(k.functions); n > 0 && k.stays && !k.functions[n-1].ended {
		return k.functions[n-1]
	}
	return nil
}

// failure is what an ending is for those who wait, but that a panic's error
// carries its value.
func (e cacheEnding) failure() error {
	switch e {
	case endsInError, failsBeside, speaks:
		return errRefused
	case notModified:
		return oncecache.ErrNotModified
	case endsInPanic:
		return errPanicked
	case endsInGoexit:
		return oncecache.ErrGoexit
	}
	return nil
}

// over tells that the call must have returned.
func (k *cacheCall) over() bool {
	return k.left || k.panics || k.exits || k.runs() == nil && k.awaits() == nil && (k.thrown() || len(k.again()) == 0)
}

// awaits returns what the call waits for, or nil. It takes one after the other.
func (k *cacheCall) awaits() *cachePart {
	for _, p := range k.parts {
		if k.runs() != nil || p.thrown() {
			return nil
		}
		if !p.flight.Over {
			return p
		}
	}
	return nil
}

// thrown tells that the part has come to a panic of the call's own function.
func (p *cachePart) thrown() bool { return p.own != nil && p.flight.Err == errPanicked }

func (k *cacheCall) thrown() bool { return slices.ContainsFunc(k.parts, (*cachePart).thrown) }

// again returns what the call has to look for again, when it waits for nothing
// else.
func (k *cacheCall) again() (parts []*cachePart) {
	for _, p := range k.parts {
		if p.lost || k.m.LooksAgain(p.flight) {
			parts = append(parts, p)
		}
	}
	return parts
}

// gather takes what has come of the parts that are over, up to a panic of the
// call's own function.
func (k *cacheCall) gather() {
	k.values, k.errs = map[int]int{}, map[int]error{}
	for _, p := range k.parts {
		switch f := p.flight; {
		case !f.Over, p.lost, k.m.LooksAgain(f):
		case f.Err == nil:
			k.values[p.key] = f.Value
		case f.Err == oncecache.ErrNotFound && k.kind == asksForMany:
		case p.thrown():
			k.panics = true
			return
		default:
			k.errs[p.key] = f.Err
		}
	}
}

// checkCall compares a call with what the model says about it by now.
func (r *cacheRun) checkCall(k *cacheCall) {
	t := r.t
	require.Len(t, k.begun, len(k.functions), "functions called by %v of %v", k.kind, k.keys)
	for i, f := range k.functions {
		var want []int
		for _, p := range f.parts {
			want = append(want, p.key)
		}
		require.Equal(t, want, k.begun[i].keys, "keys of the function")
		if k.kind == refreshes {
			require.Equal(t, k.m.Base(f.parts[0].flight), k.begun[i].old, "the old value")
		}
	}
	require.Equal(t, k.over(), k.done.Load(), "%v of %v has returned", k.kind, k.keys)
	if !k.done.Load() || k.seen {
		return
	}
	k.seen = true
	if !k.left {
		k.gather()
	}
	for key, v := range k.given { // which Close may take away, before or after
		if k.errs[key] == oncecache.ErrClosed && k.got[key] == v {
			delete(k.errs, key)
			k.values[key] = v
		}
	}
	r.sawCall(k)
	require.Equal(t, !k.panics && !k.exits, k.returned, "%v of %v returned", k.kind, k.keys)
	switch err, _ := k.panicked.(error); {
	case !k.panics:
		require.Nil(t, k.panicked)
	case k.stays:
		require.Equal(t, errPanicked, k.panicked)
	default:
		require.ErrorIs(t, err, errPanicked)
		require.ErrorAs(t, err, new(*oncecache.PanicError))
	}
	if !k.returned {
		return
	}
	require.Equal(t, len(k.values), len(k.got), "%v of %v: %v, want %v", k.kind, k.keys, k.got, k.values)
	for key, v := range k.values {
		require.Equal(t, v, k.got[key], "%v of %v", k.kind, k.keys)
	}
	require.Equal(t, len(k.errs) > 0, k.err != nil, "%v of %v: %v, want %v", k.kind, k.keys, k.err, k.errs)
	got := oncecache.KeyErrors[int]{k.keys[0]: k.err}
	if k.kind == asksForMany && k.err != nil {
		got = k.err.(oncecache.KeyErrors[int])
		require.Len(t, got, len(k.errs), "%v of %v: %v, want %v", k.kind, k.keys, k.err, k.errs)
	}
	for key, err := range k.errs {
		require.ErrorIs(t, got[key], err, "%v of %v", k.kind, k.keys)
		if err == errPanicked {
			require.ErrorAs(t, got[key], new(*oncecache.PanicError))
		}
	}
	if k.lease != nil {
		r.leases = append(r.leases, k)
	}
}

// made reports whether the value of a key is of the call's own function.
func (k *cacheCall) made(key int) bool {
	for i := range k.functions {
		if k.values[key] == k.value(i, key) {
			return true
		}
	}
	return false
}

// sawCall notes how a call ended.
func (r *cacheRun) sawCall(k *cacheCall) {
	what := []string{}
	switch {
	case k.panics:
		what = append(what, "panics")
	case k.exits:
		what = append(what, "exits")
	}
	for _, key := range slices.Sorted(maps.Keys(k.values)) {
		own := "found"
		if k.made(key) {
			own = "made"
		}
		what = append(what, own)
	}
	for _, err := range k.errs {
		what = append(what, err.Error())
	}
	slices.Sort(what)
	for _, w := range slices.Compact(what) {
		r.saw(k.kind, w)
	}
	if len(k.functions) > 1 {
		r.saw(k.kind, "creates again")
	}
	if len(what) == 0 {
		r.saw(k.kind, "nothing")
	}
}

// saw notes what an operation came to.
func (r *cacheRun) saw(op, outcome any) {
	if r.reached != nil {
		r.reached[fmt.Sprintf("%v = %v", op, outcome)]++
	}
}

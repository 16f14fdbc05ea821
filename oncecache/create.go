package oncecache

import "runtime/debug"

// miss is GetOrCreate for a key without an entry.
func (c *Cache[K, V]) miss(k K, create func() (V, error)) (V, error) {
	r := c.shared()
	if !r.storable(k) {
		return uncached(create)
	}
	e, f := newCreating[V]()
	if now, loaded := r.entries.LoadOrStore(k, e); loaded {
		return now.outcome()
	}
	r.creating.Add(1)
	return r.create(k, e, f, create)
}

// uncached returns the result of create for a key that cannot be found again.
func uncached[V any](create func() (V, error)) (v V, err error) {
	if v, err = create(); err != nil {
		var zero V
		return zero, err
	}
	return v, nil
}

// create calls the function for e, which the caller has put into the table,
// and settles e whichever way the function ends. The function is called here
// and kept nowhere, so that a closure stays on its caller's stack.
func (r *root[K, V]) create(k K, e *entry[V], f *flight[V], create func() (V, error)) (_ V, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		var zero V
		p := recover()
		if p == nil {
			r.settle(k, e, f, zero, ErrGoexit)
			err = ErrGoexit // seen only after panic(nil) with GODEBUG=panicnil=1
			return
		}
		r.settle(k, e, f, zero, &PanicError{Value: p, Stack: debug.Stack()})
		panic(p) // here, where the frames of the first panic are still on the stack
	}()
	v, err := create()
	returned = true
	r.settle(k, e, f, v, err)
	return e.outcome()
}

// settle ends f, the flight made with e. A failed entry leaves the table
// before anyone can learn of the failure, so that whoever knows of it and
// calls again starts anew.
func (r *root[K, V]) settle(k K, e *entry[V], f *flight[V], v V, err error) {
	if err != nil {
		r.entries.CompareAndDelete(k, e) // LP(GetOrCreate): a failure, unless Set or Delete removed e
	}
	left, ended := e.settle(f, v, err)
	if left {
		r.creating.Add(-1)
	}
	if ended {
		f.end()
	}
}

package oncecache

import (
	"context"
	"maps"
	"reflect"
)

// call calls create for the keys that the batch is to create: see calling.
func call[K comparable, V any](b *batch[K], create func(context.Context, []K) (map[K]V, error)) (ends []result) {
	r, keys := b.root, make([]K, len(b.own))
	for i := range b.own {
		keys[i] = b.own[i].entry.key
	}
	made, err := create(&b.createContext, keys)
	var spare map[K]V
	if r.close != nil {
		all := maps.Clone(made) // until it is known how each key ends
		b.loose = func() (free []*entry[K]) {
			for k, v := range all {
				free = append(free, newBoxed(r, k, v))
			}
			return free
		}
		spare = all
	}
	said := answer[K, V]{err: err}
	said.each, said.byKey = keyErrorsIn[K](err)
	maps.DeleteFunc(spare, func(k K, v V) bool { return said.of(k, v, true) != nil && isZero(v) })
	for i := range b.own {
		e := b.own[i].entry
		v, ok := made[e.key] // keys are the function's
		err := said.of(e.key, v, ok)
		var lims limits
		if err == nil {
			*valueOf[V](e) = v
			lims = r.limitsOf(e, false) // if it panics, the value is among those that are spare
			if lims == (limits{}) {
				continue
			}
		} else {
			lims = r.limitsAfter(e, err)
		}
		ends = room(ends, len(b.own))
		ends[i] = result{err: err, limits: lims}
	}
	for i := range b.own {
		if ends == nil || ends[i].err == nil {
			delete(spare, b.own[i].entry.key)
		}
	}
	return ends
}

// room returns ends, or room for n.
func room(ends []result, n int) []result {
	if ends == nil {
		ends = make([]result, n)
	}
	return ends
}

// answer is the error that a function has returned, by key.
type answer[K comparable, V any] struct {
	err   error
	each  KeyErrors[K]
	byKey bool // err is each, or wraps it
}

// of returns the error of k. Ok tells whether there is a value, v.
func (a *answer[K, V]) of(k K, v V, ok bool) error {
	switch {
	case a.byKey && a.each[k] != nil:
		return a.each[k]
	case ok && (a.byKey || a.err == nil || !isZero(v)):
		return nil
	case a.err != nil && !a.byKey:
		return a.err
	}
	return ErrNotFound // nothing
}

func isZero[V any](v V) bool { return reflect.ValueOf(&v).Elem().IsZero() }

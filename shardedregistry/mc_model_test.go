//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"iter"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// registry is what both the implementation and the model can do.
type registry interface {
	Create(string, int) (shardedregistry.Version, error)
	Get(string) (int, bool)
	Lookup(string) (shardedregistry.Entry[string, int], bool)
	Put(string, int) (shardedregistry.Version, error)
	Update(string, func(int) (int, error)) (shardedregistry.Entry[string, int], error)
	UpdateIf(string, shardedregistry.Version, int) (shardedregistry.Version, error)
	Upsert(string, func(int, bool) (int, error)) (shardedregistry.Entry[string, int], error)
	Delete(string) (shardedregistry.Entry[string, int], bool)
	DeleteIf(string, shardedregistry.Version) error
	Entries() iter.Seq[shardedregistry.Entry[string, int]]
	Len() int
}

// simple is what a registry does for one key, for one goroutine.
type simple struct {
	now     shardedregistry.Entry[string, int]
	present bool
	last    shardedregistry.Version
}

func (s *simple) Create(k string, v int) (shardedregistry.Version, error) {
	if s.present {
		return 0, &shardedregistry.ExistsError{Given: k, Stored: k, Version: s.last}
	}
	return s.Put(k, v)
}

func (s *simple) Get(string) (int, bool) { return s.now.Value, s.present }

func (s *simple) Lookup(string) (shardedregistry.Entry[string, int], bool) { return s.now, s.present }

func (s *simple) Put(k string, v int) (shardedregistry.Version, error) {
	s.last++
	s.now, s.present = shardedregistry.Entry[string, int]{Key: k, Value: v, Version: s.last}, true
	return s.last, nil
}

func (s *simple) Update(k string, fn func(int) (int, error)) (none shardedregistry.Entry[string, int], err error) {
	if !s.present {
		return none, shardedregistry.ErrNotFound
	}
	return s.Upsert(k, func(v int, _ bool) (int, error) { return fn(v) })
}

func (s *simple) Upsert(k string, fn func(int, bool) (int, error)) (none shardedregistry.Entry[string, int], err error) {
	v, err := fn(s.now.Value, s.present)
	if err != nil {
		return none, err
	}
	s.Put(k, v)
	return s.now, nil
}

// want returns the error of an operation that wants version.
func (s *simple) want(version shardedregistry.Version) error {
	switch {
	case !s.present:
		return shardedregistry.ErrNotFound
	case s.last != version:
		return &shardedregistry.ConflictError{Have: s.last, Want: version}
	}
	return nil
}

func (s *simple) UpdateIf(k string, version shardedregistry.Version, v int) (shardedregistry.Version, error) {
	if err := s.want(version); err != nil {
		return 0, err
	}
	return s.Put(k, v)
}

func (s *simple) Delete(string) (old shardedregistry.Entry[string, int], ok bool) {
	if !s.present {
		return old, false
	}
	old = s.now
	*s = simple{last: s.last + 1}
	return old, true
}

func (s *simple) DeleteIf(k string, version shardedregistry.Version) error {
	if err := s.want(version); err != nil {
		return err
	}
	s.Delete(k)
	return nil
}

func (s *simple) Entries() iter.Seq[shardedregistry.Entry[string, int]] {
	return func(yield func(shardedregistry.Entry[string, int]) bool) {
		if s.present {
			yield(s.now)
		}
	}
}

func (s *simple) Len() int {
	if s.present {
		return 1
	}
	return 0
}

// call is one operation of a thread, on the key a.
type call = mc.Call[registry]

// results makes one value of what a method returns.
func results(all ...any) any { return all }

var (
	get    = call{Name: "Get", Do: func(r registry) any { return results(r.Get("a")) }}
	lookup = call{Name: "Lookup", Do: func(r registry) any { return results(r.Lookup("a")) }}
	remove = call{Name: "Delete", Do: func(r registry) any { return results(r.Delete("a")) }}
	size   = call{Name: "Len", Do: func(r registry) any { return r.Len() }} // exact only when quiet

	// entries is a Lookup too: there is one key.
	entries = call{Name: "Entries", Do: func(r registry) any {
		for e := range r.Entries() {
			return results(e, true)
		}
		return results(shardedregistry.Entry[string, int]{}, false)
	}}

	// linked counts the cells in the table, none of which may be left behind.
	linked = call{Name: "linked", Do: func(r registry) any {
		if r, ok := r.(*shardedregistry.Registry[string, int]); ok {
			return shardedregistry.Linked(r)
		}
		return r.Len()
	}}
)

func create(v int) call {
	return call{Name: fmt.Sprintf("Create(%d)", v), Do: func(r registry) any { return results(r.Create("a", v)) }}
}

func put(v int) call {
	return call{Name: fmt.Sprintf("Put(%d)", v), Do: func(r registry) any { return results(r.Put("a", v)) }}
}

// update appends a digit to the value, so that the value tells what was done.
func update(digit int) call {
	return call{Name: fmt.Sprintf("Update(%d)", digit), Do: func(r registry) any {
		return results(r.Update("a", func(v int) (int, error) { return 10*v + digit, nil }))
	}}
}

func upsert(digit int) call {
	return call{Name: fmt.Sprintf("Upsert(%d)", digit), Do: func(r registry) any {
		return results(r.Upsert("a", func(v int, _ bool) (int, error) { return 10*v + digit, nil }))
	}}
}

func updateIf(version shardedregistry.Version, v int) call {
	return call{Name: fmt.Sprintf("UpdateIf(%d, %d)", version, v), Do: func(r registry) any {
		return results(r.UpdateIf("a", version, v))
	}}
}

func removeIf(version shardedregistry.Version) call {
	return call{Name: fmt.Sprintf("DeleteIf(%d)", version), Do: func(r registry) any {
		return fmt.Sprint(r.DeleteIf("a", version))
	}}
}

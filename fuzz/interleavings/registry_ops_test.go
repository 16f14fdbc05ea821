//go:build modelcheck

package interleavings

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// registryResult prints what an operation returned, an error with what it
// carries.
func registryResult(v any, err error) any {
	exists, conflict := new(shardedregistry.ExistsError), new(shardedregistry.ConflictError)
	switch {
	case err == nil:
		return v
	case errors.As(err, &exists):
		return fmt.Sprintf("%v: given %v, stored %v, version %d", shardedregistry.ErrExists, exists.Given, exists.Stored, exists.Version)
	case errors.As(err, &conflict):
		return fmt.Sprintf("%v: have %d, want %d", shardedregistry.ErrConflict, conflict.Have, conflict.Want)
	}
	return err
}

// saw remembers the version of a key that the thread has seen last.
func (r *sharedRegistry) saw(c *registryCaller, key int, v version) {
	if v > 0 {
		r.seen[c.Thread][key] = v
	}
}

// last is the version of a key that the thread has seen last, or the prelude.
func (r *sharedRegistry) last(c *registryCaller, key, off int) version {
	return version(max(0, int(cmp.Or(r.seen[c.Thread][key], r.seen[0][key]))+off))
}

// registryWrite is an operation that makes a version. Do is also given the version
// of the key that the thread has seen last. A key that is made anew goes on from
// its own past, or from that of the other key, of which it need not know at once.
func registryWrite(op string, key int, name string, off int, do func(r registryOps, last version) (version, error)) registryOp {
	return registryOp{Name: fmt.Sprintf("%s(%q, seen%+d)", op, name, off), Do: func(c *registryCaller) {
		last, v := c.Real.last(c, key, off), version(0)
		c.Once(op, func() any {
			var err error
			v, err = do(c.Real.registry, last)
			c.Real.saw(c, key, v)
			return registryResult(v, err)
		}, func(s *model.Registry, _ int) any {
			s.Adopt(name, v)
			return registryResult(do(s, last))
		})
	}}
}

func registryCreate(key int, name string, value int) registryOp {
	return registryWrite("Create", key, name, 0, func(r registryOps, _ version) (version, error) {
		return r.Create(name, value)
	})
}

func registryPut(key int, name string, value int) registryOp {
	return registryWrite("Put", key, name, 0, func(r registryOps, _ version) (version, error) {
		return r.Put(name, value)
	})
}

func registryUpdateIf(key int, name string, off, value int) registryOp {
	return registryWrite("UpdateIf", key, name, off, func(r registryOps, last version) (version, error) {
		return r.UpdateIf(name, last, value)
	})
}

func registryDeleteIf(key int, name string, off int) registryOp {
	return registryWrite("DeleteIf", key, name, off, func(r registryOps, last version) (version, error) {
		return 0, r.DeleteIf(name, last)
	})
}

func registryGet(name string) registryOp {
	return registryOp{Name: fmt.Sprintf("Get(%q)", name), Do: func(c *registryCaller) {
		c.Once("Get", func() any { return fmt.Sprint(c.Real.Get(name)) },
			func(s *model.Registry, _ int) any { return fmt.Sprint(s.Get(name)) })
	}}
}

func registryLookup(key int, name string) registryOp {
	return registryOp{Name: fmt.Sprintf("Lookup(%q)", name), Do: func(c *registryCaller) {
		c.Once("Lookup", func() any {
			e, ok := c.Real.Lookup(name)
			c.Real.saw(c, key, e.Version)
			return fmt.Sprint(e, ok)
		}, func(s *model.Registry, _ int) any { return fmt.Sprint(s.Lookup(name)) })
	}}
}

func registryDelete(name string) registryOp {
	return registryOp{Name: fmt.Sprintf("Delete(%q)", name), Do: func(c *registryCaller) {
		c.Once("Delete", func() any { return fmt.Sprint(c.Real.Delete(name)) },
			func(s *model.Registry, _ int) any { return fmt.Sprint(s.Delete(name)) })
	}}
}

// registryDeleteFunc deletes one key whatever it holds, and returns the value that its
// function was given when that was deleted.
func registryDeleteFunc(key int) registryOp {
	return registryOp{Name: fmt.Sprintf("DeleteFunc(%q)", registryKeys[key]), Do: func(c *registryCaller) {
		c.Once("DeleteFunc", func() any {
			last := 0
			n := c.Real.DeleteFunc(func(k string, v int) bool {
				if k != registryKeys[key] {
					return false
				}
				last = v
				return true
			})
			if n == 0 {
				last = 0
			}
			return fmt.Sprint(last, n == 1)
		}, func(s *model.Registry, _ int) any {
			e, ok := s.Delete(registryKeys[key])
			return fmt.Sprint(e.Value, ok)
		})
	}}
}

var (
	// registryLoop takes effect for each key at a moment of its own.
	registryLoop = registryOp{Name: "Entries", Do: func(c *registryCaller) {
		var got [len(registryKeys)]string
		none := registryEntry{}
		from := c.Begin()
		for e := range c.Real.Entries() {
			key := strings.Index(registryKeys[0]+registryKeys[1], e.Key) / len(registryKeys[0])
			got[key] += fmt.Sprint(e, true) // twice is once too often
		}
		to := c.End()
		for key, text := range got {
			text := cmp.Or(text, fmt.Sprint(none, false))
			c.Add(&interleave.Moment[*model.Registry]{Op: "Entries", Got: text, From: from, To: to,
				Explains: func(s *model.Registry, _ int) bool { return fmt.Sprint(s.Lookup(registryKeys[key])) == text }})
		}
	}}
	registryLen = registryOp{Name: "Len", Do: func(c *registryCaller) {
		c.Once("Len", func() any {
			n := c.Real.Len()
			return n >= 0 && n <= len(registryKeys)+len(c.Real.seen)
		}, func(*model.Registry, int) any { return true })
	}}
	// registryQuietLen is for when nobody else is there.
	registryQuietLen = registryOp{Name: "Len", Do: func(c *registryCaller) {
		c.Once("Len", func() any { return c.Real.Len() }, func(s *model.Registry, _ int) any { return s.Len() })
	}}
)

// registrySnap takes effect for all keys at once.
var registrySnap = registryOp{Name: "Snapshot", Do: func(c *registryCaller) {
	c.Once("Snapshot", func() any {
		s := c.Real.Snapshot()
		text := contents(s)
		c.Real.taken[c.Thread] = append(c.Real.taken[c.Thread], takenSnapshot{s, text})
		return text
	}, func(s *model.Registry, _ int) any { return contents(s) })
}}

// contents prints what a snapshot or a model holds.
func contents(s interface {
	Lookup(string) (registryEntry, bool)
	All() iter.Seq2[string, int]
	Len() int
}) string {
	text, n := "", 0
	for _, name := range registryKeys {
		e, ok := s.Lookup(name)
		text += fmt.Sprint(e, ok, " ")
	}
	for range s.All() {
		n++
	}
	return text + fmt.Sprint(n, s.Len())
}

// registrySnapsStay compares all snapshots with what they held when they were
// taken.
var registrySnapsStay = registryOp{Name: "snapshots", Do: func(c *registryCaller) {
	c.Once("snapshots", func() any {
		for _, s := range slices.Concat(c.Real.taken[:]...) {
			if now := contents(s.Snapshot); now != s.then {
				return s.then + " became " + now
			}
		}
		return "unchanged"
	}, func(*model.Registry, int) any { return "unchanged" })
}}

// registryChange is Update, or Compute of a key present or not, with a function that ends in some way, and
// may do another operation before, in its first run or the first three.
func registryChange(key int, name string, id int, upsert bool, how byte, inside func() (registryOp, bool)) registryOp {
	op := "Update"
	if upsert {
		op = "createOrUpdate"
	}
	var inner registryOp
	runsInner := 0
	if how >= 4 && how < 6 {
		if o, ok := inside(); ok {
			inner, runsInner = o, [...]int{1, 3}[how%2]
		}
	}
	fn := func(old int, exists bool) (int, error) {
		switch how {
		case 1:
			return id, errInjected
		case 2:
			panic(errInjected)
		case 3:
			runtime.Goexit()
		}
		if !exists {
			return -id, nil
		}
		return 100*old + id, nil
	}
	change := func(r registryOps, fn func(int, bool) (int, error)) (registryEntry, error) {
		if upsert {
			return adapt.CreateOrUpdate(r, name, fn)
		}
		return r.Update(name, func(old int) (int, error) { return fn(old, true) })
	}
	return registryOp{Name: fmt.Sprintf("%s(%q) %d after %s", op, name, how, cmp.Or(inner.Name, "nothing")), Do: func(c *registryCaller) {
		var e registryEntry
		var err error
		left := false // whether the inner operation has ended the goroutine
		c.Once(op, func() any {
			runs := 0
			e, err = change(c.Real, func(old int, exists bool) (int, error) {
				if runs++; runs <= runsInner {
					left = true
					inner.Do(c)
					left = false
				}
				return fn(old, exists)
			})
			c.Real.saw(c, key, e.Version)
			return registryResult(e, err)
		}, func(s *model.Registry, _ int) any {
			if left {
				return interleave.Exits
			}
			if _, present := s.Get(name); present || upsert {
				switch how {
				case 2:
					return interleave.Panics(errInjected)
				case 3:
					return interleave.Exits
				}
			}
			s.Adopt(name, e.Version)
			return registryResult(change(s, fn))
		})
	}}
}

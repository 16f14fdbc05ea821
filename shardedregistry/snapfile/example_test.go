package snapfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// A service that starts with what it knew.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	type quota struct{ Limit, Used int }
	config := shardedregistry.Config[string, quota]{}
	format := snapfile.Format[string, quota]{} // JSON
	path := filepath.Join(dir, "quotas.snap")

	start := func() *shardedregistry.Registry[string, quota] {
		r, err := snapfile.Load(path, config, format)
		if errors.Is(err, fs.ErrNotExist) { // the first start
			r, err = shardedregistry.New(config)
		}
		if err != nil {
			panic(err)
		}
		return r
	}
	quotas := start()
	quotas.Put("ann", quota{Limit: 10})
	quotas.Update("ann", func(q quota) (quota, error) { q.Used++; return q, nil })
	if err := snapfile.Save(path, quotas, format); err != nil {
		panic(err)
	}

	quotas = start()
	fmt.Println(quotas.Lookup("ann"))
	// Output: {ann {10 1} 2} true
}

func ExampleRead() {
	var r shardedregistry.Registry[string, string]
	r.Put("ann", "admin")
	format := snapfile.Format[string, string]{Keys: snapfile.String[string]{}, Values: snapfile.String[string]{}}
	var file bytes.Buffer
	if err := snapfile.Write(&file, &r, format); err != nil {
		panic(err)
	}
	damaged := bytes.Replace(file.Bytes(), []byte("admin"), []byte("root!"), 1)

	_, err := snapfile.Read(bytes.NewReader(damaged), shardedregistry.Config[string, string]{}, format)
	fmt.Println(err)
	// Output: snapfile: corrupt at byte 32: the checksum does not match
}

// What a version, a Wait and a deadline from before a restart mean.
//
// Versions go on from the file. So after a crash, versions of changes that no file has are given
// again: a Wait for one sleeps until the key has got there anew, and an UpdateIf with one may hit
// another value. The pattern is to begin each run above all versions of the run before: then a Wait
// with an old version returns at once, an old UpdateIf fails, and fencing tokens keep growing.
//
// Deadlines are not in the file: Config.TTL is asked again, so a constant one gives each entity its
// whole time, and what Renew has added is forgotten. The pattern is a value that says when it ends:
// then a deadline is the same in each run, and what ended in between expires at once.
func Example_restart() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "leases.snap")

	type lease struct {
		Owner string
		Ends  time.Time
	}
	config := shardedregistry.Config[string, lease]{
		TTL: func(_ string, l lease) time.Duration { return time.Until(l.Ends) },
	}
	format := snapfile.Format[string, lease]{}
	start := func() *shardedregistry.Registry[string, lease] {
		const run = 1 << 32 // more changes than a key sees between two Saves
		old, err := snapfile.Load(path, config, format)
		if errors.Is(err, fs.ErrNotExist) {
			old, err = shardedregistry.New(config)
		}
		if err != nil {
			panic(err)
		}
		saved := old.Snapshot()
		leases, err := shardedregistry.Restore(config, saved.Last()+run, func(yield func(shardedregistry.Entry[string, lease]) bool) {
			for e := range saved.Entries() {
				e.Version += run
				if !yield(e) {
					return
				}
			}
		})
		if err != nil {
			panic(err)
		}
		if err := snapfile.Save(path, leases, format); err != nil { // before anybody gets a version of this run
			panic(err)
		}
		return leases
	}

	leases := start()
	leases.Put("disk", lease{"ann", time.Now().Add(time.Hour)})
	leases.Put("tape", lease{"bob", time.Now()})
	snapfile.Save(path, leases, format)
	token, _ := leases.Put("disk", lease{"cleo", time.Now().Add(time.Hour)}) // no file has this when the process is killed

	leases = start()
	now, err := leases.Wait(context.Background(), "disk", token) // returns at once
	fmt.Println(now.Value.Owner, now.Version > token, err)
	_, err = leases.UpdateIf("disk", token, lease{})
	fmt.Println("token of before:", errors.Is(err, shardedregistry.ErrConflict))
	fmt.Println("hours left:", time.Until(now.Value.Ends).Round(time.Hour).Hours())
	tape, _ := leases.Lookup("tape")
	if tape.Version != 0 { // else it has expired already
		_, err = leases.Wait(context.Background(), "tape", tape.Version)
		fmt.Println("tape:", err)
	} else {
		fmt.Println("tape:", shardedregistry.ErrNotFound)
	}
	// Output:
	// ann true <nil>
	// token of before: true
	// hours left: 1
	// tape: shardedregistry: key not found
}

// A registry that loses no change whose caller was told that it is done: each is recorded in a
// journal, and a file takes the place of the changes before it. Versions put the records in order,
// so they need not be in order in the journal.
func Example_durable() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, path := context.Background(), filepath.Join(dir, "stock.snap")
	format := snapfile.Format[string, int]{}

	type change struct {
		Key     string
		Value   int
		Version shardedregistry.Version
		Deleted bool
	}
	type store struct {
		registry *shardedregistry.Registry[string, int]
		journal  *journal.Journal[change]
		changes  *cowchangeset.Tracker[change]
		saving   sync.RWMutex // between a change and its record, no file begins
	}

	open := func() *store {
		s := new(store)
		saved, err := snapfile.Load(path, shardedregistry.Config[string, int]{}, format)
		if errors.Is(err, fs.ErrNotExist) {
			saved, err = new(shardedregistry.Registry[string, int]), nil
		}
		if err != nil {
			panic(err)
		}
		if s.journal, err = journal.Open[change](filepath.Join(dir, "stock"), journal.Options{}); err != nil {
			panic(err)
		}
		if s.changes, err = cowchangeset.Resume(ctx, cowchangeset.Config[change]{Store: s.journal, PruneUnapplied: true}); err != nil {
			panic(err)
		}
		if _, open := s.changes.Current(); !open {
			if _, err := s.changes.Start(ctx); err != nil {
				panic(err)
			}
		}

		// Of each key, what has the highest version: an entry of the file, or a change.
		newest, last := map[string]change{}, saved.Snapshot().Last()
		for e := range saved.Entries() {
			newest[e.Key] = change{Key: e.Key, Value: e.Value, Version: e.Version}
		}
		for _, c := range s.changes.Trail().All() {
			last = max(last, c.Version)
			if c.Version > newest[c.Key].Version {
				newest[c.Key] = c
			}
		}
		s.registry, err = shardedregistry.Restore(shardedregistry.Config[string, int]{}, last, func(yield func(shardedregistry.Entry[string, int]) bool) {
			for c := range maps.Values(newest) {
				if !c.Deleted && !yield(shardedregistry.Entry[string, int]{Key: c.Key, Value: c.Value, Version: c.Version}) {
					return
				}
			}
		})
		if err != nil {
			panic(err)
		}
		return s
	}
	put := func(s *store, key string, value int) error {
		s.saving.RLock()
		defer s.saving.RUnlock()
		version, err := s.registry.Put(key, value)
		if err != nil {
			return err
		}
		_, err = s.changes.Record(change{Key: key, Value: value, Version: version})
		return err // nil: the change is on the disk
	}
	remove := func(s *store, key string) error {
		s.saving.RLock()
		defer s.saving.RUnlock()
		was, ok := s.registry.Delete(key)
		if !ok {
			return shardedregistry.ErrNotFound
		}
		_, err := s.changes.Record(change{Key: key, Version: was.Version + 1, Deleted: true})
		return err
	}
	save := func(s *store) error { // now and then
		s.saving.Lock()
		_, err := s.changes.Start(ctx) // what was recorded before is in the file
		s.saving.Unlock()
		if err != nil {
			return err
		}
		if err := snapfile.Save(path, s.registry, format); err != nil {
			return err // and the journal keeps all
		}
		s.changes.Prune(1)
		return s.changes.Flush(ctx)
	}

	s := open()
	fmt.Println(put(s, "apple", 3), put(s, "pear", 2), save(s))
	fmt.Println(put(s, "apple", 7), remove(s, "pear"))
	s.journal.Close() // or the process is killed

	s = open()
	defer s.journal.Close()
	fmt.Println(s.registry.Lookup("apple"))
	version, err := s.registry.Create("pear", 1)
	fmt.Println(version, err) // above that of the deletion
	// Output:
	// <nil> <nil> <nil>
	// <nil> <nil>
	// {apple 7 2} true
	// 3 <nil>
}

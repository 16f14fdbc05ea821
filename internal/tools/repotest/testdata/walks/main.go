// Command walks performs the operation that its argument names. It says when that begins
// and ends, among what the traced functions print.
package main

import (
	"context"
	"iter"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
)

func walk(operation func()) {
	os.Stdout.WriteString("begin\n")
	operation()
	os.Stdout.WriteString("end\n")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	map[string]func(){
		"Get":            get,
		"Update":         update,
		"Create":         create,
		"Delete":         remove,
		"UpdateWithMost": updateWithMost,
		"Trip":           trip,
		"Hit":            hit,
		"Miss":           miss,
		"Record":         record,
		"RecordStored":   recordStored,
		"Start":          start,
		"Seal":           seal,
	}[os.Args[1]]()
}

func increment(v int) (int, error) { return v + 1, nil }

func get() {
	var r shardedregistry.Registry[string, int]
	r.Create("k", 1)
	walk(func() { r.Get("k") })
}

func create() {
	var r shardedregistry.Registry[string, int]
	r.Create("other", 1)
	walk(func() {
		_, err := r.Create("k", 1)
		must(err)
	})
}

func remove() {
	var r shardedregistry.Registry[string, int]
	r.Create("k", 1)
	walk(func() { r.Delete("k") })
}

func update() {
	var r shardedregistry.Registry[string, int]
	r.Create("k", 1)
	walk(func() { r.Update("k", increment) })
}

func updateWithMost() {
	index := func(string, int) []string { return []string{"all"} }
	unique := func(k string, v int) []string { return []string{k + strconv.Itoa(v)} }
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		Normalize:     func(k string) (string, error) { return strings.ToLower(k), nil },
		Check:         func(string, int) error { return nil },
		Indexes:       map[string]func(string, int) []string{"all": index},
		UniqueIndexes: map[string]func(string, int) []string{"one": unique},
		History:       1024,
	})
	r.Create("k", 1)
	changed, stop := iter.Pull2(r.WatchFrom(context.Background(), 0))
	defer stop()
	quit, ended := make(chan bool), make(chan bool)
	go func() { // until the loop has begun, and has a change
		defer close(ended)
		for {
			select {
			case <-quit:
				return
			default:
				r.Update("k", increment)
			}
		}
	}()
	for seen := false; !seen; {
		_, _, seen = changed()
	}
	close(quit)
	<-ended
	walk(func() { r.Update("K", increment) })
}

func trip() {
	g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2)}})
	g.RecordFailure("k")
	p, err := g.Allow("k")
	must(err)
	walk(func() {
		if p.Failure() != atomicbreaker.Tripped {
			panic("the key has not tripped")
		}
	})
}

func absent() (int, error) { panic("the key is there, or being created") }

func hit() {
	var c oncecache.Cache[string, int]
	c.Set("k", 1)
	walk(func() { c.GetOrCreate("k", absent) })
}

func miss() {
	var c oncecache.Cache[string, int]
	c.Set("other", 1)
	walk(func() {
		joined := make(chan bool)
		c.GetOrCreate("k", func() (int, error) {
			go join(&c, joined)
			for !parked("main.join(") {
				runtime.Gosched()
			}
			return 1, nil
		})
		<-joined
	})
}

func join(c *oncecache.Cache[string, int], joined chan bool) {
	defer close(joined)
	c.GetOrCreate("k", absent)
}

// parked reports whether the goroutine that runs a function waits.
func parked(function string) bool {
	stacks := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, function) {
			head, _, _ := strings.Cut(stack, "\n")
			return strings.Contains(head, "[chan receive") || strings.Contains(head, "[select")
		}
	}
	return false
}

// store is a Store that keeps nothing.
type store struct{}

func (store) Start(context.Context, cowchangeset.Header) error                { return nil }
func (store) Append(context.Context, string, []cowchangeset.Entry[int]) error { return nil }
func (store) Seal(context.Context, string, cowchangeset.Manifest) error       { return nil }
func (store) Abort(context.Context, string, string) error                     { return nil }

func record() {
	var tracker cowchangeset.Tracker[int]
	_, err := tracker.Start(context.Background())
	must(err)
	_, err = tracker.Record(1) // which makes a chunk
	must(err)
	walk(func() {
		_, err := tracker.Record(1)
		must(err)
	})
}

func start() {
	var tracker cowchangeset.Tracker[int]
	_, err := tracker.Start(context.Background())
	must(err)
	walk(func() {
		_, err := tracker.Start(context.Background())
		must(err)
	})
}

func seal() {
	var tracker cowchangeset.Tracker[int]
	c, err := tracker.Start(context.Background())
	must(err)
	_, err = tracker.Record(1)
	must(err)
	walk(func() {
		_, err := c.Seal(context.Background())
		must(err)
	})
}

func recordStored() {
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{Store: store{}})
	_, err := tracker.Start(context.Background())
	must(err)
	walk(func() {
		_, err := tracker.Record(1)
		must(err)
	})
}

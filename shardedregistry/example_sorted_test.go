//go:build !modelcheck

package shardedregistry_test

import (
	"cmp"
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleSorted() {
	var ports shardedregistry.Registry[int, string]
	for port, name := range map[int]string{22: "ssh", 80: "http", 443: "https", 8080: "proxy"} {
		ports.Put(port, name)
	}
	sorted := shardedregistry.Sorted(ports.Snapshot())
	for port, name := range sorted.Range(80, 8080).All() { // from 80, before 8080
		fmt.Println(port, name)
	}
	for last := range sorted.Backward() {
		fmt.Println("the last is", last.Key)
		break
	}
	// Output:
	// 80 http
	// 443 https
	// the last is 8080
}

func ExampleSortedPrefix() {
	var files shardedregistry.Registry[string, int]
	for name, size := range map[string]int{"a.go": 1, "a/x.go": 2, "a/y.go": 3, "ab.go": 4} {
		files.Put(name, size)
	}
	for name := range shardedregistry.SortedPrefix(shardedregistry.Sorted(files.Snapshot()), "a/").All() {
		fmt.Println(name)
	}
	// Output:
	// a/x.go
	// a/y.go
}

// The two best of a game, and how many have at least 50 points.
func ExampleSortedFunc() {
	var points shardedregistry.Registry[string, int]
	for name, n := range map[string]int{"ann": 70, "bob": 30, "eve": 90, "joe": 50} {
		points.Put(name, n)
	}
	best := shardedregistry.SortedFunc(points.Snapshot(), func(a, b shardedregistry.Entry[string, int]) int {
		return cmp.Compare(b.Value, a.Value)
	})
	for name, n := range best.Slice(0, 2).All() {
		fmt.Println(name, n)
	}
	fmt.Println(best.Search(func(e shardedregistry.Entry[string, int]) bool { return e.Value < 50 }))
	// Output:
	// eve 90
	// ann 70
	// 3
}

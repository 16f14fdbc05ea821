//go:build !modelcheck

package table_test

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/table"
)

// Find finds what Load finds: in the first slot that has its tag, in another, in a
// second bucket, nowhere, and while the set is resized. Of 4,000 keys, with 8 chains
// and 128 tags, each case has many.
func TestLinesFind(t *testing.T) {
	keys := table.NewKeys[string]()
	p := newParts(keys.Hash)
	check := func(from, to int) (found int) {
		t.Helper()
		for i := from; i < to; i++ {
			k := fmt.Sprint(i)
			e, _ := p.Find(&keys, k)
			if e != p.load(k) || e != nil && e.key != k {
				t.Fatalf("Find(%s) = %v, and Load finds %v", k, e, p.load(k))
			}
			if e != nil {
				found++
			}
		}
		return found
	}
	release := p.Hold(0) // this chain does not move, so that the others get long
	const n = 4000
	for i := 0; i < n; i++ {
		if keys.Hash(fmt.Sprint(i))%8 == 0 {
			continue // it would wait for that chain
		}
		p.add(p.new(fmt.Sprint(i), i))
		if i%500 == 0 {
			if found := check(0, n); found != p.Len() {
				t.Fatalf("Find finds %d of %d", found, p.Len())
			}
		}
	}
	if !p.Resizing() {
		t.Error("no chain stays where it was")
	}
	release()
	for i := range n { // the set grows to its size
		p.add(p.new(fmt.Sprint(i), i))
	}
	if found := check(0, 2*n); found != n || p.Resizing() {
		t.Errorf("Find finds %d of %d, resizing: %v", found, n, p.Resizing())
	}
}

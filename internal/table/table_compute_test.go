//go:build !modelcheck

package table_test

import (
	"fmt"
	"testing"
	"time"
)

// All waits for a Compute that is in its function when it starts, and yields what that
// inserts: xsync calls the function, and stores what it returns, under the mutex of the
// bucket that Range takes.
func TestAllWaitsForComputes(t *testing.T) {
	for _, size := range []int{0, 100} { // of one bucket, and of some
		tab := newTable()
		for k := range size {
			tab.Swap(fmt.Sprint(k), &cell{})
		}
		inside, goOn := make(chan struct{}), make(chan struct{})
		go tab.Compute("comes", func(*cell) *cell {
			close(inside)
			<-goOn
			return &cell{}
		})
		<-inside
		found := make(chan bool)
		go func() {
			seen := false
			for k := range tab.All() {
				seen = seen || k == "comes"
			}
			found <- seen
		}()
		select {
		case <-found:
			t.Fatal("All has not waited")
		case <-time.After(50 * time.Millisecond):
		}
		close(goOn)
		if !<-found {
			t.Error("All has missed what was inserted")
		}
	}
}

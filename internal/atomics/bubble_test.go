//go:build !modelcheck

package atomics_test

import (
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/internal/atomics"
)

// All goroutines of a bubble are in the same, and those of another are not.
func TestBubble(t *testing.T) {
	seen := map[uint64]bool{}
	for range 3 {
		if n := atomics.Bubble(); n != 0 {
			t.Errorf("bubble %d outside", n)
		}
		synctest.Test(t, func(t *testing.T) {
			n := atomics.Bubble()
			if n == 0 || n == 1<<64-1 || seen[n] {
				t.Errorf("bubble %d, after %v", n, seen)
			}
			seen[n] = true
			go func() {
				if other := atomics.Bubble(); other != n {
					t.Errorf("bubble %d, want %d", other, n)
				}
			}()
			synctest.Wait()
		})
	}
}

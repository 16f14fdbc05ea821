//go:build !modelcheck

package oncecache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSortTexts(t *testing.T) {
	for n := range 200 {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprint(rand.IntN(n))
		}
		want := slices.Sorted(slices.Values(texts))
		if sortTexts(texts); !slices.Equal(texts, want) {
			t.Fatalf("got %q, want %q", texts, want)
		}
	}
}

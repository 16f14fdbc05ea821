package scenes

import (
	"fmt"
	"testing"
)

func TestPairwise(t *testing.T) {
	levels := []int{2, 5, 3, 1, 4}
	rows := Pairwise(levels)
	if len(rows) > 30 {
		t.Errorf("%d rows for %v", len(rows), levels)
	}
	for s := range levels {
		for u := range s {
			met := map[[2]int]bool{}
			for _, row := range rows {
				met[[2]int{row[s], row[u]}] = true
			}
			if len(met) != levels[s]*levels[u] {
				t.Errorf("%d pairs of levels of settings %d and %d, want %d", len(met), s, u, levels[s]*levels[u])
			}
		}
	}
}

func TestAlone(t *testing.T) {
	got := fmt.Sprint(Alone([]int{2, 1, 3}))
	if want := "[[0 0 0] [1 0 0] [0 0 1] [0 0 2]]"; got != want {
		t.Errorf("Alone = %s, want %s", got, want)
	}
}

func TestStride(t *testing.T) {
	for _, n := range []int{1, 2, 7, 100, 9973} {
		seen, stride := map[int]bool{}, Stride(n)
		for i := range n {
			seen[i*stride%n] = true
		}
		if len(seen) != n {
			t.Errorf("multiples of %d reach %d of %d", stride, len(seen), n)
		}
	}
}

//go:build modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// Values that weigh what they are come, replace each other, are refreshed, go, and are too
// heavy: at rest the weight is the sum of what is there, and within the bound; each value is
// told once.
func TestProtocolsOfWeights(t *testing.T) {
	type threads = []func(*bureau)
	set := func(k, v int) func(*bureau) { return func(b *bureau) { b.set(k, v) } }
	create := func(k, v int) func(*bureau) { return func(b *bureau) { b.create(k, v) } }
	refresh := func(k, v int) func(*bureau) { return func(b *bureau) { b.refresh(k, v) } }
	deletes := func(b *bureau) { b.delete(1) }
	for _, tt := range []struct {
		name    string
		explore extent
		threads threads
	}{
		{"Set(2, 5) ∥ Delete(1)", everything, threads{set(2, 5), deletes}},
		{"Set(2, 5) ∥ Set(1, 4)", twice, threads{set(2, 5), set(1, 4)}},
		{"Set(2, 5) ∥ Delete(1) ∥ Set(1, 4)", twice, threads{set(2, 5), deletes, set(1, 4)}},
		{"Refresh(1, 4) ∥ Set(2, 5)", twice, threads{refresh(1, 4), set(2, 5)}},
		{"heavy Set(1, 7) ∥ GetOrCreate(1, 2)", everything, threads{set(1, 7), create(1, 2)}},
		{"heavy Set(1, 7) ∥ Delete(1) ∥ GetOrCreate(1, 2)", twice, threads{set(1, 7), deletes, create(1, 2)}},
		{"heavy GetOrCreate(2, 7) ∥ GetOrCreate(2, 5)", everything, threads{create(2, 7), create(2, 5)}},
		{"heavy GetOrCreate(2, 7) ∥ Set(2, 5)", everything, threads{create(2, 7), set(2, 5)}},
		{"heavy GetOrCreate(2, 7) ∥ Acquire(2, 5)", everything, threads{create(2, 7), func(b *bureau) { b.hold(2, 5, false) }}},
		{"heavy Refresh(1, 7) ∥ Set(1, 5)", twice, threads{refresh(1, 7), set(1, 5)}},
		{"heavy Set(1, 7) ∥ Close", twice, threads{set(1, 7), func(b *bureau) { _ = b.c.Close(context.Background()) }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.explore.of(fmt.Sprint("MaxWeight is 6: ", tt.name)), func(m *mc.M) {
				b := listen(m, oncecache.Config[int, int]{MaxWeight: 6, Weight: func(_, v int) int64 { return int64(v) }})
				b.set(1, 3)
				for _, f := range tt.threads {
					m.Go(func() { f(b) })
				}
				m.Final(func() {
					sum := int64(0)
					for _, v := range b.c.All() {
						sum += int64(v)
					}
					if got := b.c.Stats().Weight; got != sum || sum > 6 {
						m.Failf("weight %d, the values weigh %d", got, sum)
					}
					b.over(oncecache.ReasonEvicted, oncecache.ReasonDiscarded, oncecache.ReasonReplaced)
				})
			})
		})
	}
}

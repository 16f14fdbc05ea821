//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// BenchmarkDurableRecord is one entry, recorded when an fsync has returned: by a
// tracker whose recorders share the journal's fsyncs, and by a mutex around a
// write and an fsync for each entry.
func BenchmarkDurableRecord(b *testing.B) {
	for _, recorders := range []int{1, 8, 64} {
		name := fmt.Sprintf("recorders=%d/impl=", recorders)
		share := func(b *testing.B, record func(e string) error) {
			var all sync.WaitGroup
			b.ResetTimer()
			for g := range recorders {
				all.Go(func() {
					for i := g; i < b.N; i += recorders {
						if err := record(fmt.Sprint("entry ", i)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
		}
		b.Run(name+"mutex", func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			var mu sync.Mutex
			share(b, func(e string) error {
				mu.Lock()
				defer mu.Unlock()
				if _, err := fmt.Fprintf(f, "{%q}\n", e); err != nil {
					return err
				}
				return f.Sync()
			})
		})
		b.Run(name+"latchfree", func(b *testing.B) {
			j, err := journal.Open[string](filepath.Join(b.TempDir(), "journal"), journal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			tracker := cowchangeset.MustNew(cowchangeset.Config[string]{Store: j})
			if _, err := tracker.Start(context.Background()); err != nil {
				b.Fatal(err)
			}
			share(b, func(e string) error { _, err := tracker.Record(e); return err })
		})
	}
}

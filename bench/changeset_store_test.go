package bench

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

// durably records an entry and returns when an fsync has.
type durably interface {
	record(e string) error
	Close() error
}

// journaled is a tracker whose recorders share the fsyncs of a journal.
type journaled struct {
	*cowchangeset.Tracker[string]
	*journal.Journal[string]
}

func newJournaled(path string) (durably, error) {
	j, err := journal.Open[string](path, journal.Options{})
	if err != nil {
		return nil, err
	}
	t := cowchangeset.MustNew(cowchangeset.Config[string]{Store: j})
	_, err = t.Start(context.Background())
	return journaled{t, j}, err
}

func (t journaled) record(e string) error {
	_, err := t.Record(e)
	return err
}

// fsynced is a file and a mutex around a write and an fsync for each entry.
type fsynced struct {
	mu sync.Mutex
	*os.File
}

func newFsynced(path string) (durably, error) {
	f, err := os.Create(path)
	return &fsynced{File: f}, err
}

func (f *fsynced) record(e string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := fmt.Fprintf(f.File, "{%q}\n", e); err != nil {
		return err
	}
	return f.Sync()
}

// One operation is one Record of an entry that survives a crash of the machine.
func BenchmarkTrackerRecordDurable(b *testing.B) {
	for _, recorders := range []int{1, 8, 64} {
		for _, impl := range []struct {
			impl string
			make func(path string) (durably, error)
		}{{"latchfree", newJournaled}, {"mutex", newFsynced}} {
			b.Run(fmt.Sprintf("recorders=%d/impl=%s", recorders, impl.impl), func(b *testing.B) {
				d, err := impl.make(filepath.Join(b.TempDir(), "entries"))
				if err != nil {
					b.Fatal(err)
				}
				defer d.Close()
				b.ReportAllocs()
				b.ResetTimer()
				var all sync.WaitGroup
				for g := range recorders {
					all.Go(func() {
						for i := g; i < b.N; i += recorders {
							if err := d.record(fmt.Sprint("entry ", i)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				b.StopTimer()
			})
		}
	}
}

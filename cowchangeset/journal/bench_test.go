package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// change is what a service might record.
type change struct {
	Resource string
	Op       string
	Before   map[string]string
	After    map[string]string
}

func changes(seq uint64, n int) []cowchangeset.Entry[change] {
	all := make([]cowchangeset.Entry[change], n)
	for i := range all {
		s := seq + uint64(i)
		all[i] = cowchangeset.Entry[change]{Seq: s, Value: change{
			Resource: fmt.Sprintf("services/checkout/replicas/%d", s), Op: "update",
			Before: map[string]string{"image": "registry/checkout:1.41", "size": "2"},
			After:  map[string]string{"image": "registry/checkout:1.42", "size": "4"},
		}}
	}
	return all
}

// counting counts the fsyncs of a file.
type counting struct {
	*os.File
	syncs atomic.Int64
}

func (c *counting) Sync() error {
	c.syncs.Add(1)
	return c.File.Sync()
}

// bench returns a journal with so many changesets, called 1 and so on.
func bench(b *testing.B, o journal.Options, changesets int) (*journal.Journal[change], *counting) {
	file, err := os.Create(filepath.Join(b.TempDir(), "changes.journal"))
	must(b, err)
	c := &counting{File: file}
	j, err := journal.OpenOn[change](c, 0, o)
	must(b, err)
	b.Cleanup(func() { must(b, j.Close()) })
	previous := ""
	for i := range changesets {
		id := fmt.Sprint(i + 1)
		must(b, j.Start(background, header{ID: id, Ordinal: uint64(i + 1), Previous: previous}))
		previous = id
	}
	c.syncs.Store(0)
	return j, c
}

// An Append of one goroutine.
func BenchmarkJournalAppend(b *testing.B) {
	for _, policy := range []journal.SyncPolicy{journal.SyncAlways, journal.SyncNever} {
		for _, n := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("sync=%v/entries=%d/impl=journal", policy, n), func(b *testing.B) {
				j, _ := bench(b, journal.Options{Sync: policy}, 1)
				all, seq := changes(0, n), uint64(0)
				b.ReportAllocs()
				for b.Loop() {
					for i := range all {
						all[i].Seq = seq
						seq++
					}
					must(b, j.Append(background, "1", all))
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
			})
		}
	}
}

// 64 goroutines append one entry each, again and again, to changesets of their
// own: as groups come about, and, for comparison, one at a time.
func BenchmarkJournalAppendTogether(b *testing.B) {
	const goroutines = 64
	for _, impl := range []string{"group", "each"} {
		b.Run("sync=SyncAlways/goroutines=64/impl="+impl, func(b *testing.B) {
			j, c := bench(b, journal.Options{}, goroutines)
			var turn sync.Mutex
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for g := range goroutines {
				wg.Go(func() {
					id, one := fmt.Sprint(g+1), changes(0, 1)
					for ; left.Add(-1) >= 0; one[0].Seq++ {
						if impl == "each" {
							turn.Lock()
						}
						err := j.Append(background, id, one)
						if impl == "each" {
							turn.Unlock()
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(c.syncs.Load())/float64(b.N), "fsyncs/op")
		})
	}
}

// Opening a file reads and checks all of it.
func BenchmarkJournalOpen(b *testing.B) {
	j, c := bench(b, journal.Options{Sync: journal.SyncNever}, 1)
	for i := range 1000 {
		must(b, j.Append(background, "1", changes(uint64(i*10), 10)))
	}
	info, err := c.Stat()
	must(b, err)
	b.Run("entries=10000/impl=journal", func(b *testing.B) {
		b.SetBytes(info.Size())
		b.ReportAllocs()
		for b.Loop() {
			_, err := journal.OpenOn[change](&counting{File: c.File}, info.Size(), journal.Options{Sync: journal.SyncNever})
			must(b, err)
		}
	})
}

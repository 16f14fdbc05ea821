package journal_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
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

// counting is a folder that counts the fsyncs of its files.
type counting struct {
	folder.Folder
	path  string
	syncs atomic.Int64
}

type countingFile struct {
	folder.File
	of *counting
}

func (f countingFile) Sync() error {
	f.of.syncs.Add(1)
	return f.File.Sync()
}

func (c *counting) Create(name, like string) (folder.File, error) {
	f, err := c.Folder.Create(name, like)
	return countingFile{f, c}, err
}

func (c *counting) Edit(name string) (folder.File, error) {
	f, err := c.Folder.Edit(name)
	return countingFile{f, c}, err
}

func (c *counting) Check(name string, f folder.File, size int64) error {
	return c.Folder.Check(name, f.(countingFile).File, size)
}

// bench returns a journal with so many changesets, called 1 and so on.
func bench(b *testing.B, o journal.Options, changesets int) (*journal.Journal[change], *counting) {
	path := b.TempDir()
	c := &counting{Folder: folder.Directory{Path: path}, path: path}
	j, err := journaltest.Open[change](c, o)
	must(b, err)
	b.Cleanup(func() { j.Close() })
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
			var serial sync.Mutex
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for g := range goroutines {
				wg.Go(func() {
					id, one := fmt.Sprint(g+1), changes(0, 1)
					for ; left.Add(-1) >= 0; one[0].Seq++ {
						if impl == "each" {
							serial.Lock()
						}
						err := j.Append(background, id, one)
						if impl == "each" {
							serial.Unlock()
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

// 64 goroutines record into one changeset of a tracker: as rounds come about, and, for
// comparison, one at a time.
func BenchmarkJournalRecordTogether(b *testing.B) {
	const goroutines = 64
	for _, impl := range []string{"group", "each"} {
		b.Run("sync=SyncAlways/goroutines=64/impl="+impl, func(b *testing.B) {
			j, err := journal.Open[row](filepath.Join(b.TempDir(), "changes"), journal.Options{})
			must(b, err)
			defer j.Close()
			tracker := cowchangeset.MustNew(cowchangeset.Config[row]{Store: j})
			_, err = tracker.Start(background)
			must(b, err)
			var serial sync.Mutex
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for range goroutines {
				wg.Go(func() {
					for n := left.Add(-1); n >= 0; n = left.Add(-1) {
						if impl == "each" {
							serial.Lock()
						}
						_, err := tracker.Record(row{"users", "insert", "user-00012345", int(n)})
						if impl == "each" {
							serial.Unlock()
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// Opening a file reads and checks all of it.
func BenchmarkJournalOpen(b *testing.B) {
	j, c := bench(b, journal.Options{Sync: journal.SyncNever}, 1)
	for i := range 1000 {
		must(b, j.Append(background, "1", changes(uint64(i*10), 10)))
	}
	must(b, j.Close())
	report, err := reader.Verify(c.path, journal.Anchor{})
	must(b, err)
	b.Run("entries=10000/impl=journal", func(b *testing.B) {
		b.SetBytes(report.Bytes)
		b.ReportAllocs()
		for b.Loop() {
			j, err := journaltest.Open[change](c, journal.Options{Sync: journal.SyncNever})
			must(b, err)
			must(b, j.Close())
		}
	})
}

// Opening a journal and resuming a tracker from it: of one changeset that is open, and of
// many of which ten are neither applied nor aborted. The memory is what Go has from the
// system at the end: so run one of them at a time.
func BenchmarkJournalResume(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 10_000_000} {
		for _, each := range []int{n, 100} {
			for _, line := range []int{1, 64} {
				b.Run(fmt.Sprintf("entries=%d/changesets=%d/line=%d/impl=journal", n, n/each, line), func(b *testing.B) {
					path := filepath.Join(b.TempDir(), "changes")
					resumable(b, path, n, each, line)
					report, err := reader.Verify(path, journal.Anchor{})
					must(b, err)
					runtime.GC()
					b.ResetTimer()
					b.SetBytes(report.Bytes)
					for range b.N {
						j, err := journal.Open[row](path, journal.Options{})
						must(b, err)
						t, err := cowchangeset.Resume(background, cowchangeset.Config[row]{Store: j})
						must(b, err)
						if t.Trail().Len() < n {
							b.Fatal(t.Trail().Len())
						}
						must(b, j.Close())
					}
					b.StopTimer()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					b.ReportMetric(float64(m.Sys)/float64(report.Bytes), "memory/bytes")
					b.ReportMetric(float64(report.Bytes)/float64(n), "bytes/entry")
				})
			}
		}
	}
}

// resumable makes a journal of n entries, so many in each changeset and in a line. The last
// changeset is open; of those before, every tenth part has one that is sealed and not
// applied.
func resumable(b *testing.B, path string, n, each, line int) {
	j, err := journal.Open[row](path, journal.Options{Sync: journal.SyncNever})
	must(b, err)
	all := make([]cowchangeset.Entry[row], line)
	previous := ""
	for first := 0; first < n; first += each {
		ordinal := uint64(first/each + 1)
		id := fmt.Sprintf("01J9Z3NDEKTSV4RRFF%08d", ordinal)
		must(b, j.Start(background, header{ID: id, Ordinal: ordinal, Previous: previous}))
		seq := 0
		for ; seq < each; seq += len(all) {
			all = all[:min(line, each-seq)]
			for i := range all {
				all[i] = cowchangeset.Entry[row]{Seq: uint64(seq + i), Value: row{"users", "insert", fmt.Sprintf("user-%08d", first+seq+i), first + seq + i}}
			}
			must(b, j.Append(background, id, all))
		}
		all, previous = all[:line], id
		if first+each < n {
			must(b, j.Seal(background, id, cowchangeset.Manifest{Len: each, Last: uint64(each - 1)}))
			if live := max(1, n/each/10); ordinal%uint64(live) > 0 {
				must(b, j.Applied(background, id, cowchangeset.AllApplied))
			}
		}
	}
	must(b, j.Close())
}

// row is a small change.
type row struct {
	Table, Op, Key string
	Row            int
}

// What was pruned costs nothing: a journal that has had so many entries and keeps the
// last thousand.
func BenchmarkJournalOpenPruned(b *testing.B) {
	for _, ever := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("ever=%d/kept=1000/impl=journal", ever), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "changes")
			o := journal.Options{Sync: journal.SyncNever, SegmentSize: 64 << 10}
			j, err := journal.Open[change](path, o)
			must(b, err)
			previous := ""
			for n := range uint64(ever / 100) {
				id := fmt.Sprint(n)
				must(b, j.Start(background, header{ID: id, Ordinal: n + 1, Previous: previous}))
				must(b, j.Append(background, id, changes(0, 100)))
				must(b, j.Seal(background, id, cowchangeset.Manifest{Len: 100, Last: 99}))
				must(b, j.Applied(background, id, cowchangeset.AllApplied))
				must(b, j.Prune(background, max(10, n+1)-9))
				previous = id
			}
			must(b, j.Close())
			b.ResetTimer()
			for range b.N {
				j, err := journal.Open[change](path, o)
				must(b, err)
				must(b, j.Close())
			}
		})
	}
}

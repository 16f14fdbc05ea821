package bench

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/cowchangeset"
)

// change is an entry of an audit trail.
type change struct {
	resource  string
	actor, op uint32
}

// changes returns distinct entries, as many as the streams have keys.
func changes() []change {
	names := load.Names(1 << 12)
	all := make([]change, len(names))
	for i, name := range names {
		all[i] = change{resource: name, actor: uint32(i), op: uint32(i % 7)}
	}
	return all
}

// recorder is what both trackers can do.
type recorder interface {
	start()
	Record(change) (cowchangeset.Receipt, error)
	RecordBatch([]change) (cowchangeset.Receipt, error)
	cut() (int, iter.Seq2[uint64, change])
}

type latchfreeTracker struct {
	cowchangeset.Tracker[change]
}

func (t *latchfreeTracker) start() {
	if _, err := t.Start(context.Background()); err != nil {
		panic(err)
	}
}

func (t *latchfreeTracker) cut() (int, iter.Seq2[uint64, change]) {
	c, _ := t.Current()
	return c.Len(), c.Entries()
}

type mutexTracker struct {
	locked.Tracker[change]
}

func (t *mutexTracker) start() { t.Start() }

func (t *mutexTracker) cut() (int, iter.Seq2[uint64, change]) {
	c := t.Current()
	return c.Len(), c.Entries()
}

var recorders = []struct {
	impl string
	make func() recorder
}{
	{"latchfree", func() recorder { return new(latchfreeTracker) }},
	{"mutex", func() recorder { return new(mutexTracker) }},
}

// retained bounds what one tracker holds, so that b.N does not decide how much
// the garbage collector has to mark: the next tracker takes over after about
// this many entries, for every implementation alike.
const retained = 100_000

// relay is the tracker in use.
type relay struct{ now atomic.Pointer[recorder] }

func (r *relay) renew(make func() recorder) {
	next := make()
	next.start()
	r.now.Store(&next)
}

// after starts a changeset after each perSet entries of one, and a tracker
// after retained entries.
func (r *relay) after(receipt cowchangeset.Receipt, k, perSet int, make func() recorder) {
	if n := receipt.Seq + uint64(k); receipt.Seq/uint64(perSet) == n/uint64(perSet) {
		return
	}
	if receipt.Ordinal*uint64(perSet) >= retained {
		r.renew(make)
	} else {
		(*r.now.Load()).start()
	}
}

// record is the loop of one goroutine.
func (r *relay) record(b *testing.B, pb *testing.PB, s load.Stream, all []change, perSet int, make func() recorder) {
	for pb.Next() {
		i, _ := s.Next()
		receipt, err := (*r.now.Load()).Record(all[i])
		if err != nil {
			b.Error(err)
			return
		}
		r.after(receipt, 1, perSet, make)
	}
}

// One operation is one Record.
func BenchmarkTrackerRecord(b *testing.B) {
	all := changes()
	for _, perSet := range []int{1_000, 100_000} {
		for _, impl := range recorders {
			b.Run(fmt.Sprintf("perset=%d/impl=%s", perSet, impl.impl), func(b *testing.B) {
				streams := load.Uniform(len(all), 100)
				var r relay
				r.renew(impl.make)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					r.record(b, pb, streams.Stream(), all, perSet, impl.make)
				})
			})
		}
	}
}

// One operation is one RecordBatch.
func BenchmarkTrackerRecordBatch(b *testing.B) {
	all := changes()
	for _, k := range []int{10, 100} {
		for _, impl := range recorders {
			b.Run(fmt.Sprintf("batch=%d/impl=%s", k, impl.impl), func(b *testing.B) {
				streams := load.Uniform(len(all)-k, 100)
				var r relay
				r.renew(impl.make)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					s := streams.Stream()
					for pb.Next() {
						i, _ := s.Next()
						receipt, err := (*r.now.Load()).RecordBatch(all[i : i+k])
						if err != nil {
							b.Error(err)
							return
						}
						r.after(receipt, k, retained, impl.make)
					}
				})
			})
		}
	}
}

// One operation is one Record, while one more goroutine keeps counting the
// entries of the latest changeset.
func BenchmarkTrackerRecordDuringCuts(b *testing.B) {
	all := changes()
	for _, impl := range recorders {
		b.Run("impl="+impl.impl, func(b *testing.B) {
			streams := load.Uniform(len(all), 100)
			var r relay
			r.renew(impl.make)
			stop := make(chan struct{})
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
						(*r.now.Load()).cut()
					}
				}
			}()
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				r.record(b, pb, streams.Stream(), all, 10_000, impl.make)
			})
			b.StopTimer()
			close(stop)
			<-stopped
		})
	}
}

// One operation is one Start of a changeset, which nobody records to. The next
// tracker takes over after some thousand of them.
func BenchmarkTrackerStart(b *testing.B) {
	const perTracker = 5_000
	for _, impl := range recorders {
		b.Run("impl="+impl.impl, func(b *testing.B) {
			var r relay
			r.renew(impl.make)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 1; pb.Next(); i++ {
					if i%perTracker == 0 {
						r.renew(impl.make) // which starts one too
					} else {
						(*r.now.Load()).start()
					}
				}
			})
		})
	}
}

// One operation is one entry seen by a loop over a changeset of 10,000.
func BenchmarkChangesetIterate(b *testing.B) {
	all := changes()
	for _, impl := range recorders {
		b.Run("entries=10000/impl="+impl.impl, func(b *testing.B) {
			r := impl.make()
			r.start()
			for i := range 10_000 {
				if _, err := r.Record(all[i%len(all)]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				more := pb.Next()
				for more {
					_, entries := r.cut()
					for _, e := range entries {
						if e.resource == "" {
							b.Error("an empty entry")
						}
						if more = pb.Next(); !more {
							break
						}
					}
				}
			})
		})
	}
}

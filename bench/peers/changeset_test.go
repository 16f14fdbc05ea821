package peers

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/cowchangeset"
)

// change is an entry of an audit trail.
type change struct {
	resource  string
	actor, op uint32
}

// changes returns distinct entries.
func changes() []change {
	names := load.Names(1 << 12)
	all := make([]change, len(names))
	for i, name := range names {
		all[i] = change{resource: name, actor: uint32(i), op: uint32(i % 7)}
	}
	return all
}

// recorder is a tracker: its receipts say which changeset took the entry.
type recorder interface {
	start()
	Record(change) (cowchangeset.Receipt, error)
}

type latchfreeTracker struct{ cowchangeset.Tracker[change] }

func (t *latchfreeTracker) start() {
	if _, err := t.Start(context.Background()); err != nil {
		panic(err)
	}
}

type mutexTracker struct{ locked.Tracker[change] }

func (t *mutexTracker) start() { t.Start() }

var recorders = []struct {
	impl   string
	make   func() recorder
	maxSet int // entries of a changeset beyond which one record would take milliseconds; 0 means none
}{
	{"mutex", func() recorder { return new(mutexTracker) }, 0},
	{"cow", func() recorder { return new(cowTracker[change]) }, 1_000},
	{"latchfree", func() recorder { return new(latchfreeTracker) }, 0},
}

// retained bounds what one tracker holds, so that b.N does not decide how much
// the garbage collector has to mark: the next one takes over after about this
// many entries, for every implementation alike.
const retained = 100_000

// trackerLoop records into one tracker after the other, which hold changesets
// of perSet entries.
func trackerLoop(b *testing.B, all []change, perSet int, make func() recorder) func(*testing.PB) {
	started := func() *recorder {
		t := make()
		t.start()
		return &t
	}
	streams := load.Uniform(len(all), 100)
	var now atomic.Pointer[recorder]
	now.Store(started())
	return func(pb *testing.PB) {
		for stream := streams.Stream(); pb.Next(); {
			i, _ := stream.Next()
			receipt, err := (*now.Load()).Record(all[i])
			switch {
			case err != nil:
				b.Error(err)
				return
			case (receipt.Seq+1)%uint64(perSet) != 0:
			case receipt.Ordinal*uint64(perSet) >= retained:
				now.Store(started())
			default:
				(*now.Load()).start()
			}
		}
	}
}

// sink is a queue used as a place to record to. It has no changesets.
type sink interface {
	record(change)
	take() (change, bool)
}

// ring is a sink of which leases are handed out: places for leaseSize entries,
// so that whoever fills it knows when to go on to the next.
type ring struct {
	sink
	leased atomic.Int64
	next   atomic.Pointer[ring]
}

const (
	ringSize  = 1 << 17 // a power of two, because xsync/v4 rounds up to one
	leaseSize = 1 << 10
)

// lease takes a lease of r, and reports whether there was one left. Whoever
// takes the middle one makes the next ring, so that nobody waits for it.
func (r *ring) lease(make func(size int) sink) bool {
	n := r.leased.Add(leaseSize)
	if n == ringSize/2 {
		r.next.Store(&ring{sink: make(ringSize)})
	}
	return n <= ringSize
}

// keepLoop records into one ring after the other until it is full. Nothing is
// taken out.
func keepLoop(all []change, make func(size int) sink) func(*testing.PB) {
	streams := load.Uniform(len(all), 100)
	var now atomic.Pointer[ring]
	now.Store(&ring{sink: make(ringSize)})
	return func(pb *testing.PB) {
		var own *ring
		left := 0
		for stream := streams.Stream(); pb.Next(); left-- {
			i, _ := stream.Next()
			for left == 0 {
				own = now.Load()
				if own.lease(make) {
					left = leaseSize
				} else if next := own.next.Load(); next != nil {
					now.CompareAndSwap(own, next)
				} else {
					runtime.Gosched()
				}
			}
			own.record(all[i])
		}
	}
}

// passLoop records into one small ring, and takes out again as many entries as
// it put in, a batch at a time, as the consumer of a queue would.
func passLoop(b *testing.B, all []change, make func(size int) sink) func(*testing.PB) {
	const batch = 64
	streams := load.Uniform(len(all), 100)
	ring := make(2 * batch * runtime.GOMAXPROCS(0))
	return func(pb *testing.PB) {
		n := 0
		for stream := streams.Stream(); pb.Next(); {
			i, _ := stream.Next()
			ring.record(all[i])
			if n++; n < batch {
				continue
			}
			for n > 0 {
				e, ok := ring.take()
				if !ok {
					runtime.Gosched() // another consumer won
				} else if n--; e.resource == "" {
					b.Error("an entry that nobody recorded")
					return
				}
			}
		}
	}
}

func xsync3Sink(size int) sink { return newXsync3Queue[change](size) }
func xsync4Sink(size int) sink { return newXsync4Queue[change](size) }

// rings lists what takes entries and has no changesets.
var rings = []struct {
	impl string
	loop func(b *testing.B, all []change) func(*testing.PB)
}{
	{"xsync3keep", func(_ *testing.B, all []change) func(*testing.PB) { return keepLoop(all, xsync3Sink) }},
	{"xsync4keep", func(_ *testing.B, all []change) func(*testing.PB) { return keepLoop(all, xsync4Sink) }},
	{"xsync3pass", func(b *testing.B, all []change) func(*testing.PB) { return passLoop(b, all, xsync3Sink) }},
	{"xsync4pass", func(b *testing.B, all []change) func(*testing.PB) { return passLoop(b, all, xsync4Sink) }},
}

// BenchmarkTrackerRecord records entries. The rings keep them like a tracker
// with one changeset, or pass them on; neither says where an entry went.
func BenchmarkTrackerRecord(b *testing.B) {
	all := changes()
	run := func(perSet int, impl string, start func(b *testing.B) func(*testing.PB)) {
		b.Run(fmt.Sprintf("perset=%d/impl=%s", perSet, impl), func(b *testing.B) {
			loop := start(b)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(loop)
		})
	}
	for _, perSet := range []int{1_000, retained} {
		for _, r := range recorders {
			if r.maxSet == 0 || perSet <= r.maxSet {
				run(perSet, r.impl, func(b *testing.B) func(*testing.PB) { return trackerLoop(b, all, perSet, r.make) })
			}
		}
	}
	for _, r := range rings {
		run(retained, r.impl, func(b *testing.B) func(*testing.PB) { return r.loop(b, all) })
	}
}

// TestTrackers checks that entries go where the receipts say, in order.
func TestTrackers(t *testing.T) {
	for _, impl := range recorders {
		t.Run(impl.impl, func(t *testing.T) {
			r := impl.make()
			_, err := r.Record(change{})
			require.ErrorIs(t, err, cowchangeset.ErrNoActive)
			ids := map[string]bool{}
			for ordinal := range uint64(3) {
				r.start()
				for seq := range uint64(10) {
					receipt, err := r.Record(change{op: uint32(seq)})
					require.NoError(t, err)
					assert.Equal(t, ordinal+1, receipt.Ordinal)
					assert.Equal(t, seq, receipt.Seq)
					ids[receipt.ChangesetID] = true
				}
			}
			assert.Len(t, ids, 3)
		})
	}
}

func TestTrackersLoseNoEntry(t *testing.T) {
	const workers, each = 4, 500
	for _, impl := range recorders {
		t.Run(impl.impl, func(t *testing.T) {
			r := impl.make()
			r.start()
			var seqs [workers][]uint64
			together(workers, func(worker int) {
				for range each {
					receipt, err := r.Record(change{op: uint32(worker)})
					if err != nil {
						t.Error(err)
					}
					seqs[worker] = append(seqs[worker], receipt.Seq)
				}
			})
			all := slices.Sorted(slices.Values(slices.Concat(seqs[:]...)))
			require.Len(t, all, workers*each)
			for i, seq := range all {
				require.EqualValues(t, i, seq)
			}
		})
	}
}

// Every entry that went into a queue comes out once.
func TestSinksLoseNoEntry(t *testing.T) {
	const workers, each = 4, 500
	for name, q := range map[string]sink{"xsync3": xsync3Sink(workers * each), "xsync4": xsync4Sink(workers * each)} {
		t.Run(name, func(t *testing.T) {
			together(workers, func(worker int) {
				for i := range each {
					q.record(change{actor: uint32(worker), op: uint32(i)})
				}
			})
			seen := map[change]bool{}
			for {
				e, ok := q.take()
				if !ok {
					break
				}
				seen[e] = true
			}
			assert.Len(t, seen, workers*each)
		})
	}
}

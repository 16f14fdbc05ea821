//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

// recorder is what threads do to a tracker. Changesets are named by their
// ordinals and entries are distinct digits; 0 means that there is none.
type recorder interface {
	record(es ...int) int // where to
	pinned(e int) bool    // into the first changeset
	start() int
	startAfter(ordinal int) bool // which is 0 or 1
	seal() []int                 // the first changeset
	entries() []int              // of the first changeset
	size() int                   // of the first changeset
	sealed() bool                // the first changeset
	notified() bool              // its channel is closed
	current() (ordinal int, open bool)
	ids() int
	trail() map[int][]int
	audit() error // of what the model cannot say
}

type call = mc.Call[recorder]

func record(es ...int) call {
	return call{Name: fmt.Sprint("record", es), Do: func(r recorder) any { return r.record(es...) }}
}

func pinned(e int) call {
	return call{Name: fmt.Sprintf("pinned(%d)", e), Do: func(r recorder) any { return r.pinned(e) }}
}

func startAfter(ordinal int) call {
	return call{Name: fmt.Sprintf("startAfter(%d)", ordinal), Do: func(r recorder) any { return r.startAfter(ordinal) }}
}

var (
	starts   = call{Name: "start", Do: func(r recorder) any { return r.start() }}
	seal     = call{Name: "seal", Do: func(r recorder) any { return r.seal() }}
	entries  = call{Name: "entries", Do: func(r recorder) any { return r.entries() }}
	size     = call{Name: "size", Do: func(r recorder) any { return r.size() }}
	notified = call{Name: "told", Do: func(r recorder) any { return r.notified() }}
	sealed   = call{Name: "sealed", Do: func(r recorder) any { return r.sealed() }}
	current  = call{Name: "current", Do: func(r recorder) any { o, open := r.current(); return fmt.Sprint(o, " ", open) }}
	ids      = call{Name: "ids", Do: func(r recorder) any { return r.ids() }}
	trail    = call{Name: "trail", Do: func(r recorder) any { return r.trail() }}
	audit    = call{Name: "audit", Do: func(r recorder) any { return r.audit() }}
)

// ours is a tracker and what its users remember.
type ours struct {
	tracker  *cowchangeset.Tracker[int]
	first    *cowchangeset.Changeset[int]
	receipts [10]cowchangeset.Receipt // by entry
}

// none returns a tracker without changesets.
func none() *ours {
	return &ours{tracker: cowchangeset.MustNew(cowchangeset.Config[int]{NewID: func(context.Context) (string, error) { return "id", nil }})}
}

// withOne returns a tracker with one changeset, which has its first chunk, and whose
// seal somebody waits for.
func withOne() recorder {
	o := withNew().(*ours)
	o.first.Ready()
	o.first.Sealed()
	return o
}

// withNew returns a tracker with one changeset, as it is after its Start.
func withNew() recorder {
	o := none()
	o.first, _ = o.tracker.Start(context.Background())
	return o
}

func (o *ours) record(es ...int) int {
	var r cowchangeset.Receipt
	var err error
	if len(es) == 1 {
		r, err = o.tracker.Record(es[0])
	} else {
		r, err = o.tracker.RecordBatch(es)
	}
	if err != nil {
		if !errors.Is(err, cowchangeset.ErrNoActive) || errors.Is(err, cowchangeset.ErrSealed) != (err != cowchangeset.ErrNoActive) {
			panic(err)
		}
		return 0
	}
	for _, e := range es {
		o.receipts[e] = r
		r.Seq++
	}
	return int(r.Ordinal)
}

func (o *ours) pinned(e int) bool {
	r, err := o.first.Record(e)
	if err != nil {
		return false
	}
	o.receipts[e] = r
	return true
}

func (o *ours) start() int {
	c, err := o.tracker.Start(context.Background())
	if err != nil {
		panic(err)
	}
	return int(c.Ordinal())
}

func (o *ours) startAfter(ordinal int) bool {
	prev := o.first
	if ordinal == 0 {
		prev = nil
	}
	c, err := o.tracker.StartAfter(context.Background(), prev)
	if (err != nil) != (err == cowchangeset.ErrConflict) || err == nil && c.Previous() != prev {
		panic(err)
	}
	return err == nil
}

func (o *ours) seal() []int {
	f, err := o.first.Seal(context.Background())
	again, _ := o.first.Seal(context.Background())
	if err != nil || f != again || f.Len() != len(collect(f.All())) {
		panic("two Finals")
	}
	return collect(f.All())
}

func (o *ours) entries() []int { return collect(o.first.Entries()) }

func (o *ours) size() int { return o.first.Len() }

// Receiving from the channel would be no step, and thus be tried at one moment
// only.
func (o *ours) sealed() bool {
	o.first.Sealed()
	return o.first.Fired()
}

func (o *ours) notified() bool { return o.first.Fired() }

func (o *ours) current() (int, bool) {
	c, open := o.tracker.Current()
	if c == nil {
		return 0, open
	}
	return int(c.Ordinal()), open
}

func (o *ours) ids() int { return len(o.tracker.IDs()) }

func (o *ours) trail() map[int][]int {
	sets := map[int][]int{}
	t := o.tracker.Trail()
	n := 0
	for r, e := range t.All() {
		sets[int(r.Ordinal)] = append(sets[int(r.Ordinal)], e)
		n++
	}
	if n != t.Len() {
		panic("a trail of the wrong length")
	}
	return sets
}

// audit compares the trail with the receipts, and looks for entries left where
// nobody reads them.
func (o *ours) audit() error {
	for c, _ := o.tracker.Current(); c != nil; c = c.Previous() {
		if es := c.Remains(); slices.ContainsFunc(es, func(e int) bool { return e != 0 }) {
			return fmt.Errorf("a killed writer left %v", es)
		}
	}
	left := o.receipts
	for r, e := range o.tracker.Trail().All() {
		if left[e] != r {
			return fmt.Errorf("%d is at %v, and its receipt says %v", e, r, o.receipts[e])
		}
		left[e] = cowchangeset.Receipt{}
	}
	if left != [10]cowchangeset.Receipt{} {
		return fmt.Errorf("receipts without entries: %v", left)
	}
	return nil
}

// collect returns the values of entries, whose keys must increase.
func collect[E any](entries iter.Seq2[uint64, E]) []E {
	es := []E{}
	next := uint64(0)
	for seq, e := range entries {
		if seq < next {
			panic("out of order")
		}
		next = seq + 1
		es = append(es, e)
	}
	return es
}

// modelled is the model of a tracker, for one goroutine.
type modelled struct{ model.Tracker }

// modelOfNone returns the model of what none returns.
func modelOfNone() recorder { return new(modelled) }

// modelWithOne returns the model of what withOne returns.
func modelWithOne() recorder {
	m := new(modelled)
	m.Start("")
	return m
}

func (m *modelled) record(es ...int) int {
	c := m.Active()
	if _, ok := c.Record(es...); !ok {
		return 0
	}
	return c.Ordinal
}

func (m *modelled) pinned(e int) bool {
	_, ok := m.Sets[0].Record(e)
	return ok
}

func (m *modelled) start() int { return m.Start("").Ordinal }

func (m *modelled) startAfter(ordinal int) bool { return m.StartAfter(ordinal, "") != nil }

func (m *modelled) seal() []int { return m.Sets[0].Seal() }

func (m *modelled) entries() []int { return m.Sets[0].Entries }

func (m *modelled) size() int { return len(m.Sets[0].Entries) }

func (m *modelled) sealed() bool { return m.Sets[0].Sealed }

func (m *modelled) notified() bool { return m.sealed() }

func (m *modelled) current() (int, bool) { return len(m.Sets), m.Active() != nil }

func (m *modelled) ids() int { return len(m.IDs()) }

func (m *modelled) trail() map[int][]int { return m.Trail() }

func (m *modelled) audit() error { return nil }

package oncecache

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// lookups counts the look-ups of a cache with Config.RecordStats, split by processors. It
// is nil in others, whose hits write nothing.
type lookups struct{ stripes []lookupStripe }

// lookupStripe is one cell of lookups, on a cache line of its own.
type lookupStripe struct {
	hits, misses, joined atomics.Gauge
	_                    [atomics.CacheLineSize - 3*8]byte
}

func newLookups() *lookups { return &lookups{make([]lookupStripe, atomics.Stripes())} }

func (l *lookups) stripe() *lookupStripe { return &l.stripes[atomics.Stripe(len(l.stripes))] }

// counted counts a look-up that has found e, which may be nil.
func (r *root[K]) counted(e *entry[K]) *entry[K] {
	if l := r.lookups; l != nil {
		if s := l.stripe(); e.has() {
			s.hits.Add(1)
		} else {
			s.misses.Add(1)
		}
	}
	return e
}

// joins counts a caller that is about to wait for e, if that is being created.
func (r *root[K]) joins(e *entry[K]) {
	if l := r.lookups; l != nil && e.state.Load().creating() {
		l.stripe().joined.Add(1)
	}
}

// sum adds the counts of all stripes to s.
func (l *lookups) sum(s *Stats) {
	if l == nil {
		return
	}
	for i := range l.stripes {
		of := &l.stripes[i]
		s.Hits += uint64(of.hits.Load())
		s.Misses += uint64(of.misses.Load())
		s.Joined += uint64(of.joined.Load())
	}
}

// recorder records how long create functions take, for Config.RecordStats and
// Config.OnCreate.
type recorder[K comparable] struct {
	onCreate func(K, time.Duration, error) // nil: there is none
}

// recording is a recorder. It is an interface, and the names of its methods are their own,
// so that only New brings one into a program.
type recording[K comparable] interface {
	took(r *root[K], since time.Duration) time.Duration
	recordOne(r *root[K], e *entry[K], took time.Duration, err error)
	recordMany(r *root[K], own []creation[K], ends []result, took time.Duration)
}

// took returns how long a creation has taken whose function has ended. If there is a
// listener, Close waits until it has been told.
func (c *recorder[K]) took(r *root[K], since time.Duration) time.Duration {
	if p := c.pending(); p != 0 {
		r.accounting.begin(p)
	}
	return r.now() - since
}

func (c *recorder[K]) pending() tally {
	if c.onCreate == nil {
		return 0
	}
	return onePending
}

// recordOne records the creation of e.
func (c *recorder[K]) recordOne(r *root[K], e *entry[K], took time.Duration, err error) {
	defer r.accounting.finish(c.pending())
	c.record(r, e.key, took, err)
}

// recordMany records the creations of a batch.
func (c *recorder[K]) recordMany(r *root[K], own []creation[K], ends []result, took time.Duration) {
	if ends == nil {
		ends = make([]result, len(own)) // all have made a value
	}
	i := 0
	defer func() {
		if i < len(own) { // the listener has called runtime.Goexit
			c.recordMany(r, own[i:], ends[i:], took)
			return
		}
		r.accounting.finish(c.pending())
	}()
	for i < len(own) {
		k, err := own[i].entry.key, ends[i].err
		i++
		c.record(r, k, took, err)
	}
}

var errCreateListenerGoexit = errors.New("oncecache: OnCreate function called runtime.Goexit")

// record records one call of a function. If the listener panics, the caller goes on.
func (c *recorder[K]) record(r *root[K], k K, took time.Duration, err error) {
	if err == errNoBase {
		return // it was not called
	}
	r.accounting.createTime.Add(int64(took))
	if c.onCreate == nil {
		return
	}
	returned := false
	defer func() {
		if p := recover(); p != nil {
			r.accounting.note(&PanicError{Value: p, Stack: debug.Stack(), from: fromOnCreate})
		} else if !returned {
			r.accounting.note(errCreateListenerGoexit)
		}
	}()
	c.onCreate(k, took, err)
	returned = true
}

//go:build !modelcheck

package histories_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	"github.com/latchfree/latchfree/fuzz/internal/history"
)

type permit = adapt.Permit

// group is what is used of an ab.Group.
type group interface {
	Allow(k string) (permit, error)
	Do(ctx context.Context, k string, fn func(context.Context) error) error
	State(k string) ab.State
	IsOpen(k string) bool
	Reset(k string)
	All() iter.Seq2[string, ab.Snapshot]
	Len() int
}

// recorder is what can report without a permit.
type recorder interface {
	RecordSuccess(k string) ab.Verdict
	RecordFailure(k string) ab.Verdict
}

type realGroup struct{ *ab.Group[string] }

func (g realGroup) Allow(k string) (permit, error) { return g.Group.Allow(k) }

func newGroup(l *breakerLimits) group {
	return realGroup{ab.MustNewGroup(ab.GroupConfig[string]{Default: l.config()})}
}

// breakerClient is a goroutine that uses a group.
type breakerClient struct {
	*history.Client[circuit]
	group group
	start time.Time
	held  map[string]permit // of calls that have not reported

	byHand bool // it also does what is in breaker_byhand_test.go
}

const breakerKeys = 3

func breakerKey(k int) string { return fmt.Sprint("db-", k) }

// now is the time of the model: in a bubble that since the start, and none
// otherwise.
func (w *breakerClient) now() time.Duration {
	if w.start.IsZero() {
		return 0
	}
	return time.Since(w.start)
}

func (w *breakerClient) operate(k int) {
	if w.byHand && w.IntN(4) == 0 {
		w.command(k)
		return
	}
	name := breakerKey(k)
	e := breakerEvent{now: w.now()}
	from := w.Now()
	switch w.IntN(12) {
	case 0, 1, 2, 3:
		if p := w.held[name]; p != nil && w.IntN(8) > 0 { // else it is lost
			w.report(k, p)
			return
		}
		e.op, e.slot = "Allow", w.ID
		p, err := w.group.Allow(name)
		if w.held[name] = p; err != nil {
			w.held[name], e.got = nil, err
		}
	case 4, 5:
		w.call(k)
		return
	case 6, 7, 8:
		w.record(k)
		return
	case 9:
		e.op = "State"
		e.got = w.group.State(name)
	case 10:
		if w.IntN(2) == 0 {
			e.op = "Reset"
			w.group.Reset(name)
			break
		}
		e.op = "IsOpen"
		e.got = w.group.IsOpen(name)
	case 11:
		w.all()
		return
	}
	w.Add(k, from, e)
}

var errDown = errors.New("down")

// report ends a call that was admitted.
func (w *breakerClient) report(k int, p permit) {
	w.held[breakerKey(k)] = nil
	e := breakerEvent{op: "report", slot: w.ID, now: w.now()}
	from := w.Now()
	switch w.IntN(6) {
	case 0:
		e.got = p.Success()
	case 1:
		e.got = p.Done(nil)
	case 2:
		e.outcome = ab.Ignored
		e.got = p.Cancel()
	case 3:
		e.outcome = ab.Ignored
		e.got = p.Done(context.Canceled)
	case 4:
		e.outcome = ab.Failure
		e.got = p.Failure()
	case 5:
		e.outcome = ab.Failure
		e.got = p.Done(errDown)
	}
	w.Add(k, from, e)
}

// record reports what no permit was asked for, if that is possible.
func (w *breakerClient) record(k int) {
	r, ok := w.group.(recorder)
	if !ok {
		return
	}
	e := breakerEvent{op: "record", outcome: ab.Outcome(min(1, w.IntN(3))), now: w.now()}
	from := w.Now()
	if e.outcome == ab.Success {
		e.got = r.RecordSuccess(breakerKey(k))
	} else {
		e.got = r.RecordFailure(breakerKey(k))
	}
	w.Add(k, from, e)
}

// call makes a whole call, which may end in every way, and do something else
// in between.
func (w *breakerClient) call(k int) {
	now := w.now()
	allow := breakerEvent{op: "Allow", slot: breakerClients + w.ID, now: now}
	report := breakerEvent{op: "report", slot: allow.slot, now: now}
	ending := []cacheEnding{inValue, inValue, inError, inError, inPanic, inGoexit}[w.IntN(6)]
	if ending != inValue {
		report.outcome = ab.Failure
	}
	nested := w.IntN(4) == 0
	var began, ended int64
	call := func() {
		err := w.group.Do(context.Background(), breakerKey(k), func(context.Context) error {
			began = w.Now()
			runtime.Gosched()
			if nested {
				w.record(k)
			}
			ended = w.Now()
			switch ending {
			case inError:
				return errDown
			case inPanic:
				panic(errDown)
			case inGoexit:
				runtime.Goexit()
			}
			return nil
		})
		if began == 0 {
			allow.got = err
		} else if (err == nil) != (ending == inValue) {
			w.Errorf("Do returned %v", err)
		}
	}
	from := w.Now()
	if ending == inPanic || ending == inGoexit {
		returned, panicked := w.Apart(call)
		if began != 0 && (returned || (panicked != nil) != (ending == inPanic)) {
			w.Errorf("Do returned: %v, panicked: %v, though its function ended %v", returned, panicked, ending)
		}
	} else {
		call()
	}
	to := w.Now()
	if began == 0 {
		w.AddSpan(k, from, to, allow)
		return
	}
	w.AddSpan(k, from, began, allow)
	w.AddSpan(k, ended, to, report)
}

// all notes what All says of each key: what it looked like when it was
// yielded, or that it was pristine at some moment of the loop.
func (w *breakerClient) all() {
	now := w.now()
	from := w.Now()
	var yielded [breakerKeys]bool
	for name, s := range w.group.All() {
		for k := range breakerKeys {
			if name != breakerKey(k) {
				continue
			}
			if yielded[k] {
				w.Errorf("All yields %q twice", name)
			}
			yielded[k] = true
			w.Add(k, from, breakerEvent{op: "Snapshot", now: now, got: shorten(s)})
		}
	}
	for k, there := range yielded {
		if !there {
			w.Add(k, from, breakerEvent{op: "Snapshot", now: now, got: snapshot{}})
		}
	}
}

func (w *breakerClient) tide() {
	want := func(what string, k int, got ab.Verdict) {
		if got != ab.Counted {
			w.Errorf("%s(%d) is %v", what, k, got)
		}
	}
	r := w.group.(recorder)
	w.Tide(func(k int) {
		want("RecordFailure", k, r.RecordFailure(fmt.Sprint(k)))
	}, func(k int) {
		want("RecordSuccess", k, r.RecordSuccess(fmt.Sprint(k)))
	})
}

// checkLen is for the end, when nobody else uses the group.
func (w *breakerClient) checkLen() {
	n := 0
	for range w.group.All() {
		n++
	}
	if got := w.group.Len(); got != n {
		w.Errorf("in the end Len is %d, want %d", got, n)
	}
}

// groupTrial uses a group whose open keys stay open, outside of time.
func groupTrial(fresh func(*breakerLimits) group) func(*rand.Rand) history.Trial[circuit] {
	return groupTrialBy(false, fresh)
}

func groupTrialBy(byHand bool, fresh func(*breakerLimits) group) func(*rand.Rand) history.Trial[circuit] {
	return func(r *rand.Rand) history.Trial[circuit] {
		limits := &breakerLimits{threshold: 2 + r.IntN(2), last: r.IntN(4) / 3 * 33, probes: 1, closeAfter: 1}
		g := fresh(limits)
		client := func(c *history.Client[circuit]) *breakerClient {
			return &breakerClient{Client: c, group: g, held: map[string]permit{}, byHand: byHand}
		}
		return history.Trial[circuit]{
			Init: circuit{limits: limits}, Clients: breakerClients, Value: g,
			Work: func(c *history.Client[circuit]) {
				w := client(c)
				w.Rounds(breakerKeys, w.operate, w.tide)
			},
			After: func(c *history.Client[circuit]) {
				w := client(c)
				w.all()
				w.checkLen()
			},
		}
	}
}

func TestGroupHistories(t *testing.T) {
	cover := history.Check(t, groupTrial(newGroup),
		"Allow <nil>", "Allow "+ab.ErrOpen.Error(), "report Counted", "report Late", "report Tripped", "report <nil>",
		"record Counted", "record Late", "record Tripped", "record Recovered", "Reset <nil>",
		"State Closed", "State Open", "IsOpen true", "IsOpen false")
	cover.RequireResizes(t)
}

const breakerTick = adapt.Tick

// timedTrial uses what fresh makes in a bubble, where time passes between
// rounds, so that breakers become half-open and probes overdue.
func timedTrial(keys int, fresh func(*breakerLimits) group) func(*rand.Rand) history.Trial[circuit] {
	return timedTrialBy(false, keys, fresh)
}

func timedTrialBy(byHand bool, keys int, fresh func(*breakerLimits) group) func(*rand.Rand) history.Trial[circuit] {
	return func(r *rand.Rand) history.Trial[circuit] {
		limits := &breakerLimits{
			threshold: 1 + r.IntN(3), probes: 1 + r.IntN(2), closeAfter: 1 + r.IntN(2),
			last:    r.IntN(2) * (3 + r.IntN(2)),
			openFor: breakerTick, maxOpen: breakerTick * time.Duration(1+r.IntN(3)), probeFor: breakerTick * time.Duration(1+r.IntN(2)),
		}
		var g group
		var start time.Time
		client := func(c *history.Client[circuit]) *breakerClient {
			return &breakerClient{Client: c, group: g, start: start, held: map[string]permit{}, byHand: byHand}
		}
		return history.Trial[circuit]{
			Init: circuit{limits: limits}, Clients: breakerClients, Bubble: true,
			Before: func() { g, start = fresh(limits), time.Now() },
			Work: func(c *history.Client[circuit]) {
				w := client(c)
				for range 6 {
					k := w.Meet(keys)
					for range 4 {
						w.operate(k)
						w.Pause()
					}
					w.Sleep(breakerTick)
				}
			},
			After: func(c *history.Client[circuit]) {
				w := client(c)
				w.all()
				w.checkLen()
				if told, ok := g.(interface{ check(*breakerClient) }); ok {
					told.check(w)
				}
			},
		}
	}
}

var halfOpenKinds = []string{"Allow " + ab.ErrTooManyProbes.Error(), "State HalfOpen", "report Recovered", "report Tripped", "report Late"}

func TestGroupHistoriesInTime(t *testing.T) {
	history.Check(t, timedTrial(2, newGroup), halfOpenKinds...)
}

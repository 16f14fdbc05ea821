//go:build !modelcheck

package cowchangeset_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
)

// A scene in order is played by an actor, who has a tracker and a store, and by a double, who has
// neither and knows what they must do. After each step all that goes on in the background ends.

func TestScenesInOrder(t *testing.T) {
	playScenes(t, false, 1_500, 40_000, func(s *scene) (failure string) {
		defer func() {
			if p := recover(); p != nil {
				failure = fmt.Sprint("it never ends: ", p)
			}
		}()
		synctest.Test(t, func(t *testing.T) { failure = s.compare() })
		return failure
	})
}

// compare returns how the scene fails, or "".
func (s *scene) compare() (failure string) {
	a, d := newActor(s), &double{scene: s, stored: map[string]*saved{}, spent: map[string]int{}, made: map[string]int{}, soonest: 1}
	defer a.leave()
	defer func() {
		if p := recover(); p != nil {
			failure = fmt.Sprint("a panic: ", p)
		}
	}()
	play := func(o sceneStep) string {
		got := a.do(o)
		time.Sleep(1000 * time.Second) // as long as anything takes
		synctest.Wait()
		d.called, d.got = a.m.called(), got
		want := d.do(o)
		if got != want {
			return fmt.Sprintf("%s returns %q, want %q", o, got, want)
		}
		if got, want := a.look(), d.look(); got != want {
			return fmt.Sprintf("after %s there is\n%s\nwant\n%s", o, got, want)
		}
		if n := len(d.called); n != d.calls {
			return fmt.Sprintf("after %s the store was called %d times, want %d: %q", o, n, d.calls, d.called)
		}
		return ""
	}
	for _, o := range sceneStarts[s.start].steps {
		if failure := play(o); failure != "" {
			return "at the start, " + failure
		}
	}
	a.misbehave()
	d.misbehaves = true
	for _, o := range s.steps {
		if failure := play(o); failure != "" {
			return failure
		}
	}
	a.m.faults(nil)
	a.m.lateFaults(nil)
	d.misbehaves = false
	for _, o := range sceneSteps("Flush", "Resume") {
		if failure := play(o); failure != "" {
			return "at the end, " + failure
		}
	}
	return ""
}

// How long a store takes, may take, and RecordContext waits.
const (
	sceneSlow    = 2 * time.Second
	sceneTimeout = 10 * time.Second
	sceneSoon    = time.Second
)

var errGaveUp = errors.New("gave up")

type actor struct {
	*scene
	m          *memory
	config     cowchangeset.Config[int]
	tracker    *cowchangeset.Tracker[int]
	sets       []*cowchangeset.Changeset[int] // of the tracker, also those that it has forgotten
	ids, entry int
	follows    []*following
}

// following is what a Follow has yielded.
type following struct {
	mu    sync.Mutex
	seen  []string
	ended bool
	stop  context.CancelFunc
}

func newActor(s *scene) *actor {
	a := &actor{scene: s, m: newMemory()}
	a.config = cowchangeset.Config[int]{
		NewID:          func(context.Context) (string, error) { a.ids++; return fmt.Sprint("id", a.ids), nil },
		PruneUnapplied: s.has("PruneUnapplied"),
		StoreTimeout:   sceneTimeout,
	}
	s.bounded(&a.config)
	switch {
	case !s.store():
	case s.has("plain"):
		a.config.Store = struct{ cowchangeset.Loader[int] }{a.m}
	default:
		a.config.Store = &forgetful{memory: a.m}
	}
	a.tracker = cowchangeset.MustNew(a.config)
	return a
}

// misbehave makes the store do what the scene says from now on.
func (a *actor) misbehave() {
	var mu sync.Mutex
	spent := map[string]int{}
	fault := func(ctx context.Context, method, id string) error {
		if !a.faulty(method) {
			return nil
		}
		if a.has("slow") {
			time.Sleep(sceneSlow)
			return nil
		}
		mu.Lock()
		spent[faultKey(method, id)]++
		over := spent[faultKey(method, id)] > a.times()
		mu.Unlock()
		switch {
		case over:
		case a.has("hangs"):
			<-ctx.Done()
			return ctx.Err()
		case a.has("panics"):
			panic(errDisk)
		case a.has("exits"):
			runtime.Goexit()
		default:
			return errDisk
		}
		return nil
	}
	switch {
	case !a.store() || a.has("instant"):
	case a.has("fails late"):
		a.m.lateFaults(fault)
	default:
		a.m.faults(fault)
	}
}

func (a *actor) leave() {
	for _, f := range a.follows {
		f.stop()
	}
}

// at returns the changeset of a slot, or nil.
func (a *actor) at(slot int) *cowchangeset.Changeset[int] {
	if n := len(a.sets) - 1 - slot; n >= 0 {
		return a.sets[n]
	}
	return nil
}

func (a *actor) next() int { a.entry++; return a.entry }

func (a *actor) do(o sceneStep) string {
	ctx, c := context.Background(), a.at(o.slot)
	receipt := func(r cowchangeset.Receipt, err error) string {
		return fmt.Sprintf("%s %d %d: %s", r.ChangesetID, r.Ordinal, r.Seq, errorText(err))
	}
	started := func(c *cowchangeset.Changeset[int], err error) string {
		if err != nil {
			return errorText(err)
		}
		a.sets = append(a.sets, c)
		return fmt.Sprint(c.ID(), " ", c.Ordinal())
	}
	switch o.operation {
	case "Start":
		return started(a.tracker.Start(ctx))
	case "StartAfter":
		return started(a.tracker.StartAfter(ctx, c))
	case "Record":
		return receipt(a.tracker.Record(a.next()))
	case "RecordContext":
		ctx, cancel := context.WithTimeout(ctx, sceneSoon)
		defer cancel()
		return receipt(a.tracker.RecordContext(ctx, a.next()))
	case "Record ended":
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errGaveUp)
		return receipt(a.tracker.RecordContext(ctx, a.next()))
	case "RecordBatch":
		return receipt(a.tracker.RecordBatch([]int{a.next(), a.next()}))
	case "RecordBatchContext":
		ctx, cancel := context.WithTimeout(ctx, sceneSoon)
		defer cancel()
		return receipt(a.tracker.RecordBatchContext(ctx, []int{a.next(), a.next()}))
	case "Flush":
		return errorText(a.tracker.Flush(ctx))
	case "Prune 1":
		return fmt.Sprint(a.tracker.Prune(1))
	case "Prune 2":
		return fmt.Sprint(a.tracker.Prune(2))
	case "Follow":
		f := a.follow()
		ctx, f.stop = context.WithCancel(ctx)
		go func() {
			for r, e := range a.tracker.Follow(ctx, cowchangeset.Receipt{}) {
				f.see(fmt.Sprintf("%d %d=%d", r.Ordinal, r.Seq, e))
			}
			f.end()
		}()
		return ""
	case "Resume":
		if !a.store() {
			return ""
		}
		a.leave()
		a.follows = nil
		t, err := cowchangeset.Resume(ctx, a.config)
		if err != nil {
			return err.Error()
		}
		a.tracker, a.sets = t, nil
		for _, c := range t.All() {
			a.sets = append(a.sets, c)
		}
		return ""
	}
	if c == nil {
		return ""
	}
	switch o.operation {
	case "Record there":
		return receipt(c.Record(a.next()))
	case "Seal":
		f, err := c.Seal(ctx)
		return fmt.Sprintf("%d: %s", f.Len(), errorText(err))
	case "Apply", "Apply fails", "Apply panics":
		ran, err := "", error(nil)
		func() {
			defer func() {
				if p := recover(); p != nil {
					ran += fmt.Sprint("panic ", p)
				}
			}()
			err = c.Apply(ctx, func(_ context.Context, f cowchangeset.Final[int]) error {
				ran = fmt.Sprint("applies ", f.Len(), " ")
				switch o.operation {
				case "Apply fails":
					return errGaveUp
				case "Apply panics":
					panic(errGaveUp)
				}
				return nil
			})
		}()
		return ran + errorText(err)
	case "ApplyEach", "ApplyEach fails":
		ran := ""
		err := c.ApplyEach(ctx, func(_ context.Context, seq uint64, e int) error {
			ran += fmt.Sprintf("%d=%d ", seq, e)
			if o.operation == "ApplyEach fails" && strings.Count(ran, "=") == 2 {
				return errGaveUp
			}
			return nil
		})
		return ran + errorText(err)
	case "Abort":
		return errorText(c.Abort(ctx, fmt.Errorf("because %d", a.next())))
	case "Follow there":
		f := a.follow()
		ctx, f.stop = context.WithCancel(ctx)
		go func() {
			for seq, e := range c.Follow(ctx, 0) {
				f.see(fmt.Sprintf("%d %d=%d", c.Ordinal(), seq, e))
			}
			f.end()
		}()
		return ""
	}
	panic(o.operation)
}

func (a *actor) follow() *following {
	f := new(following)
	a.follows = append(a.follows, f)
	return f
}

func (f *following) see(e string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, e)
}

func (f *following) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
}

func (f *following) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("follows %v, ended %v\n", f.seen, f.ended)
}

// look returns all that can be seen.
func (a *actor) look() string {
	var b strings.Builder
	trail := 0
	for ordinal, c := range a.tracker.All() {
		b.WriteString(setText(c.ID(), ordinal, slices.Collect(valuesOf(c.Entries())), c.IsSealed(), c.Applied(), c.Reason(), int(c.Durable())))
		trail += c.Len()
		if by, ok := a.tracker.ByID(c.ID()); by != c || !ok {
			b.WriteString("not found by ID\n")
		}
		if by, ok := a.tracker.ByOrdinal(ordinal); by != c || !ok {
			b.WriteString("not found by ordinal\n")
		}
	}
	if n := a.tracker.Trail().Len(); n != trail {
		fmt.Fprintf(&b, "trail of %d, not %d\n", n, trail)
	}
	for c := range a.tracker.Pending() {
		b.WriteString("pending " + c.ID() + "\n")
	}
	if c, open := a.tracker.Current(); c != nil {
		fmt.Fprintln(&b, "current", c.ID(), open)
	}
	for _, f := range a.follows {
		b.WriteString(f.String())
	}
	for _, id := range a.m.ids() {
		b.WriteString(storedText(a.m.has(id)))
	}
	for _, s := range a.m.blunders() {
		b.WriteString("the tracker's mistake: " + s + "\n")
	}
	return b.String()
}

func valuesOf(entries func(func(uint64, int) bool)) func(func(int) bool) {
	return func(yield func(int) bool) { entries(func(_ uint64, e int) bool { return yield(e) }) }
}

func setText(id string, ordinal uint64, entries []int, sealed bool, applied uint64, reason error, durable int) string {
	return fmt.Sprintf("%s %d %v sealed %v applied %d reason %v durable %d\n", id, ordinal, entries, sealed, int64(applied), reason, durable)
}

func storedText(s saved) string {
	return fmt.Sprintf("stored %s %d %v sealed %v applied %d reason %v %q\n", s.ID, s.Ordinal, s.Entries, s.Sealed, int64(s.Applied), s.Aborted, s.Reason)
}

// errorText returns what an error says to a program.
func errorText(err error) string {
	if err == nil {
		return "ok"
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range joined.Unwrap() {
			all = append(all, errorText(e))
		}
		return strings.Join(all, "; ")
	}
	var s *cowchangeset.StoreError
	if errors.As(err, &s) {
		cause := "exit"
		switch {
		case errors.Is(err, cowchangeset.ErrStoreTimeout):
			cause = "timeout"
		case errors.Is(err, context.DeadlineExceeded):
			cause = "left"
		case errors.Is(err, errDisk):
			cause = "disk"
		}
		return fmt.Sprintf("store: %s %s %s", s.Method, s.ChangesetID, cause)
	}
	var inactive *cowchangeset.NoActiveError
	if errors.As(err, &inactive) {
		return fmt.Sprint("inactive ", inactive.ChangesetID)
	}
	return err.Error()
}

// double does what a tracker and its store do, one thing after the other.
type double struct {
	*scene
	sets       []*doubleSet // of the tracker, also those that it has forgotten
	forgotten  int
	ids, entry int
	follows    []*doubleFollow

	stored     map[string]*saved
	order      []string // of what is stored
	soonest    uint64   // ordinal that the store has not been told to forget
	misbehaves bool
	owed       bool   // a call for a set before the latest has failed
	tried      uint64 // the ordinal of the one that was called for again last
	spent      map[string]int

	made   map[string]int // calls of each method, about each changeset
	calls  int
	called []string // by the actor's tracker
	got    string   // what its step has returned
}

type doubleSet struct {
	id                  string
	ordinal             uint64
	entries             []int
	sealed              bool
	phase               string // "", "done": its Apply could not tell the store, "applied", "aborted"
	cursor              uint64
	reason              string
	durable             int
	knowSeal, knowAbort bool
	knowApplied         uint64
}

type doubleFollow struct {
	from  uint64     // ordinal
	there *doubleSet // or nil
}

// call returns how a call of the store fails, or "".
func (d *double) call(method, id string, do func()) string {
	d.made[method+" "+id+" "]++
	d.calls++
	if !d.misbehaves || d.has("instant") || d.has("slow") || !d.faulty(method) {
		do()
		return ""
	}
	key := faultKey(method, id)
	if d.spent[key]++; d.spent[key] > d.times() {
		do()
		return ""
	}
	switch d.levels[0] {
	case "fails late":
		do()
		return "disk"
	case "hangs":
		return "timeout"
	case "exits":
		return "exit"
	}
	return "disk"
}

// target is what a caller waits for.
type target struct {
	below       int
	seal, abort bool
	applied     uint64
}

func (d *double) due(c *doubleSet) target {
	g := target{below: len(c.entries), seal: c.sealed, abort: c.sealed && c.phase == "aborted"}
	if c.sealed && !d.has("plain") {
		g.applied = c.cursor
	}
	return g
}

func (c *doubleSet) knows(g target) bool {
	return g.below <= c.durable && (!g.seal || c.knowSeal) && (!g.abort || c.knowAbort) && g.applied <= c.knowApplied
}

// flush makes the next call that is due.
func (d *double) flush(c *doubleSet) (method, cause string) {
	g, s := d.due(c), d.stored[c.id]
	switch {
	case c.durable < len(c.entries):
		method = "Append"
		if cause = d.call(method, c.id, func() { s.Entries = asItems(c.entries) }); cause == "" {
			c.durable = len(c.entries)
		}
	case g.seal && !c.knowSeal:
		method = "Seal"
		cause = d.call(method, c.id, func() { s.Sealed = true })
		c.knowSeal = cause == ""
	case g.applied > c.knowApplied:
		method = "Applied"
		if cause = d.call(method, c.id, func() { s.Applied = g.applied }); cause == "" {
			c.knowApplied = g.applied
		}
	case g.abort && !c.knowAbort:
		method = "Abort"
		cause = d.call(method, c.id, func() { s.Aborted, s.Reason = true, c.reason })
		c.knowAbort = cause == ""
	}
	return method, cause
}

func asItems(entries []int) (all []item) {
	for i, e := range entries {
		all = append(all, item{Seq: uint64(i), Value: e})
	}
	return all
}

// request tells the store all, up to the first failure.
func (d *double) request(c *doubleSet) {
	if !d.store() {
		return
	}
	for !c.knows(d.due(c)) {
		if _, cause := d.flush(c); cause != "" {
			d.owes(c)
			return
		}
		d.goOn(c)
	}
}

// goOn notes that a flush of a set has succeeded: that of an older one retries others at its end.
func (d *double) goOn(c *doubleSet) {
	if c != d.at(0) && c.knows(d.due(c)) {
		d.retry()
	}
}

// owes notes that a call for a set has failed.
func (d *double) owes(c *doubleSet) { d.owed = d.owed || c != d.at(0) }

// retry is the tracker's.
func (d *double) retry() {
	if !d.owed {
		return
	}
	lacking := func(above uint64) *doubleSet {
		for _, c := range d.sets[d.forgotten:] {
			if c.ordinal > above && c != d.at(0) && !c.knows(d.due(c)) {
				return c
			}
		}
		return nil
	}
	d.owed = false
	if next := cmp.Or(lacking(d.tried), lacking(0)); next != nil {
		d.owed, d.tried = true, next.ordinal
		d.request(next)
	}
}

func (d *double) wait(c *doubleSet, g target, soon bool) string {
	if !d.store() {
		return "ok"
	}
	for calls := 0; !c.knows(g); calls++ {
		method, cause := d.flush(c)
		if cause != "" {
			d.owes(c)
		} else {
			defer d.goOn(c)
		}
		if calls > 0 && cause != "" && cause != "timeout" && d.again(method, c) {
			if !strings.Contains(d.got, "store: "+method+" "+c.id) {
				continue
			}
			defer d.request(c)
		}
		if soon && (cause == "timeout" || d.has("slow") && d.misbehaves && d.faulty(method)) {
			method, cause = "wait", "left"
		}
		if cause == "timeout" || cause == "left" {
			d.request(c)
		}
		if cause != "" {
			return fmt.Sprintf("store: %s %s %s", method, c.id, cause)
		}
		if c.knows(g) {
			d.request(c) // the flush asks for another one if more is due
		}
	}
	return "ok"
}

// again reports whether the tracker has called the store once more. Both the caller and the end of
// the first flush begin the second one of a wait. If it fails before both have, the other begins a
// third; which of the two outcomes the caller gets is chance.
func (d *double) again(method string, c *doubleSet) bool {
	key, n := method+" "+c.id+" ", 0
	for _, call := range d.called {
		if strings.HasPrefix(call, key) {
			n++
		}
	}
	return n > d.made[key]
}

func (d *double) stop() { d.follows = nil }

func (d *double) at(slot int) *doubleSet {
	if n := len(d.sets) - 1 - slot; n >= 0 {
		return d.sets[n]
	}
	return nil
}

func (d *double) next() int { d.entry++; return d.entry }

func (d *double) begin() string {
	d.ids++
	n := &doubleSet{id: fmt.Sprint("id", d.ids), ordinal: 1}
	before := d.at(0)
	h := cowchangeset.Header{ID: n.id, Ordinal: 1}
	if before != nil {
		h.Ordinal, h.Previous = before.ordinal+1, before.id
		n.ordinal = h.Ordinal
	}
	if d.store() {
		cause := d.call("Start", n.id, func() {
			if i := len(d.order) - 1; i >= 0 && d.stored[d.order[i]].Ordinal == h.Ordinal {
				d.order = d.order[:i]
			}
			d.order = append(d.order, n.id)
			d.stored[n.id] = &saved{Header: h}
		})
		if cause != "" {
			return fmt.Sprintf("store: Start %s %s", n.id, cause)
		}
	}
	d.sets = append(d.sets, n)
	if before != nil {
		before.sealed = true
		d.goOn(before) // the flush has nothing to do
		d.request(before)
	}
	return fmt.Sprint(n.id, " ", n.ordinal)
}

func (d *double) record(c *doubleSet, inactive string, soon bool, n int) string {
	var es []int
	for range n {
		es = append(es, d.next())
	}
	if c == nil || c.sealed {
		return " 0 0: " + inactive
	}
	if d.async() && !d.has("Async") && len(c.entries) > c.durable {
		err := ""
		if d.has("Async to a bound") {
			if err = d.wait(c, target{below: len(c.entries)}, soon); err == "ok" {
				err = ""
			} else {
				err = "; " + err
			}
		}
		if err != "" || d.has("Async to a bound or not at all") {
			if err == "" {
				d.request(c)
			}
			return " 0 0: cowchangeset: store is too far behind" + err
		}
	}
	c.entries = append(c.entries, es...)
	err := "ok"
	if d.store() {
		d.retry()
	}
	if d.async() {
		d.request(c)
	} else {
		err = d.wait(c, target{below: len(c.entries)}, soon)
	}
	return fmt.Sprintf("%s %d %d: %s", c.id, c.ordinal, len(c.entries)-n, err)
}

func (d *double) do(o sceneStep) string {
	c, latest := d.at(o.slot), d.at(0)
	inactive := "cowchangeset: no active changeset"
	if latest != nil {
		inactive = "inactive " + latest.id
	}
	switch o.operation {
	case "Start":
		return d.begin()
	case "StartAfter":
		if c != latest {
			return "cowchangeset: not the latest changeset"
		}
		return d.begin()
	case "Record":
		return d.record(latest, inactive, false, 1)
	case "RecordContext":
		return d.record(latest, inactive, true, 1)
	case "Record ended":
		d.next()
		return " 0 0: gave up"
	case "RecordBatch":
		return d.record(latest, inactive, false, 2)
	case "RecordBatchContext":
		return d.record(latest, inactive, true, 2)
	case "Flush":
		return d.flushAll()
	case "Prune 1":
		return fmt.Sprint(d.prune(1))
	case "Prune 2":
		return fmt.Sprint(d.prune(2))
	case "Follow":
		f := new(doubleFollow)
		if d.forgotten < len(d.sets) {
			f.from = d.sets[d.forgotten].ordinal
		}
		d.follows = append(d.follows, f)
		return ""
	case "Resume":
		d.resume()
		return ""
	}
	if c == nil {
		return ""
	}
	switch o.operation {
	case "Record there":
		return d.record(c, "cowchangeset: changeset is sealed", false, 1)
	case "Seal":
		c.sealed = true
		return fmt.Sprintf("%d: %s", len(c.entries), d.wait(c, target{below: len(c.entries), seal: true}, false))
	case "Abort":
		return d.abort(c, fmt.Sprintf("because %d", d.next()))
	case "Follow there":
		d.follows = append(d.follows, &doubleFollow{there: c})
		return ""
	}
	return d.apply(c, o.operation)
}

func (d *double) apply(c *doubleSet, operation string) string {
	c.sealed = true
	err := d.wait(c, target{below: len(c.entries), seal: true}, false)
	switch {
	case c.phase == "applied":
		return "cowchangeset: changeset has been applied"
	case c.phase == "aborted":
		return "cowchangeset: changeset has been aborted"
	case err != "ok":
		return err
	}
	ran := ""
	if c.phase == "" {
		switch operation {
		case "Apply", "Apply fails", "Apply panics":
			ran = fmt.Sprint("applies ", len(c.entries), " ")
			if operation == "Apply fails" {
				return ran + "gave up"
			}
			if operation == "Apply panics" {
				return ran + "panic gave upok"
			}
		default:
			if err := d.wait(c, d.due(c), false); err != "ok" {
				return err
			}
			for i := int(c.cursor); i < len(c.entries); i++ {
				ran += fmt.Sprintf("%d=%d ", i, c.entries[i])
				if operation == "ApplyEach fails" && strings.Count(ran, "=") == 2 {
					return ran + "gave up"
				}
				c.cursor = uint64(i) + 1
				if err := d.wait(c, d.due(c), false); err != "ok" {
					return ran + err
				}
			}
		}
		c.phase, c.cursor = "done", cowchangeset.AllApplied
	}
	if err := d.wait(c, d.due(c), false); err != "ok" {
		return ran + err
	}
	c.phase = "applied"
	return ran + "ok"
}

func (d *double) abort(c *doubleSet, reason string) string {
	c.sealed = true
	switch c.phase {
	case "applied", "done":
		return "cowchangeset: changeset has been applied"
	case "":
		c.phase, c.reason = "aborted", reason
	}
	return d.wait(c, d.due(c), false)
}

// known reports whether the store, if there is one, has nothing left to be told of c.
func (d *double) known(c *doubleSet) bool { return !d.store() || c.knows(d.due(c)) }

func (d *double) finished(c *doubleSet) bool {
	return c.phase == "applied" || c.phase == "aborted" || c.phase == "done" && d.known(c)
}

func (d *double) prune(keep int) int {
	n := d.forgotten
	for len(d.sets)-n > keep && (d.has("PruneUnapplied") || d.finished(d.sets[n])) && d.known(d.sets[n]) {
		n++
	}
	d.retry()
	count := n - d.forgotten
	d.forgotten = n
	d.tellForgotten()
	return count
}

// tellForgotten returns how Prune of the store fails, or "".
func (d *double) tellForgotten() string {
	if !d.store() || d.has("plain") || d.forgotten == len(d.sets) || d.sets[d.forgotten].ordinal <= d.soonest {
		return ""
	}
	before := d.sets[d.forgotten].ordinal
	cause := d.call("Prune", "", func() {
		for len(d.order) > 0 && d.stored[d.order[0]].Ordinal < before {
			d.order = d.order[1:]
		}
	})
	if cause == "" {
		d.soonest = before
	}
	return cause
}

func (d *double) flushAll() string {
	var failed []string
	for _, c := range d.sets[d.forgotten:] {
		if err := d.wait(c, d.due(c), false); err != "ok" {
			failed = append(failed, err)
		}
	}
	if cause := d.tellForgotten(); cause != "" {
		failed = append(failed, "store: Prune  "+cause)
		if cause == "timeout" {
			d.tellForgotten()
		}
	}
	if failed == nil {
		return "ok"
	}
	return strings.Join(failed, "; ")
}

func (d *double) resume() {
	if !d.store() {
		return
	}
	d.stop()
	d.sets, d.forgotten = nil, 0
	for i, id := range d.order {
		s := d.stored[id]
		c := &doubleSet{id: id, ordinal: s.Ordinal, sealed: s.Sealed || i < len(d.order)-1, cursor: s.Applied, reason: s.Reason,
			durable: len(s.Entries), knowSeal: s.Sealed, knowAbort: s.Aborted, knowApplied: s.Applied}
		for _, e := range s.Entries {
			c.entries = append(c.entries, e.Value)
		}
		switch {
		case s.Aborted:
			c.phase = "aborted"
		case s.Applied == cowchangeset.AllApplied:
			c.phase = "applied"
		}
		d.sets = append(d.sets, c)
	}
	d.soonest = 1
	if len(d.sets) > 0 {
		d.soonest = d.sets[0].ordinal
	}
	for _, c := range d.sets {
		d.request(c)
	}
}

func (d *double) look() string {
	var b strings.Builder
	for _, c := range d.sets[d.forgotten:] {
		var reason error
		if c.phase == "aborted" {
			reason = errors.New(c.reason)
		}
		b.WriteString(setText(c.id, c.ordinal, c.entries, c.sealed, c.cursor, reason, c.durable))
	}
	for _, c := range d.sets[d.forgotten:] {
		if c.sealed && !d.finished(c) {
			b.WriteString("pending " + c.id + "\n")
		}
	}
	if c := d.at(0); c != nil {
		fmt.Fprintln(&b, "current", c.id, !c.sealed)
	}
	for _, f := range d.follows {
		seen := []string{}
		for _, c := range d.sets {
			if f.there == c || f.there == nil && c.ordinal >= f.from {
				for i, e := range c.entries {
					seen = append(seen, fmt.Sprintf("%d %d=%d", c.ordinal, i, e))
				}
			}
		}
		fmt.Fprintf(&b, "follows %v, ended %v\n", seen, f.there != nil && f.there.sealed)
	}
	for _, id := range d.order {
		b.WriteString(storedText(*d.stored[id]))
	}
	return b.String()
}

// A scene can be made again from its name.
func TestScenesHaveNames(t *testing.T) {
	p := newProgramme()
	for i := range 1000 {
		for _, atOnce := range []bool{false, true} {
			s := p.scene(i*7919%p.len(atOnce), atOnce, 0)
			if _, err := sceneNamed(s.String()); err != nil {
				t.Error(err)
			}
		}
	}
}

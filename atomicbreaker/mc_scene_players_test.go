//go:build modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
	model "github.com/latchfree/latchfree/internal/model/atomicbreaker"
)

// What scenes are played on: a Breaker, a Group, and their models.

const (
	sceneKeys  = 2
	sceneSlots = 3 // the last is of operations that hold their permit alone
)

var sceneNames = [sceneKeys]string{"db-1", "db-2"}

// player is what a Breaker, a Group and their models can do. A Breaker has one key. A permit lies
// in a slot until it is reported.
type player interface {
	allow(k, slot int) any
	report(slot int, e ending) any
	call(k int, c calling) any
	record(k int, o ab.Outcome) any
	command(k int, c commanding) any
	update(to updating) any
	resetAll() any
	sweep() any
	pass(ticks int)
	state(k int) any
	snapshot(k int) any
	look() sight
	quiet() string
}

// An ending is a report of a permit: of what it means or, with err, what Done makes of that.
type ending struct {
	report  func(permit) ab.Verdict
	outcome ab.Outcome
	err     *fault
	trip    bool // for so long:
	open    time.Duration
}

// A calling is a whole call.
type calling struct {
	by     string // Do, Execute, ExecuteContext, ExecuteResult
	ctx    string // "", done, or ends: while the call runs
	err    *fault // that the call returns; or
	panics bool
	exits  bool
	takes  int // ticks
}

// A fault is an error, and what it means.
type fault struct {
	err               error
	rejects, unwanted bool // all that is joined in it is a rejection, or that or a cancellation
	quiet             bool // the Classify of the settings ignores it
}

// means returns what the end of a call means by the documentation of Classify.
func (f *fault) means(own, known, cancelled bool) ab.Outcome {
	switch {
	case f == nil:
		return ab.Success
	case own && f.quiet, known && cancelled, known && f.rejects, !known && f.unwanted:
		return ab.Ignored
	}
	return ab.Failure
}

type commanding struct {
	name string // of the method
	open time.Duration
}

// updating says what Update changes.
type updating int

const (
	updateOther updating = iota // to the next levels, and then back
	updateSame
	updateWrong
)

// refusal is the error of Allow.
type refusal struct {
	open, probes, detailed bool
	name                   string
	state                  ab.State
	after                  time.Duration
}

func refusalOf(err error) any {
	if err == nil {
		return "admitted"
	}
	r := refusal{open: errors.Is(err, ab.ErrOpen), probes: errors.Is(err, ab.ErrTooManyProbes)}
	var e *ab.OpenError
	if r.detailed = errors.As(err, &e); r.detailed {
		r.name, r.state, r.after = e.Name, e.State, e.RetryAfter
	}
	return r
}

// sight is what readers see.
type sight struct {
	keys     [sceneKeys]seen
	stats    ab.Stats
	notified [sceneKeys][]ab.Event // since the last look
	wrong    string                // what contradicts itself

	absent   [sceneKeys]bool // only the real ones know that
	pristine [sceneKeys]bool // only models know that
}

// text is what must be equal.
func (s sight) text() string {
	s.absent, s.pristine = [sceneKeys]bool{}, [sceneKeys]bool{}
	return fmt.Sprintf("%+v", s)
}

type seen struct {
	ab.Snapshot
	state  ab.State
	isOpen bool
}

// difference returns how the sight of a player differs from that of its model, or "".
func (s sight) difference(want sight) string {
	if s.wrong != "" {
		return s.wrong
	}
	for k := range s.keys {
		if s.keys[k] != want.keys[k] {
			return fmt.Sprintf("key %d is\n\t%+v, want\n\t%+v", k+1, s.keys[k], want.keys[k])
		}
		if s.absent[k] && !want.pristine[k] {
			return fmt.Sprintf("key %d is not stored, and is not healthy", k+1)
		}
		if !slices.Equal(s.notified[k], want.notified[k]) {
			return fmt.Sprintf("the listener of key %d gets\n\t%+v, want\n\t%+v", k+1, s.notified[k], want.notified[k])
		}
	}
	if s.stats != want.stats {
		return fmt.Sprintf("the Stats are\n\t%+v, want\n\t%+v", s.stats, want.stats)
	}
	return ""
}

// actor is a Breaker or a Group.
type actor struct {
	m        *mc.M
	plot     *plot
	breaker  *ab.Breaker
	group    *ab.Group[string]
	other    bool // Update has changed the settings
	beside   bool // other operations run
	held     [sceneSlots]permit
	notified [sceneKeys][]ab.Event
	last     [sceneKeys]ab.Event
	heard    [sceneKeys]int // events
	wrong    string
}

func newActor(m *mc.M, p *plot) *actor {
	a := &actor{m: m, plot: p}
	if p.keyed() {
		a.group = ab.MustNewGroup(a.grouped(false))
	} else {
		a.breaker = ab.MustNew(a.single(false))
	}
	a.pass(p.begins())
	return a
}

func (a *actor) single(other bool) ab.Config {
	c := a.plot.config(other)
	if a.plot.listens(other) {
		c.OnStateChange = func(e ab.Event) { a.hear(0, e) }
	}
	return c
}

func (a *actor) grouped(other bool) ab.GroupConfig[string] {
	g := ab.GroupConfig[string]{Default: a.plot.config(other), ForgetAfter: a.plot.forgetAfter(other), MaxOpen: a.plot.maxOpen(other)}
	if a.plot.perKey(other) {
		c := g.Default
		g.Default = ab.Config{Policy: c.Policy, RecordTotals: c.RecordTotals}
		g.PerKey = func(string) ab.Config { return c }
	}
	if a.plot.listens(other) {
		g.OnStateChange = func(k string, e ab.Event) { a.hear(slices.Index(sceneNames[:], k), e) }
	}
	return g
}

// hear is the listener. It may act.
func (a *actor) hear(k int, e ab.Event) {
	if !a.plot.acts(a.notes(k, e)) {
		return
	}
	if a.plot.has("listener panics") {
		panic(errBoom)
	}
	a.command(k, commanding{name: "Reset"})
}

// notes requires that each event follows the one before. It returns how many there were.
//
//go:norace
func (a *actor) notes(k int, e ab.Event) int {
	last := a.last[k]
	if a.plot.has("listener until Update") { // which misses some
	} else if e.From != last.To || e.Generation != last.Generation+1 && (a.breaker != nil || e.Generation != 1 || e.From != ab.Closed) {
		a.complain("generation %d of %v follows generation %d of %v", e.Generation, e.From, last.Generation, last.To)
	}
	if now := atomics.Now(); !e.At.Equal(now) {
		a.complain("an event of %v at %v", e.At, now)
	}
	if e.Name != a.plot.name() {
		a.complain("an event of %q", e.Name)
	}
	a.last[k] = e
	e.Name, e.Generation, e.At = "", 0, time.Time{}
	a.notified[k] = append(a.notified[k], e)
	a.heard[k]++
	return a.heard[k]
}

// survive runs an operation, and returns its result unless a listener panics.
func (a *actor) survive(f func() any) (got any) {
	defer func() {
		if p := recover(); p == any(errBoom) {
			got = "panics"
		} else if p != nil {
			panic(p)
		}
	}()
	return f()
}

//go:norace
func (a *actor) complain(format string, args ...any) {
	if a.wrong == "" {
		a.wrong = fmt.Sprintf(format, args...)
	}
}

func (a *actor) allow(k, slot int) any {
	a.held[slot] = nil
	return a.survive(func() any { return a.asks(k, slot) })
}

func (a *actor) asks(k, slot int) any {
	var err error
	if a.group == nil {
		var p ab.Permit
		if p, err = a.breaker.Allow(); err == nil {
			a.held[slot] = p
		}
	} else {
		var p ab.GroupPermit[string]
		if p, err = a.group.Allow(sceneNames[k]); err == nil {
			a.held[slot] = p
		}
	}
	return refusalOf(err)
}

func (a *actor) report(slot int, e ending) any {
	p := a.held[slot]
	if a.held[slot] = nil; p == nil {
		return "no permit"
	}
	return a.survive(func() any { return e.report(p) })
}

// call says how a call ended: an error of its own, of Allow, or none.
func (a *actor) call(k int, c calling) any {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if c.ctx != "" {
		ctx, cancel = context.WithCancel(ctx)
	}
	if c.ctx == "done" {
		cancel()
	}
	defer cancel()
	var returns error
	if c.err != nil {
		returns = c.err.err
	}
	called := false
	body := func() error {
		called = true
		a.pass(c.takes)
		switch {
		case c.ctx == "ends":
			cancel()
		case c.panics:
			panic(errBoom)
		case c.exits:
			runtime.Goexit()
		}
		return returns
	}
	within := func(context.Context) error { return body() }
	valued := func(context.Context) (int, error) { return 1, body() }
	run := func() error {
		var err error
		switch {
		case a.group != nil && c.by == "Do":
			return a.group.Do(ctx, sceneNames[k], within)
		case a.group != nil:
			_, err = ab.ExecuteGroup(ctx, a.group, sceneNames[k], valued)
		case c.by == "Do":
			return a.breaker.Do(ctx, within)
		case c.by == "Execute":
			_, err = ab.Execute(a.breaker, func() (int, error) { return valued(nil) })
		case c.by == "ExecuteContext":
			_, err = ab.ExecuteContext(ctx, a.breaker, valued)
		default:
			_, err = ab.ExecuteResult(ctx, a.breaker, valued, func(_ int, err error) ab.Outcome { return ab.Classify(ctx, err) })
		}
		return err
	}
	var err error
	if c.panics || c.exits {
		if apart(func() { err = run() }); !called && err == nil {
			return "panics" // in Allow
		}
	} else if a.survive(func() any { err = run(); return nil }) != nil {
		return "panics"
	}
	switch {
	case called && err != returns:
		a.complain("a call returns %v in place of %v", err, returns)
		return nil
	case called:
		return "called"
	case err == context.Canceled:
		return "not called"
	}
	return refusalOf(err)
}

// apart runs f, which may panic with errBoom or call runtime.Goexit.
func apart(f func()) {
	done := make(chan any)
	go func() {
		var p any
		defer func() {
			if p = recover(); p == any(errBoom) {
				p = nil
			}
			done <- p
		}()
		f()
	}()
	if p := <-done; p != nil {
		panic(p)
	}
}

func (a *actor) record(k int, o ab.Outcome) any {
	return a.survive(func() any { return a.records(k, o) })
}

func (a *actor) records(k int, o ab.Outcome) ab.Verdict {
	switch {
	case a.group == nil && o == ab.Success:
		return a.breaker.RecordSuccess()
	case a.group == nil:
		return a.breaker.RecordFailure()
	case o == ab.Success:
		return a.group.RecordSuccess(sceneNames[k])
	}
	return a.group.RecordFailure(sceneNames[k])
}

func (a *actor) command(k int, c commanding) any {
	return a.survive(func() any { a.commands(k, c); return nil })
}

func (a *actor) commands(k int, c commanding) {
	if a.group == nil {
		switch c.name {
		case "Reset":
			a.breaker.Reset()
		case "Trip":
			a.breaker.Trip(c.open)
		case "HalfOpen":
			a.breaker.HalfOpen()
		case "ForceOpen":
			a.breaker.ForceOpen()
		default:
			a.breaker.Disable()
		}
		return
	}
	switch key := sceneNames[k]; c.name {
	case "Reset":
		a.group.Reset(key)
	case "Trip":
		a.group.Trip(key, c.open)
	case "HalfOpen":
		a.group.HalfOpen(key)
	case "ForceOpen":
		a.group.ForceOpen(key)
	default:
		a.group.Disable(key)
	}
}

func (a *actor) update(to updating) any {
	other := a.other != (to == updateOther)
	var err error
	if a.group == nil {
		c := a.single(other)
		if to == updateWrong {
			c.Probes = 32
		}
		err = a.breaker.Update(c)
	} else {
		c := a.grouped(other)
		if to == updateWrong {
			c.MaxOpen = -1
		}
		if a.survive(func() any { err = a.group.Update(c); return nil }) != nil {
			a.other = other // it goes on
			return "panics"
		}
	}
	if err == nil {
		a.other = other
	}
	return err == nil
}

func (a *actor) resetAll() any {
	return a.survive(func() any {
		if a.group != nil {
			a.group.ResetAll()
		} else {
			a.breaker.Reset()
		}
		return nil
	})
}

func (a *actor) sweep() any {
	if a.group == nil {
		return nil
	}
	return a.survive(func() any {
		before := a.group.Len()
		if n := a.group.Sweep(); before-n != a.group.Len() && !a.beside {
			a.complain("Sweep returns %d, and leaves %d of %d keys", n, a.group.Len(), before)
		}
		return nil
	})
}

func (a *actor) pass(ticks int) {
	if ticks != 0 {
		a.m.Advance(time.Duration(ticks) * tick)
	}
}

// state and snapshot are looks at one moment. Whether an absent key of PerKey is a shadow, nobody
// knows.
func (a *actor) state(k int) any {
	switch {
	case a.group == nil:
		return a.breaker.State()
	case a.plot.perKey(a.other) && a.plot.settings(a.other).Shadow:
		return nil
	}
	return a.group.State(sceneNames[k])
}

func (a *actor) snapshot(k int) any {
	var s ab.Snapshot
	if a.group == nil {
		s = a.breaker.Snapshot()
	} else {
		s = a.group.Snapshot(sceneNames[k])
	}
	s.Name, s.Generation, s.State = "", 0, 0
	return s
}

func (d *double) state(k int) any {
	if d.plot.perKey(d.other) && d.key(k).Shadow {
		return nil
	}
	return d.key(k).State()
}

func (d *double) snapshot(k int) any {
	s := d.key(k).Snapshot()
	s.State = 0
	return s
}

// quiet returns what is wrong in the end.
func (a *actor) quiet() string {
	if a.group != nil {
		if err := a.group.CheckQuiet(sceneNames[:]...); err != nil {
			return err.Error()
		}
	}
	return ""
}

func (d *double) quiet() string { return "" }

func (a *actor) look() (s sight) {
	if a.group == nil {
		s.keys[0] = seen{a.breaker.Snapshot(), a.breaker.State(), a.breaker.IsOpen()}
		s.stats = a.breaker.Stats()
		if g := uint64(s.keys[0].Generation); a.plot.has("OnStateChange", "listener resets") && g != a.last[0].Generation {
			a.complain("the breaker has generation %d, and the last event had %d", g, a.last[0].Generation)
		}
	} else {
		stored := [sceneKeys]bool{}
		n := 0
		for k, shot := range a.group.All() {
			i := slices.Index(sceneNames[:], k)
			stored[i] = true
			n++
			if again := a.group.Snapshot(k); again != shot {
				a.complain("All yields\n\t%+v, and Snapshot returns\n\t%+v", shot, again)
			}
		}
		if n != a.group.Len() {
			a.complain("All yields %d keys, and Len is %d", n, a.group.Len())
		}
		for i, k := range sceneNames {
			s.keys[i] = seen{a.group.Snapshot(k), a.group.State(k), a.group.IsOpen(k)}
			if s.absent[i] = !stored[i]; s.absent[i] {
				a.absent(&s.keys[i])
			}
		}
		s.stats = a.group.Stats()
	}
	for i := range s.keys {
		if name := s.keys[i].Name; name != "" && name != a.plot.name() {
			a.complain("the snapshot of %q", name)
		}
		s.keys[i].Name, s.keys[i].Generation = "", 0
	}
	s.notified, a.notified = a.notified, [sceneKeys][]ab.Event{}
	s.wrong = a.wrong
	return s
}

// absent corrects what is seen of an absent key, whose settings nobody knows if PerKey has them.
func (a *actor) absent(s *seen) {
	if s.Would != ab.Closed || s.isOpen {
		a.complain("an absent key is %v", s.Would)
	}
	if a.plot.perKey(a.other) && a.plot.settings(a.other).Shadow {
		if s.State != ab.Closed || s.state != ab.Closed {
			a.complain("an absent key of PerKey is %v", s.State)
		}
		s.State, s.state = ab.Shadow, ab.Shadow
	}
}

// double is the model of an actor.
type double struct {
	plot      *plot
	other     bool
	keys      [sceneKeys]*model.Breaker
	places    model.Places
	reclaimAt time.Duration
	held      [sceneSlots]struct {
		key    int // -1: none
		permit model.Permit
	}
	heard    [sceneKeys]int        // events
	notified [sceneKeys][]ab.Event // since the last look
	count    [sceneKeys]int        // events that the listener got
}

// listens brings events to the listener, which may act. It reports whether that has panicked.
func (d *double) listens() (panics bool) {
	for k, b := range d.keys {
		for d.heard[k] < len(b.Events) {
			e := b.Events[d.heard[k]]
			if d.heard[k]++; !d.plot.listens(d.other) {
				continue
			}
			d.notified[k] = append(d.notified[k], e)
			if d.count[k]++; !d.plot.acts(d.count[k]) {
				continue
			}
			if d.plot.has("listener panics") {
				panics = true
			} else {
				b.Reset()
			}
		}
	}
	return panics
}

// unless returns a result, unless the listener panics.
func (d *double) unless(got any) any {
	if d.listens() {
		return "panics"
	}
	return got
}

func newDouble(p *plot) *double {
	d := &double{plot: p}
	d.places.Most = p.maxOpen(false)
	for i := range d.keys {
		d.keys[i] = &model.Breaker{Settings: p.settings(false), Keyed: p.keyed(), Forget: max(0, p.forgetAfter(false)), Places: &d.places}
	}
	for i := range d.held {
		d.held[i].key = -1
	}
	d.pass(p.begins())
	return d
}

// key returns the model of a key.
func (d *double) key(k int) *model.Breaker {
	if !d.plot.keyed() {
		k = 0
	}
	return d.keys[k]
}

// reclaims does what follows a failure that MaxOpen has held back.
func (d *double) reclaims(withheld bool) {
	forget, now := d.keys[0].Forget, d.keys[0].Now
	if !withheld || forget == 0 {
		return
	}
	next := now + forget/64
	if now < d.reclaimAt && d.reclaimAt <= next {
		return
	}
	d.reclaimAt = next
	for _, b := range d.keys {
		b.Sweep()
	}
}

// tries is any operation on a key.
func (d *double) tries(k int, f func(*model.Breaker) any) any {
	b := d.key(k)
	before := b.Stats.Withheld
	got := f(b)
	d.reclaims(b.Stats.Withheld > before)
	return d.unless(got)
}

func (d *double) admits(b *model.Breaker) (model.Permit, any) {
	would := b.Would()
	p, err := b.Allow()
	if d.listens() {
		b.Done(p, ab.Ignored) // nobody gets it
		return p, "panics"
	}
	if err == nil {
		return p, "admitted"
	}
	r := refusal{open: err == ab.ErrOpen, probes: err == ab.ErrTooManyProbes}
	if d.plot.has("DetailedErrors") {
		r.detailed, r.name, r.state, r.after = true, d.plot.name(), would, b.RetryAfter()
	}
	return p, r
}

func (d *double) allow(k, slot int) any {
	d.held[slot].key = -1
	p, got := d.admits(d.key(k))
	if got == "admitted" {
		d.held[slot].key, d.held[slot].permit = k, p
	}
	return got
}

func (d *double) report(slot int, e ending) any {
	k, p, outcome := d.held[slot].key, d.held[slot].permit, e.outcome
	if d.held[slot].key = -1; k < 0 {
		return "no permit"
	}
	if e.err != nil {
		outcome = e.err.means(d.plot.has("Classify"), false, false)
	}
	return d.tries(k, func(b *model.Breaker) any {
		if e.trip {
			return b.DoneTrip(p, e.open)
		}
		return b.Done(p, outcome)
	})
}

func (d *double) call(k int, c calling) any {
	known := c.by != "Execute" || d.plot.keyed()
	if known && c.ctx == "done" {
		return "not called"
	}
	p, got := d.admits(d.key(k))
	if got != "admitted" {
		return got
	}
	d.pass(c.takes)
	outcome := c.err.means(d.plot.has("Classify") && (c.by != "ExecuteResult" || d.plot.keyed()), known, c.ctx == "ends")
	if c.panics || c.exits {
		outcome = ab.Failure
	}
	if got := d.tries(k, func(b *model.Breaker) any { return b.Done(p, outcome) }); got == "panics" && !c.panics && !c.exits {
		return got
	}
	return "called"
}

func (d *double) record(k int, o ab.Outcome) any {
	return d.tries(k, func(b *model.Breaker) any {
		if o == ab.Success {
			return b.RecordSuccess()
		}
		return b.RecordFailure()
	})
}

func (d *double) command(k int, c commanding) any {
	switch b := d.key(k); c.name {
	case "Reset":
		b.Reset()
	case "Trip":
		b.Trip(c.open)
	case "HalfOpen":
		b.HalfOpen()
	case "ForceOpen":
		b.ForceOpen()
	default:
		b.Disable()
	}
	return d.unless(nil)
}

func (d *double) update(to updating) any {
	if to == updateWrong {
		return false
	}
	var got any = true
	if d.plot.keyed() {
		if p := d.sweep(); p != nil {
			got = p
		}
	}
	d.other = d.other != (to == updateOther)
	d.places.Most = d.plot.maxOpen(d.other)
	for _, b := range d.keys {
		b.Update(d.plot.settings(d.other))
		b.Forget = max(0, d.plot.forgetAfter(d.other))
	}
	return got
}

func (d *double) resetAll() any {
	if !d.plot.keyed() {
		return d.command(0, commanding{name: "Reset"})
	}
	for _, b := range d.keys {
		b.ResetAll()
	}
	return d.unless(nil)
}

func (d *double) sweep() any {
	if d.plot.keyed() {
		for _, b := range d.keys {
			b.Sweep()
		}
	}
	return d.unless(nil)
}

func (d *double) pass(ticks int) {
	for _, b := range d.keys {
		b.Now += time.Duration(ticks) * tick
	}
}

func (d *double) look() (s sight) {
	s.stats.Recorded = d.plot.has("RecordTotals")
	for i, b := range d.keys {
		if i > 0 && !d.plot.keyed() {
			break
		}
		state := b.State()
		s.keys[i] = seen{b.Snapshot(), state, state == ab.Open || state == ab.ForcedOpen}
		s.pristine[i] = b.Pristine()
		model.Add(&s.stats, b.Counted())
	}
	s.notified, d.notified = d.notified, [sceneKeys][]ab.Event{}
	return s
}

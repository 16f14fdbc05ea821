package fuzz

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/model"
)

// FuzzBreakerOps applies operations to a Breaker or a Group, and to one model
// for each key, and compares every result, every snapshot and every event. Some
// listeners do something themselves, and some panic.
//
// The first three bytes are the settings, and then every two are an operation
// and its argument. Time passes in units in which nothing is rounded.
func FuzzBreakerOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) < 3 || len(program) > 600 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			m := newBreakerMachine(t, program[0], program[1], program[2])
			for ops := program[3:]; len(ops) >= 2; ops = ops[2:] {
				m.step(ops[0], ops[1])
				m.compare()
			}
		})
	})
}

const (
	breakerKeys = 3
	breakerTick = 128 * time.Millisecond
)

var errDown = errors.New("down")

// breakerMachine runs a program on what is fuzzed and on the models.
type breakerMachine struct {
	t       *testing.T
	start   time.Time
	breaker *ab.Breaker       // or
	group   *ab.Group[string] // by names
	models  [breakerKeys]*model.Breaker
	held    []heldPermit
	ears    breakerEars
}

type heldPermit struct {
	key    int
	stay   int
	permit ab.Permit
}

var breakerNames = [breakerKeys]string{"", "db-1", "db-2"}

func newBreakerMachine(t *testing.T, kind, counts, times byte) *breakerMachine {
	m := &breakerMachine{t: t, start: time.Now()}
	spec := model.Breaker{
		Threshold: 1 + int(counts%3), Probes: 1 + int(counts/3%3), CloseAfter: 1 + int(counts/9%4),
		OpenFor: time.Duration(1+times%3) * breakerTick, ProbeTimeout: time.Duration(1+times/3%4) * breakerTick,
	}
	spec.MaxOpen = spec.OpenFor * time.Duration(1+times/12%5)
	c := ab.Config{
		Trip: ab.Consecutive(spec.Threshold), Probes: spec.Probes, CloseAfter: spec.CloseAfter,
		OpenTimeout: spec.OpenFor, MaxOpenTimeout: spec.MaxOpen, ProbeTimeout: spec.ProbeTimeout,
	}
	defaults := model.Breaker{
		Threshold: 5, Probes: 1, CloseAfter: 1,
		OpenFor: time.Minute, MaxOpen: 10 * time.Minute, ProbeTimeout: time.Minute,
	}
	m.ears = breakerEars{mood: breakerMood(kind / 5 % 4)}
	switch kind % 5 {
	case 0:
		if m.ears.mood != deaf {
			c.OnStateChange = func(e ab.Event) { m.hear("", e) }
		}
		m.breaker = ab.MustNew(c)
	case 1:
		m.breaker, spec, m.ears.mood = new(ab.Breaker), defaults, deaf
	case 2:
		m.group = ab.MustNewGroup(m.listening(ab.GroupConfig[string]{Default: c}))
	case 3:
		m.group = ab.MustNewGroup(m.listening(ab.GroupConfig[string]{PerKey: func(string) ab.Config { return c }, IdleTimeout: breakerTick}))
	case 4:
		m.group, spec, m.ears.mood = new(ab.Group[string]), defaults, deaf
	}
	for i := range m.models {
		spec := spec
		m.models[i] = &spec
	}
	return m
}

func (m *breakerMachine) step(op, arg byte) {
	key := int(arg) % breakerKeys
	if m.breaker != nil {
		key = 0
	}
	name, spec := breakerNames[key], m.models[key]
	switch op %= 12; op {
	case 0, 1:
		var p ab.Permit
		var err error
		returned := m.survive(func() {
			if m.breaker != nil {
				p, err = m.breaker.Allow()
			} else {
				p, err = m.group.Allow(name)
			}
		})
		stay, want := spec.Allow()
		m.heard(key)
		if !returned { // nobody has got the permit
			require.NoError(m.t, want)
			spec.Done(stay, ab.Ignored)
			return
		}
		require.Equal(m.t, want, err, "Allow")
		if err == nil {
			m.held = append(m.held, heldPermit{key, stay, p})
		}
	case 2, 3, 4:
		m.report(op, arg)
	case 5:
		m.call(key, arg/breakerKeys)
	case 6:
		m.survive(func() {
			if m.breaker != nil {
				m.breaker.Reset()
			} else {
				m.group.Reset(name)
			}
		})
		spec.Reset()
		m.heard(key)
	case 7:
		ticks := time.Duration(arg % 8)
		if arg >= 128 {
			ticks *= 700 // minutes, for the defaults
		}
		time.Sleep(ticks * breakerTick)
		for _, spec := range m.models {
			spec.Now = time.Since(m.start)
		}
	default:
		if m.group != nil {
			m.groupStep(op, key)
		}
	}
}

func (m *breakerMachine) groupStep(op byte, key int) {
	name, spec := breakerNames[key], m.models[key]
	switch op {
	case 8:
		m.verdict(func() ab.Verdict { return m.group.RecordSuccess(name) }, spec.RecordSuccess(), "RecordSuccess")
		m.heard(key)
	case 9:
		m.verdict(func() ab.Verdict { return m.group.RecordFailure(name) }, spec.RecordFailure(), "RecordFailure")
		m.heard(key)
	case 10:
		m.survive(m.group.ResetAll)
		for key, spec := range m.models {
			was, events := spec.Snapshot(), len(spec.Events)
			if spec.Reset(); was == (ab.Snapshot{}) {
				spec.Events = spec.Events[:events] // healthy: nobody is told
			}
			m.heard(key)
		}
	case 11:
		before := m.group.Len()
		require.Equal(m.t, before-m.group.Sweep(), m.group.Len(), "Len after Sweep")
	}
}

// verdict compares what an operation returns, unless a listener panics.
func (m *breakerMachine) verdict(op func() ab.Verdict, want ab.Verdict, msg ...any) {
	var got ab.Verdict
	if m.survive(func() { got = op() }) {
		require.Equal(m.t, want, got, msg...)
	}
}

// report ends one of the calls that are in flight.
func (m *breakerMachine) report(op, arg byte) {
	if len(m.held) == 0 {
		return
	}
	i := int(arg/8) % len(m.held)
	h := m.held[i]
	m.held = append(m.held[:i], m.held[i+1:]...)
	end, o := h.permit.Success, ab.Success
	done := func(err error) func() ab.Verdict { return func() ab.Verdict { return h.permit.Done(err) } }
	switch {
	case op == 3:
		end, o = h.permit.Failure, ab.Failure
	case op == 4 && arg%4 == 0:
		end, o = h.permit.Cancel, ab.Ignored
	case op == 4 && arg%4 == 1:
		end = done(nil)
	case op == 4 && arg%4 == 2:
		end, o = done(errDown), ab.Failure
	case op == 4:
		end, o = done(context.Canceled), ab.Ignored
	}
	m.verdict(end, m.models[h.key].Done(h.stay, o), "verdict of", o)
	m.heard(h.key)
}

// call makes a whole call, which may end in any way.
func (m *breakerMachine) call(key int, arg byte) {
	endings := [...]struct {
		outcome ab.Outcome
		end     func() error
	}{
		{ab.Success, func() error { return nil }},
		{ab.Failure, func() error { return errDown }},
		{ab.Ignored, func() error { return context.Canceled }},
		{ab.Failure, func() error { panic(errDown) }},
		{ab.Failure, func() error { runtime.Goexit(); return nil }},
	}
	ending := endings[int(arg)%len(endings)]
	called := false
	run := func() error {
		fn := func(context.Context) error { called = true; return ending.end() }
		switch {
		case m.group != nil:
			return m.group.Do(context.Background(), breakerNames[key], fn)
		case arg&64 != 0:
			_, err := ab.Execute(m.breaker, func() (int, error) { return 0, fn(nil) })
			return err
		case arg&32 != 0:
			_, err := ab.ExecuteContext(context.Background(), m.breaker, func(ctx context.Context) (int, error) { return 0, fn(ctx) })
			return err
		default:
			return m.breaker.Do(context.Background(), fn)
		}
	}
	var err error
	m.ears.failed = false
	apart(func() { err = run() })
	stay, want := m.models[key].Allow()
	m.heardSoFar(key)
	if !called && m.ears.failed { // in Allow, so nobody has got the permit
		require.NoError(m.t, want)
		m.models[key].Done(stay, ab.Ignored)
		return
	}
	require.Equal(m.t, want == nil, called, "whether the call was admitted")
	if want != nil {
		require.Equal(m.t, want, err, "Do")
		return
	}
	m.models[key].Done(stay, ending.outcome)
	m.heard(key)
}

// breakerMood is what a listener does: it may reset its breaker on every third
// event, or panic.
type breakerMood byte

const (
	deaf breakerMood = iota
	calm
	eager
	anxious
)

// breakerEars is what the listeners of all keys were told, and what they should
// have been.
type breakerEars struct {
	mood   breakerMood
	told   [breakerKeys][]ab.Event
	wanted [breakerKeys]int // events of the models that were compared
	failed bool             // a listener has panicked
}

func (m *breakerMachine) listening(c ab.GroupConfig[string]) ab.GroupConfig[string] {
	if m.ears.mood != deaf {
		c.OnStateChange = m.hear
	}
	return c
}

func (e *breakerEars) acts(nth int) bool { return nth%3 == 0 }

// hear is the listener.
func (m *breakerMachine) hear(name string, e ab.Event) {
	key := slices.Index(breakerNames[:], name)
	told := append(m.ears.told[key], e)
	m.ears.told[key] = told
	if !m.ears.acts(len(told)) {
		return
	}
	switch m.ears.mood {
	case eager:
		if m.breaker != nil {
			m.breaker.Reset()
		} else {
			m.group.Reset(name)
		}
		require.Len(m.t, m.ears.told[key], len(told), "told inside")
	case anxious:
		m.ears.failed = true
		panic(errDown)
	}
}

// heard compares what a listener was told with the model.
func (m *breakerMachine) heard(key int) {
	m.heardSoFar(key)
	if m.ears.mood != deaf {
		require.Len(m.t, m.ears.told[key], len(m.models[key].Events))
	}
}

// heardSoFar is heard in the middle of a call. The listener may have changed
// the breaker.
func (m *breakerMachine) heardSoFar(key int) {
	e, spec := &m.ears, m.models[key]
	if e.mood == deaf {
		return
	}
	for ; e.wanted[key] < len(spec.Events); e.wanted[key]++ {
		i := e.wanted[key]
		require.Greater(m.t, len(e.told[key]), i, "events")
		got := e.told[key][i]
		if got.Generation != 1 && i > 0 {
			require.Equal(m.t, e.told[key][i-1].Generation+1, got.Generation)
		}
		require.True(m.t, got.At.Equal(time.Now()), "event of %v", got.At)
		got.Generation, got.At = 0, time.Time{}
		require.Equal(m.t, spec.Events[i], got, "event %d", i)
		if e.mood == eager && e.acts(i+1) {
			spec.Reset()
		}
	}
}

// survive reports whether op returned. It does not if a listener panics.
func (m *breakerMachine) survive(op func()) (returned bool) {
	if m.ears.mood == anxious {
		return apart(op)
	}
	op()
	return true
}

// apart runs op in a goroutine, so that Goexit and errDown do not end the test,
// and reports whether it returned.
func apart(op func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil && p != any(errDown) {
				panic(p)
			}
		}()
		op()
		returned = true
	}()
	<-done
	return returned
}

// compare looks at all keys.
func (m *breakerMachine) compare() {
	if m.breaker != nil {
		got := m.breaker.Snapshot()
		got.Generation = 0 // the model counts stays, without a limit
		require.Equal(m.t, m.models[0].Snapshot(), got)
		require.Equal(m.t, got.State, m.breaker.State())
		return
	}
	snapshots := map[string]ab.Snapshot{}
	for k, s := range m.group.All() {
		s.Generation = 0
		snapshots[k] = s
	}
	require.Len(m.t, snapshots, m.group.Len())
	for i, k := range breakerNames {
		// The zero Snapshot of a key that is not stored is that of a pristine
		// one.
		want := m.models[i].Snapshot()
		require.Equal(m.t, want, snapshots[k], "key %q", k)
		require.Equal(m.t, want.State, m.group.State(k))
		require.Equal(m.t, want.State == ab.Open, m.group.IsOpen(k))
	}
}

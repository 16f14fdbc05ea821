package sequences

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
	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
)

// FuzzBreakerOps applies operations to a Breaker or a Group, and to one model
// for each key, and compares every result, every snapshot, every count and
// every event. Some listeners do something themselves, and some panic.
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

type permit = adapt.Permit

const (
	breakerKeys = 3
	breakerTick = adapt.Tick

	breakerOps = 17 // operations; what is left of the byte is an argument of some
)

var errDown = errors.New("down")

// breakerMachine runs a program on what is fuzzed and on the models.
type breakerMachine struct {
	t       *testing.T
	start   time.Time
	breaker *ab.Breaker       // or
	group   *ab.Group[string] // by names
	perKey  bool              // it has GroupConfig.PerKey
	times   byte
	models  [breakerKeys]*model.Breaker
	held    []heldPermit
	ears    breakerListener
}

type heldPermit struct {
	key    int
	spec   model.Permit
	permit permit
}

var breakerNames = [breakerKeys]string{"", "db-1", "db-2"}

func newBreakerMachine(t *testing.T, kind, counts, times byte) *breakerMachine {
	m := &breakerMachine{t: t, start: time.Now(), times: times}
	spec := model.Breaker{Settings: breakerSettings(kind/20, counts, times)}
	spec.Totals = (kind+counts+times)%3 == 0
	c := spec.Config()
	m.ears = breakerListener{mood: listenerMood(kind / 5 % 4)}
	switch kind % 5 {
	case 0:
		m.breaker = ab.MustNew(m.hearing(c))
	case 1:
		m.breaker, spec.Settings, m.ears.mood = new(ab.Breaker), defaultSettings, deaf
	case 2, 3:
		m.perKey = kind%5 == 3
		spec.Forget = forgetTime(counts ^ times)
		m.group = ab.MustNewGroup(m.grouped(c, spec.Forget))
	case 4:
		m.group, spec.Settings, m.ears.mood = new(ab.Group[string]), defaultSettings, deaf
		spec.Forget = time.Hour
	}
	spec.Keyed = m.group != nil
	for i := range m.models {
		spec := spec
		m.models[i] = &spec
	}
	return m
}

// grouped makes settings those of a group.
func (m *breakerMachine) grouped(c ab.Config, forget time.Duration) ab.GroupConfig[string] {
	g := ab.GroupConfig[string]{Default: c, ForgetAfter: forgetting(forget)}
	if m.perKey {
		g.Default = ab.Config{Policy: c.Policy, RecordTotals: c.RecordTotals}
		g.PerKey = func(string) ab.Config { return c }
	}
	return m.listening(g)
}

func (m *breakerMachine) step(op, arg byte) {
	key := int(arg) % breakerKeys
	if m.breaker != nil {
		key = 0
	}
	name, spec, more := breakerNames[key], m.models[key], op/breakerOps
	switch op %= breakerOps; op {
	case 0, 1:
		var p permit
		var err error
		returned := m.survive(func() {
			if m.breaker != nil {
				p, err = m.breaker.Allow()
			} else {
				p, err = m.group.Allow(name)
			}
		})
		admitted, want := spec.Allow()
		m.heard(key)
		if !returned { // nobody has got the permit
			require.NoError(m.t, want)
			spec.Done(admitted, ab.Ignored)
			return
		}
		require.Equal(m.t, want, err, "Allow")
		if err == nil {
			m.held = append(m.held, heldPermit{key, admitted, p})
		}
	case 2, 3, 4:
		m.report(op, arg)
	case 5:
		calls := byte(1)
		if spec.Policy.Last() > 32 {
			calls += more * 4 // or a history would never end
		}
		for range calls {
			m.call(key, arg/breakerKeys)
		}
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
	case 8, 9:
		m.record(op, key)
	case 10, 11:
		if m.group != nil {
			m.groupStep(op)
		}
	case 15:
		m.doneTrip(arg)
	case 16:
		m.update(more, arg)
	default:
		m.command(op, key, arg/breakerKeys)
	}
}

// record reports a result without a permit.
func (m *breakerMachine) record(op byte, key int) {
	name, spec := breakerNames[key], m.models[key]
	success, failure := func() ab.Verdict { return m.group.RecordSuccess(name) }, func() ab.Verdict { return m.group.RecordFailure(name) }
	if m.breaker != nil {
		success, failure = m.breaker.RecordSuccess, m.breaker.RecordFailure
	}
	if op == 8 {
		m.verdict(success, spec.RecordSuccess(), "RecordSuccess")
	} else {
		m.verdict(failure, spec.RecordFailure(), "RecordFailure")
	}
	m.heard(key)
}

func (m *breakerMachine) groupStep(op byte) {
	switch op {
	case 10:
		m.survive(m.group.ResetAll)
		for key, spec := range m.models {
			spec.ResetAll()
			m.heard(key)
		}
	case 11:
		m.sweep()
	}
}

func (m *breakerMachine) sweep() {
	before := m.group.Len()
	m.survive(func() { require.Equal(m.t, before-m.group.Sweep(), m.group.Len(), "Len after Sweep") })
	for key, spec := range m.models {
		spec.Sweep()
		m.heard(key)
	}
}

// verdict compares what an operation returns, unless a listener panics.
func (m *breakerMachine) verdict(op func() ab.Verdict, want ab.Verdict, msg ...any) {
	var got ab.Verdict
	if m.survive(func() { got = op() }) {
		require.Equal(m.t, want, got, msg...)
	}
}

// take returns the permit of one of the calls that are in flight, and forgets
// it.
func (m *breakerMachine) take(arg byte) (h heldPermit, ok bool) {
	if len(m.held) == 0 {
		return h, false
	}
	i := int(arg/8) % len(m.held)
	h = m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	return h, true
}

// report ends one of the calls that are in flight.
func (m *breakerMachine) report(op, arg byte) {
	h, ok := m.take(arg)
	if !ok {
		return
	}
	end, o := h.permit.Success, ab.Success
	reported := func(o ab.Outcome) func() ab.Verdict { return func() ab.Verdict { return h.permit.Report(o) } }
	done := func(err error) func() ab.Verdict { return func() ab.Verdict { return h.permit.Done(err) } }
	switch {
	case op == 3 && arg%8 < 4:
		end, o = h.permit.Failure, ab.Failure
	case op == 3:
		end, o = reported(ab.Failure), ab.Failure
	case op == 4 && arg%16 == 8:
		end, o = reported(ab.Ignored), ab.Ignored
	case op == 4 && arg%16 == 9:
		end = reported(ab.Success)
	case op == 4 && arg%4 == 0:
		end, o = h.permit.Cancel, ab.Ignored
	case op == 4 && arg%4 == 1:
		end = done(nil)
	case op == 4 && arg%4 == 2:
		end, o = done(errDown), ab.Failure
	case op == 4:
		end, o = done(context.Canceled), ab.Ignored
	}
	m.verdict(end, m.models[h.key].Done(h.spec, o), "verdict of", o)
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
		{ab.Ignored, func() error { return ab.ErrRejected }}, // of an inner breaker
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
		case arg&16 != 0:
			classify := func(_ int, err error) ab.Outcome {
				return ab.Classify(nil, err) //lint:ignore SA1012 it is not known
			}
			_, err := ab.ExecuteResult(context.Background(), m.breaker, func(ctx context.Context) (int, error) { return 0, fn(ctx) }, classify)
			return err
		default:
			return m.breaker.Do(context.Background(), fn)
		}
	}
	var err error
	m.ears.failed = false
	apart(func() { err = run() })
	admitted, want := m.models[key].Allow()
	m.heardSoFar(key)
	if !called && m.ears.failed { // in Allow, so nobody has got the permit
		require.NoError(m.t, want)
		m.models[key].Done(admitted, ab.Ignored)
		return
	}
	require.Equal(m.t, want == nil, called, "whether the call was admitted")
	if want != nil {
		require.Equal(m.t, want, err, "Do")
		return
	}
	m.models[key].Done(admitted, ending.outcome)
	m.heard(key)
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
		require.Equal(m.t, got.State == ab.Open || got.State == ab.ForcedOpen, m.breaker.IsOpen())
		require.Equal(m.t, m.models[0].Counted(), m.breaker.Stats())
		return
	}
	snapshots := map[string]ab.Snapshot{}
	for k, s := range m.group.All() {
		s.Generation = 0
		snapshots[k] = s
	}
	require.Len(m.t, snapshots, m.group.Len())
	var stats ab.Stats
	for i, k := range breakerNames {
		want := m.models[i].Snapshot()
		got, stored := snapshots[k]
		if !stored {
			require.True(m.t, m.models[i].Pristine(), "key %q is not stored", k)
			if got = m.group.Snapshot(k); m.perKey {
				want.State = ab.Closed // nobody has asked for the settings
			}
		}
		require.Equal(m.t, want, got, "key %q", k)
		require.Equal(m.t, want.State, m.group.State(k))
		require.Equal(m.t, want.State == ab.Open || want.State == ab.ForcedOpen, m.group.IsOpen(k))
		model.Add(&stats, m.models[i].Counted())
	}
	require.Equal(m.t, stats, m.group.Stats())
}

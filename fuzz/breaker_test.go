package fuzz

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/model"
)

// FuzzBreakerOps applies operations to a Breaker or a Group, and to one model
// for each key, and compares every result and every snapshot.
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
	switch kind % 5 {
	case 0:
		m.breaker = ab.MustNew(c)
	case 1:
		m.breaker, spec = new(ab.Breaker), defaults
	case 2:
		m.group = ab.MustNewGroup(ab.GroupConfig[string]{Default: c})
	case 3:
		m.group = ab.MustNewGroup(ab.GroupConfig[string]{PerKey: func(string) ab.Config { return c }, IdleTimeout: breakerTick})
	case 4:
		m.group, spec = new(ab.Group[string]), defaults
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
		if m.breaker != nil {
			p, err = m.breaker.Allow()
		} else {
			p, err = m.group.Allow(name)
		}
		stay, want := spec.Allow()
		require.Equal(m.t, want, err, "Allow")
		if err == nil {
			m.held = append(m.held, heldPermit{key, stay, p})
		}
	case 2, 3, 4:
		m.report(op, arg)
	case 5:
		m.call(key, arg/breakerKeys)
	case 6:
		if m.breaker != nil {
			m.breaker.Reset()
		} else {
			m.group.Reset(name)
		}
		spec.Reset()
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
			m.groupStep(op, name, spec)
		}
	}
}

func (m *breakerMachine) groupStep(op byte, name string, spec *model.Breaker) {
	switch op {
	case 8:
		require.Equal(m.t, spec.RecordSuccess(), m.group.RecordSuccess(name), "RecordSuccess")
	case 9:
		require.Equal(m.t, spec.RecordFailure(), m.group.RecordFailure(name), "RecordFailure")
	case 10:
		m.group.ResetAll()
		for _, spec := range m.models {
			spec.Reset()
		}
	case 11:
		before := m.group.Len()
		require.Equal(m.t, before-m.group.Sweep(), m.group.Len(), "Len after Sweep")
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
	var got ab.Verdict
	var o ab.Outcome
	switch op {
	case 2:
		got, o = h.permit.Success(), ab.Success
	case 3:
		got, o = h.permit.Failure(), ab.Failure
	case 4:
		var err error
		switch arg % 4 {
		case 0:
			got, o = h.permit.Cancel(), ab.Ignored
		case 1:
			got, o = h.permit.Done(nil), ab.Success
		case 2:
			err, o = errDown, ab.Failure
		case 3:
			err, o = context.Canceled, ab.Ignored
		}
		if err != nil {
			got = h.permit.Done(err)
		}
	}
	require.Equal(m.t, m.models[h.key].Done(h.stay, o), got, "verdict of %v", o)
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
	done := make(chan struct{})
	go func() { // Goexit must not end the test
		defer close(done)
		defer func() {
			if p := recover(); p != nil && p != any(errDown) {
				panic(p)
			}
		}()
		err = run()
	}()
	<-done
	stay, want := m.models[key].Allow()
	require.Equal(m.t, want == nil, called, "whether the call was admitted")
	if want != nil {
		require.Equal(m.t, want, err, "Do")
		return
	}
	m.models[key].Done(stay, ending.outcome)
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

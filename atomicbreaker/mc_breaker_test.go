//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
)

// lone is a Breaker as a subject. Its only key is k.
type lone struct {
	*Breaker
	permits [slots]Permit
}

func (l *lone) allow(slot int, _ string) (err error) {
	l.permits[slot], err = l.Allow()
	return err
}

func (l *lone) report(slot int, o Outcome) Verdict { return reportTo(l.permits[slot], o) }

func (l *lone) record(_ string, o Outcome) Verdict {
	if o == Success {
		return l.RecordSuccess()
	}
	return l.RecordFailure()
}

func (l *lone) state(string) State     { return l.State() }
func (l *lone) reset(string)           { l.Reset() }
func (l *lone) expire(string)          { passDeadline(&l.core) }
func (l *lone) update(Config)          { panic("see mc_update_test.go") }
func (l *lone) age(string)             { panic("only a Group forgets") }
func (l *lone) resetAll()              {}
func (l *lone) sweep()                 {}
func (l *lone) kill(string)            {}
func (l *lone) linger(string)          {}
func (l *lone) notified(string) string { return "" }
func (l *lone) quiet() error           { return nil }
func (l *lone) stats() string          { return fmt.Sprintf("%+v", l.Stats()) }

func (l *lone) look(key string) string {
	if key != k {
		return show(Closed, 0, 0, 0)
	}
	s := l.Snapshot()
	return show(s.State, s.Failures, s.Streak, s.InFlight)
}

// What two and three callers may do to the word of one breaker, in every order.
func TestBreakerProtocols(t *testing.T) {
	var (
		ready = after(opened, expire(k)) // for a probe
		two   = Config{Probes: 2, CloseAfter: 2}
		twice = after(probing, allow(0, k)) // two probes in flight
	)
	for name, p := range map[string]protocol{
		"two failures and a success":        {before: failing, threads: threads{{reportOp(0, Failure)}, {reportOp(2, Failure)}, {reportOp(1, Success)}}},
		"three failures":                    {before: held, threads: threads{{reportOp(0, Failure)}, {reportOp(1, Failure)}, {record(k, Failure)}}},
		"a failure, a success and Reset":    {before: failing, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}, {reset(k)}}},
		"a call, a recovery and Reset":      {before: opened, threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Success)}, {reset(k)}}},
		"State, a recovery and a trip":      {before: failing, threads: threads{{state(k), state(k)}, {reportOp(0, Failure)}, {record(k, Success)}}},
		"a probe's end":                     {before: probing, threads: threads{{reportOp(3, Success)}, {record(k, Failure)}, {allow(0, k)}}},
		"a probe, and all over":             {before: probing, threads: threads{{reportOp(3, Ignored)}, {allow(0, k), reportOp(0, Success)}, {record(k, Success)}}},
		"two calls for one probe":           {before: ready, threads: threads{{allow(0, k), reportOp(0, Failure)}, {allow(1, k), reportOp(1, Success)}}},
		"two calls for one probe and Reset": {before: ready, threads: threads{{allow(0, k)}, {allow(1, k)}, {reset(k)}}},
		"a late opening and a probe":        {before: ready, threads: threads{{record(k, Failure)}, {allow(0, k), reportOp(0, Failure)}, {state(k)}}},
		"two heirs of a lost probe":         {before: overdue, threads: threads{{reportOp(3, Success)}, {allow(0, k)}, {allow(1, k)}}},
		"two probes and one more":           {settings: two, before: twice, threads: threads{{reportOp(3, Success)}, {reportOp(0, Success)}, {allow(1, k)}}},
		"two probes that disagree":          {settings: two, before: twice, threads: threads{{reportOp(3, Success)}, {reportOp(0, Failure)}, {record(k, Failure)}}},
		"Reset twice":                       {before: failing, threads: threads{{reset(k)}, {reset(k)}, {reportOp(2, Failure)}}},
	} {
		t.Run(name, func(t *testing.T) {
			p.checkOf(t, mc.Config{}, func(c Config) subject {
				l := &lone{Breaker: MustNew(c)}
				plainly(l.core.set.Load().counters)
				return l
			})
		})
	}
}

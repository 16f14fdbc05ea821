//go:build !modelcheck

package histories_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/history"
)

func TestBrokenBreakerHistories(t *testing.T) {
	reject := func(name string, trial func(func(*breakerLimits) group) func(*rand.Rand) history.Trial[circuit], broken func(realGroup) group) {
		t.Run(name, func(t *testing.T) {
			history.Reject(t, trial(func(l *breakerLimits) group { return broken(newGroup(l).(realGroup)) }))
		})
	}
	inTime := func(fresh func(*breakerLimits) group) func(*rand.Rand) history.Trial[circuit] {
		return timedTrial(2, fresh)
	}
	reject("lost failures", groupTrial, func(g realGroup) group { return &losesFailures{realGroup: g} })
	reject("two trips", groupTrial, func(g realGroup) group { return tripsTwice{g} })
	reject("late results that count", groupTrial, func(g realGroup) group { return countsLate{g} })
	reject("a State from the past", groupTrial, func(g realGroup) group { return &staleState{realGroup: g} })
	reject("a probe too many", inTime, func(g realGroup) group { return extraProbe{g} })
	reject("late probes that count", inTime, func(g realGroup) group { return countsLate{g} })
}

// losesFailures counts one of several failures that come together, as a count
// that is read and written in two steps does.
type losesFailures struct {
	realGroup
	busy sync.Map
}

func (g *losesFailures) RecordFailure(k string) ab.Verdict {
	if _, busy := g.busy.LoadOrStore(k, true); busy {
		return ab.Counted
	}
	defer g.busy.Delete(k)
	runtime.Gosched()
	return g.realGroup.RecordFailure(k)
}

// tripsTwice tells everyone who saw the key closed that his failure opened it.
type tripsTwice struct{ realGroup }

func (g tripsTwice) RecordFailure(k string) ab.Verdict {
	closed := g.State(k) == ab.Closed
	runtime.Gosched()
	v := g.realGroup.RecordFailure(k)
	if closed && v == ab.Late {
		return ab.Tripped
	}
	return v
}

// countsLate counts failures of calls that were admitted before the last
// change.
type countsLate struct{ realGroup }

func (g countsLate) Allow(k string) (permit, error) {
	p, err := g.realGroup.Allow(k)
	return latePermit{p, g, k}, err
}

type latePermit struct {
	permit
	group countsLate
	key   string
}

func (p latePermit) Failure() ab.Verdict {
	if v := p.permit.Failure(); v != ab.Late {
		return v
	}
	return p.group.RecordFailure(p.key)
}

// staleState returns now and then what an earlier State has seen.
type staleState struct {
	realGroup
	seen sync.Map
}

func (g *staleState) State(k string) ab.State {
	if s, ok := g.seen.LoadAndDelete(k); ok {
		return s.(ab.State)
	}
	s := g.realGroup.State(k)
	g.seen.Store(k, s)
	return s
}

// extraProbe admits whoever finds all probes out.
type extraProbe struct{ realGroup }

func (g extraProbe) Allow(k string) (permit, error) {
	p, err := g.realGroup.Allow(k)
	if err == ab.ErrTooManyProbes {
		err = nil
	}
	return p, err
}

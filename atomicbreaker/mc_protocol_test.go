//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/internal/table"
)

// Keys. A twin shares its slot of the filter with k, and another does not.
var k, twin, another = keysByStripe()

func keysByStripe() (k, twin, another string) {
	keys := table.NewKeys[string]()
	k = "k"
	for i := 0; twin == "" || another == ""; i++ {
		name := fmt.Sprint("k", i)
		if filterSlot(keys.Hash(name)) == filterSlot(keys.Hash(k)) {
			twin = name
		} else {
			another = name
		}
	}
	return k, twin, another
}

// An action is an operation of a protocol.
type action = mc.Call[subject]

func allow(slot int, k string) action {
	return action{Name: fmt.Sprintf("Allow(%q) %d", k, slot), Do: func(s subject) any { return s.allow(slot, k) }}
}

func reportOp(slot int, o Outcome) action {
	return action{Name: fmt.Sprintf("%v of %d", o, slot), Do: func(s subject) any { return s.report(slot, o) }}
}

func record(k string, o Outcome) action {
	return action{Name: fmt.Sprintf("Record%v(%q)", o, k), Do: func(s subject) any { return s.record(k, o) }}
}

func state(k string) action {
	return action{Name: fmt.Sprintf("State(%q)", k), Do: func(s subject) any { return s.state(k) }}
}

func reset(k string) action {
	return action{Name: fmt.Sprintf("Reset(%q)", k), Do: func(s subject) any { s.reset(k); return nil }}
}

func update(c Config) action {
	return action{Name: fmt.Sprintf("Update(%v)", c.Policy), Do: func(s subject) any { s.update(c); return nil }}
}

func expire(k string) action {
	return action{Name: fmt.Sprintf("expire(%q)", k), Do: func(s subject) any { s.expire(k); return nil }}
}

func age(k string) action {
	return action{Name: fmt.Sprintf("age(%q)", k), Do: func(s subject) any { s.age(k); return nil }}
}

func lingers(k string) action {
	return action{Name: fmt.Sprintf("RecordSuccess(%q), stopped", k), Do: func(s subject) any { s.linger(k); return nil }}
}

func bury(k string) action {
	return action{Name: fmt.Sprintf("bury(%q)", k), Do: func(s subject) any { s.kill(k); return nil }}
}

func look(k string) action {
	return action{Name: fmt.Sprintf("look(%q)", k), Do: func(s subject) any { return s.look(k) }}
}

func notified(k string) action {
	return action{Name: fmt.Sprintf("told(%q)", k), Do: func(s subject) any { return s.notified(k) }}
}

var (
	resetAll = action{Name: "ResetAll", Do: func(s subject) any { s.resetAll(); return nil }}
	sweep    = action{Name: "Sweep", Do: func(s subject) any { s.sweep(); return nil }}
	quiet    = action{Name: "quiet", Do: func(s subject) any { return s.quiet() }}
	tallies  = action{Name: "Stats", Do: func(s subject) any { return s.stats() }}
)

// A protocol is what some threads do to a group, and what was done before.
type protocol struct {
	settings Config
	listens  bool // and the listener's events must be those of that order
	before   []action
	threads  [][]action
}

// check explores the protocol with a Group. In every execution the results are
// those of some order of the actions on the model.
func (p protocol) check(t *testing.T, cfg mc.Config) mc.Result {
	t.Helper()
	return p.checkOf(t, cfg, func(settings Config) subject {
		c := &checked{t: t}
		config := GroupConfig[string]{Default: settings}
		if p.listens {
			c.events = map[string]*[]Event{k: {}, twin: {}, another: {}}
			config.OnStateChange = c.hear
		}
		c.Group = MustNewGroup(config)
		plainly(&c.current().counters)
		return c
	})
}

// checkOf is check for other subjects.
func (p protocol) checkOf(t *testing.T, cfg mc.Config, fresh func(Config) subject) mc.Result {
	t.Helper()
	p.settings.OpenTimeout = time.Minute
	p.settings.Probes = max(p.settings.Probes, 1)
	if p.settings.Policy == nil {
		p.settings.Policy = Consecutive(2)
	}
	start := func(s subject) subject {
		for _, a := range p.before {
			a.Do(s)
		}
		return s
	}
	return mc.Linearizable(t, cfg, mc.Program[subject]{
		New: func() subject { return start(fresh(p.settings)) },
		Model: func() subject {
			return start(&spec{settings: p.settings, deaf: !p.listens, keys: map[string]Model{}})
		},
		Threads: p.threads,
		After:   []action{quiet, look(k), look(twin), look(another), notified(k), notified(twin), notified(another), tallies},
	})
}

//go:build modelcheck

package interleavings

import (
	"context"
	"iter"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
)

// FuzzBreakerInterleavings runs threads on a Breaker or a Group in every order.
// The first two bytes have the settings. There are no windows: they count a
// failure before they decide, and so what they say follows no sequential order.
func FuzzBreakerInterleavings(f *testing.F) {
	fuzzInterleavings(f, breakerProgram(newBreakers))
}

type permit = adapt.Permit

// breakers is what a Group does, and a Breaker where it can.
type breakers interface {
	Allow(string) (permit, error)
	Do(context.Context, string, func(context.Context) error) error
	State(string) ab.State
	Reset(string)
	RecordSuccess(string) ab.Verdict
	RecordFailure(string) ab.Verdict
	IsOpen(string) bool
	Sweep() int
	Len() int
	All() iter.Seq2[string, ab.Snapshot]
	Trip(string, time.Duration)
	ForceOpen(string)
	Disable(string)
	Stats() ab.Stats
	Update(ab.Config) error
}

// keyed is a Group as breakers, of which nobody asks for an Update.
type keyed struct{ *ab.Group[string] }

func (g keyed) Allow(k string) (permit, error) { return g.Group.Allow(k) }

func (keyed) Update(ab.Config) error { panic("a Group has no Update") }

// alone is a Breaker as breakers of one key.
type alone struct {
	b *ab.Breaker
}

func (a alone) Allow(string) (permit, error)    { return a.b.Allow() }
func (a alone) State(string) ab.State           { return a.b.State() }
func (a alone) IsOpen(string) bool              { return a.b.IsOpen() }
func (a alone) RecordSuccess(string) ab.Verdict { return a.b.RecordSuccess() }
func (a alone) RecordFailure(string) ab.Verdict { return a.b.RecordFailure() }
func (a alone) Reset(string)                    { a.b.Reset() }
func (a alone) Sweep() int                      { return 0 }
func (a alone) Len() int                        { return 1 }
func (a alone) Trip(_ string, d time.Duration)  { a.b.Trip(d) }
func (a alone) ForceOpen(string)                { a.b.ForceOpen() }
func (a alone) Disable(string)                  { a.b.Disable() }
func (a alone) Stats() ab.Stats                 { return a.b.Stats() }
func (a alone) Update(c ab.Config) error        { return a.b.Update(c) }

func (a alone) Do(ctx context.Context, _ string, fn func(context.Context) error) error {
	_, err := ab.ExecuteContext(ctx, a.b, func(ctx context.Context) (int, error) { return 0, fn(ctx) })
	return err
}

func (a alone) All() iter.Seq2[string, ab.Snapshot] {
	return func(yield func(string, ab.Snapshot) bool) { yield(breakerKeyNames[0], a.b.Snapshot()) }
}

// The keys of a group, and how the clock goes: in units in which nothing is
// rounded.
var breakerKeyNames = [...]string{"db-1", "db-2"}

const breakerStep = 128 * time.Millisecond

// breakerSetup is what the first bytes of a program say.
type breakerSetup struct {
	group, listens bool
	settings       model.Settings
}

func breakerSetupOf(b, more byte) breakerSetup {
	return breakerSetup{group: b%4 > 0, listens: b >= 128, settings: interleavedSettings(b, more)}
}

// interleavedSettings are those of few failures, calls and steps of the clock.
func interleavedSettings(b, more byte) model.Settings {
	s := model.Settings{
		Policy: adapt.BreakerPolicy(more%3, 1+b>>2&1, more/3%2, 0), Shadow: more >= 128, Totals: more/6%2 == 1,
		Probes: 1 + int(b>>3&1), CloseAfter: 1 + int(b>>4&1),
		OpenFor: breakerStep * time.Duration(1+b>>5&1), ProbeTimeout: breakerStep * time.Duration(1+b>>6&1),
	}
	s.MaxOpen = 2 * s.OpenFor
	return s
}

// newBreakers makes what the settings say, which tells hear of its changes.
func newBreakers(s breakerSetup, hear func(string, ab.Event)) breakers {
	c := s.settings.Config()
	if !s.group {
		if s.listens {
			c.OnStateChange = func(e ab.Event) { hear(breakerKeyNames[0], e) }
		}
		return alone{b: ab.MustNew(c)}
	}
	g := ab.GroupConfig[string]{Default: c}
	if s.listens {
		g.OnStateChange = hear
	}
	return keyed{ab.MustNewGroup(g)}
}

// sharedBreakers are breakers, and the permits that threads hold. What the
// prelude holds is dealt out to the threads.
type sharedBreakers struct {
	breakers
	threads int
	held    [4][]*breakerPermit
	ears    [len(breakerKeyNames)]ear
	setup   breakerSetup
	updates breakerUpdates
}

type breakerPermit struct {
	key      int
	permit   permit
	reported bool
}

// take returns a permit that a thread has not reported yet, or nil.
func (b *sharedBreakers) take(thread int, which byte) *breakerPermit {
	var mine []*breakerPermit
	for i, p := range b.held[0] {
		if (thread == 0 || i%b.threads == thread-1) && !p.reported {
			mine = append(mine, p)
		}
	}
	for _, p := range b.held[thread] {
		if thread > 0 && !p.reported {
			mine = append(mine, p)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	p := mine[int(which)%len(mine)]
	p.reported = true
	return p
}

// breakerModel has a model for each key, and what permits belong to.
type breakerModel struct {
	keys  [len(breakerKeyNames)]*model.Breaker
	stays map[*breakerPermit]model.Permit
	now   int // in steps of the clock
}

// at returns the model of a key at a time.
func (s *breakerModel) at(key, ticks int) *model.Breaker {
	b := s.keys[key]
	b.Now = time.Duration(ticks) * breakerStep
	return b
}

type (
	breakerCaller = interleave.Caller[*sharedBreakers, *breakerModel]
	breakerOp     = interleave.Op[*sharedBreakers, *breakerModel]
)

func breakerProgram(fresh func(breakerSetup, func(string, ab.Event)) breakers) decoder[*sharedBreakers, *breakerModel] {
	return func(program []byte) (p interleave.Program[*sharedBreakers, *breakerModel], ok bool) {
		if len(program) < 2 {
			return p, false
		}
		setup := breakerSetupOf(program[0], program[1])
		decode := decodeBreaker
		if setup.group {
			decode = decodeGroup
		}
		p, ok = interleave.Decode(program[2:], decode)
		threads := len(p.Threads)
		p.Tick = breakerStep
		p.New = func() *sharedBreakers {
			b := &sharedBreakers{threads: threads, setup: setup}
			b.breakers = fresh(setup, b.hear)
			return b
		}
		p.Model = func() *breakerModel {
			s := &breakerModel{stays: map[*breakerPermit]model.Permit{}}
			for i := range s.keys {
				s.keys[i] = &model.Breaker{Settings: setup.settings, Keyed: setup.group}
			}
			return s
		}
		p.After = []breakerOp{breakerSnapshots(setup.group), breakerAllow(0), breakerTime(1), breakerTime(1), breakerAllow(0), breakerSnapshots(setup.group), breakerStats}
		if setup.group {
			p.After = append(p.After, breakerAllow(1), breakerQuietLen)
		}
		if setup.listens {
			p.After = append(p.After, breakerEvents(0), breakerEvents(1))
		}
		return p, ok
	}
}

// decodeBreaker knows what a Breaker does.
func decodeBreaker(code interleave.Code, _ int, inside func() (breakerOp, bool)) breakerOp {
	if code.Op >= firstCommand {
		return decodeCommand(code, 0)
	}
	switch code.Op % 16 {
	case 0, 1, 2:
		return breakerAllow(0)
	case 3, 4:
		return breakerReport(code.Arg, ab.Success)
	case 5, 6, 7:
		return breakerReport(code.Arg, ab.Failure)
	case 8:
		return breakerReport(code.Arg, ab.Ignored)
	case 9, 10:
		return breakerCall(0, code.Arg, inside)
	case 11:
		return breakerReset(0)
	case 12:
		switch code.Arg % 4 {
		case 1:
			return breakerIsOpen(0)
		case 2, 3:
			return breakerRecord(0, ab.Outcome(code.Arg%2))
		}
		return breakerState(0)
	case 13:
		return breakerSnapshots(false)
	default:
		return breakerTime(1 + code.Arg%2)
	}
}

// decodeGroup knows what a Group does, mostly with one key.
func decodeGroup(code interleave.Code, id int, inside func() (breakerOp, bool)) breakerOp {
	key := int(code.Arg % 4 / 3)
	if code.Op >= firstCommand {
		if code.Op%8 == updates {
			code.Op++ // a Group has none
		}
		return decodeCommand(interleave.Code{Op: code.Op, Arg: code.Arg / 4}, key)
	}
	switch code.Op % 28 {
	case 16, 17:
		return breakerRecord(key, ab.Success)
	case 18, 19, 20:
		return breakerRecord(key, ab.Failure)
	case 21:
		return breakerReset(key)
	case 22:
		return breakerSweep
	case 23:
		return breakerIsOpen(key)
	case 24:
		return breakerSnapshots(true)
	case 25:
		return breakerAllow(key)
	case 26:
		return breakerCall(key, code.Arg/4, inside)
	case 27:
		return [...]breakerOp{breakerReset(key), breakerState(key)}[code.Arg/4%2]
	}
	return decodeBreaker(interleave.Code{Op: code.Op % 28, Arg: code.Arg}, id, inside)
}

//go:build modelcheck

package atomicbreaker

import (
	"slices"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// What comes before: calls in flight, and then some that have ended.
var (
	inFlight = []order{ask(0), ask(1), ask(2)}
	oneOf    = append(inFlight[:3:3], ask(3), ends(3, Failure))
	twoOf    = append(oneOf[:5:5], ask(3), ends(3, Failure))
	thenOK   = append(oneOf[:5:5], ask(3), ends(3, Success))
)

// Results count one by one, in some order, in what the word remembers of the
// last calls, and one of them opens the breaker.
func TestLastCalls(t *testing.T) {
	anyOf := Config{Policy: AnyOf(Consecutive(2), KOfN(2, 3))}
	both := orders{{ends(0, Failure)}, {ends(1, Failure)}, {ends(2, Success)}}
	for name, r := range map[string]regime{
		"two of three":             {settings: Config{Policy: KOfN(2, 3)}, before: inFlight, threads: both},
		"two of two":               {settings: Config{Policy: KOfN(2, 2)}, before: inFlight, threads: both},
		"one of one":               {settings: Config{Policy: KOfN(1, 1)}, before: inFlight, threads: both},
		"two of three after one":   {settings: Config{Policy: KOfN(2, 3)}, before: oneOf, threads: both},
		"three of four after one":  {settings: Config{Policy: KOfN(3, 4)}, before: thenOK, threads: both},
		"one is forgotten":         {settings: Config{Policy: KOfN(2, 2)}, before: thenOK, threads: orders{{ends(0, Success), observes}, {ends(1, Failure)}}},
		"32 of 32":                 {settings: Config{Policy: KOfN(3, 32)}, before: thenOK, threads: both},
		"in a row, or two of four": {settings: Config{Policy: AnyOf(Consecutive(2), KOfN(3, 4))}, before: inFlight, threads: both},
		"in a row or among three":  {settings: anyOf, before: oneOf, threads: orders{{ends(0, Success), ends(1, Failure)}, {ends(2, Success)}}},
		"Reset":                    {settings: Config{Policy: KOfN(2, 3)}, before: oneOf, threads: orders{{resets, ask(3), ends(3, Failure)}, {ends(0, Failure)}}},
		"Cancel is not a call":     {settings: Config{Policy: KOfN(2, 2)}, before: oneOf, threads: orders{{ends(0, Ignored), ends(1, Failure)}, {ends(2, Ignored)}}},
	} {
		r.listens = true
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{}) })
	}
}

// The same in a group, where a key is absent once none of its last calls has
// failed.
func TestLastCallsOfKeys(t *testing.T) {
	settings := Config{Policy: KOfN(2, 2)}
	for name, p := range map[string]protocol{
		"two failures of an absent key": {before: held, threads: threads{{reportOp(0, Failure)}, {reportOp(1, Failure)}}},
		"a failure, and a departure":    {before: after(failing, record(k, Success)), threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
		"a late success, and one":       {before: failing, threads: threads{{reportOp(0, Success)}, {reportOp(2, Success)}}},
		"a failure and a success":       {before: failing, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
	} {
		p.settings, p.listens = settings, true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// Failures that were counted by other settings count on by the new ones, as
// far as both know what they are.
func TestUpdateTakesOver(t *testing.T) {
	to := func(p Policy) order { return updates(Config{Policy: p}) }
	for name, r := range map[string]regime{
		"a lower threshold":           {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(Consecutive(2))}, {ends(0, Failure), observes}}},
		"a lower one, and a success":  {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(Consecutive(1))}, {ends(0, Success), ends(1, Failure)}}},
		"a higher threshold":          {settings: Config{Policy: Consecutive(3)}, before: twoOf, threads: orders{{to(Consecutive(4))}, {ends(0, Failure)}, {ends(1, Failure)}}},
		"from a row to the last":      {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(KOfN(3, 4))}, {ends(0, Failure)}}},
		"from the last to a row":      {settings: Config{Policy: KOfN(3, 4)}, before: twoOf, threads: orders{{to(Consecutive(3))}, {ends(0, Failure), observes}}},
		"the same with a success":     {settings: Config{Policy: KOfN(3, 4)}, before: twoOf, threads: orders{{to(Consecutive(2))}, {ends(0, Success), ends(1, Failure)}}},
		"two Updates":                 {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(Consecutive(2))}, {to(Consecutive(4))}}},
		"two Updates, and a failure":  {settings: Config{Policy: Consecutive(5)}, before: twoOf, threads: orders{{to(Consecutive(2)), to(Consecutive(5))}, {ends(0, Failure)}}},
		"more probes":                 {before: trying, threads: orders{{updates(Config{Probes: 2})}, {ask(0), ask(1)}}},
		"fewer successes are enough":  {settings: Config{CloseAfter: 2, Probes: 2}, before: append(trying[:5:5], ask(0)), threads: orders{{updates(Config{Probes: 2})}, {ends(2, Success)}, {ends(0, Success)}}},
		"a shorter time while open":   {before: tripped, threads: orders{{updates(Config{OpenTimeout: 1})}, {ask(2), observes}}},
		"a shadow becomes what it is": {settings: Config{Shadow: true}, before: tripped, threads: orders{{updates(Config{})}, {ask(2), ends(2, Failure)}}},
	} {
		r.listens = true
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{}) })
	}
}

// narrow gives a breaker a log that is soon full.
func (b *actual) narrow(slots int) {
	if slots != 0 {
		b.core.log.Store(&failureLog{size: slots})
	}
}

// results are some of one permit, which reports as often as it is asked to: x
// for a failure.
func results(slot int, calls string) (ops []order) {
	for _, c := range calls {
		o := Success
		if c == 'x' {
			o = Failure
		}
		ops = append(ops, ends(slot, o))
	}
	return ops
}

// ended is what comes before: calls in flight, and some that have ended.
func ended(calls string) []order { return slices.Concat(inFlight, results(2, calls)) }

func then(ops []order, more ...order) []order { return slices.Concat(ops, more) }

// Checks I17, I18: all tests of this file.

// Results count one by one, in some order, in the word or in its log, and one of
// them opens the breaker.
func TestLongHistories(t *testing.T) {
	trip := func(p Policy) Config { return Config{Policy: p} }
	both := orders{results(0, "x"), results(1, "x"), results(2, ".")}
	twoOf5, threeOf3, threeOf4, fourOf9 := trip(KOfN(2, 5)), trip(KOfN(3, 3)), trip(KOfN(3, 4)), trip(KOfN(4, 9))
	for name, r := range map[string]regime{
		"two of three":                 {settings: trip(KOfN(2, 3)), before: ended(""), threads: both},
		"two of two":                   {settings: trip(KOfN(2, 2)), before: ended(""), threads: both},
		"one of one":                   {settings: trip(KOfN(1, 1)), before: ended(""), threads: both},
		"two of three after one":       {settings: trip(KOfN(2, 3)), before: ended("x"), threads: both},
		"the last of a run and two":    {settings: threeOf4, before: ended("x."), threads: both},
		"a run, and two more":          {settings: fourOf9, before: ended("x."), threads: both},
		"a run of two, and two more":   {settings: fourOf9, before: ended("xx.."), threads: both},
		"a run is over":                {settings: trip(KOfN(2, 2)), before: ended("x."), threads: orders{then(results(0, "."), observes), results(1, "x")}},
		"a run is over, or goes on":    {settings: trip(KOfN(3, 2+1)), before: ended("x.."), threads: orders{results(0, ".x."), results(1, "x")}},
		"two for one slot":             {settings: fourOf9, before: ended("x.x"), threads: orders{results(0, "x"), results(1, "x")}},
		"two for one slot, and none":   {settings: fourOf9, before: ended("x.x."), threads: both},
		"one too many for one slot":    {settings: threeOf4, before: ended("x.x"), threads: both},
		"a log is over":                {settings: threeOf3, before: ended("x.x.."), threads: orders{results(0, "."), results(1, "x"), results(2, "x")}},
		"a log is over, and the next":  {settings: threeOf3, before: ended("x.x.."), threads: orders{results(0, ".x.x"), results(1, "x")}},
		"two begin a run":              {settings: fourOf9, before: ended("x"), threads: orders{results(0, "."), results(1, "."), results(2, "x")}},
		"a run, over, and another":     {settings: threeOf3, before: ended("x."), threads: orders{results(0, "..x.x"), results(1, "x")}},
		"a stalled one and a full log": {settings: threeOf3, slots: 4, before: ended("x.x"), threads: orders{results(0, ".x.x"), results(1, "x")}},
		"a log that goes round":        {settings: threeOf3, slots: 4, before: ended("x.x.x.x.x.x."), threads: orders{results(0, "x.x"), results(1, "x")}},
		"what a log shows":             {settings: fourOf9, before: ended("x.x"), threads: orders{{observes}, results(0, "x."), results(1, "x")}},
		"what it shows when it ends":   {settings: threeOf3, before: ended("x.x."), threads: orders{{observes}, results(0, ".."), results(1, "x")}},
		"in a row, or among five":      {settings: trip(AnyOf(Consecutive(3), KOfN(4, 5))), before: ended("x.x"), threads: both},
		"in a row, at the end":         {settings: trip(AnyOf(Consecutive(3), KOfN(9, 9))), before: ended("x.x"), threads: orders{results(0, "x"), results(1, "x")}},
		"among two or among five":      {settings: trip(AnyOf(KOfN(2, 2), KOfN(3, 5))), before: ended("x."), threads: both},
		"with a window":                {settings: trip(AnyOf(KOfN(3, 4), FailureCount(99, time.Minute))), before: ended("x."), threads: orders{results(0, "x"), results(1, "x")}},
		"Reset of a run":               {settings: twoOf5, before: ended("x."), threads: orders{{resets, ask(3), ends(3, Failure)}, results(0, "x")}},
		"Reset of a log":               {settings: fourOf9, before: ended("x.x"), threads: orders{then([]order{resets, ask(3)}, results(3, "x.x")...), results(0, "x")}},
		"Trip of a log, and Reset":     {settings: fourOf9, before: ended("x.x"), threads: orders{then([]order{tripsFor(0), resets, ask(3)}, results(3, "x.")...), results(0, "x")}},
		"ForceOpen of a log":           {settings: threeOf4, before: ended("x.x"), threads: orders{{forces}, results(0, "x"), results(1, ".")}},
		"a permit's Trip of a log":     {settings: fourOf9, before: ended("x.x"), threads: orders{{endsIn(0, 0)}, results(1, "x")}},
		"Cancel is not a call":         {settings: threeOf4, before: ended("x.x"), threads: orders{{ends(0, Ignored), ends(1, Failure)}, {ends(2, Ignored)}}},
	} {
		r.listens = true
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{}) })
	}
}

// Protocols that are too long for all orders, in those with at most two
// preemptions.
func TestLongHistoriesGoOn(t *testing.T) {
	trip := func(p Policy) Config { return Config{Policy: p} }
	for name, r := range map[string]regime{
		"two bursts against a failure":       {settings: trip(KOfN(3, 3)), slots: 4, before: ended("x."), threads: orders{results(0, "x....x.x.x."), results(1, "x")}},
		"two bursts against failures":        {settings: trip(KOfN(3, 3)), slots: 4, before: ended("x.x."), threads: orders{results(0, "x...x.x.x"), results(1, "x.x")}},
		"a stalled run, and a longer one":    {settings: trip(KOfN(4, 4)), before: ended("x."), threads: orders{results(0, "...xx.x"), results(1, "x")}},
		"a whole ring against what it shows": {settings: trip(KOfN(3, 3)), slots: 4, before: ended("x.x.x.x."), threads: orders{{observes}, results(0, "x.x.x.")}},
		"three callers over a whole ring":    {settings: trip(KOfN(4, 4)), slots: 4, before: ended("x.x.x."), threads: orders{results(0, "x..x."), results(1, "x.x"), results(2, ".")}},
		"three failures for each slot":       {settings: trip(KOfN(9, 20)), before: ended("x.x."), threads: orders{results(0, "xx"), results(1, "xx"), results(2, "x.")}},
		"Reset, and a burst by each":         {settings: trip(KOfN(3, 4)), before: ended("x.x"), threads: orders{then([]order{resets, ask(3)}, results(3, "x.x")...), results(0, "x"), results(1, ".")}},
		"an opening, and all over again":     {settings: trip(KOfN(3, 4)), before: ended("x.x"), threads: orders{then(results(0, "x"), resets, ask(3), ends(3, Failure), ends(3, Success), ends(3, Failure)), results(1, "x")}},
		"many calls against what it shows":   {settings: trip(KOfN(3, 3)), slots: 4, before: ended("x.x"), threads: orders{{observes, observes}, results(0, "...x.x.x")}},
	} {
		r.listens = true
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}) })
	}
}

// The same in a group, where a key is absent once none of its last calls has
// failed.
func TestLongHistoriesOfKeys(t *testing.T) {
	twoOf2, threeOf3 := Config{Policy: KOfN(2, 2)}, Config{Policy: KOfN(3, 3)}
	run := after(failing, reportOp(2, Success))
	inLog := after(run, reportOp(2, Failure))
	for name, p := range map[string]protocol{
		"two failures of an absent key": {settings: twoOf2, before: held, threads: threads{{reportOp(0, Failure)}, {reportOp(1, Failure)}}},
		"a failure, and a departure":    {settings: twoOf2, before: run, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
		"a late success, and one":       {settings: twoOf2, before: failing, threads: threads{{reportOp(0, Success)}, {reportOp(2, Success)}}},
		"a failure and a success":       {settings: twoOf2, before: failing, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
		"two failures after a run":      {settings: threeOf3, before: run, threads: threads{{reportOp(0, Failure)}, {reportOp(1, Failure)}}},
		"two failures and a log":        {settings: threeOf3, before: inLog, threads: threads{{reportOp(0, Failure)}, {reportOp(1, Failure)}}},
		"a log, and a departure":        {settings: threeOf3, before: after(inLog, reportOp(2, Success), reportOp(2, Success)), threads: threads{{reportOp(2, Failure)}, {record(k, Success)}}},
		"a log, and a sweep":            {settings: threeOf3, before: after(inLog, reportOp(2, Success), reportOp(2, Success)), threads: threads{{reportOp(2, Success), reportOp(2, Failure)}, {sweep}}},
		"a log, and ResetAll":           {settings: threeOf3, before: inLog, threads: threads{{reportOp(0, Failure)}, {resetAll}}},
		"a log that is forgotten":       {settings: threeOf3, before: after(inLog, age(k)), threads: threads{{record(k, Failure)}, {sweep}}},
	} {
		p.listens = true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// A history goes on under another KOfN, and begins again where a policy counts in the
// other way.
func TestUpdateTakesOverHistories(t *testing.T) {
	to := func(p Policy) order { return updates(Config{Policy: p}) }
	fourOf9, threeOf3 := Config{Policy: KOfN(4, 9)}, Config{Policy: KOfN(3, 3)}
	for name, r := range map[string]regime{
		"from a row":                     {settings: Config{Policy: Consecutive(5)}, before: ended("xx"), threads: orders{{to(KOfN(3, 4))}, results(0, "x")}},
		"from a row, and a success":      {settings: Config{Policy: Consecutive(5)}, before: ended("xx"), threads: orders{{to(KOfN(3, 4))}, results(0, ".x")}},
		"from a row, and none":           {settings: Config{Policy: Consecutive(5)}, before: ended("xx"), threads: orders{{to(KOfN(3, 5)), to(Consecutive(5)), observes}, {ends(0, Ignored)}}},
		"to a row":                       {settings: fourOf9, before: ended("xx."), threads: orders{{to(Consecutive(2)), observes}, results(0, "x")}},
		"to a row, and a success":        {settings: fourOf9, before: ended("x.x"), threads: orders{{to(Consecutive(3))}, then(results(0, "."), observes)}},
		"to fewer calls":                 {settings: fourOf9, before: ended("x.x"), threads: orders{{to(KOfN(3, 3))}, results(0, ".x")}},
		"to fewer that trip":             {settings: fourOf9, before: then(ended("xxx"), to(KOfN(2, 2))), threads: orders{{observes}, results(0, "x")}},
		"to more calls":                  {settings: threeOf3, before: ended("x.x."), threads: orders{{to(KOfN(3, 9))}, results(0, "x")}},
		"to more calls, and none":        {settings: threeOf3, before: ended("x.x."), threads: orders{{to(KOfN(3, 9))}, results(0, "..")}},
		"to windows":                     {settings: fourOf9, before: ended("x.x"), threads: orders{{to(FailureCount(99, time.Minute)), observes}, {ends(0, Ignored)}}},
		"away and back":                  {settings: fourOf9, before: ended("x.x"), threads: orders{{to(Consecutive(5)), to(KOfN(4, 9))}, results(0, ".")}},
		"away and back, and two results": {settings: fourOf9, before: ended("x.x"), threads: orders{{to(Consecutive(5)), to(KOfN(4, 9))}, results(0, "x.")}},
	} {
		r.listens = true
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{}) })
	}
}

// A burst is a breaker that never opens, and what its callers do.
type burst struct {
	m     *mc.M
	b     *Breaker
	stay  word
	fails func(*burst) uint32 // reports a failure, and returns its place
}

// settles reports a result in the way that it should be.
func (b *burst) settles(o Outcome) uint32 {
	work := report{core: &b.b.core, result: result{outcome: o}, stay: b.stay}
	_, did := work.run()
	return did.to.place()
}

func carefully(b *burst) uint32 { return b.settles(Failure) }

// hastily writes the slot before it knows that it may.
func hastily(b *burst) uint32 {
	c := &b.b.core
	for {
		w, l := word(c.word.Load()), c.log.Load()
		l.slot(w.many() + 1).Store(w.place() + 1)
		if next := w.at(w.place()+1, w.many()+1, false); c.word.CompareAndSwap(uint64(w), uint64(next)) {
			return next.place()
		}
	}
}

// forgetful begins each burst with the same places.
func forgetful(b *burst) uint32 {
	b.b.core.failureLog().blocks.Store(0)
	return b.settles(Failure)
}

// holds checks that the log has the places of the failures that were reported.
func (b *burst) holds(places []uint32) {
	w := word(b.b.core.word.Load())
	slices.Sort(places)
	slices.Reverse(places)
	for i, want := range places {
		if ago, ok := b.b.core.ago(w, i+1); !ok || uint32(ago) != w.place()-want {
			b.m.Failf("failure %d was at %d, and is at %d (%v)", i, want, int(w.place())-ago, ok)
		}
	}
}

// A slot of the log does not change once its failure has taken effect.
func slotsAreFinal(fails func(*burst) uint32) func(*mc.M) {
	return func(m *mc.M) {
		b := &burst{m: m, b: MustNew(Config{Policy: KOfN(5, 9)}), fails: fails}
		for _, o := range []Outcome{Failure, Success, Failure} {
			b.settles(o)
		}
		var places [2]uint32
		m.Go(func() { places[0] = b.fails(b) })
		m.Go(func() {
			b.settles(Success)
			places[1] = b.fails(b)
		})
		m.Final(func() { b.holds(places[:]) })
	}
}

// A caller who was stopped since the ring was last here changes nothing.
func slotsGoRound(m *mc.M) {
	b := &burst{m: m, b: MustNew(Config{Policy: KOfN(9, 9)})}
	b.b.core.log.Store(&failureLog{size: 2})
	b.settles(Failure)
	var places []uint32
	m.Go(func() { b.settles(Success) })
	m.Go(func() {
		for _, o := range []Outcome{Success, Failure, Success, Failure, Success} {
			if place := b.settles(o); o == Failure {
				places = []uint32{place}
			}
		}
	})
	m.Final(func() { b.holds(places) })
}

// What a Snapshot says of a history was so in its generation, though another begins
// meanwhile.
func TestSnapshotsOfHistories(t *testing.T) {
	mc.Check(t, mc.Config{Mode: mc.Bounded, Preemptions: 1, Operations: "Snapshot ∥ Reset, RecordFailure, RecordSuccess"}, func(m *mc.M) {
		b := MustNew(Config{Policy: KOfN(3, 9)})
		plainly(b.core.set.Load().counters)
		b.RecordFailure()
		b.RecordFailure()
		m.Go(func() {
			if s := b.Snapshot(); s.Generation == 0 && s.Failures != 2 {
				m.Failf("%d failures in the first generation", s.Failures)
			}
		})
		m.Go(func() {
			b.Reset()
			b.RecordFailure()
			b.RecordSuccess()
		})
	})
}

// A caller who was stopped since an earlier burst changes nothing in a later one: here,
// one that has read in a slot what the last burst but one had written there.
func burstsAreApart(fails func(*burst) uint32) func(*mc.M) {
	return func(m *mc.M) {
		b := &burst{m: m, b: MustNew(Config{Policy: KOfN(3, 3)}), fails: fails}
		does := func(calls string) (places []uint32) {
			for _, c := range calls {
				if c == 'x' {
					places = append(places, b.fails(b))
				} else {
					b.settles(Success)
				}
			}
			return places
		}
		does("x.x...xx")
		var places []uint32
		m.Go(func() { b.settles(Success) })
		m.Go(func() { places = does("...x.x.") })
		m.Final(func() { b.holds(places) })
	}
}

// A failure counts after the one before it, though Update changes the word and changes it
// back meanwhile.
func updatesMisplaceNothing(m *mc.M) {
	alone := KOfN(5, 9)
	b := &burst{m: m, b: MustNew(Config{Policy: alone})}
	places := []uint32{b.settles(Failure), 0}
	m.Go(func() { places[1] = b.settles(Failure) })
	m.Go(func() {
		for _, p := range []Policy{AnyOf(alone, FailureRate(1, 9, time.Minute)), alone} {
			if err := b.b.Update(Config{Policy: p}); err != nil {
				m.Failf("%v", err)
			}
		}
	})
	m.Final(func() { b.holds(places) })
}

func TestLogsAreFinal(t *testing.T) {
	slots := mc.Config{Operations: "Failure ∥ Success, Failure"}
	bursts := mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: "Success ∥ the end of a burst, and another"}
	t.Run("a slot", func(t *testing.T) { mc.Check(t, slots, slotsAreFinal(carefully)) })
	t.Run("a slot that is stored", func(t *testing.T) { mc.Refute(t, slots, "failure 1 was at", slotsAreFinal(hastily)) })
	t.Run("updates", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Failure ∥ Update, Update"}, updatesMisplaceNothing)
	})
	t.Run("a slot, a round later", func(t *testing.T) {
		mc.Check(t, mc.Config{Mode: mc.Bounded, Preemptions: 1, Operations: "Success ∥ Success, Failure, Success, Failure, Success"}, slotsGoRound)
	})
	t.Run("bursts", func(t *testing.T) { mc.Check(t, bursts, burstsAreApart(carefully)) })
	t.Run("bursts with the same places", func(t *testing.T) {
		mc.Refute(t, bursts, "failure 0 was at", burstsAreApart(forgetful))
	})
}

// What results cost while some of the last 1024 calls have failed, however many
// these are: a success changes the word, and a failure a slot of the log as well,
// and each looks at one slot for each rule. A healthy call costs what it does
// under any policy.
func TestCostsOfLongHistories(t *testing.T) {
	const n = 1024
	var (
		never = Config{Policy: KOfN(n, n)}
		any3  = Config{Policy: AnyOf(KOfN(n, n), KOfN(n-1, n-1), Consecutive(n))}
		ok    = func(b *Breaker) { p, _ := b.Allow(); p.Success() }
		fails = func(b *Breaker) { p, _ := b.Allow(); p.Failure() }
		okK   = func(g *Group[string]) { p, _ := g.Allow(k); p.Success() }
		failK = func(g *Group[string]) { p, _ := g.Allow(k); p.Failure() }
		comes = func(calls string) func(*Breaker) {
			return func(b *Breaker) {
				for _, c := range calls {
					if c == 'x' {
						fails(b)
					} else {
						ok(b)
					}
				}
			}
		}
	)
	check := func(name string, c Config, before string, op func(*Breaker), cost mc.Cost, moves ...float64) {
		t.Helper()
		mc.CheckCost(t, "Breaker, KOfN of 1024: "+name, plain(c, comes(before), op), cost, moves...)
	}
	check("a call that succeeds", never, "", ok, mc.Cost{Loads: 2}, 0)
	check("a call that fails, in a row", never, "x", fails, mc.Cost{Loads: 10, RMWs: 3}, 6.11, 35.09, 317.98)
	check("the first success after a failure, and the log", never, "x", ok, mc.Cost{Loads: 10, RMWs: 3}, 4, 24.625, 220.52)
	check("the next success", never, "x.", ok, mc.Cost{Loads: 10, RMWs: 1}, 3.5, 21.125, 189.02)
	check("the next failure", never, "x.", fails, mc.Cost{Loads: 7, RMWs: 1}, 6.11, 35.82, 318.92)
	check("a success after more failures", never, "x.x", ok, mc.Cost{Loads: 10, RMWs: 2}, 4, 24.625, 220.52)
	check("a failure after more failures", never, "x.x", fails, mc.Cost{Loads: 10, RMWs: 2}, 6.11, 35.09, 317.98)
	check("the same with three rules", any3, "x.x", fails, mc.Cost{Loads: 12, RMWs: 2}, 6.11, 35.09, 317.96)
	check("a failure, and then a success", never, "x.x", comes("x."), mc.Cost{Loads: 20, RMWs: 4}, 8.19, 51.78, 364.97)
	check("Snapshot, after two failures", never, "x.x", func(b *Breaker) { b.Snapshot() }, mc.Cost{Loads: 8}, 0)
	check("State, after two failures", never, "x.x", func(b *Breaker) { b.State() }, mc.Cost{Loads: 2}, 0)

	checkKey := func(name string, before, op func(*Group[string]), cost mc.Cost, moves ...float64) {
		t.Helper()
		mc.CheckCost(t, "Group, KOfN of 1024: "+name, ofKey(never, before, op), cost, moves...)
	}
	inLog := func(g *Group[string]) { failK(g); okK(g); failK(g) }
	checkKey("a call of a healthy key", func(*Group[string]) {}, okK, mc.Cost{Loads: 7}, 0)
	checkKey("a call of a failing key that succeeds", inLog, okK, mc.Cost{Loads: 22, RMWs: 2, TableReads: 1, Clock: 1}, 4, 28.88, 280.57)
	checkKey("a call of a failing key that fails", inLog, failK, mc.Cost{Loads: 22, RMWs: 2, TableReads: 1, Clock: 1}, 7.35, 29.46, 109.63)
}

// Whoever needs the log first, there is one.
func TestLogIsMadeOnce(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "failureLog ∥ failureLog"}, func(m *mc.M) {
		b := MustNew(Config{Policy: KOfN(2, 2)})
		var logs [2]*failureLog
		var blocks [2]uint32
		for i := range logs {
			m.Go(func() {
				logs[i] = b.core.failureLog()
				blocks[i] = logs[i].reserve()
			})
		}
		m.Final(func() {
			if logs[0] == nil || logs[0] != logs[1] || blocks[0] == blocks[1] {
				m.Failf("logs %p and %p, blocks %d and %d", logs[0], logs[1], blocks[0], blocks[1])
			}
		})
	})
}

// Whoever begins a burst, or reaches a block, takes one that is not behind any that was
// taken.
func TestBlocksAreTakenOnceInEveryOrder(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "reach 2 ∥ reach 2 ∥ reserve, reserve"}, func(m *mc.M) {
		l, last := new(failureLog), uint32(0)
		l.reserve() // the block of those that go on
		takes := func() {
			if block := l.reserve() >> blockBits; block <= last {
				m.Failf("block %d after %d", block, last)
			} else {
				last = block
			}
		}
		for range 2 {
			m.Go(func() { l.reach(2 << blockBits) })
		}
		m.Go(func() { takes(); takes() })
		m.Final(takes)
	})
}

// Windows are late by the calls in flight, so no order of the operations
// explains all verdicts. What they promise instead: of the failures that
// together are enough, exactly one opens the breaker, and what was counted is
// there.

const minute = time.Minute

// A ward is a key of a group whose breaker counts failures in a window.
type ward struct {
	m       *mc.M
	g       *Group[string]
	permits [2]GroupPermit[string]

	tripped, counted, recovered mc.Tally
}

// wardDeed is what a thread does with it.
type wardDeed struct {
	name string
	do   func(*ward)
}

func (w *ward) tell(v Verdict) {
	switch v {
	case Tripped:
		w.tripped.Add(1)
	case Counted:
		w.counted.Add(1)
	case Recovered:
		w.recovered.Add(1)
	}
}

var (
	fails    = wardDeed{"RecordFailure", func(w *ward) { w.tell(w.g.RecordFailure(k)) }}
	succeeds = wardDeed{"RecordSuccess", func(w *ward) { w.g.RecordSuccess(k) }}
	permit0  = wardDeed{"Failure of 0", func(w *ward) { w.tell(w.permits[0].Failure()) }}
	permit1  = wardDeed{"Failure of 1", func(w *ward) { w.tell(w.permits[1].Failure()) }}
	success1 = wardDeed{"Success of 1", func(w *ward) { w.permits[1].Success() }}
	sweeps   = wardDeed{"Sweep", func(w *ward) { w.g.Sweep() }}
	forgets  = wardDeed{"Reset", func(w *ward) { w.g.Reset(k) }}
	forcesK  = wardDeed{"ForceOpen", func(w *ward) { w.g.ForceOpen(k) }}
	passes   = wardDeed{"advance by 1 min", func(w *ward) { w.m.Advance(minute) }}
	ticks4   = wardDeed{"advance by 4 s", func(w *ward) { w.m.Advance(minute / 15) }} // one tick
	later    = wardDeed{"advance by 2 min", func(w *ward) { w.m.Advance(2 * minute) }}
	longer   = wardDeed{"advance by 2 h", func(w *ward) { w.m.Advance(2 * defaultForgetAfter) }}
	grants0  = wardDeed{"Allow 0", func(w *ward) { w.permits[0], _ = w.g.Allow(k) }}
	grants1  = wardDeed{"Allow 1", func(w *ward) { w.permits[1], _ = w.g.Allow(k) }}
)

// What comes before: permit 0 is of a key that was absent, and permit 1 of its
// cell. A failure is long ago.
var (
	longAgo  = []wardDeed{grants0, fails, grants1, later}
	watchful = AnyOf(Consecutive(3), FailureCount(3, minute))

	// A key that was about to be retired when Update brought windows.
	bare = wardDeed{"no windows", func(w *ward) {
		w.g.RecordFailure(k)
		c := w.g.current().cells.Load(k)
		c.word.Store(uint64(watched))
		c.windows.Store(nil)
	}}

	// A key of which all that could keep it is long ago.
	cleanKey = []wardDeed{fails, succeeds, later}
	inARow   = AnyOf(Consecutive(2), FailureCount(9, minute))
)

// wardship is what threads do to a ward.
type wardship struct {
	trip    Policy
	listens bool
	before  []wardDeed
	threads [][]wardDeed
	spare   int  // how many more failures must then open the breaker
	upTo    int  // and how many may be enough; zero: so many
	opens   bool // it must have opened instead
	forced  bool // or it was forced open
}

func (p wardship) check(t *testing.T, cfg mc.Config) {
	t.Helper()
	cfg.Operations = mc.Listed(p.threads, func(d wardDeed) string { return d.name })
	mc.Check(t, cfg, func(m *mc.M) {
		c := GroupConfig[string]{Default: Config{Policy: p.trip, OpenTimeout: -1}}
		if p.listens {
			c.OnStateChange = func(string, Event) {}
		}
		w := &ward{m: m, g: MustNewGroup(c)}
		plainly(&w.g.current().counters)
		for _, d := range p.before {
			d.do(w)
		}
		w.tripped, w.counted = mc.Tally{}, mc.Tally{}
		for _, deeds := range p.threads {
			m.Go(func() {
				for _, d := range deeds {
					d.do(w)
				}
			})
		}
		m.Final(func() { p.judge(w) })
	})
}

func (p wardship) judge(w *ward) {
	if err := w.g.checkQuiet(k); err != nil {
		w.m.Failf("%v", err)
	}
	s := w.g.Snapshot(k)
	if n := w.tripped.Value(); p.opens && (n != 1 || s.State != Open || s.Streak != 1) {
		w.m.Failf("%d failures opened it, and it is %v with streak %d", n, s.State, s.Streak)
	} else if p.forced && (n > 1 || s.State != ForcedOpen) {
		w.m.Failf("%d failures opened it, and it is %v", n, s.State)
	} else if p.opens || p.forced {
		return
	} else if n != 0 {
		w.m.Failf("opened by too few")
	}
	n := 1
	for w.g.RecordFailure(k) != Tripped && n < 4 {
		n++
	}
	if n < p.spare || n > max(p.spare, p.upTo) {
		w.m.Failf("%d more failures open it, and not %d", n, p.spare)
	}
}

type deeds = [][]wardDeed

// Checks I14, I15, I16: all tests of this file.

// A failure is counted in the living cell of its key or in its next one,
// whatever makes cells come and go.
func TestWindowsLoseNothing(t *testing.T) {
	twice := FailureCount(2, minute)
	for name, p := range map[string]wardship{
		"a failure and a sweep":                  {trip: twice, before: longAgo, threads: deeds{{fails}, {sweeps}}, spare: 1},
		"a cell's failure and a sweep":           {trip: twice, before: longAgo, threads: deeds{{permit1}, {sweeps}}, spare: 1},
		"an earlier failure and a sweep":         {trip: twice, before: longAgo, threads: deeds{{permit0}, {sweeps}}, spare: 1},
		"a failure in time and a sweep":          {trip: twice, before: []wardDeed{fails}, threads: deeds{{sweeps}, {passes}}, spare: 1, upTo: 2},
		"a failure, and no time for a sweep":     {trip: twice, before: []wardDeed{fails}, threads: deeds{{succeeds}, {sweeps}}, spare: 1},
		"a failure, cleared, and two sweeps":     {trip: watchful, before: longAgo[:4:4], threads: deeds{{succeeds, fails, succeeds, sweeps}, {sweeps}}, spare: 2},
		"a failure in a row and a sweep":         {trip: inARow, before: cleanKey, threads: deeds{{fails}, {sweeps}}, spare: 1},
		"another in its place, and a sweep":      {trip: inARow, before: []wardDeed{fails}, threads: deeds{{succeeds, fails}, {sweeps}}, spare: 1},
		"a sweep and a success":                  {trip: twice, before: longAgo, threads: deeds{{success1}, {sweeps}}, spare: 2},
		"a first failure in windows and a sweep": {trip: twice, before: []wardDeed{bare}, threads: deeds{{fails}, {sweeps}}, spare: 1},
		"a failure and Reset":                    {trip: twice, before: longAgo, threads: deeds{{permit1}, {forgets, fails}}, spare: 1},
		"a sweep and Reset":                      {trip: twice, before: longAgo, threads: deeds{{sweeps}, {forgets, fails}}, spare: 1},
		"two failures of a key":                  {trip: twice, before: longAgo, threads: deeds{{fails}, {permit1}}, opens: true},
		"one more than enough":                   {trip: twice, before: []wardDeed{grants0, fails}, threads: deeds{{fails}, {fails}}, opens: true},
		"enough as time goes on":                 {trip: twice, before: longAgo, threads: deeds{{fails}, {ticks4, fails}}, opens: true},
		"too late to be enough":                  {trip: twice, before: longAgo[:3:3], threads: deeds{{later, fails}, {sweeps}}, spare: 1},
		"a failure and a sweep, with a listener": {trip: twice, listens: true, before: longAgo, threads: deeds{{permit1}, {sweeps}}, spare: 1},
		"a failure, cleared, and sweepers":       {trip: watchful, before: longAgo, threads: deeds{{fails, succeeds}, {sweeps}, {sweeps}}, spare: 2},
		"a success, and it is forced":            {trip: twice, before: longAgo, threads: deeds{{success1}, {forcesK}}, forced: true},
		"two failures, and it is forced":         {trip: twice, before: []wardDeed{grants0, fails}, threads: deeds{{forcesK}, {fails}, {fails}}, forced: true},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// The same where there are more steps, in the orders with at most two
// preemptions.
func TestWindowsLoseNothingOfThree(t *testing.T) {
	twice := FailureCount(2, minute)
	for name, p := range map[string]wardship{
		"a failure and two sweepers":      {trip: twice, before: longAgo, threads: deeds{{fails}, {sweeps}, {sweeps}}, spare: 1},
		"two failures and a sweeper":      {trip: twice, before: longAgo, threads: deeds{{fails}, {permit1}, {sweeps}}, opens: true},
		"more than twice, of three":       {trip: twice, before: longAgo, threads: deeds{{fails}, {permit0}, {permit1}}, opens: true},
		"a failure, a sweeper and Reset":  {trip: twice, before: longAgo, threads: deeds{{permit1}, {sweeps}, {forgets, fails}}, spare: 1},
		"two failures of a forgotten key": {trip: FailureCount(3, 100*time.Hour), before: []wardDeed{fails, longer}, threads: deeds{{fails}, {fails}}, spare: 1},
		"two failures of an absent key":   {trip: twice, threads: deeds{{fails}, {fails}}, opens: true},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}) })
	}
}

// Sweeps count the closed keys that they have removed, each once.
func TestSweepsCountWhatTheyRemove(t *testing.T) {
	stops := wardDeed{"RecordSuccess, stopped", func(w *ward) { linger(w.g, k) }}
	for name, p := range map[string]struct {
		before []wardDeed
		fails  bool // a failure in place of the second sweep
	}{
		"a key that fails again": {longAgo, true},
		"a key of long ago":      {longAgo, false},
		"a forgotten key":        {[]wardDeed{fails, longer}, false},
		"a pristine key":         {[]wardDeed{fails, fails, stops}, false},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: map[bool]string{false: "Sweep ∥ Sweep", true: "Sweep ∥ RecordFailure"}[p.fails]}, func(m *mc.M) {
				w := &ward{m: m, g: MustNewGroup(GroupConfig[string]{Default: Config{Policy: FailureCount(2, minute), OpenTimeout: -1}})}
				plainly(&w.g.current().counters)
				for _, d := range p.before {
					d.do(w)
				}
				cell, swept := w.g.current().cells.Load(k), mc.Tally{}
				sweep := func() { swept.Add(w.g.Sweep()) }
				m.Go(sweep)
				if p.fails {
					m.Go(func() { w.g.RecordFailure(k) })
				} else {
					m.Go(sweep)
				}
				m.Final(func() {
					removed := map[bool]int{true: 1}[word(cell.word.Load()).mode() == tombstone]
					if n := swept.Value(); n != removed {
						m.Failf("%d were removed, and counted as %d", removed, n)
					}
				})
			})
		})
	}
}

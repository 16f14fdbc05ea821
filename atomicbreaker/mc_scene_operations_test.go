//go:build modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
)

// What generated scenes consist of: the settings, the operations, and what comes before them.
// What must hold is what the model says.

// tick is the unit of time, in which nothing is rounded.
const tick = 128 * time.Millisecond

// A setting has levels, of which the first is the plainest.
type setting struct {
	levels  []string
	updated bool // Update changes it
}

const (
	ofBreaker = "Breaker"
	ofGroup   = "Group"
	ofEach    = "PerKey"
)

var sceneSettings = []setting{
	{[]string{ofBreaker, ofGroup, ofEach}, true}, // a Group may get PerKey, or lose it
	{[]string{"Consecutive", "FailureRate", "KOfN", "SlowRate", "long KOfN", "TripFunc", "two KOfN", "FailureCount", "row or KOfN", "slow TripFunc", "first failure", "row or rate", "rate or long", "three windows"}, true},
	{[]string{"", "MaxOpenTimeout", "Backoff", "until Reset"}, true},
	{[]string{"", "Probes"}, true},
	{[]string{"", "CloseAfter 2", "CloseAfter 3"}, true},
	{[]string{"", "half of probes", "all probes"}, true},
	{[]string{"", "short ProbeTimeout"}, true},
	{[]string{"", "Shadow"}, true},
	{[]string{"", "MaxOpen"}, true},
	{[]string{"", "ForgetAfter", "never forgotten"}, true},
	{[]string{"", "RecordTotals"}, false},
	{[]string{"", "OnStateChange", "listener until Update", "listener resets", "listener panics"}, false},
	{[]string{"", "DetailedErrors"}, false},
	{[]string{"", "Classify"}, false},
	{[]string{"", "leases wrap", "open times wrap", "calls wrap"}, false},
}

// window is that of all policies but SlowRate. Its parts are whole ticks.
const window = 15 * tick

var (
	policies = map[string]model.Policy{
		"Consecutive":   {{Why: ab.ReasonThreshold, N: 2}},
		"first failure": {{Why: ab.ReasonThreshold, N: 1}},
		"KOfN":          {{Why: ab.ReasonThreshold, N: 2, Last: 3}},
		"long KOfN":     {{Why: ab.ReasonThreshold, N: 3, Last: 40}},
		"two KOfN":      {{Why: ab.ReasonThreshold, N: 2, Last: 2}, {Why: ab.ReasonThreshold, N: 3, Last: 5}},
		"row or KOfN":   {{Why: ab.ReasonThreshold, N: 3}, {Why: ab.ReasonThreshold, N: 3, Last: 4}},
		"FailureCount":  {{Why: ab.ReasonFailureCount, N: 2, Window: window}},
		"FailureRate":   {{Why: ab.ReasonFailureRate, N: 2, Ratio: 0.5, Window: window}},
		"SlowRate":      {{Why: ab.ReasonSlowRate, N: 2, Ratio: 0.5, Slow: tick, Window: window / 2}},
		"TripFunc":      {{Why: ab.ReasonTripFunc, N: 2, Window: window}},
		"slow TripFunc": {{Why: ab.ReasonTripFunc, N: 3, Slow: tick, Window: window}},
		"row or rate":   {{Why: ab.ReasonThreshold, N: 2}, {Why: ab.ReasonFailureRate, N: 4, Ratio: 0.5, Window: window}},
		"rate or long":  {{Why: ab.ReasonFailureRate, N: 3, Ratio: 1, Window: window}, {Why: ab.ReasonThreshold, N: 2, Last: 33}},
		"three windows": {{Why: ab.ReasonFailureCount, N: 3, Window: window}, {Why: ab.ReasonSlowRate, N: 1, Ratio: 1, Slow: tick, Window: window}, {Why: ab.ReasonTripFunc, N: 2, Window: window / 2}},
	}
	made = map[string]ab.Policy{} // Update knows a TripFunc again
)

func init() {
	for name, p := range policies {
		made[name] = p.Real()
	}
}

// A plot is the settings of a scene.
type plot struct{ levels []string }

func (p *plot) has(levels ...string) bool {
	return slices.ContainsFunc(levels, func(l string) bool { return slices.Contains(p.levels, l) })
}

func (p *plot) keyed() bool { return p.levels[0] != ofBreaker }

// level returns a level, before Update or after.
func (p *plot) level(setting int, other bool) string {
	of := sceneSettings[setting]
	at := slices.Index(of.levels, p.levels[setting])
	switch {
	case !other || !of.updated:
	case setting == 0 && p.keyed():
		at = 3 - at
	case setting == 0:
	case setting == 1 && p.keyed() && windowed(of.levels[at]):
		// A key that loses its windows may be stored for a while or not.
	case setting == 1 && p.keyed():
		for at = (at + 1) % len(of.levels); windowed(of.levels[at]); {
			at = (at + 1) % len(of.levels)
		}
	default:
		at = (at + 1) % len(of.levels)
	}
	return of.levels[at]
}

func windowed(policy string) bool {
	return slices.ContainsFunc(policies[policy], func(r model.Rule) bool { return r.Window > 0 })
}

func (p *plot) name() string {
	if p.has("DetailedErrors") {
		return "scene"
	}
	return ""
}

// listens reports whether there is a listener.
func (p *plot) listens(other bool) bool {
	return p.levels[11] != "" && !(other && p.has("listener until Update"))
}

// A listener that acts does so for every third event of a key. It gets the event of a forgotten
// key before a TripFunc is asked: so a result comes after its Reset, and the model has no such
// order.
func (p *plot) acts(event int) bool {
	if p.keyed() && p.has("TripFunc", "slow TripFunc", "three windows") && p.has("listener resets") {
		return false
	}
	return event%3 == 0 && p.has("listener resets", "listener panics")
}

func (p *plot) perKey(other bool) bool { return p.level(0, other) == ofEach }

func (p *plot) maxOpen(other bool) int {
	if p.keyed() && p.level(8, other) == "MaxOpen" {
		return 1
	}
	return 0
}

func (p *plot) forgetAfter(other bool) time.Duration {
	switch p.level(9, other) {
	case "ForgetAfter":
		return 8 * tick
	case "never forgotten":
		return -1
	}
	return time.Hour
}

// begins returns how many ticks pass before the scene: a word has deadlines, and a permit the
// time of its call, modulo some range. Probes and open times of the scene then end where a
// new range begins, and calls do.
func (p *plot) begins() int {
	switch {
	case p.has("leases wrap"):
		return 1<<21 - 3 // of 128 ms
	case p.has("open times wrap"):
		return 1<<36/128 - 2 // of 1 ms
	case p.has("calls wrap"):
		return 1<<(41+10)/int(tick) - 1 // of 1.024 µs
	}
	return 0
}

// settings returns those that the model has.
func (p *plot) settings(other bool) model.Settings {
	s := model.Settings{
		Policy: policies[p.level(1, other)], Probes: 1, CloseAfter: 1,
		OpenFor: 2 * tick, MaxOpen: 20 * tick, Constant: true, ProbeTimeout: 3 * tick,
		Shadow: p.level(7, other) == "Shadow", Totals: p.has("RecordTotals"),
	}
	switch p.level(2, other) {
	case "MaxOpenTimeout":
		s.Constant, s.MaxOpen = false, 8*tick
	case "Backoff":
		s.Constant, s.MaxOpen, s.Backoff = false, 5*tick, []time.Duration{tick, 3 * tick, 5 * tick}
	case "until Reset":
		s.OpenFor, s.MaxOpen = -1, 365*24*time.Hour
	}
	if p.level(3, other) == "Probes" {
		s.Probes = 2
	}
	switch p.level(4, other) {
	case "CloseAfter 2":
		s.CloseAfter = 2
	case "CloseAfter 3":
		s.CloseAfter = 3
	}
	switch p.level(5, other) {
	case "half of probes":
		s.ProbeRate = 0.5
	case "all probes":
		s.ProbeRate = 1
	}
	if p.level(6, other) != "" {
		s.ProbeTimeout = tick
	}
	return s
}

// config returns what New takes.
func (p *plot) config(other bool) ab.Config {
	c := p.settings(other).Config()
	c.Name, c.Policy, c.DetailedErrors = p.name(), made[p.level(1, other)], p.has("DetailedErrors")
	if p.has("Classify") {
		c.Classify = func(ctx context.Context, err error) ab.Outcome {
			if errors.Is(err, errQuiet) {
				return ab.Ignored
			}
			if ab.Classify(ctx, err) == ab.Failure {
				return ab.Ignored + 1 // which is Failure
			}
			return ab.Classify(ctx, err)
		}
	}
	return c
}

// Errors.
var (
	errQuiet = errors.New("quiet")

	boom     = &fault{err: errBoom}
	quiet    = &fault{err: fmt.Errorf("%w!", errQuiet), quiet: true}
	canceled = &fault{err: fmt.Errorf("wrapped: %w", context.Canceled), unwanted: true}
	late     = &fault{err: context.DeadlineExceeded}
	rejected = &fault{err: ab.ErrTooManyProbes, rejects: true, unwanted: true}
	detailed = &fault{err: &ab.OpenError{}, rejects: true, unwanted: true}
	allMeek  = &fault{err: errors.Join(ab.ErrOpen, fmt.Errorf("inner: %w", ab.ErrRejected)), rejects: true, unwanted: true}
	meek     = &fault{err: errors.Join(context.Canceled, ab.ErrOpen), unwanted: true}
	boomGone = &fault{err: errors.Join(errBoom, context.Canceled)}
	goneBoom = &fault{err: fmt.Errorf("%w beside %w", context.Canceled, errBoom)}
	boomMeek = &fault{err: errors.Join(errBoom, ab.ErrOpen)}
	deepBoom = &fault{err: errors.Join(fmt.Errorf("deep: %w", errors.Join(ab.ErrRejected, errBoom)), ab.ErrOpen)}
)

// An operation is a row of the table.
type operation struct {
	name string
	once bool // it takes effect at one moment, and so may run beside others
	do   func(p player, k, slot int) any
}

var sceneOperations = func() (all []operation) {
	add := func(name string, once bool, do func(p player, k, slot int) any) {
		all = append(all, operation{name, once, do})
	}
	ends := func(name string, e ending) {
		add(name, true, func(p player, _, slot int) any { return p.report(slot, e) })
	}
	admitted := func(name string, takes int, e ending) {
		add(name, false, func(p player, k, _ int) any {
			if got := p.allow(k, sceneSlots-1); got != "admitted" {
				return got
			}
			p.pass(takes)
			return p.report(sceneSlots-1, e)
		})
	}
	calls := func(name string, c calling) {
		add(name, false, func(p player, k, _ int) any { return p.call(k, c) })
	}
	commands := func(name string, c commanding) {
		add(name, true, func(p player, k, _ int) any { return p.command(k, c) })
	}
	success := ending{report: permit.Success, outcome: ab.Success}
	failure := ending{report: permit.Failure, outcome: ab.Failure}
	reports := func(o, as ab.Outcome) ending {
		return ending{report: func(p permit) ab.Verdict { return p.Report(o) }, outcome: as}
	}
	done := func(f *fault) ending {
		return ending{report: func(p permit) ab.Verdict { return p.Done(f.err) }, err: f}
	}
	trips := func(d time.Duration) ending {
		return ending{report: func(p permit) ab.Verdict { return p.Trip(d) }, trip: true, open: d}
	}

	add("nothing", false, func(player, int, int) any { return nil })
	add("Allow", true, func(p player, k, slot int) any { return p.allow(k, slot) })
	ends("Success", success)
	ends("Failure", failure)
	ends("Cancel", ending{report: permit.Cancel, outcome: ab.Ignored})
	ends("Report none", reports(9, ab.Failure))
	ends("Report Ignored", reports(ab.Ignored, ab.Ignored))
	ends("Done nil", ending{report: func(p permit) ab.Verdict { return p.Done(nil) }, outcome: ab.Success})
	ends("Done boom", done(boom))
	ends("Done canceled", done(canceled))
	ends("Done joined with canceled", done(boomGone))
	ends("Done joined with a rejection", done(boomMeek))
	ends("Done joined deep", done(deepBoom))
	ends("Done joined cancellation and rejection", done(meek))
	ends("Done quiet", done(quiet))
	ends("Permit.Trip 0", trips(0))
	ends("Permit.Trip 4", trips(4*tick))
	ends("Permit.Trip forever", trips(-1))
	admitted("fails", 0, failure)
	admitted("succeeds", 0, success)
	admitted("succeeds slowly", 2, success)
	calls("Do succeeds", calling{by: "Do"})
	calls("Do fails", calling{by: "Do", err: boom})
	calls("Do fails slowly", calling{by: "Do", err: boom, takes: 2})
	calls("Do panics", calling{by: "Do", panics: true})
	calls("Do exits", calling{by: "Do", exits: true})
	calls("Do joined with canceled", calling{by: "Do", err: goneBoom})
	calls("Do canceled alone", calling{by: "Do", err: canceled})
	calls("Do in a context that ends", calling{by: "Do", ctx: "ends", err: boom})
	calls("Do in a context that is done", calling{by: "Do", ctx: "done", err: boom})
	calls("Do rejected inside", calling{by: "Do", err: allMeek})
	calls("Execute canceled", calling{by: "Execute", err: canceled})
	calls("Execute joined with canceled", calling{by: "Execute", err: boomGone})
	calls("ExecuteContext late", calling{by: "ExecuteContext", err: late})
	calls("ExecuteContext rejected inside", calling{by: "ExecuteContext", err: detailed})
	calls("ExecuteContext joined with a rejection", calling{by: "ExecuteContext", err: boomMeek})
	calls("ExecuteResult quiet", calling{by: "ExecuteResult", err: quiet})
	calls("ExecuteResult rejected", calling{by: "ExecuteResult", err: rejected})
	add("RecordSuccess", true, func(p player, k, _ int) any { return p.record(k, ab.Success) })
	add("RecordFailure", true, func(p player, k, _ int) any { return p.record(k, ab.Failure) })
	add("State", true, func(p player, k, _ int) any { return p.state(k) })
	add("Snapshot", true, func(p player, k, _ int) any { return p.snapshot(k) })
	commands("Reset", commanding{"Reset", 0})
	commands("Trip 0", commanding{"Trip", 0})
	commands("Trip 4", commanding{"Trip", 4 * tick})
	commands("Trip forever", commanding{"Trip", -1})
	commands("Trip too long", commanding{"Trip", 1000 * time.Hour})
	commands("HalfOpen", commanding{"HalfOpen", 0})
	commands("ForceOpen", commanding{"ForceOpen", 0})
	commands("Disable", commanding{"Disable", 0})
	add("ResetAll", true, func(p player, _, _ int) any { return p.resetAll() })
	add("Sweep", true, func(p player, _, _ int) any { return p.sweep() })
	add("Update", false, func(p player, _, _ int) any { return p.update(updateOther) })
	add("Update to the same", false, func(p player, _, _ int) any { return p.update(updateSame) })
	add("Update to what is wrong", false, func(p player, _, _ int) any { return p.update(updateWrong) })
	return all
}()

var operationNamed = func() map[string]operation {
	all := map[string]operation{}
	for _, o := range sceneOperations {
		all[o.name] = o
	}
	return all
}()

// simplerOperation says which operation to try in the place of one that has led to a failure.
var simplerOperation = map[string]string{
	"Report none":                  "Failure",
	"Report Ignored":               "Cancel",
	"Done nil":                     "Success",
	"Done boom":                    "Failure",
	"Done canceled":                "Cancel",
	"Done joined with canceled":    "Done boom",
	"Done joined with a rejection": "Done boom",
	"Permit.Trip 4":                "Permit.Trip 0",
	"Permit.Trip forever":          "Permit.Trip 0",
	"fails":                        "RecordFailure",
	"succeeds":                     "RecordSuccess",
	"succeeds slowly":              "succeeds",
	"Do succeeds":                  "succeeds",
	"Do fails":                     "fails",
	"Do fails slowly":              "Do fails",
	"Do panics":                    "Do fails",
	"Do exits":                     "Do fails",
	"Do joined with canceled":      "Do fails",
	"Execute joined with canceled": "Do fails",
	"ExecuteContext late":          "Do fails",
	"Trip 4":                       "Trip 0",
	"Trip forever":                 "Trip 0",
	"Trip too long":                "Trip 0",
	"Update":                       "Update to the same",
}

// waits are the ticks that may pass before an operation: past an open time, a probe's time,
// ForgetAfter, both, and all windows.
var waits = []int{0, 0, 0, 1, 2, 3, 8, 11, 16}

// starts are what may come before a scene. Slots 0 and 1 have permits of the first key.
var starts = []struct {
	name  string
	steps []step
}{
	{"healthy", []step{at("Allow", 0, 0, 0), at("Allow", 0, 1, 0)}},
	{"failing", []step{at("Allow", 0, 0, 0), at("RecordFailure", 0, 0, 0), at("Allow", 0, 1, 0)}},
	{"failing more", []step{at("Allow", 0, 0, 0), at("fails", 0, 0, 0), at("fails", 0, 0, 1), at("Allow", 0, 1, 0), at("fails", 0, 0, 0)}},
	{"open", []step{at("Allow", 0, 0, 0), at("Allow", 0, 1, 0), at("Trip 0", 0, 0, 0)}},
	{"probing", []step{at("Allow", 0, 0, 0), at("HalfOpen", 0, 0, 0), at("Allow", 0, 0, 0), at("Allow", 0, 1, 0)}},
	{"probing for the second time", []step{at("Trip 0", 0, 0, 0), at("fails", 0, 0, 2), at("HalfOpen", 0, 0, 0), at("Allow", 0, 0, 1), at("Allow", 0, 1, 0)}},
	{"overdue", []step{at("HalfOpen", 0, 0, 0), at("Allow", 0, 0, 0), at("Allow", 0, 1, 3)}},
	{"forgotten while failing", []step{at("Allow", 0, 0, 0), at("fails", 0, 0, 0), at("Allow", 0, 1, 0), at("nothing", 0, 0, 11)}},
	{"forgotten while open", []step{at("Allow", 0, 0, 0), at("Trip 0", 0, 0, 0), at("nothing", 0, 0, 16)}},
	{"forgotten while probing", []step{at("Trip 0", 0, 0, 0), at("Allow", 0, 0, 2), at("Allow", 0, 1, 0), at("nothing", 0, 0, 11)}},
	{"forced", []step{at("Allow", 0, 0, 0), at("ForceOpen", 0, 0, 0)}},
	{"disabled", []step{at("Allow", 0, 0, 0), at("Disable", 0, 0, 0), at("Allow", 0, 1, 0)}},
	{"while another is open", []step{at("Allow", 0, 0, 0), at("fails", 0, 0, 0), at("Trip 0", 1, 0, 0), at("Allow", 0, 1, 0)}},
}

func at(operation string, key, slot, wait int) step { return step{operation, key, slot, wait} }

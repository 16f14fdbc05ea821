package latchotel

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/atomicbreaker"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// DefaultMaxKeys is what a GroupOptions.MaxKeys of zero means.
const DefaultMaxKeys = 20

// OtherKeys is the value of the attribute key for all keys that have none of their own.
const OtherKeys = "_other"

// GroupOptions holds the settings of the metrics of a Group. The zero value means the
// defaults.
type GroupOptions[K comparable] struct {
	// MaxKeys is how many keys have their own value of the attribute key at a time. They are the
	// worst: those that reject calls come first, then those with more failures, then those
	// whose label is less. All others are summed under OtherKeys. Zero means 20, and less
	// than zero means none.
	MaxKeys int

	// Label returns the value of the attribute key. Keys with the same label are summed, so it
	// can also put keys in classes. Nil means fmt.Sprint. It is called at each collection for
	// each key that is in the group. If it panics or calls runtime.Goexit, the collection of
	// this group has an error and nothing else.
	Label func(K) string
}

var (
	groupKeys        = family{"latchfree.breaker_group.keys", "{key}", "Keys in the group, by state. Absent keys are healthy.", amount}
	groupKeyOpen     = family{"latchfree.breaker_group.key.open", "{key}", "1 for a key that rejects calls outright, or would without Config.Shadow; a sum under _other.", amount}
	groupKeyFailures = family{"latchfree.breaker_group.key.failures", "{failure}", "Failures that count against the key now; a sum under _other.", amount}
	groupOpenings    = family{"latchfree.breaker_group.openings", "{opening}", "Times that a key of the group opened.", counter}
	groupClosings    = family{"latchfree.breaker_group.closings", "{closing}", "Times that a key of the group was closed again, or reset.", counter}
	groupRejected    = family{"latchfree.breaker_group.rejected", "{call}", "Calls that were not admitted, or in a shadow would not have been.", counter}
	groupLate        = family{"latchfree.breaker_group.late", "{result}", "Results that came too late.", counter}
	groupWithheld    = family{"latchfree.breaker_group.withheld", "{failure}", "Failures that did not open a key because of GroupConfig.MaxOpen.", counter}
	groupCalls       = family{"latchfree.breaker_group.calls", "{call}", "Calls for all keys that were reported, by outcome, with Config.RecordTotals.", counter}
	groupWrong       = family{"latchfree.breaker_group.wrong_settings", "{settings}", "Times that GroupConfig.PerKey returned wrong settings, so that those of Default were used.", counter}
)

// Group registers the metrics of g. A collection walks the keys in the group, which are
// those that fail or have failed, and locks one bucket at a time. It panics if meter or g
// is nil.
func Group[K comparable](meter metric.Meter, name string, g *atomicbreaker.Group[K], o GroupOptions[K]) (metric.Registration, error) {
	if meter == nil {
		panic("latchotel: Group: nil meter")
	}
	if g == nil {
		panic("latchotel: Group: nil group")
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.Label == nil {
		o.Label = func(k K) string { return fmt.Sprint(k) }
	}
	return register(meter, "latchfree.breaker_group.name", name, func(emit emit) {
		byState := make(map[atomicbreaker.State]int)
		byLabel := make(map[string]keySum)
		for k, s := range g.All() {
			byState[s.State]++
			label := utf8(o.Label(k))
			byLabel[label] = byLabel[label].plus(s)
		}
		for _, state := range states {
			emit(&groupKeys, float64(byState[state]), stateOf(state))
		}
		for label, sum := range worst(byLabel, o.MaxKeys) {
			key := attribute.String("latchfree.breaker_group.key", label)
			emit(&groupKeyOpen, float64(sum.open), key)
			emit(&groupKeyFailures, float64(sum.failures), key)
		}
		counts := g.Stats()
		emit(&groupOpenings, float64(counts.Opened))
		emit(&groupClosings, float64(counts.Closed))
		emit(&groupRejected, float64(counts.Rejected))
		emit(&groupLate, float64(counts.Late))
		emit(&groupWithheld, float64(counts.Withheld))
		emit(&groupWrong, float64(counts.WrongSettings))
		emitTotals(emit, &groupCalls, counts)
	}, withTotals(g.Stats(), &groupCalls, &groupKeys, &groupKeyOpen, &groupKeyFailures, &groupOpenings, &groupClosings, &groupRejected, &groupLate, &groupWithheld, &groupWrong)...)
}

// A keySum has what is known of the keys with one label.
type keySum struct{ open, failures int }

func (s keySum) plus(of atomicbreaker.Snapshot) keySum {
	if rejects(of.Would) {
		s.open++
	}
	s.failures += of.Failures
	return s
}

// worst returns the n worst of sums, and the rest under OtherKeys, which is always there.
func worst(sums map[string]keySum, n int) map[string]keySum {
	labels := make([]string, 0, len(sums))
	for label := range sums {
		if label != OtherKeys {
			labels = append(labels, label)
		}
	}
	slices.SortFunc(labels, func(a, b string) int {
		x, y := sums[a], sums[b]
		return cmp.Or(cmp.Compare(y.open, x.open), cmp.Compare(y.failures, x.failures), cmp.Compare(a, b))
	})
	n = min(max(n, 0), len(labels))
	result := map[string]keySum{OtherKeys: sums[OtherKeys]}
	for _, label := range labels[:n] {
		result[label] = sums[label]
	}
	rest := result[OtherKeys]
	for _, label := range labels[n:] {
		rest.open += sums[label].open
		rest.failures += sums[label].failures
	}
	result[OtherKeys] = rest
	return result
}

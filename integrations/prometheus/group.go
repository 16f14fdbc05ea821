package latchprom

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/prometheus/client_golang/prometheus"
)

// DefaultMaxKeys is what a GroupOptions.MaxKeys of zero means.
const DefaultMaxKeys = 20

// OtherKeys is the value of the label key for all keys that have none of their own.
const OtherKeys = "_other"

// GroupOptions holds the settings of a collector for a Group. The zero value means the
// defaults.
type GroupOptions[K comparable] struct {
	// MaxKeys is how many keys have their own value of the label key at a time. They are the
	// worst: those that reject calls come first, then those with more failures, then those
	// whose label is less. All others are summed under OtherKeys. Zero means 20, and less
	// than zero means none.
	MaxKeys int

	// Label returns the value of the label key. Keys with the same label are summed, so it
	// can also put keys in classes. Nil means fmt.Sprint. It is called at each scrape for
	// each key that is in the group. If it panics or calls runtime.Goexit, the collector has
	// an error and nothing else.
	Label func(K) string
}

var (
	groupKeys        = family{"latchfree_breaker_group_keys", "Keys in the group, by state. Absent keys are healthy.", prometheus.GaugeValue, []string{"state"}}
	groupKeyOpen     = family{"latchfree_breaker_group_key_open", "1 for a key that rejects calls outright, or would without Config.Shadow; a sum under _other.", prometheus.GaugeValue, []string{"key"}}
	groupKeyFailures = family{"latchfree_breaker_group_key_failures", "Failures that count against the key now; a sum under _other.", prometheus.GaugeValue, []string{"key"}}
	groupOpenings    = family{"latchfree_breaker_group_opened_total", "Times that a key of the group opened.", prometheus.CounterValue, nil}
	groupClosings    = family{"latchfree_breaker_group_closed_total", "Times that a key of the group was closed again, or reset.", prometheus.CounterValue, nil}
	groupRejected    = family{"latchfree_breaker_group_rejected_total", "Calls that were not admitted, or in a shadow would not have been.", prometheus.CounterValue, nil}
	groupLate        = family{"latchfree_breaker_group_late_total", "Results that came too late.", prometheus.CounterValue, nil}
	groupWithheld    = family{"latchfree_breaker_group_withheld_total", "Failures that did not open a key because of GroupConfig.MaxOpen.", prometheus.CounterValue, nil}
	groupCalls       = family{"latchfree_breaker_group_calls_total", "Calls for all keys that were reported, by outcome, with Config.RecordTotals.", prometheus.CounterValue, []string{"outcome"}}
	groupWrong       = family{"latchfree_breaker_group_wrong_settings_total", "Times that GroupConfig.PerKey returned wrong settings, so that those of Default were used.", prometheus.CounterValue, nil}
)

// Group returns a collector for g. Its label is group. A scrape walks the keys in the
// group, which are those that fail or have failed, and locks one bucket at a time. It
// panics if g is nil.
func Group[K comparable](name string, g *atomicbreaker.Group[K], o GroupOptions[K]) prometheus.Collector {
	if g == nil {
		panic("latchprom: Group: nil group")
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.Label == nil {
		o.Label = func(k K) string { return fmt.Sprint(k) }
	}
	return newCollector("group", name, func(emit emit) {
		byState := make(map[atomicbreaker.State]int)
		byLabel := make(map[string]keySum)
		for k, s := range g.All() {
			byState[s.State]++
			label := utf8(o.Label(k))
			byLabel[label] = byLabel[label].plus(s)
		}
		for _, state := range states {
			emit(&groupKeys, float64(byState[state]), state.String())
		}
		for label, sum := range worst(byLabel, o.MaxKeys) {
			emit(&groupKeyOpen, float64(sum.open), label)
			emit(&groupKeyFailures, float64(sum.failures), label)
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

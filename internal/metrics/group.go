package metrics

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/atomicbreaker"
)

const (
	// DefaultMaxKeys is what a GroupOptions.MaxKeys of zero means.
	DefaultMaxKeys = 20
	// OtherKeys is the label of all keys that have none of their own.
	OtherKeys = "_other"
)

// GroupOptions are those of the exporters.
type GroupOptions[K comparable] struct {
	MaxKeys int
	Label   func(K) string
}

// Group returns the source of g.
func Group[K comparable](g *atomicbreaker.Group[K], o GroupOptions[K]) *Source {
	s := &Source{Type: "breaker_group"}
	if o.MaxKeys == 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.Label == nil {
		o.Label = func(k K) string { return fmt.Sprint(k) }
	}
	keys := s.family("breaker_group.keys", "{key}", "Keys in the group, by state. Absent keys are healthy.", Amount, "breaker.state")
	keyOpen := s.family("breaker_group.key.open", "{key}", "1 for a key that rejects calls outright, or would without Config.Shadow; a sum under _other.", Amount, "breaker_group.key")
	keyFailures := s.family("breaker_group.key.failures", "{failure}", "Failures that count against the key now; a sum under _other.", Amount, "breaker_group.key")
	counts := s.counts(g.Stats(), "a key of the group", "Calls for all keys")
	withheld := s.family("breaker_group.withheld", "{failure}", "Failures that did not open a key because of GroupConfig.MaxOpen.", Counter)
	wrong := s.family("breaker_group.wrong_settings", "{settings}", "Times that GroupConfig.PerKey returned wrong settings, so that those of Default were used.", Counter)
	s.Read = func(emit Emit) {
		byState := make(map[atomicbreaker.State]int)
		byLabel := make(map[string]keySum)
		for k, now := range g.All() {
			byState[now.State]++
			label := Text(o.Label(k))
			byLabel[label] = byLabel[label].plus(now)
		}
		for _, state := range states() {
			emit(keys, float64(byState[state]), state.String())
		}
		for label, sum := range worst(byLabel, o.MaxKeys) {
			emit(keyOpen, float64(sum.open), label)
			emit(keyFailures, float64(sum.failures), label)
		}
		now := g.Stats()
		counts(emit, now)
		emit(withheld, float64(now.Withheld))
		emit(wrong, float64(now.WrongSettings))
	}
	return s
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

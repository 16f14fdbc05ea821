package direct

import (
	"example.com/consumer/shape"
	"github.com/latchfree/latchfree/cowchangeset"
)

func slices() []shape.Shape {
	var s cowchangeset.Slice[string]
	s.Append(make([]string, 600)...) // leaves room for as many
	var t cowchangeset.Tracker[int]
	return []shape.Shape{
		{"Slice.Load", 0, func() { s.Load() }},
		{"Slice.Snapshot", 0, func() { s.Snapshot() }},
		{"Slice.All", 0, func() {
			for range s.All() {
			}
		}},
		{"Slice.Append", 0, func() { s.Append("closed") }},
		{"Slice.Update: the array", 1, func() { s.Update(func(old []string) []string { return old }) }},
		{"Tracker.Record without a changeset", 0, func() { t.Record(1) }},
	}
}

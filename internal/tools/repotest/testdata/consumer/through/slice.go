package through

import (
	"example.com/consumer/shape"
	"example.com/consumer/wrapper"
)

func slices() []shape.Shape {
	j := new(wrapper.Journal)
	j.Write("opened")
	return []shape.Shape{
		{"Slice.Load", 0, func() { j.Lines() }},
		{"Slice.All", 0, func() { j.Longest() }},
		{"Tracker.Record without a changeset", 0, func() { j.Record(1) }},
	}
}

package through

import (
	"example.com/consumer/shape"
	"example.com/consumer/wrapper"
)

func registries() []shape.Shape {
	u := wrapper.NewUsers("ann", 42)
	return []shape.Shape{
		{"Registry.Get", 0, func() { u.Age("ann") }},
		{"Registry.Get, absent", 0, func() { u.Age("bob") }},
		{"Lookup", 0, func() { u.Entry("ann") }},
		{"Ref.Get", 0, func() { u.RootAge() }},
		{"Ref.Lookup", 0, func() { u.RootEntry() }},
		{"Update: the record", 1, func() { u.Birthday("ann") }},
		{"UpdateIf: the record", 1, func() { u.Replace("ann", 43) }},
		{"Put: the record", 1, func() { u.Put("ann", 44) }},
	}
}

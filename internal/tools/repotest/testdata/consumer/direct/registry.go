package direct

import (
	"example.com/consumer/shape"
	"github.com/latchfree/latchfree/shardedregistry"
)

func registries() []shape.Shape {
	var r shardedregistry.Registry[string, int]
	r.Put("ann", 42)
	ref := r.Ref("ann")
	n := 0
	return []shape.Shape{
		{"Registry.Get", 0, func() { r.Get("ann") }},
		{"Registry.Get, absent", 0, func() { r.Get("bob") }},
		{"Lookup", 0, func() { r.Lookup("ann") }},
		{"Ref.Get", 0, func() { ref.Get() }},
		{"Ref.Lookup", 0, func() { ref.Lookup() }},
		{"Registry.GetOrCreate, present", 0, func() { r.GetOrCreate("ann", func() (int, error) { n++; return n, nil }) }},
		{"Update: the record", 1, func() { r.Update("ann", func(age int) (int, error) { n++; return age + n, nil }) }},
		{"UpdateIf: the record", 1, func() {
			if e, ok := r.Lookup("ann"); ok {
				r.UpdateIf("ann", e.Version, 43)
			}
		}},
		{"Put: the record", 1, func() { r.Put("ann", 44) }},
	}
}

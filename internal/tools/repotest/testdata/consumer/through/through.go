// Package through calls the four packages through package wrapper only. It
// mentions none of their types, so the compiler sees here what it inlines from
// wrapper and no more.
package through

import "example.com/consumer/shape"

// Shapes returns all calls of this package.
func Shapes() []shape.Shape {
	all := append(breakers(), caches()...)
	all = append(all, registries()...)
	all = append(all, slices()...)
	for i := range all {
		all[i].Name = "through a wrapper, " + all[i].Name
	}
	return all
}

// Package direct calls the four packages.
package direct

import "example.com/consumer/shape"

// Shapes returns all calls of this package.
func Shapes() []shape.Shape {
	all := append(breakers(), caches()...)
	all = append(all, registries()...)
	return append(all, slices()...)
}

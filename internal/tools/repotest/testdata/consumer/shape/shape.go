// Package shape says what a call is.
package shape

// A Shape is a way to call something, and what each call allocates.
type Shape struct {
	Name   string
	Allocs float64
	Call   func()
}

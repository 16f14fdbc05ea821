//go:build gc && (amd64 || arm64)

package goid

// Token returns a number that no other goroutine has that is alive now. It is
// the address of what the runtime knows of the goroutine, and takes one
// instruction. It returns 0 where nobody has written that instruction down.
func Token() uintptr

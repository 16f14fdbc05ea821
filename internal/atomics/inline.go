package atomics

// The functions below make aliases free.
//
// A package that reaches a sync/atomic method only through our aliases, or
// only from generic code that a third package instantiates, gets a call
// instead of one instruction: the compiler passes a foreign body on to
// importers only if it inlined that body in the package itself
// (cmd/compile/internal/noder/linker.go, exportBody). Each public package
// therefore calls these functions once from a function that is never run:
//
//	var _ = inlined
//
//	func inlined(w *atomics.Uint64) { atomics.InlineUint64(w) }
//
// Generic code that uses sync/atomic directly suffers from the same trap, so
// this is not only about the aliases. internal/tools/repotest disassembles a
// consumer of the four packages to keep it so.
//
// # Functions that the user passes
//
// There is a second trap: https://go.dev/issue/79592. A package that inlines a
// function of another package, which calls a generic function of ours, compiles no
// instance of that. It then knows nothing of what becomes of the arguments, and
// puts a closure on the heap that is called at once and kept nowhere. So a
// wrapper around Execute must not be inlined, and we see to that.
//
// What decides is that a function may be inlined if the compiler counts at most 80
// for it. A generic function that is given a function and promises to allocate
// nothing does therefore no more than call another, which counts some 75. It is
// inlined then, and costs nothing; whatever contains it counts more than 80. And a
// generic function that is inlined, and calls one without type parameters, has
// nothing to fear in the first place: the compiler knows those everywhere.
//
// A closure that calls a generic function of ours is out of reach. What returns it
// may be inlined whatever the closure does, and then nothing is inlined in the
// closure. So is a wrapper that a profile says to inline at any cost.
//
// internal/tools/repotest counts what an importer of the four packages allocates.

// InlineBool mentions every method of Bool.
func InlineBool(w *Bool) { w.Store(w.Load()); w.Swap(w.CompareAndSwap(true, false)) }

// InlineInt64 mentions every method of Int64.
func InlineInt64(w *Int64) {
	w.Store(w.Load())
	w.Swap(w.Add(1))
	w.Or(w.And(1))
	w.CompareAndSwap(1, 2)
}

// InlineUint32 mentions every method of Uint32.
func InlineUint32(w *Uint32) {
	w.Store(w.Load())
	w.Swap(w.Add(1))
	w.Or(w.And(1))
	w.CompareAndSwap(1, 2)
}

// InlineUint64 mentions every method of Uint64.
func InlineUint64(w *Uint64) {
	w.Store(w.Load())
	w.Swap(w.Add(1))
	w.Or(w.And(1))
	w.CompareAndSwap(1, 2)
}

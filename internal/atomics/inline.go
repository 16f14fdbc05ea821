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
// this is not only about the aliases. internal/repotest disassembles a
// consumer of the four packages to keep it so.

// InlineBool mentions every method of Bool.
func InlineBool(w *Bool) { w.Store(w.Load()); w.Swap(w.CompareAndSwap(true, false)) }

// InlineInt32 mentions every method of Int32.
func InlineInt32(w *Int32) {
	w.Store(w.Load())
	w.Swap(w.Add(1))
	w.Or(w.And(1))
	w.CompareAndSwap(1, 2)
}

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

// Package fuzz holds what attacks the four packages from outside. Each folder compares what the
// real types do with sequential models, which are mutex-free and obviously right:
//
//   - sequences: one goroutine, operations made of bytes.
//   - interleavings: two or three threads made of bytes, under the build tag modelcheck, in every
//     order of their steps.
//   - histories: real goroutines, and a search for an order that explains what they saw.
//   - internal: how these use the types, explore and search.
//
// Scenes, which are generated and not made of bytes, stand with the protocols of their packages; make
// scenes plays all. FuzzOwnUse, in this folder, shows how a program fuzzes its own use of a registry.
//
// make fuzz FUZZTIME=30s searches for new inputs with all targets, those of other packages too. A
// crasher is written to testdata/fuzz of its folder; commit it with the fix.
package fuzz

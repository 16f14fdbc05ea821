// Package histories lets goroutines use the real types, whose tables grow and shrink meanwhile,
// notes when each operation began and ended, and asks porcupine for an order that explains all
// results; see fuzz/internal/history. Nothing is instrumented, and so nothing is left out: what is
// found here and not in interleavings is due to the real map, compiler and processors. The models'
// states are values that can be compared. Beside each test is one that must find out broken
// implementations. Time stands still, but for breakers and for what expires in synctest's bubbles, where
// it passes while all clients sleep: so they wake beside the timers.
//
// HISTORY_TIME says how long each test searches:
//
//	HISTORY_TIME=1m go test ./fuzz/histories -run Histories -cpu 1,2,4
//
// One that fails is printed and drawn as a web page, whose name it tells. With
// HISTORY_SEED, its goroutines do the same again, in other interleavings.
package histories

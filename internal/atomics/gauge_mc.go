//go:build modelcheck

package atomics

import (
	"sync/atomic"
	"unsafe"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Gauge is the twin of the Gauge in atomics.go. Nothing depends on what it
// shows, so it takes no step; it only costs, while costs are measured.
type Gauge struct{ word atomic.Int64 }

// Safety: the address only names the word to the model.
func (g *Gauge) cost(verb string, class mc.Class, mode mc.Mode) {
	if mc.Measuring() {
		step(verb, class, unsafe.Pointer(g), mode)
	}
}

// Load counts as a load.
func (g *Gauge) Load() int64 {
	g.cost("Load", mc.Load, mc.Read)
	return g.word.Load()
}

// Add counts as a read-modify-write.
func (g *Gauge) Add(delta int64) int64 {
	g.cost("Add", mc.RMW, mc.Write)
	return g.word.Add(delta)
}

// Store counts as a store.
func (g *Gauge) Store(v int64) {
	g.cost("Store", mc.Store, mc.Write)
	g.word.Store(v)
}

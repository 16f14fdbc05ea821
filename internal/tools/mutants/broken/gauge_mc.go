//go:build modelcheck

package broken

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// beforeLoad and beforeStore are steps of the model where w is a Gauge, whose own methods take none:
// otherwise no goroutine could come between the halves of a torn Add.

func beforeLoad(w any) { stepOn(w, "Load", mc.Load, mc.Read) }

func beforeStore(w any) { stepOn(w, "Store", mc.Store, mc.Write) }

// Safety: the address only names the word to the model.
func stepOn(w any, verb string, class mc.Class, mode mc.Mode) {
	if g, ok := w.(*atomics.Gauge); ok {
		mc.Step(&mc.Op{Verb: verb, Class: class, On: mc.Access{Addr: unsafe.Pointer(g), Mode: mode}})
	}
}

//go:build modelcheck

package throttle

import (
	"context"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Every operation progresses as its documentation says, whoever stops for ever.
func TestProgress(t *testing.T) {
	op := func(name string, do func(x *Throttle)) mc.Operation[*Throttle] {
		return mc.Operation[*Throttle]{Name: "Throttle." + name, Do: do}
	}
	mc.CheckProgress(t, nil, mc.World[*Throttle]{
		Name: "calls", New: func() *Throttle { return MustNew(Config{}) }, Pairs: true, Operations: []mc.Operation[*Throttle]{
			op("Allow", func(x *Throttle) { x.Allow() }).Free(),
			op("Done", func(x *Throttle) { x.Done(nil) }).Free(),
			op("Success", func(x *Throttle) { x.Success() }).Free(),
			op("Do", func(x *Throttle) { x.Do(context.Background(), func(context.Context) error { return nil }) }).Free(),
			op("Snapshot", func(x *Throttle) { x.Snapshot() }).Bounded(34),
			{Name: "time passes", Do: func(*Throttle) { mc.Pass(time.Minute) }},
		},
	})
}

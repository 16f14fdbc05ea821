//go:build modelcheck

package atomicbreaker

import (
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// An allotment is what some threads do to a group of which one key may be open
// at once, or all, and what was done before.
type allotment struct {
	trip    Policy // nil: two failures in a row
	all     bool
	before  []action
	threads [][]action
	opens   [2]int // how many keys are open or half-open in the end: at least, and at most

	withheld [2]uint64 // and how many failures did not open one
}

func (p allotment) check(t *testing.T) {
	t.Helper()
	cfg := mc.Config{Operations: mc.Listed(p.threads, func(a action) string { return a.Name })}
	mc.Check(t, cfg, func(m *mc.M) {
		config := GroupConfig[string]{Default: Config{Policy: Consecutive(2), OpenTimeout: time.Minute, Probes: 1}, MaxOpen: 1}
		if p.trip != nil {
			config.Default.Policy = p.trip
		}
		if p.all {
			config.MaxOpen = 0
		}
		c := &checked{t: t, Group: MustNewGroup(config)}
		plainly(&c.current().counters)
		for _, a := range p.before {
			a.Do(c)
		}
		for _, thread := range p.threads {
			m.Go(func() {
				for _, a := range thread {
					a.Do(c)
				}
			})
		}
		m.Final(func() {
			if err := c.quiet(); err != nil {
				m.Failf("%v", err)
			}
			out := int(c.current().quota.held.Load()) // and so say the cells, as it is quiet
			if out < p.opens[0] || out > p.opens[1] {
				m.Failf("%d are open", out)
			}
			if s := c.Stats(); s.Withheld < p.withheld[0] || s.Withheld > p.withheld[1] {
				m.Failf("%+v", s)
			}
		})
	})
}

// What comes before: each key is one failure from being open.
var bothFailing = after(failing, record(another, Failure))

// Places of the open quota are taken before keys open and given back after they
// closed, each once, whoever else wanted to do the same.
func TestQuotaInEveryOrder(t *testing.T) {
	for name, p := range map[string]allotment{
		"two keys, and one place":     {before: bothFailing, threads: threads{{record(k, Failure)}, {record(another, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{1, 1}},
		"two keys, and two places":    {all: true, before: bothFailing, threads: threads{{record(k, Failure)}, {record(another, Failure)}}, opens: [2]int{2, 2}},
		"two failures of a key":       {all: true, before: bothFailing, threads: threads{{record(k, Failure)}, {reportOp(2, Failure)}}, opens: [2]int{1, 1}},
		"a failure too many":          {all: true, before: bothFailing, threads: threads{{record(k, Failure), record(k, Success)}, {reportOp(2, Failure)}}},
		"two keys, and no place":      {before: after(bothFailing, record(twin, Failure), record(twin, Failure)), threads: threads{{record(k, Failure)}, {record(another, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{2, 2}},
		"two of a key, and one place": {before: failing, threads: threads{{reportOp(0, Failure)}, {reportOp(2, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{0, 1}},
		"two of a key, and no place":  {trip: KOfN(2, 3), before: after(bothFailing, record(another, Failure)), threads: threads{{record(k, Failure)}, {reportOp(2, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{2, 2}},
		"a place that becomes free":   {before: after(bothFailing, record(another, Failure)), threads: threads{{reset(another), record(k, Failure)}, {reportOp(2, Ignored)}}, opens: [2]int{1, 1}},
		"two recoveries":              {before: opened, threads: threads{{record(k, Success)}, {record(k, Success)}}},
		"a recovery, and it is off":   {before: probing, threads: threads{{reportOp(3, Success)}, {disableK}}},
		"a probe fails as it is off":  {before: probing, threads: threads{{reportOp(3, Failure)}, {disableK}}},
		"a failure and a reset":       {before: failing, threads: threads{{reportOp(2, Failure)}, {reset(k)}}, opens: [2]int{0, 1}},
		"a failure, and it is forced": {before: failing, threads: threads{{reportOp(2, Failure)}, {forceK}}},
		"a failure, and a trip":       {all: true, before: failing, threads: threads{{reportOp(2, Failure)}, {tripK}}, opens: [2]int{1, 1}, withheld: [2]uint64{0, 1}},
		"two trips":                   {before: failing, threads: threads{{tripK}, {tripOf(2)}}, opens: [2]int{1, 1}, withheld: [2]uint64{0, 1}},
		"a trip without a place":      {before: after(bothFailing, record(another, Failure)), threads: threads{{tripK}, {record(k, Failure)}}, opens: [2]int{2, 2}, withheld: [2]uint64{0, 1}},
		"a probe and a trip":          {before: after(opened, expire(k)), threads: threads{{allow(0, k)}, {tripK}}, opens: [2]int{1, 1}},
		"ResetAll":                    {before: failing, threads: threads{{reportOp(2, Failure)}, {resetAll, record(k, Failure), record(k, Failure)}}, opens: [2]int{0, 1}, withheld: [2]uint64{0, 1}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t) })
	}
}

package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// Whatever a crash of the machine leaves, while segments begin and go, all that was
// acknowledged is there, or before the place that Open names when it refuses. With
// SyncNever it need not be there; but what is missing is at the end.
func TestPowerLoss(t *testing.T) {
	attempts, refused := 4000, 0
	if testing.Short() {
		attempts = 400
	}
	for attempt := range attempts {
		p := &memory{}
		o := journal.Options{SegmentSize: int64(400 + rand.IntN(3000)), Sync: journal.SyncPolicy(attempt % 2)}
		j, err := journaltest.Open[any](p, o)
		must(t, err)
		stop := 1 + rand.IntN(60) // the operation at which the power fails
		var crashed bool
		p.Fault = func(op string) (int, error) {
			if op == "check" {
				return 0, nil
			}
			if stop--; stop == 0 {
				done := rand.IntN(3000)
				crashed, p.Dying = true, true
				if op == "write" {
					return done, errBoom
				}
				return 0, errBoom
			}
			if stop < 0 {
				return 0, errBoom
			}
			return 0, nil
		}
		done := map[string]int{} // entries that were acknowledged
		finished, first := uint64(0), uint64(1)
		acknowledged := must0(j.Start(background, header{ID: "1", Ordinal: 1}))
		for n := uint64(1); acknowledged; n++ {
			id, next := fmt.Sprint(n), fmt.Sprint(n+1)
			k := rand.IntN(4)
			for i := range k {
				acknowledged = acknowledged && must0(j.Append(background, id, []entry{item(uint64(i), strings.Repeat("v", rand.IntN(900)))}))
				if acknowledged {
					done[id]++
				}
			}
			for _, s := range []step{start(next, n+1, id), seal(id, k, uint64(max(0, k-1))), applied(id, whole)} {
				acknowledged = acknowledged && must0(s.Call(j))
			}
			if acknowledged {
				finished = n
			}
			if acknowledged && n%3 == 0 {
				first = n + 1 // also if it is not acknowledged
				acknowledged = must0(j.Prune(background, n+1))
			}
		}
		if !crashed {
			t.Fatal("no crash")
		}
		disk := p.Crash()
		again, err := journaltest.Open[any](disk, o)
		var corrupt *journal.CorruptError
		if errors.As(err, &corrupt) {
			refused++
			cutAt(disk, corrupt)
			again, err = journaltest.Open[any](disk, o)
		}
		if err != nil {
			t.Fatalf("round %d: %v", attempt, err)
		}
		if o.Sync == journal.SyncNever {
			continue
		}
		got := map[string]int{}
		for _, s := range load(t, again) {
			got[s.ID] = len(s.Entries)
			if s.Ordinal <= finished && s.Applied != whole {
				t.Fatalf("round %d: %s is not applied", attempt, s.ID)
			}
		}
		for id, n := range done {
			var ordinal uint64
			fmt.Sscan(id, &ordinal)
			if have, ok := got[id]; have < n && (ok || ordinal >= first) {
				t.Fatalf("round %d: %d of %d entries of %s are there; pruned up to %d", attempt, have, n, id, first)
			}
		}
	}
	t.Logf("%d crashes, %d of them left what Open refuses", attempts, refused)
}

func must0(err error) bool { return err == nil }

// cutAt removes what comes after the place that an error names.
func cutAt(m *memory, c *journal.CorruptError) {
	for name, f := range m.Files {
		if name == c.File {
			f.Data = f.Data[:c.Offset]
		} else if name > c.File {
			m.Delete(name)
		}
	}
}

package clustered

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/examples/planservice/api"
)

// A changeset is what its own records say. A successor does not seal it: what was recorded
// before the successor may come after it in the trail.
func TestTrail(t *testing.T) {
	tr := &trail{replica: 2}
	previous := ""
	event := func(kind changeset.Kind, id string, ordinal uint64, changes ...string) {
		e := changeset.Event[api.Change]{Kind: kind, ChangesetID: id, Ordinal: ordinal}
		if kind == changeset.Started {
			e.Previous, previous = previous, id
		}
		for i, c := range changes {
			e.Entries = append(e.Entries, cowchangeset.Entry[api.Change]{Seq: uint64(i), Value: api.Change{ID: c}})
		}
		tr.take(e)
	}
	ids := func() (all []string) {
		for _, c := range tr.all() {
			all = append(all, c.ID)
		}
		return all
	}
	event(changeset.Claimed, "", 0)
	event(changeset.Started, "p~2-A", 1)
	event(changeset.Appended, "p~2-A", 1, "a", "b")
	event(changeset.Started, "q~2-B", 2)
	early, _ := tr.byID.Get("p~2-A")
	assert.False(t, early.Sealed)
	event(changeset.Appended, "p~2-A", 1, "late")
	event(changeset.Sealed, "p~2-A", 1)
	event(changeset.Applied, "p~2-A", 1)
	late, _ := tr.byID.Get("p~2-A")
	assert.Equal(t, api.Changeset{ID: "p~2-A", Replica: "2", Ordinal: 1, Plan: "p", Changes: 3, Sealed: true, Applied: true}, late.Changeset)
	assert.Equal(t, []api.Change{{ID: "a"}, {ID: "b"}, {ID: "late"}}, late.changes)
	assert.Equal(t, []api.Change{{ID: "a"}, {ID: "b"}}, early.changes, "what was read stays as it was")

	event(changeset.Started, "q~2-C", 3) // stored, and told as failed
	event(changeset.Started, "q~2-D", 3)
	assert.Equal(t, []string{"p~2-A", "q~2-B", "q~2-D"}, ids())
	event(changeset.Aborted, "q~2-D", 3)
	aborted, _ := tr.byID.Get("q~2-D")
	assert.True(t, aborted.Sealed)
	event(changeset.Pruned, "", 0)
	assert.Len(t, ids(), 3)
}

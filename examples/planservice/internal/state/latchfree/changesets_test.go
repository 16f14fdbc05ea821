package latchfree_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/latchfree"
)

// The journal of changes alone says which plan a changeset belongs to: a kill right after
// Start, before anything is in the audit trail, loses nothing.
func TestPlansAreInTheJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes")
	var want []api.Changeset
	for process := range 2 {
		j, err := journal.Open[api.Change](path, journal.Options{Sync: journal.SyncNever})
		require.NoError(t, err)
		set, err := latchfree.New(t.Context(), latchfree.Config{Threshold: 3, OpenTimeout: time.Hour, IdleTimeout: time.Hour, Journal: j})
		require.NoError(t, err)
		assert.Equal(t, want, slices.Collect(set.Changesets.All()))
		if process == 0 {
			for _, plan := range []string{"nightly", "ärger.1"} {
				c, err := set.Changesets.Start(t.Context(), plan)
				require.NoError(t, err)
				assert.Equal(t, plan, c.Plan)
			}
			want = slices.Collect(set.Changesets.All())
		}
		require.NoError(t, set.Changesets.Close(t.Context()))
	}
	require.Len(t, want, 2)
	assert.Equal(t, "ärger.1", want[1].Plan)
}

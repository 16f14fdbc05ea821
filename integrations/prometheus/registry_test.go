package latchprom_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRegistry(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	get := scrape(t, latchprom.Registry("users", &r))
	_, err := r.Put("a", 1)
	require.NoError(t, err)
	_, body := get()
	assert.Contains(t, body, `latchfree_registry_entries{registry="users"} 1`)
	r.Delete("a")
	_, body = get()
	assert.Contains(t, body, `latchfree_registry_entries{registry="users"} 0`)
}

func TestTrackerAndJournal(t *testing.T) {
	j, err := journal.Open[int](t.TempDir(), journal.Options{})
	require.NoError(t, err)
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{Store: j})
	get := scrape(t, latchprom.Tracker("t", tracker), latchprom.Journal("j", j))
	ctx := context.Background()
	for range 2 {
		_, err = tracker.Start(ctx)
		require.NoError(t, err)
		_, err = tracker.Record(1)
		require.NoError(t, err)
	}
	_, body := get()
	lines := j.Hash().Line
	require.Positive(t, lines)
	for _, line := range []string{
		`latchfree_tracker_changesets_total{tracker="t"} 2`,
		`latchfree_tracker_open{tracker="t"} 1`,
		`latchfree_tracker_entries{tracker="t"} 1`,
		`latchfree_tracker_durable_seq{tracker="t"} 1`,
		`latchfree_journal_recovered_bytes{journal="j"} 0`,
	} {
		assert.Contains(t, body, line+"\n")
	}
	assert.NotContains(t, body, `latchfree_journal_lines_total{journal="j"} 0`)

	// Counters never go down.
	c, _ := tracker.Current()
	_, err = c.Seal(ctx)
	require.NoError(t, err)
	require.NoError(t, tracker.Flush(ctx))
	require.NoError(t, j.Rotate(ctx))
	require.NoError(t, j.Prune(ctx, 2))
	require.GreaterOrEqual(t, j.Hash().Line, lines)
	require.NoError(t, j.Close())
	_, body = get()
	assert.Contains(t, body, `latchfree_tracker_changesets_total{tracker="t"} 2`)
	assert.Contains(t, body, `latchfree_tracker_open{tracker="t"} 0`)
	assert.Regexp(t, `latchfree_journal_lines_total\{journal="j"\} \d+`, body)
}

package latchprom_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
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
	for range 3 {
		_, err = tracker.Start(ctx)
		require.NoError(t, err)
		_, err = tracker.Record(1)
		require.NoError(t, err)
	}
	require.NoError(t, tracker.Flush(ctx))
	require.NoError(t, j.Rotate(ctx)) // which syncs, but writes for no call
	_, body := get()
	lines, stats := j.Hash().Line, j.Stats()
	require.Positive(t, lines)
	different(t, stats.Entries, stats.Bytes, stats.Writes, stats.Syncs, uint64(stats.Size), uint64(stats.Segments), 0, 1)
	for _, line := range []string{
		`latchfree_tracker_changesets_total{tracker="t"} 3`,
		`latchfree_tracker_open{tracker="t"} 1`,
		`latchfree_tracker_entries{tracker="t"} 1`,
		`latchfree_tracker_durable_seq{tracker="t"} 1`,
		`latchfree_journal_recovered_bytes{journal="j"} 0`,
		fmt.Sprintf(`latchfree_journal_lines_total{journal="j"} %d`, lines),
		fmt.Sprintf(`latchfree_journal_entries_total{journal="j"} %d`, stats.Entries),
		fmt.Sprintf(`latchfree_journal_written_bytes_total{journal="j"} %d`, stats.Bytes),
		fmt.Sprintf(`latchfree_journal_writes_total{journal="j"} %d`, stats.Writes),
		fmt.Sprintf(`latchfree_journal_syncs_total{journal="j"} %d`, stats.Syncs),
		`latchfree_journal_failures_total{journal="j"} 0`,
		`latchfree_journal_broken{journal="j"} 0`,
		`latchfree_journal_segments{journal="j"} 2`,
		fmt.Sprintf(`latchfree_journal_size_bytes{journal="j"} %d`, stats.Size),
		`latchfree_journal_waiting{journal="j"} 0`,
	} {
		assert.Contains(t, body, line+"\n")
	}

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
	assert.Contains(t, body, `latchfree_tracker_changesets_total{tracker="t"} 3`)
	assert.Contains(t, body, `latchfree_tracker_open{tracker="t"} 0`)
	assert.Regexp(t, `latchfree_journal_lines_total\{journal="j"\} \d+`, body)
}

// A journal that breaks says so: its files go, and it sees that.
func TestBrokenJournal(t *testing.T) {
	dir, archive, ctx := filepath.Join(t.TempDir(), "journal"), filepath.Join(t.TempDir(), "archive"), context.Background()
	require.NoError(t, os.Mkdir(archive, 0o700))
	j, err := journal.Open[int](dir, journal.Options{Archive: archive})
	require.NoError(t, err)
	get := scrape(t, latchprom.Journal("j", j))
	require.NoError(t, j.Start(ctx, cowchangeset.Header{ID: "a", Ordinal: 1}))
	require.NoError(t, j.Seal(ctx, "a", cowchangeset.Manifest{}))
	require.NoError(t, j.Rotate(ctx))
	require.NoError(t, j.Start(ctx, cowchangeset.Header{ID: "b", Ordinal: 2, Previous: "a"}))
	require.NoError(t, os.RemoveAll(archive))
	require.Error(t, j.Prune(ctx, 2), "no place for the segment")
	_, body := get()
	assert.Contains(t, body, `latchfree_journal_broken{journal="j"} 0`+"\n")
	assert.Contains(t, body, `latchfree_journal_failures_total{journal="j"} 1`+"\n")
	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, j.Rotate(ctx), journal.ErrBroken)
	_, body = get()
	assert.Contains(t, body, `latchfree_journal_broken{journal="j"} 1`+"\n")
	assert.Contains(t, body, `latchfree_journal_failures_total{journal="j"} 2`+"\n")
	require.ErrorIs(t, j.Close(), journal.ErrBroken)
}

// Of two calls at a time one waits, now and then, while the other writes; before one begins
// to write, both do.
func TestJournalWaits(t *testing.T) {
	j, err := journal.Open[string](t.TempDir(), journal.Options{})
	require.NoError(t, err)
	get := scrape(t, latchprom.Journal("j", j))
	waits := regexp.MustCompile(`latchfree_journal_waiting\{journal="j"\} (\d+)\n`)
	ctx := context.Background()
	var stop atomic.Bool
	var calls sync.WaitGroup
	defer func() {
		stop.Store(true)
		calls.Wait()
		assert.NoError(t, j.Close())
	}()
	for i, id := range []string{"a", "b"} {
		require.NoError(t, j.Start(ctx, cowchangeset.Header{ID: id, Ordinal: uint64(i + 1), Previous: []string{"", "a"}[i]}))
		calls.Go(func() {
			for seq := uint64(0); seq < 200_000 && !stop.Load(); seq++ {
				assert.NoError(t, j.Append(ctx, id, []cowchangeset.Entry[string]{{Seq: seq, Value: "x"}}))
			}
			stop.Store(true)
		})
	}
	for n := ""; n != "1"; {
		require.False(t, stop.Load(), "no call waits")
		_, body := get()
		n = waits.FindStringSubmatch(body)[1]
		require.Contains(t, []string{"0", "1", "2"}, n)
	}
}

// Without a store entries are not durable.
func TestTrackerWithoutStore(t *testing.T) {
	var tracker cowchangeset.Tracker[int]
	_, err := tracker.Start(context.Background())
	require.NoError(t, err)
	for i := range 3 {
		_, err := tracker.Record(i)
		require.NoError(t, err)
	}
	_, body := scrape(t, latchprom.Tracker("t", &tracker))()
	assert.Contains(t, body, `latchfree_tracker_entries{tracker="t"} 3`+"\n")
	assert.Contains(t, body, `latchfree_tracker_durable_seq{tracker="t"} 0`+"\n")
}

func TestRecoveredJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, err := journal.Open[int](dir, journal.Options{})
	require.NoError(t, err)
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{Store: j})
	_, err = tracker.Start(context.Background())
	require.NoError(t, err)
	require.NoError(t, tracker.Flush(context.Background()))
	require.NoError(t, j.Close())
	segments, err := filepath.Glob(filepath.Join(dir, "0*"))
	require.NoError(t, err)
	require.Len(t, segments, 1)
	segment, err := os.OpenFile(segments[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = segment.WriteString(`{"line":`) // as a crash leaves it
	require.NoError(t, err)
	require.NoError(t, segment.Close())

	j, err = journal.Open[int](dir, journal.Options{})
	require.NoError(t, err)
	_, body := scrape(t, latchprom.Journal("j", j))()
	assert.Contains(t, body, `latchfree_journal_recovered_bytes{journal="j"} 8`+"\n")
	require.NoError(t, j.Close())
}

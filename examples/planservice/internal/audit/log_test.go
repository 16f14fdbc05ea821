package audit

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/examples/planservice/api"
)

func open(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(t.Context(), path, journal.Options{Sync: journal.SyncNever})
	require.NoError(t, err)
	return l
}

func names(l *Log) (all []string) {
	for line := range l.All() {
		all = append(all, line.Name)
	}
	return all
}

// Each writer's events are there, once and in its order, with numbers from 1 on.
func TestWritersTogether(t *testing.T) {
	const writers, each = 4, 250
	l := open(t, "")
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				assert.NoError(t, l.Write(api.AuditLine{Name: fmt.Sprint(w), Count: i}))
			}
		})
	}
	all.Wait()
	next, n := map[string]int{}, uint64(0)
	for line := range l.All() {
		n++
		require.Equal(t, n, line.N)
		require.Equal(t, next[line.Name], line.Count, "of writer %s", line.Name)
		require.False(t, line.At.IsZero())
		next[line.Name]++
	}
	assert.Equal(t, uint64(writers*each), n)
	assert.NoError(t, l.Close(t.Context()))
}

func TestAllIsOfTheMomentOfTheCall(t *testing.T) {
	l := open(t, "")
	require.NoError(t, l.Write(api.AuditLine{Name: "a"}))
	all := l.All()
	require.NoError(t, l.Write(api.AuditLine{Name: "b"}))
	for line := range all {
		assert.Equal(t, "a", line.Name)
	}
	assert.Equal(t, []string{"a", "b"}, names(l))
}

func TestJournalKeepsEvents(t *testing.T) {
	path := t.TempDir()
	for i := range 3 {
		l := open(t, path)
		require.NoError(t, l.Write(api.AuditLine{Name: fmt.Sprint(i)}))
		require.Len(t, l.Collectors(), 2, "tracker and journal")
		require.NoError(t, l.Close(context.Background()))
	}
	l := open(t, path)
	assert.Equal(t, []string{"0", "1", "2"}, names(l))
	require.NoError(t, l.Close(t.Context()))
	assert.Error(t, l.Write(api.AuditLine{}), "a closed journal has nothing more")
}

func TestNoJournal(t *testing.T) {
	_, err := Open(t.Context(), "/dev/null/x", journal.Options{})
	assert.ErrorContains(t, err, "audit: ")
}

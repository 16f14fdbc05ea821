package engine

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// open opens an engine with its schema. It is closed with the test.
func open(t *testing.T, url string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), url, 1, nil)
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	require.NoError(t, e.Migrate(t.Context()))
	return e
}

func changes(ids ...string) (all []api.Change) {
	for _, id := range ids {
		all = append(all, api.Change{ID: id, Plan: "p"})
	}
	return all
}

func TestURLs(t *testing.T) {
	for _, url := range []string{"", "memory:", "file:", "plans.db", "http://host/", "MEMORY:x"} {
		_, err := Open(t.Context(), url, 1, nil)
		assert.ErrorIs(t, err, ErrURL, url)
	}
	_, err := Open(t.Context(), File+filepath.Join(t.TempDir(), "absent", "plans.db"), 1, nil)
	assert.ErrorContains(t, err, "open file:")
}

func TestKeys(t *testing.T) {
	e, ctx := open(t, Memory+"x"), t.Context()
	_, err := e.Find(ctx, "k", "c")
	require.ErrorIs(t, err, ErrUnknown)
	w, err := e.Write(ctx, "k", "c", changes("1", "2"))
	require.NoError(t, err)
	assert.Equal(t, Written{Changes: 2}, w)
	again := Written{Changes: 2, Replayed: true}
	w, err = e.Write(ctx, "k", "c", changes("other"))
	require.NoError(t, err)
	assert.Equal(t, again, w)
	w, err = e.Find(ctx, "k", "c")
	require.NoError(t, err)
	assert.Equal(t, again, w)

	_, err = e.Write(ctx, "k", "c2", changes("3"))
	assert.ErrorIs(t, err, ErrKeyReused)
	_, err = e.Write(ctx, "k2", "c", changes("3"))
	assert.ErrorIs(t, err, ErrOtherKey)
	ids, err := e.IDs(ctx, "c")
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "2"}, ids)
}

// Of writers of one changeset, in several engines of its file, one writes.
func TestOneWrites(t *testing.T) {
	url := File + filepath.Join(t.TempDir(), "plans ?#%.db")
	engines := []*Engine{open(t, url), open(t, url)}
	var all sync.WaitGroup
	var mu sync.Mutex
	wrote := 0
	for i := range 8 {
		all.Go(func() {
			w, err := engines[i%2].Write(t.Context(), "k", "c", changes("1", "2"))
			assert.NoError(t, err)
			assert.Equal(t, 2, w.Changes)
			mu.Lock()
			defer mu.Unlock()
			if !w.Replayed {
				wrote++
			}
		})
	}
	all.Wait()
	assert.Equal(t, 1, wrote)
	ids, err := engines[0].IDs(t.Context(), "c")
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "2"}, ids)
}

// A statement that is interrupted would take a database in memory with it.
func TestMemoryOutlivesCancelledCalls(t *testing.T) {
	e := open(t, Memory+"x")
	require.True(t, e.InMemory())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Write(ctx, "k", "c", changes("1"))
	require.NoError(t, err)
	_, err = e.Find(t.Context(), "k", "c")
	assert.NoError(t, err)
}

func TestFileOutlivesItsEngine(t *testing.T) {
	url := File + filepath.Join(t.TempDir(), "plans.db")
	var closed []uint64
	e, err := Open(t.Context(), url, 7, func(e *Engine) { closed = append(closed, e.Number) })
	require.NoError(t, err)
	require.False(t, e.InMemory())
	require.NoError(t, e.Migrate(t.Context()))
	require.NoError(t, e.Migrate(t.Context()))
	_, err = e.Write(t.Context(), "k", "c", changes("1"))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	assert.Equal(t, []uint64{7}, closed)

	e = open(t, url)
	w, err := e.Find(t.Context(), "k", "c")
	require.NoError(t, err)
	assert.Equal(t, Written{Changes: 1, Replayed: true}, w)
}

func TestNewerSchemaIsRefused(t *testing.T) {
	e, err := Open(t.Context(), Memory+"x", 1, nil)
	require.NoError(t, err)
	defer e.Close()
	_, err = e.db.ExecContext(t.Context(), "PRAGMA user_version = 3")
	require.NoError(t, err)
	assert.ErrorContains(t, e.Migrate(t.Context()), "its schema has version 3, and this program knows 2")
	_, err = e.db.ExecContext(t.Context(), "PRAGMA user_version = 0")
	require.NoError(t, err)
	assert.NoError(t, e.Migrate(t.Context()), "a migration that failed is tried again")
}

// Engines of one file, as those of several processes are, make the schema once, and write a
// changeset once.
func TestEnginesOfOneFile(t *testing.T) {
	for round := range 10 {
		url := File + filepath.Join(t.TempDir(), "plans.db")
		var wrote atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				e, err := Open(t.Context(), url, uint64(i), nil)
				if !assert.NoError(t, err) {
					return
				}
				defer e.Close()
				assert.NoError(t, e.Migrate(t.Context()))
				w, err := e.Write(t.Context(), "key", "set", []api.Change{{ID: "a"}, {ID: "b"}})
				assert.NoError(t, err)
				assert.Equal(t, 2, w.Changes)
				if !w.Replayed {
					wrote.Add(1)
				}
			})
		}
		all.Wait()
		assert.Equal(t, int32(1), wrote.Load(), "round %d", round)
	}
}

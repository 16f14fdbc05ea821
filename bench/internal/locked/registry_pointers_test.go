package locked_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/shardedregistry"
)

func TestPointersRegistry(t *testing.T) {
	r := locked.NewPointersRegistry[int]()
	inc := func(v int) (int, error) { return v + 1, nil }
	_, ok := r.Get("a")
	require.False(t, ok)
	_, err := r.Update("a", inc)
	require.ErrorIs(t, err, shardedregistry.ErrNotFound)
	v, err := r.Create("a", 10)
	require.NoError(t, err)
	_, err = r.Create("a", 11)
	require.ErrorIs(t, err, shardedregistry.ErrExists)
	_, err = r.Update("a", func(int) (int, error) { return 0, assert.AnError })
	require.Error(t, err)
	e, err := r.Update("a", inc)
	require.NoError(t, err)
	require.Equal(t, shardedregistry.Entry[string, int]{Key: "a", Value: 11, Version: v + 1}, e)

	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 1000 {
				_, _ = r.Update("a", inc)
			}
		})
	}
	done.Wait()
	got, _ := r.Get("a")
	require.Equal(t, 4011, got, "no update is lost")
}

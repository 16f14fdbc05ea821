package pool

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGoTakesAllTasksOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(2, 1)
		require.NoError(t, err)
		proceed, ran := make(chan struct{}), atomic.Int32{}
		task := func() { <-proceed; ran.Add(1) }
		require.NoError(t, p.Go(task, task))
		assert.ErrorIs(t, p.Go(task, task), ErrBusy)
		require.NoError(t, p.Go(task))
		assert.ErrorIs(t, p.Go(task), ErrBusy)
		synctest.Wait()
		assert.Equal(t, []int{2, 2, 1}, []int{p.Workers(), p.Busy(), p.Queued()})
		close(proceed)
		synctest.Wait()
		assert.Equal(t, []int{0, 0}, []int{p.Busy(), p.Queued()})
		require.NoError(t, p.Go(task, task, task))
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, int32(6), ran.Load())
		assert.ErrorIs(t, p.Go(task), ErrClosed)
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestTasksThatDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(1, 10)
		require.NoError(t, err)
		ran := 0
		for range 3 {
			require.NoError(t, p.Go(func() { panic("a task") }, func() { runtime.Goexit() }, func() { ran++ }))
		}
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, 3, ran)
	})
}

func TestCloseWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(1, 0)
		require.NoError(t, err)
		proceed := make(chan struct{})
		require.NoError(t, p.Go(func() { <-proceed }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
		close(proceed)
		require.NoError(t, p.Close(t.Context()))
	})
}

// Close while others queue: each task that was accepted runs.
func TestCloseRaces(t *testing.T) {
	for range 200 {
		p, err := New(2, 4)
		require.NoError(t, err)
		var accepted, ran atomic.Int64
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for range 20 {
					if p.Go(func() { ran.Add(1) }) == nil {
						accepted.Add(1)
					}
				}
			})
		}
		require.NoError(t, p.Close(t.Context()))
		callers.Wait()
		assert.Equal(t, accepted.Load(), ran.Load())
	}
}

func TestSettings(t *testing.T) {
	for _, s := range [][2]int{{0, 1}, {-1, 1}, {1, -1}} {
		_, err := New(s[0], s[1])
		assert.Error(t, err)
	}
}

package locked_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/cowchangeset"
)

func TestTracker(t *testing.T) {
	var tracker locked.Tracker[int]
	_, err := tracker.Record(1)
	require.ErrorIs(t, err, cowchangeset.ErrNoActive)
	_, err = tracker.RecordBatch([]int{1})
	require.ErrorIs(t, err, cowchangeset.ErrNoActive)
	require.Nil(t, tracker.Current())

	a := tracker.Start()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for range 100 {
				r, err := tracker.Record(g)
				require.NoError(t, err)
				require.Equal(t, uint64(1), r.Ordinal)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 400, a.Len())

	b := tracker.Start()
	require.Same(t, b, tracker.Current())
	r, err := tracker.RecordBatch([]int{7, 8})
	require.NoError(t, err)
	require.Equal(t, uint64(2), r.Ordinal)
	require.Zero(t, r.Seq)
	cut := b.Entries()
	for seq, e := range cut {
		require.Equal(t, int(seq)+7, e)
		_, err := tracker.Record(9) // not under the lock, and not in this loop
		require.NoError(t, err)
	}
	copied := b.Copy()
	require.Equal(t, []int{7, 8, 9, 9}, b.Seal())
	copied[0] = 0
	require.Equal(t, []int{7, 8, 9, 9}, b.Seal())
	_, err = tracker.Record(1)
	require.ErrorIs(t, err, cowchangeset.ErrNoActive)
	require.Len(t, a.Seal(), 400)
}

func TestSlices(t *testing.T) {
	for name, s := range map[string]locked.Slice[int]{
		"mutex":   new(locked.MutexSlice[int]),
		"rwmutex": new(locked.RWMutexSlice[int]),
		"copy":    new(locked.CopySlice[int]),
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, s.Load())
			require.Equal(t, 0, s.Append(1))
			require.Equal(t, 1, s.Append(2, 3))
			before := s.Load()
			require.Equal(t, len(before), cap(before))
			require.Equal(t, 3, s.Append(4))
			require.Equal(t, []int{1, 2, 3}, before)
			s.Update(func(old []int) []int { return old[:2] })
			require.Equal(t, 2, s.Append(9))
			require.Equal(t, []int{1, 2, 9}, s.Load())
			require.Equal(t, []int{1, 2, 3}, before)

			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for i := range 100 {
						s.Append(i)
					}
				})
			}
			wg.Wait()
			all := slices.Sorted(slices.Values(s.Load()[3:]))
			require.Len(t, all, 400)
			for i, v := range all {
				require.Equal(t, i/4, v)
			}
		})
	}
}

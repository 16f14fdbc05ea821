package fuzz

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/shardedregistry"
)

// getOrCreate runs GetOrCreate with a function that ends in the given way. What
// it returns is discarded if it has put the key itself.
func (s *registryRun) getOrCreate(name string, ending registryEnding) {
	_, present := s.m.Get(name)
	_, bad := normalizeName(name)
	runs, value := 0, s.value
	s.both(func(r registryOps) (any, error) {
		v, created, err := r.GetOrCreate(name, func() (int, error) {
			if r != s.m {
				runs++
				s.callBack(name, ending, runs)
			}
			return ending.of(value)
		})
		return fmt.Sprint(v, created), err
	})
	require.Equal(s.t, !present && bad == nil, runs == 1)
}

// createMany creates those of the names whose bit is set, in their order.
func (s *registryRun) createMany(names int) {
	value := s.value
	n, err := s.r.CreateMany(func(yield func(string, int) bool) {
		for i, name := range registryNames {
			if names>>i&1 == 1 && !yield(name, value) {
				s.t.Error("CreateMany leaves keys out")
			}
		}
	})
	var want []error
	created := 0
	for i, name := range registryNames {
		if names>>i&1 == 0 {
			continue
		}
		if _, err := s.m.Create(name, value); err != nil {
			want = append(want, err)
			continue
		}
		created++
	}
	require.Equal(s.t, created, n)
	if len(want) == 0 {
		require.NoError(s.t, err)
		return
	}
	got := err.(interface{ Unwrap() []error }).Unwrap()
	require.Len(s.t, got, len(want))
	for i, err := range got {
		if invalid := new(shardedregistry.KeyError); errors.As(err, &invalid) {
			require.Equal(s.t, "", invalid.Key)
			require.ErrorIs(s.t, err, shardedregistry.ErrInvalidKey)
			require.ErrorIs(s.t, err, errNoName)
			require.ErrorIs(s.t, want[i], errNoName)
			continue
		}
		require.Equal(s.t, want[i], err)
	}
}

// deleteMatching deletes what has a value with the wanted remainder. If how says
// so, the function changes or deletes the first key that it is asked about.
func (s *registryRun) deleteMatching(how int) {
	remainder, first := how%3, how/3%3
	asked, deleted := map[string]int{}, 0
	overtaken := ""
	n := s.r.DeleteMatching(func(e shardedregistry.Entry[string, int]) bool {
		asked[e.Key]++
		have, _ := s.m.Lookup(e.Key)
		require.Equal(s.t, have, e)
		if first > 0 && overtaken == "" {
			overtaken = e.Key
			s.step([]byte{5, 7}[first-1], e.Key, 0)
			return true // what it was asked about is gone
		}
		if e.Value%3 != remainder {
			return false
		}
		require.NoError(s.t, s.m.DeleteIf(e.Key, e.Version))
		deleted++
		return true
	})
	require.Equal(s.t, deleted, n)
	for k, n := range asked {
		if k == overtaken && first == 1 {
			n-- // asked again
		}
		require.Equal(s.t, 1, n)
	}
	for e := range s.m.Entries() {
		require.Contains(s.t, asked, e.Key)
		require.NotEqual(s.t, remainder, e.Value%3)
	}
}

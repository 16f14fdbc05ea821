package sequences

import (
	"fmt"

	"github.com/stretchr/testify/require"
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

// deleteFunc deletes what has a value with the wanted remainder. If how says so, the
// function changes or deletes the first key that it is asked about.
func (s *registryRun) deleteFunc(how int) {
	remainder, first := how%3, how/3%3
	asked, deleted := map[string]int{}, 0
	overtaken := ""
	n := s.r.DeleteFunc(func(k string, v int) bool {
		asked[k]++
		have, _ := s.m.Lookup(k)
		require.Equal(s.t, have.Value, v)
		if first > 0 && overtaken == "" {
			overtaken = k
			s.step([]byte{5, 7}[first-1], k, 0)
			return true // what it was asked about is gone
		}
		if v%3 != remainder {
			return false
		}
		require.NoError(s.t, s.m.DeleteIf(k, have.Version))
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

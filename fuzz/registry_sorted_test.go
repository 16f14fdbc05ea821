package fuzz

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/shardedregistry"
)

// compareSorted compares a snapshot in two orders, whole and in parts, with the model,
// which yields entries in the order of their keys.
func (s *registryRun) compareSorted(taken registrySnapshot) {
	type entry = shardedregistry.Entry[string, int]
	got, all := taken.got, slices.Collect(taken.want.Entries())
	sorted := shardedregistry.Sorted(got)
	require.Equal(s.t, all, slices.Collect(sorted.Entries()))
	for i, bound := range []string{"", "backup", "backups", "d", "zz"} {
		in := func(is func(key string) bool) []entry {
			return slices.Collect(func(yield func(entry) bool) {
				for _, e := range all {
					if is(e.Key) && !yield(e) {
						return
					}
				}
			})
		}
		from := "backup"[:i]
		require.Equal(s.t, in(func(k string) bool { return k >= from && k < bound }), slices.Collect(sorted.Range(from, bound).Entries()))
		require.Equal(s.t, in(func(k string) bool { return strings.HasPrefix(k, bound) }), slices.Collect(shardedregistry.SortedPrefix(sorted, bound).Entries()))
	}
	byValue := func(x, y entry) int { return cmp.Or(cmp.Compare(y.Value, x.Value), strings.Compare(x.Key, y.Key)) }
	slices.SortFunc(all, byValue)
	require.Equal(s.t, all, slices.Collect(shardedregistry.SortedFunc(got, byValue).Entries()))
	slices.Reverse(all)
	require.Equal(s.t, all, slices.Collect(shardedregistry.SortedFunc(got, byValue).Backward()))
}

//go:build modelcheck

package shardedregistry_test

import "testing"

// What is found by an index, and that no two keys have a unique value.
func TestClearIndexes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		unique  bool
		first   []call
		threads threads
	}{
		{"cleared and found", false, a1b1, threads{{clears}, {by("1")}, {put(2)}}},
		{"cleared and created", false, a1b1, threads{{clears}, {remove, create(1)}, {by("1")}}},
		{"replaced and found", false, a1b1, threads{{replaces("ab", 2)}, {by("1"), by("2")}}},
		{"replaced by what it had", false, a1b1, threads{{replaces("a", 1)}, {by("1")}, {put(2)}}},
		{"replaced and deleted", false, a1b1, threads{{replaces("a", 1)}, {remove}, {by("1")}}},
		{"freed and gained", true, a2, threads{{clears}, {other(put(2))}, {unique("2")}}},
		{"gained by two", true, nil, threads{{replaces("a", 1)}, {other(create(1))}, {unique("1")}}},
		{"kept", true, a2, threads{{replaces("a", 2)}, {other(put(2))}, {unique("2")}}},
		{"kept and freed", true, a2, threads{{replaces("a", 2)}, {put(1)}, {other(put(2))}}},
		{"two that gain one", true, nil, threads{{replaces("a", 1)}, {replaces("b", 1)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh, model := byDigits, plainModel
			if tt.unique {
				fresh, model = byUniqueDigits, uniqueModel
			}
			indexProtocol(t, bounded, fresh, model, tt.first, tt.threads)
		})
	}
}

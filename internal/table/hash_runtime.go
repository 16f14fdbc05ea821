//go:build !modelcheck && !purego

package table

import "hash/maphash"

const hashesAtRuntime = true

func (s *Keys[K]) runtimeSeed() maphash.Seed { return s.seed }

// hash keeps no string: a look-up of string(bytes) allocates nothing.
func hash[K comparable](s seed, k K) uint64 { return maphash.Comparable(s, k) }

//go:build !modelcheck && !purego

package table

import "hash/maphash"

func hash[K comparable](s seed, k K) uint64 { return maphash.Comparable(s, k) }

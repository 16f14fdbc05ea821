//go:build !modelcheck

package table

import "hash/maphash"

type seed = maphash.Seed

func makeSeed() seed { return maphash.MakeSeed() }

func hash[K comparable](s seed, k K) uint64 { return maphash.Comparable(s, k) }

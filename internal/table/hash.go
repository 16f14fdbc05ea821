//go:build !modelcheck

package table

import "hash/maphash"

type seed = maphash.Seed

func makeSeed() seed { return maphash.MakeSeed() }

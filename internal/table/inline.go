package table

// InlineTags mentions what a look-up calls, for packages that instantiate it
// for others; see internal/atomics/inline.go.
func InlineTags(hash uint64) int {
	one := tag(hash)
	return one.having(one).rest().first()
}

// InlineHash is the same for what hashes a key.
func InlineHash(s *Keys[string], k string) uint64 { return s.Hash(k) }

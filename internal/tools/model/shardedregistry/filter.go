package model

import (
	"slices"
	"strings"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Filter is a filter of a loop, told what it is.
type Filter struct {
	Keys     []string // normalised
	Prefixes []string
	Match    func(string) bool // or nil
}

// Accepts reports whether a loop with f is told of key.
func (f Filter) Accepts(key string) bool {
	return slices.Contains(f.Keys, key) ||
		slices.ContainsFunc(f.Prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) ||
		f.Match != nil && f.Match(key)
}

// Filters returns f as a loop is given it.
func (f Filter) Filters() (all []shardedregistry.Filter[string]) {
	all = append(all, shardedregistry.Keys(f.Keys...))
	for _, p := range f.Prefixes {
		all = append(all, shardedregistry.Prefix(p))
	}
	if f.Match != nil {
		all = append(all, shardedregistry.Matching(f.Match))
	}
	return all
}

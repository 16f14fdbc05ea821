package shardedregistry

import (
	"slices"
	"strings"
)

// Filter says of which keys a loop over Watch, WatchSnapshot or WatchFrom is told.
// It is made by [Keys], [Prefix] or [Matching]. A loop with several filters is
// told of the keys that at least one of them accepts, and a loop without
// filters of all keys.
//
// A filter may be used for any number of loops. The zero Filter accepts no
// key.
type Filter[K comparable] struct {
	keys   []K             // of Keys
	prefix string          // of Prefix
	as     prefixLength[K] // of Prefix
	match  func(K) bool    // of Matching; else nil
}

// Keys returns a filter that accepts keys and no others. They are normalised
// when a loop begins. A key that is invalid is never present, and is left out.
// Without keys the filter accepts none, and a loop with it alone waits for its
// context.
//
// A change of another key costs the same whether a registry has one such loop
// or a thousand: a look-up of the key among those that are watched.
//
// Keys is wait-free. It takes effect at any moment: it reads and changes
// nothing.
func Keys[K comparable](keys ...K) Filter[K] { return Filter[K]{keys: slices.Clone(keys)} }

// Prefix returns a filter that accepts the keys that begin with prefix, byte by
// byte, and prefix itself. It compares keys as they are stored, and does not
// normalise prefix. An empty prefix accepts every key.
//
// A change of any key costs a look-up for each different length of the prefixes
// that loops watch, up to the length of the key, and not for each prefix.
//
// Prefix is wait-free. It takes effect at any moment: it reads and changes
// nothing.
func Prefix[K ~string](prefix K) Filter[K] {
	return Filter[K]{prefix: string(prefix), as: prefixLength[K]{
		length: len(prefix),
		text:   func(key K) string { return string(key) },
	}}
}

// Matching returns a filter that accepts the keys for which match returns true.
// Match is given keys as they are stored and must always return the same for a
// key.
//
// Match runs on the goroutine of the loop, outside every lock, before the loop
// yields a change, and, for WatchSnapshot, for each key of the snapshot. If it
// panics or calls runtime.Goexit, the loop ends. A slow match delays its loop
// and nobody else. So a change of any key costs as much as beside a loop
// without filters, and what match rejects is dropped when the loop comes to
// it. [Keys] and [Prefix] cost less.
//
// Matching panics if match is nil.
//
// Matching is wait-free. It takes effect at any moment: it reads and changes
// nothing.
func Matching[K comparable](match func(K) bool) Filter[K] {
	if match == nil {
		panic("shardedregistry: Matching called with a nil function")
	}
	return Filter[K]{match: match}
}

// interest is what one loop watches. It is immutable.
type interest[K comparable] struct {
	all      bool                       // the loop is told of all keys
	keys     map[K]uint64               // else of these, with their hashes
	prefixes map[string]prefixLength[K] // and of those that begin with these

	// match says which of these keys the loop shows; nil stands for all. It runs the
	// user's functions, on the goroutine of the loop.
	match func(K) bool
}

// has reports whether the loop shows k.
func (in *interest[K]) has(k K) bool { return in.accepts(k) && (in.match == nil || in.match(k)) }

func (in *interest[K]) accepts(k K) bool {
	if in.all {
		return true
	}
	if _, ok := in.keys[k]; ok {
		return true
	}
	for prefix, by := range in.prefixes {
		if strings.HasPrefix(by.text(k), prefix) {
			return true
		}
	}
	return false
}

// topics returns the number of topics under which tellers find the loop.
func (in *interest[K]) topics() int { return len(in.keys) + len(in.prefixes) }

// hasAll reports whether the loop shows every key.
func (in *interest[K]) hasAll() bool { return in.all && in.match == nil }

// interestOf returns what a loop with filters watches. One with a function is told of all
// keys, and asks the function itself.
func interestOf[K comparable, V any](rt *root[K, V], filters []Filter[K]) interest[K] {
	if len(filters) == 0 {
		return interest[K]{all: true}
	}
	var (
		listed  = interest[K]{keys: map[K]uint64{}, prefixes: map[string]prefixLength[K]{}}
		matches []func(K) bool
	)
	for _, f := range filters {
		switch {
		case f.match != nil:
			matches = append(matches, f.match)
		case f.as.text != nil && f.prefix == "":
			return interest[K]{all: true}
		case f.as.text != nil:
			listed.prefixes[f.prefix] = f.as
		}
		for _, key := range f.keys {
			if k, err := rt.hashed(key); err == nil {
				listed.keys[k.Key] = k.Hash
			}
		}
	}
	if matches == nil {
		return listed
	}
	return interest[K]{all: true, match: func(k K) bool {
		return listed.accepts(k) || slices.ContainsFunc(matches, func(match func(K) bool) bool { return match(k) })
	}}
}

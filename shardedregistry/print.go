package shardedregistry

import (
	"errors"
	"strconv"
)

// String returns how many keys there are. Without it, package fmt would read
// the registry's words without atomic instructions.
//
// String is wait-free. It takes effect as Len does.
func (r *Registry[K, V]) String() string { return "a registry of " + strconv.Itoa(r.Len()) + " keys" }

// String returns how many keys there are.
func (s *Snapshot[K, V]) String() string { return "a snapshot of " + strconv.Itoa(s.Len()) + " keys" }

// errJSON is returned by MarshalJSON, without which package json would return {}.
var errJSON = errors.New("shardedregistry: neither a registry nor a snapshot has a JSON form of its own: " +
	"marshal slices.Collect(s.Entries()) or maps.Collect(s.All()), where s is the snapshot or r.Snapshot()")

// MarshalJSON returns an error that says what to marshal instead. Only the
// caller knows the form that it wants: a list of entries with versions or an
// object of values by key, at one instant or not.
//
// MarshalJSON is wait-free. It takes effect at any moment: it reads nothing.
func (r *Registry[K, V]) MarshalJSON() ([]byte, error) { return nil, errJSON }

// MarshalJSON returns an error that says what to marshal instead.
func (s *Snapshot[K, V]) MarshalJSON() ([]byte, error) { return nil, errJSON }

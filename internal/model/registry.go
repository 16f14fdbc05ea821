package model

import "maps"

// Registry is what shardedregistry.Registry should do with a single shard,
// where versions are exact. Keys are normalised by the caller.
type Registry struct {
	Live  map[string]Entity
	floor int // at least every version of every deleted key
}

// Entity is what a key holds, and how its creator spelled it.
type Entity struct {
	Value, Version int
	Spelled        string
}

// Outcome is what became of an operation.
type Outcome string

// The outcomes that are not an error of the caller's function.
const (
	Done     Outcome = "done"
	Exists   Outcome = "exists"
	Absent   Outcome = "absent"
	Conflict Outcome = "conflict"
)

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{Live: map[string]Entity{}} }

// Snapshot returns a copy of what the keys hold.
func (r *Registry) Snapshot() map[string]Entity { return maps.Clone(r.Live) }

// Put stores a value for a key, present or not.
func (r *Registry) Put(key, spelled string, value int) Entity {
	e, ok := r.Live[key]
	if !ok {
		e = Entity{Version: r.floor, Spelled: spelled}
	}
	e.Value = value
	e.Version++
	r.Live[key] = e
	return e
}

// Create stores a value for an absent key.
func (r *Registry) Create(key, spelled string, value int) (Entity, Outcome) {
	if e, ok := r.Live[key]; ok {
		return e, Exists
	}
	return r.Put(key, spelled, value), Done
}

// PutIf stores a value for a key that has a version.
func (r *Registry) PutIf(key string, version, value int) (Entity, Outcome) {
	e, ok := r.Live[key]
	switch {
	case !ok:
		return e, Absent
	case e.Version != version:
		return e, Conflict
	}
	return r.Put(key, "", value), Done
}

// DeleteIf removes a key that has a version.
func (r *Registry) DeleteIf(key string, version int) (Entity, Outcome) {
	e, ok := r.Live[key]
	switch {
	case !ok:
		return e, Absent
	case e.Version != version:
		return e, Conflict
	}
	delete(r.Live, key)
	r.floor = max(r.floor, version+1)
	return e, Done
}

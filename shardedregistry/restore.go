package shardedregistry

import "iter"

// MaxRestored is the highest version that [Restore] accepts. A registry has room for as
// many changes again.
const MaxRestored Version = 1<<60 - 1

// versionError says which versions Restore accepts. It matches ErrInvalidVersion.
type versionError struct{ must string }

var (
	errNoVersion   = &versionError{"at least 1"}
	errHighVersion = &versionError{"below 2^60"}
)

func (e *versionError) Error() string { return "shardedregistry: a version must be " + e.must }

// Unwrap returns ErrInvalidVersion.
func (e *versionError) Unwrap() error { return ErrInvalidVersion }

// Restore returns a new registry that holds entries with their versions, for example
// those of a [Snapshot] that was saved. Each key goes on from its version. Any other key
// begins above last, and above all versions of entries, when it is created. So with
// [Snapshot.Last] the versions of a key increase also across the restart; but versions
// that were given after the snapshot was taken may be given again.
//
// Each key and value is checked as Create checks them. If a key is invalid or comes
// twice, a value is rejected, or a version is 0 or above [MaxRestored], Restore returns
// no registry, and a [*KeyError] that says which key failed. For a version, also for
// last, the error matches [ErrInvalidVersion]. Restore also returns the errors of [New].
// With Config.TTL each entity gets a new deadline. If entries panics or calls
// runtime.Goexit, nothing is left.
//
// Restore panics if entries is nil.
func Restore[K comparable, V any](config Config[K, V], last Version, entries iter.Seq[Entry[K, V]]) (*Registry[K, V], error) {
	if entries == nil {
		panic("shardedregistry: Restore called with a nil iterator")
	}
	r, err := New(config)
	if err != nil {
		return nil, err
	}
	if last > MaxRestored {
		return nil, errHighVersion
	}
	x := r.root.Load().expiry
	if x != nil {
		x.paused = true
	}
	for e := range entries {
		if err := restore(r, e); err != nil {
			return nil, &KeyError{e.Key, err}
		}
		last = max(last, e.Version)
	}
	r.root.Load().startAbove(last)
	if x != nil {
		x.resume(r.root.Load())
	}
	return r, nil
}

// restore creates a key with a version. Nobody else has r, so floor may be, until the
// key is created, what lets it begin there.
func restore[K comparable, V any](r *Registry[K, V], e Entry[K, V]) error {
	switch {
	case e.Version == 0:
		return errNoVersion
	case e.Version > MaxRestored:
		return errHighVersion
	}
	t, err := r.locate(e.Key)
	if err != nil {
		return err
	}
	fresh := t.root.draft(false, e.Value)
	t.root.installShard(t.key.Hash).floor.Store(uint64(e.Version - 1))
	c, rec, created, err := t.create(fresh)
	switch {
	case err != nil:
		return err
	case !created:
		return t.exists(c, rec).exists
	}
	return nil
}

// startAbove makes all keys that are created from now on start above version. Nobody
// else has the registry.
func (rt *root[K, V]) startAbove(version Version) {
	if version == 0 {
		return
	}
	for i := range rt.shards {
		rt.installShard(rt.hashIn(i)).floor.Store(uint64(version))
	}
}

// highestFloor returns a version that is at least the last one of each key whose cell has
// left the table.
func (rt *root[K, V]) highestFloor() (highest Version) {
	for i := range rt.shards {
		if s := rt.shards[i].Load(); s != nil {
			highest = max(highest, Version(s.floor.Load()))
		}
	}
	return highest
}

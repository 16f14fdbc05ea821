package shardedregistry

// Versioned is a value with a version that the registry has not given: a registry of
// such values mirrors what is stored elsewhere. [Mirror] reads it.
type Versioned[V any] struct {
	Value   V
	Version Version
	Stamp   int64 // whatever else tells one version from another
}

// Mirror reads a [Registry] of versioned values as one of the values themselves, with
// the versions that these bring along. It is for packages that wrap such a registry: a
// method that only calls one of a Mirror adds nothing to a read. A Mirror may be copied, and
// used by any number of goroutines. It must be made by [MirrorOf].
type Mirror[K comparable, V any] struct {
	root *root[K]
}

// MirrorOf returns the mirror that reads r.
//
// MirrorOf is wait-free. It takes effect at any moment: it reads and changes nothing that
// others see.
func MirrorOf[K comparable, V any](r *Registry[K, Versioned[V]]) Mirror[K, V] {
	return Mirror[K, V]{r.install()}
}

// Get returns the value of key, and whether key is present.
//
// Get is wait-free. It takes effect when the key's record is read, or, if key
// is absent, when the table is read or the key's last record was stored.
func (m Mirror[K, V]) Get(key K) (value V, ok bool) {
	rt := m.root
	if !rt.open {
		return mirrored[V](rt, key)
	}
	// LP(Get): the table is read, or the record.
	c, _ := rt.cells.Find(&rt.keys, key)
	if c == nil {
		return value, false
	}
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) != 0 {
		if rec = rt.live(rec); rec == nil {
			return value, false
		}
	}
	return valueOf[Versioned[V]](rec).Value, true
}

// mirrored is Get where there is more to do than that.
func mirrored[V any, K comparable](rt *root[K], key K) (value V, ok bool) {
	if _, rec := rt.find(key); rec != nil {
		return valueOf[Versioned[V]](rec).Value, true
	}
	return value, false
}

// Lookup returns what key holds, with the version of the value, and whether key is present.
//
// Lookup is wait-free. It takes effect when the key's record is read, or, if
// key is absent, when the table is read or the key's last record was stored.
func (m Mirror[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	rt := m.root
	if !rt.open {
		return mirroredEntry[V](rt, key)
	}
	// LP(Lookup): the table is read, or the record.
	c, _ := rt.cells.Find(&rt.keys, key)
	if c == nil {
		return entry, false
	}
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) != 0 {
		if rec = rt.live(rec); rec == nil {
			return entry, false
		}
	}
	v := valueOf[Versioned[V]](rec)
	return Entry[K, V]{c.key, v.Value, v.Version}, true
}

// mirroredEntry is Lookup where there is more to do than that.
func mirroredEntry[V any, K comparable](rt *root[K], key K) (entry Entry[K, V], ok bool) {
	if c, rec := rt.find(key); rec != nil {
		v := valueOf[Versioned[V]](rec)
		return Entry[K, V]{c.key, v.Value, v.Version}, true
	}
	return entry, false
}

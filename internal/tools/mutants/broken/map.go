package broken

// syncMap is an xsync.MapOf.
type syncMap[K, V any] interface {
	Load(K) (V, bool)
	Store(K, V)
	Delete(K)
}

// TornMapLoadOrStore looks and then stores.
func TornMapLoadOrStore[M syncMap[K, V], K, V any](m M, k K, v V) (V, bool) {
	if now, ok := m.Load(k); ok {
		return now, true
	}
	m.Store(k, v)
	return v, false
}

// SkippedMapLoadOrStore only looks.
func SkippedMapLoadOrStore[M syncMap[K, V], K, V any](m M, k K, v V) (V, bool) {
	if now, ok := m.Load(k); ok {
		return now, true
	}
	return v, false
}

// TornMapLoadAndStore looks and then stores.
func TornMapLoadAndStore[M syncMap[K, V], K, V any](m M, k K, v V) (V, bool) {
	old, ok := m.Load(k)
	m.Store(k, v)
	if !ok {
		return v, false
	}
	return old, true
}

// SkippedMapLoadAndStore only looks.
func SkippedMapLoadAndStore[M syncMap[K, V], K, V any](m M, k K, v V) (V, bool) {
	if old, ok := m.Load(k); ok {
		return old, true
	}
	return v, false
}

// TornMapLoadAndDelete looks and then deletes.
func TornMapLoadAndDelete[M syncMap[K, V], K, V any](m M, k K) (V, bool) {
	old, ok := m.Load(k)
	m.Delete(k)
	return old, ok
}

// SkippedMapLoadAndDelete only looks.
func SkippedMapLoadAndDelete[M syncMap[K, V], K, V any](m M, k K) (V, bool) { return m.Load(k) }

// TornMapCompute looks, and then stores what f makes of it.
func TornMapCompute[M syncMap[K, V], K, V any](m M, k K, f func(V, bool) (V, bool)) (V, bool) {
	v, gone := f(m.Load(k))
	if gone {
		m.Delete(k)
	} else {
		m.Store(k, v)
	}
	return v, !gone
}

// SkippedMapCompute does not store what f makes.
func SkippedMapCompute[M syncMap[K, V], K, V any](m M, k K, f func(V, bool) (V, bool)) (V, bool) {
	v, gone := f(m.Load(k))
	return v, !gone
}

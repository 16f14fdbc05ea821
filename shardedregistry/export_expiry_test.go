package shardedregistry

// PauseTimers lets no timer of r start any more.
func PauseTimers[K comparable, V any](r *Registry[K, V]) { r.install().expiry.paused = true }

// Expire does what a timer does for key.
func Expire[K comparable, V any](r *Registry[K, V], key K) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	if c := t.root.cells.Load(t.key); c != nil {
		t.root.expiry.expire(t.root, c)
	}
}

// ExpireAll does what timers do that fire now.
func ExpireAll[K comparable, V any](r *Registry[K, V]) {
	rt := r.install()
	for i := range rt.expiry.schedules {
		expireDue(rt, i, nil)
	}
}

// Claim is the part of a timer's work by which a present key can no longer be renewed.
func Claim[K comparable, V any](r *Registry[K, V], key K) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	_, rec := t.root.loadLive(t.key)
	rec.ext().lease.until.Store(expired)
}

// Scheduled returns the number of cells that timers will look at, and for how many the
// schedules have room. It panics if a cell is not in its place.
func Scheduled[K comparable, V any](r *Registry[K, V]) (n, room int) {
	x := r.install().expiry
	for i := range x.schedules {
		s := &x.schedules[i]
		s.mu.Lock()
		for j, a := range s.heap {
			if a.alarm.position != j+1 || a.alarm.at.Load() != a.at || j > 0 && s.heap[(j-1)/2].at > a.at {
				panic("a cell is not in its place")
			}
		}
		n, room = n+len(s.heap), room+cap(s.heap)
		s.mu.Unlock()
	}
	return n, room
}

// Overlooked returns the keys whose deadline is before the time at which a timer looks at
// them.
func Overlooked[K comparable, V any](r *Registry[K, V]) (keys []K) {
	rt := r.install()
	for c := range rt.cells.All() {
		if rec := rt.live(c.rec.Load()); rec != nil {
			if l := &rec.ext().lease; l.until.Load() < l.alarm.at.Load() {
				keys = append(keys, c.key)
			}
		}
	}
	return keys
}

// Schedules is the number of schedules of a registry.
var Schedules = schedules()

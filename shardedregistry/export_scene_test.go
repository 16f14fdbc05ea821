package shardedregistry

// ScheduledDead returns the number of dead cells that timers will look at.
func ScheduledDead[K comparable, V any](r *Registry[K, V]) (n int) {
	x := r.install().expiry
	for i := range x.schedules {
		s := &x.schedules[i]
		s.mu.Lock()
		for _, a := range s.heap {
			if a.cell.rec.Load().dead() {
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

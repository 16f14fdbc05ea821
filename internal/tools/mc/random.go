//go:build modelcheck

package mc

// random is SplitMix64. Package math/rand would do, but the race detector sees
// what it writes.
type random struct{ state uint64 }

func newRandom(seed, run uint64) random {
	r := random{seed}
	r.state ^= r.next() + run
	r.next()
	return r
}

//go:norace
func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in [0, n).
//
//go:norace
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// rank draws the priority of a new thread among the others.
//
//go:norace
func (m *M) rank() {
	place := m.random.below(len(m.prio) + 1)
	for i, p := range m.prio {
		if p >= place {
			m.prio[i]++
		}
	}
	m.prio = append(m.prio, place)
}

// changePoints draws the steps at which the thread that is running falls
// behind all others.
func (m *M) changePoints() {
	for range m.cfg.Depth - 1 {
		m.changes = append(m.changes, 1+m.random.below(max(m.longest, 8)))
	}
}

// luck picks the enabled thread of the highest priority, or any datum.
//
//go:norace
func (m *M) luck(options uint64, data bool) int {
	if data {
		n := 0
		for ; options != 0; options >>= 1 {
			n++
		}
		return m.random.below(n)
	}
	for i, at := range m.changes {
		if at == m.steps {
			m.prio[m.highest(options)] = -1 - i
		}
	}
	return m.highest(options)
}

//go:norace
func (m *M) highest(options uint64) int {
	best := first(options)
	for rest := options; rest != 0; rest &= rest - 1 {
		if t := first(rest); m.prio[t] > m.prio[best] {
			best = t
		}
	}
	return best
}

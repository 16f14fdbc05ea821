//go:build modelcheck

package mc

// node is a choice point of the depth-first search. Node i of the stack is
// where step i of the trace was chosen.
type node struct {
	todo, done uint64 // to be explored from here, and explored
	sleep      uint64 // threads that lead from here to nothing new
	pick       int    // being explored
	last       int    // the thread that could have gone on; -1: none
	preempt    int    // preemptions before this point
	data       bool   // picks are Choose's values, not threads
	sign       uint64 // tells whether a replay has arrived at the same point
}

// branch makes one choice among options, which is not empty.
//
//go:norace
func (m *M) branch(options uint64, data bool) int {
	p := m.decide(options, data)
	m.picks = append(m.picks, byte(p))
	return p
}

//go:norace
func (m *M) decide(options uint64, data bool) int {
	last := -1
	if !data && m.cur != nil && options>>m.cur.id&1 == 1 {
		last = m.cur.id
	}
	at := len(m.picks)
	switch {
	case at < len(m.script):
		p := int(m.script[at])
		if p < 64 && options>>p&1 == 1 {
			return p
		}
		m.misuse("the schedule to replay does not fit this body")
		return first(options)
	case m.free || m.script != nil:
		return m.goOn(options, last)
	case m.cfg.Mode == roundRobin:
		return m.rotate(options)
	case m.cfg.Mode == PCT:
		return m.luck(options, data)
	}
	return m.visit(at, options, data, last)
}

const notDeterministic = "the body is not deterministic: the same choices led elsewhere " +
	"(ranging over a map, time, random numbers, state kept between executions?)"

// misuse reports a failure of the test rather than of the code under test.
//
//go:norace
func (m *M) misuse(text string) {
	m.flaw = true
	m.fail(text)
}

// patience is how long goOn leaves the turn with one thread: longer than any
// loop that ends by itself in so small a program.
const patience = 200

// goOn finishes an execution: it changes threads only when it must.
//
//go:norace
func (m *M) goOn(options uint64, last int) int {
	if m.calm++; last >= 0 && m.calm < patience {
		return last
	}
	m.calm = 0
	return m.rotate(options)
}

//go:norace
func (m *M) rotate(options uint64) int {
	last := -1
	if m.cur != nil {
		last = m.cur.id
	}
	return next(options, last)
}

// visit is the depth-first search: on a point seen before it follows the
// stack, and otherwise it adds a node.
//
//go:norace
func (m *M) visit(at int, options uint64, data bool, last int) int {
	sign := m.sign(options, data)
	if at < len(m.stack) {
		if m.stack[at].sign != sign {
			m.misuse(notDeterministic)
			return first(options)
		}
		if p := m.stack[at].pick; options>>p&1 == 0 {
			m.misuse("mc: the reduction wants a step that is not enabled")
			return first(options)
		}
	} else {
		n := node{pick: last, last: last, preempt: m.preempt, data: data, sign: sign}
		candidates := options
		switch {
		case data:
			n.todo = options
		case m.cfg.Mode == Bounded:
			n.todo = options
		default:
			n.sleep = m.sleep
			if candidates &^= m.sleep; candidates == 0 {
				m.free = true // another execution has shown what follows
				return m.goOn(options, last)
			}
		}
		if last < 0 || candidates>>last&1 == 0 {
			n.pick = first(candidates)
		}
		n.todo |= 1 << n.pick
		m.stack = append(m.stack, n)
	}
	n := &m.stack[at]
	if !data {
		m.preempt = n.preempt + n.price(n.pick)
		m.sleep = (n.sleep | n.done) &^ (1 << n.pick) // settle wakes some of them
	}
	return n.pick
}

// price is 1 if picking p preempts a thread that could have gone on.
//
//go:norace
func (n *node) price(p int) int {
	if n.last >= 0 && p != n.last {
		return 1
	}
	return 0
}

// backtrack moves the search to its next execution; false means that there is
// none.
func (m *M) backtrack() bool {
	for len(m.stack) > 0 {
		n := &m.stack[len(m.stack)-1]
		n.done |= 1 << n.pick
		for rest := n.todo &^ n.done &^ n.sleep; rest != 0; rest &= rest - 1 {
			n.pick = first(rest)
			if n.data || m.cfg.Mode != Bounded || n.preempt+n.price(n.pick) <= m.cfg.Preemptions {
				return true
			}
		}
		m.stack = m.stack[:len(m.stack)-1]
	}
	return false
}

// sign hashes what can be seen of a choice point.
//
//go:norace
func (m *M) sign(options uint64, data bool) uint64 {
	h := options
	if data {
		return ^h
	}
	for _, t := range m.threads {
		if t.finished {
			continue
		}
		h = (h ^ t.next.sign) * 0x9e3779b97f4a7c15
	}
	return h
}

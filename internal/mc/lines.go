//go:build modelcheck

package mc

// lineSize is the unit in which caches exchange memory: see
// internal/atomics.CacheLineSize, which this package cannot import.
const lineSize = 64

// lines simulates one cache per thread, kept coherent by a directory that
// knows for each line who may read it and who may write it (MSI).
type lines struct {
	all   []line
	moves int // lines that a cache had to fetch, or take from others
}

type line struct {
	number  uintptr
	sharers uint64
	dirty   bool // its one sharer may write it
}

//go:norace
func (l *lines) touch(core int, a Access) {
	if a.Addr == nil {
		return
	}
	x := l.at(uintptr(a.Addr) / lineSize)
	me := uint64(1) << core
	switch {
	case a.Mode == Read && x.sharers&me == 0:
		l.moves++
		x.sharers, x.dirty = x.sharers|me, false
	case a.Mode != Read && !(x.dirty && x.sharers == me):
		l.moves++
		x.sharers, x.dirty = me, true
	}
}

//go:norace
func (l *lines) at(number uintptr) *line {
	for i := range l.all {
		if l.all[i].number == number {
			return &l.all[i]
		}
	}
	l.all = append(l.all, line{number: number})
	return &l.all[len(l.all)-1]
}

// Transfers returns how many cache-line transfers one op causes when up to 64
// cores call it again and again on one shared value, taking turns at every
// operation on a shared word, once everything that can be cached is. It is
// worse than an average schedule and does not depend on the machine.
//
// Lines follow from addresses: a value smaller than a line may share its line
// with others, as it may in a program.
func Transfers[T any](cores int, setup func() T, op func(shared T, core int)) float64 {
	const rounds = 64
	total := func(rounds int) int {
		l := &lines{}
		r := Explore(Config{Mode: roundRobin, MaxSteps: 1 << 30, MaxSchedules: 1, lines: l, booked: true}, func(m *M) {
			shared := setup()
			for core := range cores {
				m.Go(func() {
					for range rounds {
						op(shared, core)
					}
				})
			}
		})
		if r.Failure != "" {
			panic("mc: " + r.Failure)
		}
		return l.moves
	}
	warm := total(rounds)
	return float64(total(2*rounds)-warm) / float64(rounds*cores)
}

package atomicbreaker

import "github.com/latchfree/latchfree/internal/atomics"

// A quota keeps all keys of a group from being open at once.
type quota struct {
	census *census

	// taken is at least the number of cells that are open or half-open: it goes
	// up before a cell becomes so, and down after it was.
	taken atomics.Int64
}

// out reports whether a cell with this word takes part of the quota.
func (w word) out() bool { return w.mode() == open || w.mode() == halfOpen }

// take takes a place for a cell that is about to open. It reports whether there
// was one, and takes none if not. One there always is.
//
// It may say no because of a cell that is about to open and then does not.
func (q *quota) take(s *settings) bool {
	n := q.taken.Add(1)
	if n == 1 || s.openRate == 0 || uint64(n)*million <= s.openRate*q.census.estimate(s.now()) {
		return true
	}
	q.taken.Add(-1)
	return false
}

// takeAnyway takes a place for a cell that somebody opens by hand.
func (q *quota) takeAnyway() { q.taken.Add(1) }

// giveBack gives a place back, which was taken for a cell that has closed or
// did not open.
func (q *quota) giveBack() { q.taken.Add(-1) }

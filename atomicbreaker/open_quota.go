package atomicbreaker

import "github.com/latchfree/latchfree/internal/atomics"

// An openQuota keeps all keys of a group from being open at once.
type openQuota struct {
	keys *distinctKeys

	// held is at least the number of cells that are open or half-open: it goes
	// up before a cell becomes so, and down after it was.
	held atomics.Int64
}

// out reports whether a cell with this word takes part of the open quota.
func (w word) out() bool { return w.mode() == open || w.mode() == halfOpen }

// acquire takes a place for a cell that is about to open. It reports whether there
// was one, and takes none if not. One there always is.
//
// It may say no because of a cell that is about to open and then does not.
func (q *openQuota) acquire(s *settings) bool {
	n := q.held.Add(1)
	if n == 1 || s.openRate == 0 || uint64(n)*million <= s.openRate*q.keys.estimate(s.now()) {
		return true
	}
	q.held.Add(-1)
	return false
}

// acquireAnyway takes a place for a cell that somebody opens by hand.
func (q *openQuota) acquireAnyway() { q.held.Add(1) }

// release gives a place back, which was taken for a cell that has closed or
// did not open.
func (q *openQuota) release() { q.held.Add(-1) }

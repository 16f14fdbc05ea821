//go:build modelcheck

package table

// segmentChains is small, so that tables of few chains have several segments.
const segmentChains = 2

// bitsAhead is small, so that keys are hashed when the set grows a second time.
const bitsAhead = 1

// limits is what limits.go has, for each table its own.
type limits struct{ few int }

// portion returns few, or none if that is below zero, or what suffices for all chains of small
// tables.
func (l limits) portion() int {
	if l.few != 0 {
		return max(l.few, 0)
	}
	return 16
}

package svg

import "math"

// Log maps an interval of positive numbers to an interval of positions so that
// equal ratios are equal distances.
type Log struct {
	lo, hi   float64 // logarithms of the ends
	from, to float64
}

// NewLog returns the scale that maps lo to from and hi to to. Both must be
// positive and lo below hi.
func NewLog(lo, hi, from, to float64) Log {
	return Log{math.Log(lo), math.Log(hi), from, to}
}

// At returns the position of v; what lies outside is put on the nearer end.
func (s Log) At(v float64) float64 {
	if v <= 0 {
		return s.from
	}
	t := (math.Log(v) - s.lo) / (s.hi - s.lo)
	return s.from + min(max(t, 0), 1)*(s.to-s.from)
}

// Shows reports whether v lies on the scale.
func (s Log) Shows(v float64) bool {
	const slack = 1e-9
	return v > 0 && math.Log(v) >= s.lo-slack && math.Log(v) <= s.hi+slack
}

// Ticks returns round numbers within the scale: powers of ten, with twos and
// fives between them where that makes at most most of them.
func (s Log) Ticks(most int) []float64 {
	for _, steps := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		ticks := s.ticks(steps, 1)
		if len(ticks) <= most {
			return ticks
		}
	}
	every := 2
	for len(s.ticks([]float64{1}, every)) > most {
		every++
	}
	return s.ticks([]float64{1}, every)
}

func (s Log) ticks(steps []float64, every int) []float64 {
	const slack = 1e-9 // for ends that are round numbers themselves
	var ticks []float64
	first := int(math.Floor(s.lo/math.Ln10)) - 1
	last := int(math.Ceil(s.hi / math.Ln10))
	for e := first; e <= last; e++ {
		if e%every != 0 {
			continue
		}
		for _, step := range steps {
			v := step * math.Pow10(e)
			if l := math.Log(v); l >= s.lo-slack && l <= s.hi+slack {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

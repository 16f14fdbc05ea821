package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aclements/go-moremath/stats"
)

// Summary is how the subject did against one other implementation of a
// structure at one CPU count.
type Summary struct {
	Structure string
	Other     string
	CPU       int

	Geomean     float64 // of the speed-ups of all cases that have both
	Median      float64 // of the same; one extreme case moves only the mean
	Best, Worst *Comparison
	Faster      int // cases by verdict
	Slower      int
	Undecided   int

	speedups []float64
}

// Cases returns the number of cases compared.
func (s *Summary) Cases() int { return s.Faster + s.Slower + s.Undecided }

// Comparison is the subject against one other implementation in one case.
type Comparison struct {
	Op    *Op
	Case  *Case
	Ours  *Row
	Other *Row
	Ratio Ratio
}

// Comparisons returns every pair of the subject and another implementation in
// the structure, in the order of the file. Those whose names begin with the subject's are other
// ways to use it: tables and charts show them, but it neither wins nor loses against itself. What
// is too noisy is not compared.
func (s *Structure) Comparisons() []*Comparison {
	all, _ := s.pairs()
	return all
}

// pairs returns the comparisons, and those that are left out as too noisy, without a ratio.
func (s *Structure) pairs() (compared, leftOut []*Comparison) {
	for _, op := range s.Ops {
		for _, c := range op.Cases {
			ours := c.Row(Subject)
			if ours == nil {
				continue
			}
			for _, other := range c.Rows {
				switch {
				case strings.HasPrefix(other.Impl, Subject):
				case ours.Noisy() || other.Noisy():
					leftOut = append(leftOut, &Comparison{Op: op, Case: c, Ours: ours, Other: other})
				default:
					compared = append(compared, &Comparison{op, c, ours, other, Speedup(ours, other)})
				}
			}
		}
	}
	return compared, leftOut
}

// Others returns the implementations that the subject is compared with in the
// structure, the baseline first.
func (s *Structure) Others(baseline string) []string {
	var names []string
	for _, c := range s.Comparisons() {
		if !slices.Contains(names, c.Other.Impl) {
			names = append(names, c.Other.Impl)
		}
	}
	if i := slices.Index(names, baseline); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, baseline)
	}
	return names
}

// Comparisons returns those of all structures.
func (r *Report) Comparisons() []*Comparison {
	var all []*Comparison
	for _, s := range r.Structures {
		all = append(all, s.Comparisons()...)
	}
	return all
}

// Summaries returns one summary for each structure, other implementation and
// CPU count, the baseline first.
func (r *Report) Summaries() []*Summary {
	var all []*Summary
	for _, s := range r.Structures {
		all = append(all, r.summaries(s)...)
	}
	return all
}

// summaries returns those of one structure.
func (r *Report) summaries(s *Structure) []*Summary {
	var own []*Summary
	for _, c := range s.Comparisons() {
		sum := find(&own, func(sum *Summary) bool {
			return sum.Other == c.Other.Impl && sum.CPU == c.Case.CPU
		})
		sum.Structure, sum.Other, sum.CPU = s.Name, c.Other.Impl, c.Case.CPU
		sum.add(c)
	}
	for _, sum := range own {
		sum.average()
	}
	others := s.Others(r.Baseline)
	rank := func(sum *Summary) int { return slices.Index(others, sum.Other) }
	slices.SortStableFunc(own, func(a, b *Summary) int {
		return cmp.Or(rank(a)-rank(b), slices.Index(r.CPUs, a.CPU)-slices.Index(r.CPUs, b.CPU))
	})
	return own
}

// add counts a comparison.
func (s *Summary) add(c *Comparison) {
	s.speedups = append(s.speedups, c.Ratio.Center)
	switch c.Ratio.Verdict {
	case Faster:
		s.Faster++
	case Slower:
		s.Slower++
	case Undecided:
		s.Undecided++
	}
	if s.Best == nil || c.Ratio.Center > s.Best.Ratio.Center {
		s.Best = c
	}
	if s.Worst == nil || c.Ratio.Center < s.Worst.Ratio.Center {
		s.Worst = c
	}
}

// average computes the means once all comparisons are in.
func (s *Summary) average() {
	s.Geomean = stats.GeoMean(s.speedups)
	s.Median = stats.Sample{Xs: s.speedups}.Quantile(0.5)
}

// Losses returns every comparison in which the subject is slower, the largest
// loss first.
func (r *Report) Losses() []*Comparison {
	var lost []*Comparison
	for _, c := range r.Comparisons() {
		if c.Ratio.Verdict == Slower {
			lost = append(lost, c)
		}
	}
	slices.SortStableFunc(lost, func(a, b *Comparison) int { return cmp.Compare(a.Ratio.Center, b.Ratio.Center) })
	return lost
}

// Count returns the number of comparisons with a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, c := range r.Comparisons() {
		if c.Ratio.Verdict == v {
			n++
		}
	}
	return n
}

// Heavy is a case in which the subject allocates more than others do, with
// what all comparisons of the same numbers have in common.
type Heavy struct {
	Op    *Op
	Case  *Case
	Ours  string
	Other string
	Impls []string
	CPUs  []int
}

// Heavier returns the cases in which the median operation of the subject
// allocates more objects, or more bytes by a tenth and a word, than another's:
// testing rounds both, and amortised growth makes bytes vary.
func (r *Report) Heavier() []*Heavy {
	var heavy []*Heavy
	for _, c := range r.Comparisons() {
		if !c.Ours.Allocs.Known() || !c.Other.Allocs.Known() {
			continue
		}
		if c.Ours.Allocs.Center <= c.Other.Allocs.Center && c.Ours.Bytes.Center <= c.Other.Bytes.Center*1.1+8 {
			continue
		}
		ours, other := allocated(c.Ours), allocated(c.Other)
		h := find(&heavy, func(h *Heavy) bool {
			return h.Case.Name == c.Case.Name && h.Ours == ours && h.Other == other
		})
		h.Op, h.Case, h.Ours, h.Other = c.Op, c.Case, ours, other
		if !slices.Contains(h.Impls, c.Other.Impl) {
			h.Impls = append(h.Impls, c.Other.Impl)
		}
		if !slices.Contains(h.CPUs, c.Case.CPU) {
			h.CPUs = append(h.CPUs, c.Case.CPU)
		}
	}
	return heavy
}

// allocated formats what one operation allocates: "1 alloc, 48 B".
func allocated(row *Row) string {
	unit := " allocs, "
	if row.Allocs.Center == 1 {
		unit = " alloc, "
	}
	return Count(row.Allocs) + unit + Count(row.Bytes) + " B"
}

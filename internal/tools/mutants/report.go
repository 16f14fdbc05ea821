package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A score is what became of a target's mutants.
type score struct {
	dir      string
	counts   map[string]int // by layer that killed, "limit", "lived" and "reviewed"
	mutants  int            // all of these
	same     int            // apart from them
	unlisted []*mutant
	outdated []string
	took     time.Duration
}

// score sums up.
func (c *campaign) score(all bool, names []string) *score {
	s := &score{dir: c.target.dir, counts: map[string]int{}, took: time.Since(c.started)}
	for _, m := range c.mutants {
		v := c.verdicts[m]
		switch v.fate {
		case same:
			s.same++
			continue
		case killed:
			s.counts[v.layer]++
		case halted:
			s.counts["limit"]++
		case lived:
			if c.review.lists(m) {
				s.counts["reviewed"]++
			} else {
				s.counts["lived"]++
				s.unlisted = append(s.unlisted, m)
			}
		}
		s.mutants++
	}
	s.outdated = c.review.outdated(c.mutants, c.verdicts, all, names)
	return s
}

// print prints the survivors and the table, and reports whether every survivor
// is known.
func print(out io.Writer, scores []*score) bool {
	good := true
	for _, s := range scores {
		for _, m := range s.unlisted {
			good = false
			fmt.Fprintf(out, "\n%s/%s: LIVED\n%s\n%s", s.dir, m.place(), m.key(), m.diff())
		}
		for _, line := range s.outdated {
			good = false
			fmt.Fprintf(out, "\n%s\n", line)
		}
	}
	columns := append(layerNames(), "limit", "reviewed", "lived")
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "package\tmutants\t")
	for _, c := range columns {
		fmt.Fprintf(w, "%s\t", c)
	}
	fmt.Fprint(w, "same code\ttime\t\n")
	if len(scores) > 1 {
		scores = append(slices.Clone(scores), total(scores))
	}
	for _, s := range scores {
		fmt.Fprintf(w, "%s\t%d\t", s.dir, s.mutants)
		for _, c := range columns {
			fmt.Fprintf(w, "%d\t", s.counts[c])
		}
		fmt.Fprintf(w, "%d\t%v\t\n", s.same, s.took.Round(time.Second))
	}
	w.Flush()
	return good
}

// total returns the sum of scores.
func total(scores []*score) *score {
	all := &score{dir: "all", counts: map[string]int{}}
	for _, s := range scores {
		all.mutants += s.mutants
		all.same += s.same
		all.took += s.took
		for c, n := range s.counts {
			all.counts[c] += n
		}
	}
	return all
}

// summary says what a campaign found, in the words that VERIFICATION.md has of a sample.
func summary(scores []*score, commit string, at time.Time) string {
	all := total(scores)
	var by []string
	sum := 0
	for _, l := range layers {
		if n := all.counts[l.name]; n > 0 {
			by = append(by, fmt.Sprintf("%s %d", l.name, n))
			sum += n
		}
	}
	return fmt.Sprintf("Sample of %d mutants, commit %s, %s: %d killed (%s), %d by a limit, %d live, of which %d reviewed; %d are the same machine code.\n",
		all.mutants+all.same, commit, at.Format(time.DateOnly), sum, strings.Join(by, ", "), all.counts["limit"],
		all.counts["lived"]+all.counts["reviewed"], all.counts["reviewed"], all.same)
}

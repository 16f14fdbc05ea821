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
	columns := []string{}
	for _, l := range layers {
		columns = append(columns, l.name)
	}
	columns = append(columns, "limit", "reviewed", "lived")
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "package\tmutants\t")
	for _, c := range columns {
		fmt.Fprintf(w, "%s\t", c)
	}
	fmt.Fprint(w, "same code\ttime\t\n")
	total := &score{dir: "all", counts: map[string]int{}}
	for _, s := range slices.Concat(scores, []*score{total}) {
		if s == total && len(scores) == 1 {
			break
		}
		fmt.Fprintf(w, "%s\t%d\t", s.dir, s.mutants)
		for _, c := range columns {
			fmt.Fprintf(w, "%d\t", s.counts[c])
			total.counts[c] += s.counts[c]
		}
		fmt.Fprintf(w, "%d\t%v\t\n", s.same, s.took.Round(time.Second))
		total.mutants += s.mutants
		total.same += s.same
		total.took += s.took
	}
	w.Flush()
	return good
}

// summary says what a campaign found, in the words that VERIFICATION.md has of a sample.
func summary(scores []*score, commit string, at time.Time) string {
	total := &score{counts: map[string]int{}}
	for _, s := range scores {
		total.mutants += s.mutants
		total.same += s.same
		for c, n := range s.counts {
			total.counts[c] += n
		}
	}
	var by []string
	sum := 0
	for _, l := range layers {
		if n := total.counts[l.name]; n > 0 {
			by = append(by, fmt.Sprintf("%s %d", l.name, n))
			sum += n
		}
	}
	return fmt.Sprintf("Sample of %d mutants, commit %s, %s: %d killed (%s), %d by a limit, %d live, of which %d reviewed; %d are the same machine code.\n",
		total.mutants+total.same, commit, at.Format(time.DateOnly), sum, strings.Join(by, ", "), total.counts["limit"],
		total.counts["lived"]+total.counts["reviewed"], total.counts["reviewed"], total.same)
}

package report

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes the summary and the losses for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	buf := bufio.NewWriter(w)
	for _, warning := range r.Warnings {
		fmt.Fprintf(buf, "Note: %s\n", warning)
	}
	fmt.Fprintf(buf, "Speed of %s in multiples of each other implementation's (above 1×: %s is faster)\n\n", Subject, Subject)
	// Numbers stand to the right; names are padded to stand to the left.
	sums := r.Summaries()
	names, others := len("structure"), len("against")
	for _, sum := range sums {
		names, others = max(names, len(sum.Structure)), max(others, len(sum.Other))
	}
	tab := tabwriter.NewWriter(buf, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tab, "%-*s\t%-*s\tCPUs\tcases\tgeomean\tmedian\tworst\tbest\tfaster\tslower\tundecided\t\n",
		names, "structure", others, "against")
	for _, sum := range sums {
		fmt.Fprintf(tab, "%-*s\t%-*s\t%d\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t\n",
			names, sum.Structure, others, sum.Other, sum.CPU, sum.Cases(), Times(sum.Geomean), Times(sum.Median),
			Times(sum.Worst.Ratio.Center), Times(sum.Best.Ratio.Center), sum.Faster, sum.Slower, sum.Undecided)
	}
	tab.Flush()

	losses := r.Losses()
	fmt.Fprintf(buf, "\nWhere %s is slower (%d of %d comparisons)\n\n", Subject, len(losses), len(r.Comparisons()))
	if len(losses) == 0 {
		fmt.Fprintln(buf, "  in no case that this run could decide")
	}
	tab = tabwriter.NewWriter(buf, 0, 0, 2, ' ', 0)
	for _, c := range losses {
		fmt.Fprintf(tab, "  %s\t%s\t%s\t%s %s\t%s\t[%s]\t%s\n", c.Case.Name, CPUs(c.Case.CPU), Duration(c.Ours.Time.Center),
			c.Other.Impl, Duration(c.Other.Time.Center), Times(c.Ratio.Center), Range(c.Ratio), P(c.Ratio.P))
	}
	tab.Flush()
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

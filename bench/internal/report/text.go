package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText writes the summary and the losses for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	buf := bufio.NewWriter(w)
	if busy := r.Machine.Busy(); busy != "" {
		fmt.Fprintf(buf, "%s\n\n", strings.Join(wrap("!! "+busy, 100), "\n"))
	}
	for _, a := range r.Answers() {
		fmt.Fprintf(buf, "%s\n\n", strings.Join(wrap(a.Structure+": "+a.Says, 100), "\n  "))
	}
	shown := r.writeLatencies(buf)
	r.writeHeadlines(buf)
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
	if n := len(r.Latencies); n > shown {
		fmt.Fprintf(buf, "\nThe report has the latency of all %d loads.\n", n)
	}

	losses := r.Losses()
	fmt.Fprintf(buf, "\nWhere %s is slower (%d of %d comparisons)\n\n", Subject, len(losses), len(r.Comparisons()))
	if len(losses) == 0 {
		fmt.Fprintln(buf, "  in no case that this run could decide")
	}
	for _, g := range r.LossGroups() {
		fmt.Fprintf(buf, "%s (%d)\n  %s\n\n", g.Title, len(g.Lost), strings.Join(wrap(g.Reason, 98), "\n  "))
		tab = tabwriter.NewWriter(buf, 0, 0, 2, ' ', 0)
		for _, c := range g.Lost {
			fmt.Fprintf(tab, "  %s\t%s\t%s\t%s %s\t%s\t[%s]\t%s\n", c.Case.Name, CPUs(c.Case.CPU), Duration(c.Ours.Time.Center),
				c.Other.Impl, Duration(c.Other.Time.Center), Times(c.Ratio.Center), Range(c.Ratio), P(c.Ratio.P))
		}
		tab.Flush()
		fmt.Fprintln(buf)
	}
	if names := r.Noisy(); len(names) > 0 {
		fmt.Fprintf(buf, "\nToo noisy to be compared (%s): %s\n", rows(len(names)), strings.Join(names, ", "))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(buf, "\nNote: %s\n", warning)
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// writeLatencies writes the quantiles of the headline cases, or of all if there are
// none. It returns how many.
func (r *Report) writeLatencies(w io.Writer) int {
	var shown []*Latency
	for _, h := range r.Headlines() {
		if h.Latency != nil {
			shown = append(shown, h.Latency)
		}
	}
	if len(shown) == 0 {
		shown = r.Latencies
	}
	if len(shown) == 0 {
		return 0
	}
	fmt.Fprintf(w, "Time of single operations: quantiles, medians over the runs. %s does nothing;\nnumbers in brackets cannot be told from it: they come from the scheduler.\n", Floor)
	for _, l := range shown {
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(w, "\n%s, %s\n", l.Name(), CPUs(l.CPU))
		fmt.Fprintf(tab, "  %-10s", "")
		for _, q := range Quantiles {
			fmt.Fprintf(tab, "\t%s", q.Name)
		}
		fmt.Fprintln(tab, "\t")
		for _, row := range l.Rows {
			fmt.Fprintf(tab, "  %-10s", row.Impl)
			for i, m := range row.Times {
				switch {
				case !m.Known():
					fmt.Fprint(tab, "\t–")
				case row.NoisyAt(i):
					fmt.Fprint(tab, "\t"+TooNoisy)
				case l.AtFloor(row, i):
					fmt.Fprintf(tab, "\t(%s)", Duration(m.Center))
				default:
					fmt.Fprintf(tab, "\t%s", Duration(m.Center))
				}
			}
			fmt.Fprintln(tab, "\t")
		}
		tab.Flush()
	}
	fmt.Fprintln(w)
	return len(shown)
}

// writeHeadlines writes the speed of the headline cases.
func (r *Report) writeHeadlines(w io.Writer) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	says := ""
	for _, h := range r.Headlines() {
		if h.Speed == nil {
			continue
		}
		if says == "" {
			fmt.Fprintln(w, "The headline cases: time per operation, and how many times as fast "+Subject+" is")
		}
		if h.Says != says {
			says = h.Says
			fmt.Fprintf(tab, "\n  %s\n", says)
		}
		ours := h.Speed.Row(Subject)
		fmt.Fprintf(tab, "    %s", CPUs(h.Speed.CPU))
		for _, row := range h.Speed.Rows {
			switch {
			case row.Noisy():
				fmt.Fprintf(tab, "\t%s %s", row.Impl, TooNoisy)
			case row == ours || ours == nil || ours.Noisy():
				fmt.Fprintf(tab, "\t%s %s", row.Impl, Duration(row.Time.Center))
			default:
				fmt.Fprintf(tab, "\t%s %s (%s)", row.Impl, Duration(row.Time.Center), Times(Speedup(ours, row).Center))
			}
		}
		fmt.Fprintln(tab)
	}
	tab.Flush()
	if says != "" {
		fmt.Fprintln(w)
	}
}

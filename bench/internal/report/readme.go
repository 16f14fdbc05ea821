package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/latchfree/latchfree/bench/internal/headline"
)

// The marks between which ReplaceReadme writes.
const (
	readmeBegin = "<!-- bench -->\n"
	readmeEnd   = "<!-- /bench -->\n"
)

// ReplaceReadme returns a Markdown page with what WriteReadme writes between its marks.
func (r *Report) ReplaceReadme(page string) (string, error) {
	before, rest, begins := strings.Cut(page, readmeBegin)
	_, after, ends := strings.Cut(rest, readmeEnd)
	if !begins || !ends {
		return "", fmt.Errorf("bench: the page has no %q and %q after it", strings.TrimSpace(readmeBegin), strings.TrimSpace(readmeEnd))
	}
	var block bytes.Buffer
	if err := r.WriteReadme(&block); err != nil {
		return "", err
	}
	return before + readmeBegin + block.String() + readmeEnd + after, nil
}

// WriteReadme writes, in Markdown, where and when this was measured, the headline
// cases beside the baseline, and what was lost.
func (r *Report) WriteReadme(w io.Writer) error {
	if !r.HasBaseline() {
		return errors.New("bench: nothing was compared with " + r.Baseline)
	}
	var b strings.Builder
	if busy := r.Machine.Busy(); busy != "" {
		fmt.Fprintf(&b, "**%s**\n\n", busy)
	}
	fmt.Fprintf(&b, "One run of `%s`: %s; Go %s, commit %s, %s; %s", strings.Replace(r.Get("command"), "go run ./bench/cmd/bench", "make bench", 1),
		r.Get("host"), r.Get("go"), r.Get("commit"), strings.TrimSuffix(r.Get("date"), "Z"), r.Get("state"))
	if len(r.Machine.Others) > 0 {
		fmt.Fprintf(&b, "; others took %.2f processors", r.Machine.others())
	}
	b.WriteString(".\n")
	r.readmeLatency(&b)
	r.readmeSpeed(&b)
	r.readmeLosses(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// readmeQuantiles are p50, p99.9, p99.99 and the longest.
var readmeQuantiles = []int{0, 3, 4, 5}

func (r *Report) readmeLatency(b *strings.Builder) {
	var cases []Headline
	for _, h := range r.Headlines() {
		if h.Latency != nil && h.Latency.Row(Subject) != nil && h.Latency.Row(r.Baseline) != nil {
			cases = append(cases, h)
		}
	}
	if len(cases) == 0 {
		return
	}
	fmt.Fprintf(b, "\nTime of one operation, on %s; in brackets what cannot be told from doing nothing:\n\n|||", CPUs(cases[0].Latency.CPU))
	for _, q := range readmeQuantiles {
		fmt.Fprintf(b, "%s|", strings.Replace(Quantiles[q].Name, "max", "longest", 1))
	}
	b.WriteString("\n|---|---|" + strings.Repeat("--:|", len(readmeQuantiles)) + "\n")
	for _, h := range cases {
		says := h.Says
		for _, impl := range []string{Subject, r.Baseline} {
			fmt.Fprintf(b, "|%s|%s|", says, impl)
			row := h.Latency.Row(impl)
			for _, q := range readmeQuantiles {
				switch m := row.Times[q]; {
				case !m.Known():
					b.WriteString("–|")
				case row.NoisyAt(q):
					b.WriteString(TooNoisy + "|")
				case h.Latency.AtFloor(row, q):
					fmt.Fprintf(b, "(%s)|", Duration(m.Center))
				default:
					fmt.Fprintf(b, "%s|", Duration(m.Center))
				}
			}
			b.WriteString("\n")
			says = ""
		}
	}
}

func (r *Report) readmeSpeed(b *strings.Builder) {
	cpus := slices.Sorted(slices.Values(r.CPUs))
	b.WriteString("\nTime per operation:\n\n||")
	for _, cpu := range cpus {
		fmt.Fprintf(b, "%s, %s|%s||", CPUs(cpu), r.Baseline, Subject)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|--:|--:|", len(cpus)) + "\n")
	for _, h := range headline.Speed {
		cells := ""
		for _, cpu := range cpus {
			cells += speedCells(r.headline(h, cpu), r.Baseline)
		}
		if cells != strings.Repeat(notMeasured, len(cpus)) {
			fmt.Fprintf(b, "|%s|%s\n", h.Says, cells)
		}
	}
}

// headline returns the case at one number of CPUs, or nil.
func (r *Report) headline(h headline.Case, cpu int) *Case {
	for _, measured := range r.Headlines() {
		if measured.Name == h.Name && measured.Speed != nil && measured.Speed.CPU == cpu {
			return measured.Speed
		}
	}
	return nil
}

const notMeasured = "–|–||"

// speedCells formats the baseline's time, ours, and the speed-up.
func speedCells(c *Case, baseline string) string {
	if c == nil || c.Row(Subject) == nil || c.Row(baseline) == nil {
		return notMeasured
	}
	ours, other := c.Row(Subject), c.Row(baseline)
	if ours.Noisy() || other.Noisy() {
		return TooNoisy + "|" + TooNoisy + "||"
	}
	return fmt.Sprintf("%s|%s|%s|", Duration(other.Time.Center), Duration(ours.Time.Center), Times(Speedup(ours, other).Center))
}

// lost is what an operation loses, from the least to the most at one number of CPUs.
type lost struct{ least, most float64 }

func (l *lost) add(slower float64) {
	if l.most == 0 {
		l.least = slower
	}
	l.least, l.most = min(l.least, slower), max(l.most, slower)
}

func (l *lost) String() string {
	switch {
	case l == nil:
		return ""
	case Times(l.least) == Times(l.most):
		return Times(l.most)
	}
	return strings.TrimSuffix(Times(l.least), "×") + "–" + Times(l.most)
}

// locks are the implementations that are locked code; others are other ways to do the same.
var locks = []string{"mutex", "rwmutex"}

// readmeLosses lists, by operation, what is slower than locked code or another way to do the
// same, and what is too noisy to say. Its counts are of what it can list.
func (r *Report) readmeLosses(b *strings.Builder) {
	type row struct {
		name string
		at   map[int]*lost
	}
	var rows []*row
	var noisy []string
	all, slower, alone, leftOut := 0, 0, 0, 0 // alone: slower, at one CPU
	for _, s := range r.Structures {
		compared, left := s.pairs()
		for _, c := range compared {
			if c.againstLess() {
				continue
			}
			all++
			if c.Ratio.Verdict != Slower {
				continue
			}
			slower++
			if c.Case.CPU == 1 {
				alone++
			}
			name := c.Op.listed()
			if !slices.Contains(locks, c.Other.Impl) {
				name += otherWay
			}
			row := find(&rows, func(r *row) bool { return r.name == name })
			if row.name = name; row.at == nil {
				row.at = make(map[int]*lost)
			}
			if row.at[c.Case.CPU] == nil {
				row.at[c.Case.CPU] = new(lost)
			}
			row.at[c.Case.CPU].add(1 / c.Ratio.Center)
		}
		for _, c := range left {
			if c.againstLess() {
				continue
			}
			leftOut++
			if name := c.Op.listed(); !slices.Contains(noisy, name) {
				noisy = append(noisy, name)
			}
		}
	}
	fmt.Fprintf(b, "\n### Where we lose\n\n%d of %d comparisons, %d of them on one CPU. How many times as long it takes as the locked code",
		slower, all, alone)
	if slices.ContainsFunc(rows, func(r *row) bool { return strings.HasSuffix(r.name, otherWay) }) {
		fmt.Fprintf(b, ", or, marked%s, as another way", otherWay)
	}
	cpus := slices.Sorted(slices.Values(r.CPUs))
	b.WriteString(":\n\n||")
	for _, cpu := range cpus {
		fmt.Fprintf(b, "%s|", CPUs(cpu))
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(cpus)) + "\n")
	slices.SortStableFunc(rows, func(a, b *row) int { return cmp.Compare(a.name, b.name) })
	for _, row := range rows {
		fmt.Fprintf(b, "|%s|", row.name)
		for _, cpu := range cpus {
			fmt.Fprintf(b, "%s|", row.at[cpu])
		}
		b.WriteString("\n")
	}
	if leftOut > 0 {
		slices.Sort(noisy)
		fmt.Fprintf(b, "\n%s left out as too noisy, of %s.\n", comparisons(leftOut), strings.Join(noisy, "; "))
	}
}

// otherWay marks what is lost to what is not locked code.
const otherWay = " ‡"

// comparisons counts them.
func comparisons(n int) string {
	if n == 1 {
		return "1 comparison"
	}
	return strconv.Itoa(n) + " comparisons"
}

// listed is the name of an operation in a list of those of all structures.
func (o *Op) listed() string {
	structure, title := split(o.Name)
	return strings.ToLower(structure) + ": " + title
}

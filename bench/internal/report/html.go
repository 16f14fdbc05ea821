package report

import (
	_ "embed" // for the page and its style
	"fmt"
	"html/template"
	"io"
	"slices"
)

//go:embed page.gohtml
var pageText string

//go:embed page.css
var pageStyle string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"duration": Duration,
	"times":    Times,
	"spread":   Spread,
	"interval": Range,
	"count":    Count,
	"cpus":     CPUs,
	"p":        P,
	"ints":     list[int],
	"names":    list[string],
	"title":    title,
	"speedup":  Speedup,
}).Parse(pageText))

// view is what the page shows.
type view struct {
	*Report
	Style      template.CSS
	Subject    string
	Structures []structureView
	ChartCPUs  []int
	Tails      []tailView
	Latencies  []*latencyView
	Quantiles  []Quantile
	Groups     []groupView
	Losses     []*Comparison
	Heavier    []*Heavy
	Compared   int
	Faster     int
	Undecided  int
}

// tailView is the quantiles of a headline case.
type tailView struct {
	Says string
	Plot template.HTML
}

// latencyView is a structure's quantiles.
type latencyView struct {
	Structure string
	Titles    []latencyTitle
}

type latencyTitle struct {
	Title string
	Loads []*Latency
	Plots []template.HTML
}

type structureView struct {
	*Structure
	ID     string
	Answer string
	Charts []template.HTML // one for each of ChartCPUs; empty if nothing was compared
	Speed  []speedView
	Ops    []opView
}

// speedView is the speed-up over one other implementation.
type speedView struct {
	Other string
	Plots []template.HTML
}

type opView struct {
	*Op
	Plots []template.HTML
}

// groupView is one line of the summary: a structure against one other
// implementation, at each CPU count.
type groupView struct {
	Structure string // empty where it repeats the line above
	Other     string
	Cells     []*Summary // nil where nothing was measured
}

// WriteHTML writes the report as one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error {
	v := view{
		Report:    r,
		Style:     template.CSS(pageStyle),
		Subject:   Subject,
		Quantiles: Quantiles,
		Groups:    r.groups(),
		Losses:    r.Losses(),
		Heavier:   r.Heavier(),
		Compared:  len(r.Comparisons()),
		Faster:    r.Count(Faster),
		Undecided: r.Count(Undecided),
	}
	// One CPU comes last, behind a fold.
	for _, cpu := range r.CPUs {
		if cpu > 1 {
			v.ChartCPUs = append(v.ChartCPUs, cpu)
		}
	}
	if slices.Contains(r.CPUs, 1) {
		v.ChartCPUs = append(v.ChartCPUs, 1)
	}
	s := r.series()
	for _, h := range r.Headlines() {
		if h.Latency != nil {
			v.Tails = append(v.Tails, tailView{h.Says, template.HTML(latencyPlot(h.Latency, s))})
		}
	}
	for _, st := range r.Structures {
		sv := structureView{Structure: st, ID: st.Name, Answer: r.answer(st)}
		for _, cpu := range v.ChartCPUs {
			sv.Charts = append(sv.Charts, template.HTML(answerPlot(r, st, cpu)))
		}
		others := st.Others(r.Baseline)
		if len(others) > 0 && others[0] == r.Baseline {
			others = others[:1] // the rest is in the tables
		}
		for _, other := range others {
			speed := speedView{Other: other}
			for _, cpu := range r.CPUs {
				speed.Plots = appendPlot(speed.Plots, speedPlot(st, other, cpu))
			}
			sv.Speed = append(sv.Speed, speed)
		}
		for _, op := range st.Ops {
			ov := opView{Op: op}
			for _, cpu := range r.CPUs {
				ov.Plots = appendPlot(ov.Plots, timePlot(op, cpu, s))
			}
			sv.Ops = append(sv.Ops, ov)
		}
		v.Structures = append(v.Structures, sv)
	}
	for _, l := range r.Latencies {
		lv := find(&v.Latencies, func(lv *latencyView) bool { return lv.Structure == l.Structure })
		lv.Structure = l.Structure
		if n := len(lv.Titles); n == 0 || lv.Titles[n-1].Title != l.Title {
			lv.Titles = append(lv.Titles, latencyTitle{Title: l.Title})
		}
		t := &lv.Titles[len(lv.Titles)-1]
		t.Loads = append(t.Loads, l)
		t.Plots = appendPlot(t.Plots, latencyPlot(l, s))
	}
	if err := page.Execute(w, v); err != nil {
		return fmt.Errorf("bench: writing the report: %w", err)
	}
	return nil
}

// appendPlot appends a drawing of package svg, which escapes what it draws.
func appendPlot(plots []template.HTML, plot string) []template.HTML {
	if plot == "" {
		return plots
	}
	return append(plots, template.HTML(plot))
}

// groups arranges the summaries in lines.
func (r *Report) groups() []groupView {
	var lines []groupView
	var last *Summary
	for _, sum := range r.Summaries() {
		if last == nil || last.Structure != sum.Structure || last.Other != sum.Other {
			g := groupView{Other: sum.Other, Cells: make([]*Summary, len(r.CPUs))}
			if last == nil || last.Structure != sum.Structure {
				g.Structure = sum.Structure
			}
			lines = append(lines, g)
		}
		lines[len(lines)-1].Cells[slices.Index(r.CPUs, sum.CPU)] = sum
		last = sum
	}
	return lines
}

package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/latchfree/latchfree/bench/internal/headline"
)

// TooNoisy stands where a number would say nothing.
const TooNoisy = "too noisy"

const (
	// widest is how many times its lower end the upper end of a median's interval
	// may be.
	widest = 4
	// widestWait is the same of a quantile: rare waits differ more.
	widestWait = 30
)

// Noisy reports whether the time of a row says nothing.
func (r *Row) Noisy() bool { return noisy(r.Time, widest) }

// NoisyAt reports whether a quantile says nothing.
func (r *LatencyRow) NoisyAt(quantile int) bool { return noisy(r.Times[quantile], widestWait) }

func noisy(m Measure, most float64) bool {
	return m.Known() && m.Lo > 0 && !math.IsInf(m.Hi, 0) && m.Hi > most*m.Lo
}

// Noisy returns the names of the rows that are too noisy, as the file has them.
// No table, chart or count uses their times.
func (r *Report) Noisy() []string {
	var names []string
	for _, s := range r.Structures {
		for _, op := range s.Ops {
			for _, c := range op.Cases {
				for _, row := range c.Rows {
					if row.Noisy() {
						names = append(names, c.Name+"/impl="+row.Impl+suffix(c.CPU))
					}
				}
			}
		}
	}
	return names
}

// rows counts implementations in cases.
func rows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return strconv.Itoa(n) + " rows"
}

// suffix is what package testing appends to names.
func suffix(cpu int) string {
	if cpu == 1 {
		return ""
	}
	return "-" + strconv.Itoa(cpu)
}

// Quiet returns the lines of a raw file without results that are too noisy and
// without those of latency, whose time per operation is that of a window.
func (r *Report) Quiet(raw string) string {
	without := make(map[string]bool)
	for _, name := range r.Noisy() {
		without["Benchmark"+name] = true
	}
	var kept strings.Builder
	for line := range strings.Lines(raw) {
		name, _, _ := strings.Cut(line, "\t")
		name = strings.TrimSpace(name)
		if !without[name] && !strings.HasPrefix(name, "BenchmarkLatency") && !strings.HasPrefix(line, "machine: ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// Headline is a headline case, at one CPU count, that was measured.
type Headline struct {
	headline.Case
	Speed   *Case    // either this
	Latency *Latency // or this
}

// Headlines returns the headline cases that were measured, in their order.
func (r *Report) Headlines() []Headline {
	var all []Headline
	for _, h := range headline.Speed {
		for _, cpu := range r.CPUs {
			for _, s := range r.Structures {
				for _, op := range s.Ops {
					for _, c := range op.Cases {
						if c.Name == h.Name && c.CPU == cpu {
							all = append(all, Headline{Case: h, Speed: c})
						}
					}
				}
			}
		}
	}
	for _, h := range headline.Latency {
		for _, l := range r.Latencies {
			if "Latency"+l.file == h.Name {
				all = append(all, Headline{Case: h, Latency: l})
			}
		}
	}
	return all
}

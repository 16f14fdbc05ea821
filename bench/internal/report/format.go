package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Duration formats seconds with three digits: "12.3 ns".
func Duration(sec float64) string {
	switch {
	case math.IsInf(sec, 0) || math.IsNaN(sec):
		return "unknown"
	case sec == 0:
		return "0 ns"
	}
	for _, u := range []struct {
		name string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if sec >= u.size*0.9995 {
			return digits(sec/u.size) + " " + u.name
		}
	}
	return digits(sec*1e9) + " ns"
}

// Times formats a speed-up with three digits at most: "12.3×".
func Times(x float64) string {
	switch {
	case math.IsInf(x, 0) || math.IsNaN(x):
		return "∞"
	case x >= 1e5:
		return "over 100000×" // nobody needs its digits
	case x >= 1000:
		return strconv.FormatFloat(x, 'f', 0, 64) + "×"
	}
	// Two decimals below ten, so that 0.98 and 1.02 can be told apart.
	return digits(x) + "×"
}

// digits formats a number with three significant digits and no exponent.
func digits(x float64) string {
	switch {
	case x >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// Spread formats an interval as the larger distance from its centre: "±2 %".
func Spread(m Measure) string {
	if !m.Known() || m.Center == 0 {
		return ""
	}
	d := max(m.Hi-m.Center, m.Center-m.Lo) / m.Center
	if math.IsInf(d, 0) || math.IsNaN(d) {
		return "too few samples"
	}
	return fmt.Sprintf("±%.0f %%", d*100)
}

// Count formats a number of objects or bytes, "–" if it is not known.
func Count(m Measure) string {
	if !m.Known() {
		return "–"
	}
	return strconv.FormatFloat(m.Center, 'f', -1, 64)
}

// Range formats the interval of a ratio: "2.9–3.3".
func Range(r Ratio) string {
	if math.IsInf(r.Hi, 0) {
		return "unknown"
	}
	return strings.TrimSuffix(Times(r.Lo), "×") + "–" + strings.TrimSuffix(Times(r.Hi), "×")
}

// CPUs formats a CPU count: "1 CPU", "2 CPUs".
func CPUs(n int) string {
	if n == 1 {
		return "1 CPU"
	}
	return strconv.Itoa(n) + " CPUs"
}

// P formats a p-value as benchstat does.
func P(p float64) string { return fmt.Sprintf("p=%.3f", p) }

// list joins values with commas.
func list[T any](values []T) string {
	fields := make([]string, len(values))
	for i, v := range values {
		fields[i] = fmt.Sprint(v)
	}
	return strings.Join(fields, ", ")
}

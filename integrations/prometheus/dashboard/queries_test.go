package dashboard

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A metric is a row of the table in ../README.md, which a test of package latchprom compares
// with what the collectors export.
type metric struct {
	kind   string
	labels []string
}

func metrics(t *testing.T) map[string]metric {
	t.Helper()
	readme, err := os.ReadFile("testdata/metrics")
	require.NoError(t, err)
	known := make(map[string]metric)
	for _, row := range regexp.MustCompile("(?m)^\\| `(latchfree_\\w+)` \\| (\\w+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(readme), -1) {
		name, m := row[1], metric{row[2], strings.Fields(strings.ReplaceAll(row[3], "`", ""))}
		if m.kind == "histogram" {
			name, m.labels = name+"_bucket", append(m.labels, "le")
		}
		known[name] = m
	}
	require.Greater(t, len(known), 40)
	return known
}

// check parses a query and returns the labels of its result. It adds the metrics that it
// asks for to asked.
func check(text string, known map[string]metric, asked map[string]bool) ([]string, error) {
	text = strings.NewReplacer("$__rate_interval", "5m", "$__interval", "1m").Replace(text)
	e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return result(e, known, asked, false)
}

// result returns the labels of e, or an error if e is more than a dashboard here needs. Rated
// says that e is an argument of rate.
func result(e parser.Expr, known map[string]metric, asked map[string]bool, rated bool) ([]string, error) {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return result(e.Expr, known, asked, rated)
	case *parser.MatrixSelector:
		return result(e.VectorSelector, known, asked, rated)
	case *parser.VectorSelector:
		m, ok := known[e.Name]
		if !ok {
			return nil, fmt.Errorf("no metric %q", e.Name)
		}
		if counts := m.kind != "gauge"; counts != rated {
			return nil, fmt.Errorf("%s is a %s: rate is for counters", e.Name, m.kind)
		}
		for _, l := range e.LabelMatchers {
			if l.Name != "__name__" && !slices.Contains(m.labels, l.Name) {
				return nil, fmt.Errorf("%s has no label %q", e.Name, l.Name)
			}
		}
		asked[e.Name] = true
		return m.labels, nil
	case *parser.AggregateExpr:
		of, err := result(e.Expr, known, asked, false)
		if err != nil {
			return nil, err
		}
		if e.Without || len(e.Grouping) == 0 {
			return nil, fmt.Errorf("%s without by", e.Op)
		}
		for _, label := range e.Grouping {
			if !slices.Contains(of, label) {
				return nil, fmt.Errorf("no label %q among %v", label, of)
			}
		}
		return e.Grouping, nil
	case *parser.Call:
		switch e.Func.Name {
		case "rate":
			return result(e.Args[0], known, asked, true)
		case "histogram_quantile":
			of, err := result(e.Args[1], known, asked, false)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(of, "le") {
				return nil, fmt.Errorf("histogram_quantile without le")
			}
			return slices.DeleteFunc(slices.Clone(of), func(l string) bool { return l == "le" }), nil
		}
		return nil, fmt.Errorf("unexpected function %s", e.Func.Name)
	case *parser.BinaryExpr:
		x, err := result(e.LHS, known, asked, false)
		if err != nil {
			return nil, err
		}
		y, err := result(e.RHS, known, asked, false)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(x, y) {
			return nil, fmt.Errorf("labels %v %s labels %v match nothing", x, e.Op, y)
		}
		return x, nil
	}
	return nil, fmt.Errorf("unexpected %T", e)
}

// What check is for, it finds.
func TestCheck(t *testing.T) {
	known := map[string]metric{
		"c_total": {"counter", []string{"a", "b"}}, "g": {"gauge", []string{"a"}}, "h_bucket": {"histogram", []string{"a", "le"}},
	}
	for text, want := range map[string]string{
		"sum by (a) (rate(c_total[$__rate_interval]))":                 "",
		"histogram_quantile(0.9, sum by (a, le) (rate(h_bucket[5m])))": "",
		`max by (a) (g{a="x"}) / sum by (a) (rate(c_total[5m]))`:       "",
		"sum by (a) (rate(c_total[5m])":                                "parse error",
		"sum by (a) (rate(c_total))":                                   "expected type range vector",
		"sum by (a) (gone)":                                            "no metric",
		"sum by (a) (c_total)":                                         "rate is for counters",
		"sum by (a) (rate(g[5m]))":                                     "rate is for counters",
		"sum by (x) (g)":                                               "no label",
		`sum by (a) (g{x="1"})`:                                        "no label",
		"sum(g)":                                                       "without by",
		"histogram_quantile(0.9, sum by (a) (rate(h_bucket[5m])))":     "without le",
		"sum by (a) (g) / sum by (a, b) (rate(c_total[5m]))":           "match nothing",
	} {
		_, err := check(text, known, make(map[string]bool))
		if want == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, want, text)
		}
	}
}

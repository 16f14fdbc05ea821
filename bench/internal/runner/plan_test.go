package runner

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDefaultCPUs(t *testing.T) {
	for n, want := range map[int][]int{1: {1}, 2: {1, 2}, 3: {1, 2, 3}, 8: {1, 2, 8}} {
		require.Equal(t, want, DefaultCPUs(n), "%d cores", n)
	}
}

func TestParseCPUs(t *testing.T) {
	got, err := ParseCPUs("1, 2,8,2")
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 8}, got)
	require.Equal(t, "1,2,8", FormatCPUs(got))
	got, err = ParseCPUs("")
	require.NoError(t, err)
	require.Equal(t, 1, got[0])
	for _, bad := range []string{"0", "-1", "x", "1,,2"} {
		_, err := ParseCPUs(bad)
		require.ErrorContains(t, err, bad)
		require.ErrorContains(t, err, "bench: ")
	}
}

func TestValidate(t *testing.T) {
	good := Plan{Bench: ".", CPUs: []int{1}, Rounds: 6, Budget: time.Minute}
	require.NoError(t, good.Validate())
	for want, spoil := range map[string]func(*Plan){
		"rounds is 5":      func(p *Plan) { p.Rounds = 5 },
		"list of CPU":      func(p *Plan) { p.CPUs = nil },
		"benchtime is -1s": func(p *Plan) { p.BenchTime = -time.Second },
		"budget is 0s":     func(p *Plan) { p.Budget = 0 },
		"bench: bench":     func(p *Plan) { p.Bench = "(" },
		"bench: skip":      func(p *Plan) { p.Skip = "(" },
		`skip is "a/b"`:    func(p *Plan) { p.Skip = "a/b" },
	} {
		p := good
		spoil(&p)
		require.ErrorContains(t, p.Validate(), want)
	}
}

func TestArgs(t *testing.T) {
	p := Plan{Bench: "Mix/read=9", CPUs: []int{1, 2}}
	require.Equal(t, []string{
		"-test.run=^$", "-test.bench=Mix/read=9", "-test.benchmem", "-test.count=1", "-test.benchtime=20ms",
		"-test.cpu=1,2", "-test.timeout=5m0s", "-test.skip=^BenchmarkA$|^BenchmarkC$",
	}, p.args(leftOut{tops: []string{"^BenchmarkA$", "^BenchmarkC$"}}, 20*time.Millisecond, p.CPUs))
	require.Len(t, p.args(leftOut{}, time.Second, p.CPUs), 7, "nothing to skip")
	p.Skip = "=big$"
	args := p.args(leftOut{[]string{"^BenchmarkA$"}, []string{"^impl=x$"}}, time.Second, p.CPUs)
	require.Regexp(t, "^"+regexp.QuoteMeta("-test.skip=^BenchmarkA$|/((^impl=x$)|(=big$))|//((^impl=x$)|(=big$))|///"), args[7])
}

func TestCalibration_Units(t *testing.T) {
	c := &Calibration{}
	for _, name := range []string{
		"BenchmarkA/keys=1/impl=x", "BenchmarkA/keys=1/impl=y.z", "BenchmarkA/keys=2/impl=x",
		"BenchmarkB", "BenchmarkC/impl=x", "BenchmarkC/keys=1",
	} {
		c.add(name)
	}
	c.join()
	require.Equal(t, []*Top{
		{"BenchmarkA", []*Unit{{"x", 2}, {"y.z", 1}}},
		{"BenchmarkB", []*Unit{{"", 1}}},
		{"BenchmarkC", []*Unit{{"", 2}}}, // not every leaf says whose it is
	}, c.Tops)
	require.Equal(t, 6, c.Leaves())
	require.Equal(t, leftOut{[]string{"^BenchmarkB$", "^BenchmarkC$"}, []string{`^impl=y\.z$`}},
		c.allBut(c.Tops[0], c.Tops[0].Units[0]))
	require.Equal(t, leftOut{tops: []string{"^BenchmarkA$", "^BenchmarkB$"}}, c.allBut(c.Tops[2], c.Tops[2].Units[0]))
}

func TestFit(t *testing.T) {
	p := Plan{CPUs: []int{1, 2}, Rounds: 10, Budget: 5 * time.Minute}
	leaves := func(n int, took time.Duration) *Calibration {
		return &Calibration{Tops: []*Top{{"BenchmarkX", []*Unit{{"a", n}}}}, Took: took}
	}
	// A round has 28.1 s for 360 measurements. What the calibration took at two
	// CPU counts beyond rampUp × 5 ms each, 4 s, is fixed cost.
	got := p.Fit(leaves(180, 3530*time.Millisecond)).BenchTime
	require.Equal(t, 39*time.Millisecond, got)
	require.Equal(t, maxBenchTime, p.Fit(leaves(4, 50*time.Millisecond)).BenchTime, "few benchmarks")
	require.Equal(t, minBenchTime, p.Fit(leaves(9000, 4*time.Minute)).BenchTime, "too many")
	p.BenchTime = time.Second
	require.Equal(t, time.Second, p.Fit(leaves(4, 0)).BenchTime, "the caller's choice stands")
}

func TestRefit(t *testing.T) {
	p := Plan{CPUs: []int{1}, Rounds: 10, Budget: 100 * time.Second}
	require.Equal(t, "2s", Plan{BenchTime: 2 * time.Second}.Samples())
	p = p.Fit(&Calibration{Tops: []*Top{{"BenchmarkX", []*Unit{{"a", 100}}}}, Took: time.Second})
	require.Equal(t, "up to 54ms", p.Samples())
	require.Equal(t, p, p.refit(9*time.Second, 9, 90*time.Second), "in time")
	require.Equal(t, 27*time.Millisecond, p.refit(18*time.Second, 9, 81*time.Second).BenchTime, "twice too slow")
	require.Equal(t, minBenchTime, p.refit(time.Hour, 9, 81*time.Second).BenchTime)
	require.Equal(t, minBenchTime, p.refit(time.Second, 1, -time.Second).BenchTime, "over the budget")
	given := Plan{BenchTime: time.Second}
	require.Equal(t, given, given.refit(time.Hour, 9, time.Second), "the caller's choice stands")
}

func TestResultName(t *testing.T) {
	for line, want := range map[string]string{
		"BenchmarkX/impl=a-2 \t 100\t 12.3 ns/op\t 0 B/op": "BenchmarkX/impl=a-2",
		"BenchmarkX 100 5 widgets/op 12.3 ns/op":           "BenchmarkX",
		"BenchmarkX":                                       "",
		"BenchmarkX --- FAIL: something":                   "",
		"ok  pkg 1.2s":                                     "",
		"":                                                 "",
	} {
		got, ok := resultName(line)
		require.Equal(t, want, got, line)
		require.Equal(t, want != "", ok, line)
	}
}

func TestLineWriter_JoinsPieces(t *testing.T) {
	var got []string
	w := &lineWriter{line: func(s string) { got = append(got, s) }}
	for _, piece := range []string{"ab", "c\nd", "\n\n", "e"} {
		_, err := w.Write([]byte(piece))
		require.NoError(t, err)
	}
	w.flush()
	require.Equal(t, []string{"abc", "d", "", "e"}, got)
}

func TestProgress(t *testing.T) {
	var w bytes.Buffer
	p := &Progress{w: &w}
	p.begin(2, 2)
	p.step("BenchmarkX")
	require.Empty(t, w.String(), "plain lines are rare")
	require.Equal(t, "bench: round 1 of 2   25 %  elapsed 10s  remaining 30s", p.line(10*time.Second))
	p.step("BenchmarkX")
	p.endRound(1)
	require.Equal(t, "bench: round 1 of 2   50 %  elapsed 0s  remaining 0s\n", w.String())
	p.step("BenchmarkX")
	require.Equal(t, "bench: round 2 of 2   75 %  elapsed 30s  remaining 10s", p.line(30*time.Second))
}

func TestProgress_RewritesItsLineOnATerminal(t *testing.T) {
	var w bytes.Buffer
	p := &Progress{w: &w, terminal: true}
	p.begin(1, 1)
	p.printed = p.printed.Add(-time.Second)
	p.step("BenchmarkX")
	require.Regexp(t, "^\rbench: round 1 of 1  100 %.*BenchmarkX\x1b\\[K$", w.String())
	w.Reset()
	p.endRound(1)
	require.Regexp(t, "^\r.*\n$", w.String())
}

package runner

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
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
	p := pass{bench: "Mix/read=9", benchTime: 20 * time.Millisecond, cpus: []int{1, 2}}
	require.Equal(t, []string{
		"-test.run=^$", "-test.bench=Mix/read=9", "-test.benchmem", "-test.count=1", "-test.benchtime=20ms",
		"-test.cpu=1,2", "-test.timeout=5m0s",
	}, p.args())
	p.skip = "=big$"
	require.Regexp(t, "^"+regexp.QuoteMeta("-test.skip=/(=big$)|//(=big$)|///(=big$)|"), p.args()[7])
	p.leaves = []*Leaf{{Name: "BenchmarkA/k=1.5/impl=x"}, {Name: "BenchmarkA/impl=x"}}
	require.Len(t, p.args(), 7, "leaves are what remained")
	require.Equal(t, `-test.bench=^BenchmarkA$/^k=1\.5$/^impl=x$|^BenchmarkA$/^impl=x$`, p.args()[1])
}

// outline lists units with the number of their leaves.
func outline(c *Calibration) string {
	var tops []string
	for _, top := range c.Tops {
		var units []string
		for _, u := range top.Units {
			units = append(units, fmt.Sprintf("%s %d", u.Impl, len(u.Leaves)))
		}
		tops = append(tops, strings.TrimPrefix(top.Name, "Benchmark")+": "+strings.Join(units, ", "))
	}
	return strings.Join(tops, "; ")
}

// calibrated makes a calibration of leaves that all took the same time.
func calibrated(took time.Duration, names ...string) *Calibration {
	c := &Calibration{}
	for _, name := range names {
		c.add(result{name: name, iterations: 1000}, took)
		c.Took += took
	}
	return c
}

func TestCalibration_Units(t *testing.T) {
	c := calibrated(0, "BenchmarkA/keys=1/impl=x", "BenchmarkA/keys=1/impl=y.z", "BenchmarkA/keys=2/impl=x",
		"BenchmarkB", "BenchmarkC/impl=x", "BenchmarkC/keys=1")
	require.Equal(t, "A: x 2, y.z 1; B:  1; C: x 1,  1", outline(c))
	require.Equal(t, 6, c.Leaves())
	unit := c.Tops[0].Units[0]
	for name, cpus := range map[string]int{"BenchmarkA/keys=2/impl=x": 1, "BenchmarkA/keys=2/impl=x-16": 16} {
		leaf, n := unit.leaf(name)
		require.Same(t, unit.Leaves[1], leaf)
		require.Equal(t, cpus, n)
	}
	for _, name := range []string{"BenchmarkA/keys=2/impl=xy", "BenchmarkA/keys=2/impl=x2", "BenchmarkA/keys=3/impl=x"} {
		leaf, _ := unit.leaf(name)
		require.Nil(t, leaf, name)
	}
}

func TestCalibration_LeaveOutTakesWhatIsComparedTogether(t *testing.T) {
	c := &Calibration{}
	for _, l := range []struct {
		name string
		took time.Duration
	}{
		{"BenchmarkA/keys=1/impl=x", time.Second}, {"BenchmarkA/keys=1/impl=y", time.Millisecond},
		{"BenchmarkA/keys=2/impl=x", 100 * time.Millisecond}, {"BenchmarkA/keys=2/impl=y", 100 * time.Millisecond},
		{"BenchmarkB/impl=x", 2 * time.Second},
	} {
		c.add(result{name: l.name}, l.took)
	}
	require.Empty(t, c.leaveOut(10*time.Second, nil))
	require.Equal(t, []string{"B", "A/keys=1"}, c.leaveOut(900*time.Millisecond, nil))
	require.Equal(t, "A: x 1, y 1", outline(c))
	require.Empty(t, c.leaveOut(0, nil), "the last stays")
}

func TestCalibration_LeaveOutSparesWhatMustStay(t *testing.T) {
	c := calibrated(time.Second, "BenchmarkA/k=1/impl=x", "BenchmarkB/impl=x", "BenchmarkC/impl=x")
	names := c.leaveOut(0, func(name string) bool { return name == "A/k=1" })
	require.Equal(t, []string{"B", "C"}, names)
	require.Equal(t, "A: x 1", outline(c))
}

func TestFit(t *testing.T) {
	p := Plan{CPUs: []int{1, 2}, Rounds: 10, Budget: 5 * time.Minute}
	many := func(n int) []string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("BenchmarkX/keys=%d/impl=a", i))
		}
		return names
	}
	// The calibration took 3.6 s, of which 2.07 s were not samples and will be
	// spent at both CPU counts. A round has 28.14 s, and so 24 s for 360 samples.
	require.Equal(t, 39*time.Millisecond, p.Fit(calibrated(20*time.Millisecond, many(180)...)).BenchTime)
	require.Equal(t, maxBenchTime, p.Fit(calibrated(10*time.Millisecond, many(4)...)).BenchTime, "few benchmarks")
	require.Equal(t, minBenchTime, p.Fit(calibrated(sampled(calibrationTime), many(9000)...)).BenchTime, "too many")
	p.Never = func(name string) bool { return name == "A/k=1" }
	require.Equal(t, []string{"B"}, p.Fit(calibrated(time.Hour, "BenchmarkA/k=1/impl=x", "BenchmarkB/impl=x", "BenchmarkC/impl=x")).LeftOut[:1])
	p.BenchTime = time.Second
	require.Equal(t, time.Second, p.Fit(calibrated(time.Minute, many(9)...)).BenchTime, "the caller's choice stands")
}

func TestRefit(t *testing.T) {
	require.Equal(t, "2s", Plan{BenchTime: 2 * time.Second}.Samples())
	c := calibrated(0, "BenchmarkX/impl=a", "BenchmarkX/impl=b")
	p := Plan{CPUs: []int{1}, BenchTime: 50 * time.Millisecond, longest: 50 * time.Millisecond}
	require.Equal(t, "up to 50ms", p.Samples())
	refit := func(p Plan, took, left time.Duration) time.Duration { return p.refit(took, 10, left, c).BenchTime }
	// Two samples take 170 ms of a round, the rest does not depend on their length.
	require.Equal(t, 50*time.Millisecond, refit(p, time.Second, 10*time.Second), "in time")
	require.Equal(t, 20*time.Millisecond, refit(p, time.Second, 9*time.Second), "a tenth too slow")
	require.Equal(t, minBenchTime, refit(p, time.Second, 8*time.Second))
	require.Equal(t, minBenchTime, refit(p, time.Second, -time.Second), "over the budget")
	p.BenchTime = 20 * time.Millisecond
	require.Equal(t, 50*time.Millisecond, refit(p, time.Second, 20*time.Second), "faster again")
	p.longest = 0
	require.Equal(t, p.BenchTime, refit(p, time.Hour, time.Second), "the caller's choice stands")
}

func TestParseResult(t *testing.T) {
	for line, want := range map[string]result{
		"BenchmarkX/impl=a-2 \t 100\t 12.3 ns/op\t 0 B/op": {name: "BenchmarkX/impl=a-2", iterations: 100},
		"BenchmarkX 1 5 widgets/op 12.3 ns/op":             {name: "BenchmarkX", iterations: 1},
		"BenchmarkX":                                       {},
		"BenchmarkX --- FAIL: something":                   {},
		"BenchmarkX says 12.3 ns/op again":                 {},
		"ok  pkg 1.2s":                                     {},
		"":                                                 {},
	} {
		got, ok := parseResult(line)
		require.Equal(t, want.name != "", ok, line)
		if ok {
			want.line = line
		}
		require.Equal(t, want, got, line)
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

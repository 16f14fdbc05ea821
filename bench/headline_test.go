package bench

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/headline"
	"github.com/latchfree/latchfree/bench/internal/report"
)

// What must never be left out is there under the names that are asked for, with
// all that it is compared with, and the report shows it without a number that
// says nothing.
func TestHeadlines_AreInTheReport(t *testing.T) {
	if testing.Short() {
		t.Skip("runs benchmarks")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	out, err := exec.Command(self, "-test.run=^$", "-test.benchtime=1x", "-test.count=2", "-test.cpu=2",
		"-test.bench="+headline.Pattern(slices.Concat(headline.Speed, headline.Latency))).CombinedOutput()
	require.NoError(t, err, string(out))
	// Twice measured, and counted three times: here it matters what is shown, not how exact it is.
	r, err := report.Read(bytes.NewReader(bytes.Repeat(out, 3)), "raw", "")
	require.NoError(t, err)

	seen := make(map[string]bool)
	for _, h := range r.Headlines() {
		seen[h.Name] = true
		for _, impl := range []string{report.Subject, report.Baseline} {
			if h.Speed != nil {
				require.NotNil(t, h.Speed.Row(impl), "%s of %s", h.Name, impl)
			} else {
				require.NotNil(t, h.Latency.Row(impl), "%s of %s", h.Name, impl)
				require.True(t, h.Latency.Row(impl).Times[0].Known(), "%s of %s has done nothing", h.Name, impl)
				require.NotNil(t, h.Latency.Row(report.Floor), h.Name)
			}
		}
	}
	for _, c := range slices.Concat(headline.Speed, headline.Latency) {
		require.True(t, seen[c.Name], "%s is missing", c.Name)
	}

	var text, page bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.NoError(t, r.WriteHTML(&page))
	for _, shown := range []string{text.String(), page.String()} {
		require.NotRegexp(t, regexp.MustCompile(`∞|NaN|Inf\b|[0-9]e\+|± ?[0-9]{4,}`), shown)
	}
	for _, c := range headline.Speed {
		require.Contains(t, text.String(), c.Says)
	}
	require.Less(t, strings.Index(text.String(), headline.Speed[0].Says), strings.Index(text.String(), "structure  against"))
}

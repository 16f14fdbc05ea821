package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func pageOf(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.WriteHTML(&b))
	return b.String()
}

var svgElement = regexp.MustCompile(`(?s)<svg .*?</svg>`)

func requireWellFormed(t *testing.T, drawings []string) {
	t.Helper()
	for _, drawing := range drawings {
		d := xml.NewDecoder(strings.NewReader(drawing))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, drawing)
		}
	}
}

func TestWriteHTML_DrawsEveryOperationAtEveryCPUCount(t *testing.T) {
	r := readFile(t)
	page := pageOf(t, r)
	drawings := svgElement.FindAllString(page, -1)
	want := 0
	for _, s := range r.Structures {
		want += len(r.CPUs) * (1 + len(s.Ops))
	}
	require.Len(t, drawings, want)
	requireWellFormed(t, drawings)
	require.Contains(t, page, `aria-label="Registry: speed-up over mutex, 2 CPUs"`)
	require.NotContains(t, page, "NaN")
	require.NotContains(t, page, "Inf")
}

func TestWriteHTML_NeedsNothingFromOutside(t *testing.T) {
	page := pageOf(t, readFile(t))
	page = strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, "")
	for _, bad := range []string{"http:", "https:", "url(", "@import", "<script", "<link", "<img", "src="} {
		require.NotContains(t, page, bad)
	}
	for _, ref := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		require.Regexp(t, `^#`, ref[1])
		require.Contains(t, page, `id="`+ref[1][1:]+`"`, "the link leads somewhere")
	}
}

func TestWriteHTML_Says(t *testing.T) {
	page := pageOf(t, readFile(t))
	for _, want := range []string{
		"0123456789ab", "Example CPU 3.0GHz, 2 logical CPUs", "2026-01-02T03:04:05Z", "go run ./bench/cmd/bench",
		"8 per row, 40ms each", "Every case in which any other implementation is faster",
		"3 allocs, 120 B", "faster in 57 and slower in 4; 3 are undecided",
	} {
		require.Contains(t, page, want)
	}
}

func TestWriteHTML_WithoutLosses(t *testing.T) {
	page := pageOf(t, read(t,
		lines("XGet/impl=latchfree", 1, 1, 1, 1, 1, 1), lines("XGet/impl=mutex", 2, 2, 2, 2, 2, 2)))
	require.Contains(t, page, "In no case that this run could decide.")
	require.NotContains(t, page, "allocates more")
}

// Peers need not have the baseline, an implementation may stand alone, and
// names may hold anything but a space.
func TestWriteHTML_OddInput(t *testing.T) {
	page := pageOf(t, read(t,
		lines(`XGet/k=<b>&"/impl=latchfree`, 1, 2, 3), lines(`XGet/k=<b>&"/impl=a<b`, 4, 5, 6),
		lines("YPut/impl=mutex", 1), lines("ZLen/impl=latchfree", 0, 0, 0, 0, 0, 0), lines("ZLen/impl=mutex", 0, 0, 0, 0, 0, 0)))
	requireWellFormed(t, svgElement.FindAllString(page, -1))
	require.NotContains(t, page, "<b>")
	require.Contains(t, page, "latchfree of ZLen took no measurable time")
	require.NotContains(t, page, "NaN")
	require.NotContains(t, page, "Inf")
}

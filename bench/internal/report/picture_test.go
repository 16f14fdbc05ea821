package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func pictureOf(t *testing.T, r *Report, theme string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.WritePicture(&b, theme))
	return b.String()
}

func TestWritePicture(t *testing.T) {
	r := readFile(t)
	light, dark := pictureOf(t, r, Light), pictureOf(t, r, Dark)
	requireWellFormed(t, []string{light, dark})
	require.NotEqual(t, light, dark)
	require.Equal(t, withoutStyle(light), withoutStyle(dark))
	require.NotRegexp(t, `NaN|Inf|url\(|@import`, light)
	for _, s := range r.againstBaseline() {
		require.Contains(t, light, ">"+s.Structure+"<")
		require.Contains(t, light, Times(s.Median)+" in the median of")
		require.Contains(t, light, ">"+CPUs(s.CPU)+"<")
	}
	require.Len(t, regexp.MustCompile(`in the median of`).FindAllString(light, -1), len(r.againstBaseline()))
	require.Equal(t, []int{1, 2}, []int{r.againstBaseline()[0].CPU, r.againstBaseline()[1].CPU})
}

func withoutStyle(drawing string) string {
	return regexp.MustCompile(`(?s)<style>.*</style>`).ReplaceAllString(drawing, "")
}

// A case that is lost has the colour of losses, and so has a median below 1.
func TestWritePicture_ShowsLosses(t *testing.T) {
	lost := `pkg: p
BenchmarkXOne/impl=latchfree 	1	20 ns/op
BenchmarkXOne/impl=mutex 	1	10 ns/op
`
	r := read(t, strings.Repeat(lost, 6))
	picture := pictureOf(t, r, Light)
	require.Contains(t, picture, `class="mark lost"`)
	require.Contains(t, picture, `class="ci lost"`)
	require.NotContains(t, picture, `class="mark"`)
	require.Contains(t, picture, ">0 of 1<")
}

func TestWritePicture_WithoutBaseline(t *testing.T) {
	r := read(t, "pkg: p\nBenchmarkXOne/impl=latchfree 	1	20 ns/op\n")
	require.False(t, r.HasBaseline())
	require.ErrorContains(t, r.WritePicture(&bytes.Buffer{}, Light), "no picture")
}

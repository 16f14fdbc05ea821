package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func pictureOf(t *testing.T, r *Report, theme Theme) string {
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
	require.Equal(t, withoutColours(light), withoutColours(dark))
	require.NotRegexp(t, `class=|<style|style=|var\(`, light, "any viewer shows plain attributes")
	require.NotRegexp(t, `NaN|Inf|url\(|@import`, light)
	for _, s := range r.againstBaseline() {
		require.Contains(t, light, ">"+s.Structure+"<")
		require.Contains(t, light, Times(s.Median)+" in the median of")
		require.Contains(t, light, ">"+CPUs(s.CPU)+"<")
	}
	require.Len(t, regexp.MustCompile(`in the median of`).FindAllString(light, -1), len(r.againstBaseline()))
	for _, s := range r.againstBaseline() {
		require.Equal(t, 2, s.CPU, "nothing is bought at one CPU")
	}
}

func withoutColours(drawing string) string {
	return regexp.MustCompile(`#[0-9a-f]{6}`).ReplaceAllString(drawing, "")
}

// A case that is lost has the colour of losses, and so has a median below 1.
func TestWritePicture_ShowsLosses(t *testing.T) {
	lost := `pkg: p
BenchmarkXOne/impl=latchfree 	1	20 ns/op
BenchmarkXOne/impl=mutex 	1	10 ns/op
`
	r := read(t, strings.Repeat(lost, 6))
	picture := pictureOf(t, r, Light)
	require.Contains(t, picture, `fill="`+Light.other+`"`)
	require.Contains(t, picture, `stroke="`+Light.other+`"`)
	require.NotContains(t, picture, Light.own)
	require.Contains(t, picture, ">0 of 1<")
}

func TestWritePicture_WithoutBaseline(t *testing.T) {
	r := read(t, "pkg: p\nBenchmarkXOne/impl=latchfree 	1	20 ns/op\n")
	require.False(t, r.HasBaseline())
	require.ErrorContains(t, r.WritePicture(&bytes.Buffer{}, Light), "no picture")
}

func TestWriteTail(t *testing.T) {
	r := readLatency(t)
	require.True(t, r.HasTail())
	var light, dark bytes.Buffer
	require.NoError(t, r.WriteTail(&light, Light))
	require.NoError(t, r.WriteTail(&dark, Dark))
	requireWellFormed(t, []string{light.String()})
	require.Equal(t, withoutColours(light.String()), withoutColours(dark.String()))
	require.NotRegexp(t, `class=|style|NaN|Inf`, light.String())
	require.Contains(t, light.String(), "a cache hit while another key is created for 50 ms")
	require.Contains(t, light.String(), "mutex, p50: 105 ns (100–110)")
	require.Contains(t, light.String(), ">p99 52.5 ms<", "the rarest that is known")
	require.False(t, readFile(t).HasTail())
}

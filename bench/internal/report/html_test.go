package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

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
		want += len(r.CPUs) * (2 + len(s.Ops))
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

// The first screen is the answer: a sentence for each structure, then charts of
// two CPUs, and of one behind a fold; how it was measured stands last.
func TestWriteHTML_BeginsWithTheAnswer(t *testing.T) {
	r := readFile(t)
	page := pageOf(t, r)
	at := -1
	for _, part := range []string{
		"faster in 57 and slower in 4", `id="answer"`,
		"<dd>Of all cases, faster than mutex in 7 of 7 on 2 CPUs (0 slower), 4 of 7 on 1 CPU (3 slower).</dd>",
		`aria-label="Registry: speed-up in the median case, 2 CPUs"`, `aria-label="Breaker: speed-up in the median case, 2 CPUs"`,
		"<details>", `aria-label="Registry: speed-up in the median case, 1 CPU"`, "</details>",
		"<nav", `id="losses"`, `id="Registry"`,
		`aria-label="Registry: speed-up over mutex, 2 CPUs"`, `aria-label="Registry: speed-up over mutex, 1 CPU"`,
		`aria-label="RegistryMix: time per operation, 2 CPUs"`, `aria-label="RegistryMix: time per operation, 1 CPU"`,
		`id="Cache"`, `id="summary"`, `id="reading"`, `id="run"`, "0123456789ab", "</main>",
	} {
		i := strings.Index(page, part)
		require.Greater(t, i, at, part)
		at = i
	}
	require.Equal(t, len(r.CPUs)*len(r.Structures), strings.Count(page, "speed-up in the median case"))
}

// page.css keeps so much free on both sides of a phone, in rem of 16 pixels.
const phone, margin = 390, 0.9 * 16

// On a phone drawings have about their own size, tables are paragraphs, and
// nothing has a width of its own.
func TestWriteHTML_FitsAPhone(t *testing.T) {
	require.Contains(t, pageStyle, "main { padding: 1.5rem 0.9rem 4rem; }")
	require.InDelta(t, phone-2*margin, panelWidth, 0.03*phone)
	require.NotRegexp(t, `[^x-]width: *(\d{4}|39[1-9]|[4-9]\d\d)px`, pageStyle)
	require.NotContains(t, pageStyle, "min-width: 2")
	for name, page := range map[string]string{"sample": pageOf(t, readFile(t)), "long names": pageOf(t, longNames(t)), "latency": pageOf(t, longLegend(t))} {
		for _, drawing := range svgElement.FindAllString(page, -1) {
			require.Regexp(t, `^<svg [^>]*viewBox="0 0 360 \d`, drawing)
			require.NotRegexp(t, `^<svg [^>]* (width|height)=`, drawing)
			taken := make(map[string][][2]float64) // by height
			for _, text := range svgText.FindAllStringSubmatch(drawing, -1) {
				from, to := reach(t, text)
				for _, other := range taken[text[2]] {
					require.True(t, to <= other[0]+1 || from >= other[1]-1, "%s: %s is written over another", name, text[0])
				}
				taken[text[2]] = append(taken[text[2]], [2]float64{from, to})
				require.GreaterOrEqual(t, from, -0.5, "%s: %s is cut", name, text[0])
				require.LessOrEqual(t, to, panelWidth+0.5, "%s: %s is cut", name, text[0])
			}
		}
		body := page[strings.Index(page, "<body>"):]
		require.NotRegexp(t, `(?i)<[^>]+ style=|<table[^>]* width=`, body)
		for _, row := range regexp.MustCompile(`(?s)<tr[ >].*?</tr>`).FindAllString(body, -1) {
			for i, cell := range regexp.MustCompile(`<td[^>]*>`).FindAllString(row, -1) {
				if i > 0 && cell != "<td>" {
					require.Regexp(t, `data-label=|class="(wide|name)"`, cell, "a cell says what it is without its column")
				}
			}
		}
	}
}

var svgText = regexp.MustCompile(`<text x="([-\d.]+)" y="([-\d.]+)" text-anchor="(\w+)" class="([^"]*)">([^<]*)</text>`)

// reach estimates from where to where a text goes.
func reach(t *testing.T, text []string) (from, to float64) {
	t.Helper()
	x, err := strconv.ParseFloat(text[1], 64)
	require.NoError(t, err)
	wide := charWidth
	if strings.Contains(text[4], "quiet") || text[4] == "tick" {
		wide *= 10.5 / 11.5
	}
	width := wide * float64(utf8.RuneCountInString(html.UnescapeString(text[5])))
	switch text[3] {
	case "end":
		return x - width, x
	case "middle":
		return x - width/2, x + width/2
	}
	return x, x + width
}

// longNames is what the widest benchmarks print.
func longNames(t *testing.T) *Report {
	var raw []string
	for _, cpus := range []string{"", "-2"} {
		for _, impl := range []string{"latchfree", "mutex", "latchfreecontext", "gobreakerexecute"} {
			for _, params := range []string{"keys=100000/read=50/order=uniform", "entries=10000000/order=zipf"} {
				raw = append(raw, lines("RegistryUpdateDuringSnapshots/"+params+"/impl="+impl+cpus, 1e5, 2e5, 3e5, 3.1e5, 3.2e5, 3.9e5))
			}
		}
	}
	return read(t, raw...)
}

// One interval that is many times as wide as any other neither stretches
// the axis nor hides that it goes on.
func TestWriteHTML_ClipsLongIntervals(t *testing.T) {
	quiet := []float64{10, 10, 10, 11, 11, 11}
	loud := []float64{10, 10, 10, 11, 11, 39}
	even := read(t, lines("XGet/impl=latchfree", quiet...), lines("XGet/impl=mutex", quiet...))
	wild := read(t, lines("XGet/impl=latchfree", quiet...), lines("XGet/impl=mutex", loud...))
	for name, draw := range map[string]func(*Report) string{
		"time":  func(r *Report) string { return timePlot(r.Structures[0].Ops[0], 1, r.series()) },
		"speed": func(r *Report) string { return speedPlot(r.Structures[0], "mutex", 1) },
	} {
		before, after := draw(even), draw(wild)
		require.NotContains(t, before, "goes on to")
		require.Equal(t, 1, strings.Count(after, "goes on to"), name)
		require.Subset(t, tickLabels(before), tickLabels(after), name)
	}
	require.Contains(t, timePlot(wild.Structures[0].Ops[0], 1, wild.series()), "<title>goes on to 39 ns</title>")
}

// tickLabels returns the labels of an axis.
func tickLabels(drawing string) (labels []string) {
	for _, text := range svgText.FindAllStringSubmatch(drawing, -1) {
		if text[4] == "tick" {
			labels = append(labels, text[5])
		}
	}
	return labels
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

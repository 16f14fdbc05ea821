package svg

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, text)
	}
}

func TestCanvas_WellFormed(t *testing.T) {
	c := New(100, 50, `a "title" <of> & 'things'`)
	c.Rect(0, 1.26, 2, 3, "box")
	c.Line(0, 0, 10.04, 10, "grid")
	c.Text(1, 2, Middle, "label", `k<v & "q"`)
	for i := range 6 {
		c.Marker(5, 5, 3, ShapeOf(i), "mark", "a < b")
	}
	c.Arrow(100, 9, 3, true, "ci", "to <5")
	c.Arrow(0, 9, 3, false, "ci", "")
	text := c.String()
	require.Contains(t, text, `points="100 9 95.2 6 95.2 12"`)
	require.Contains(t, text, `points="0 9 4.8 6 4.8 12"`)
	wellFormed(t, text)
	require.Contains(t, text, `viewBox="0 0 100 50"`)
	require.Contains(t, text, "k&lt;v &amp; &quot;q&quot;")
	require.Contains(t, text, `y="1.3"`, "coordinates have one decimal")
	require.Contains(t, text, `x2="10"`, "and none where it is zero")
}

func TestShapeOf_GoesRound(t *testing.T) {
	require.Equal(t, Circle, ShapeOf(0))
	require.Equal(t, Triangle, ShapeOf(3))
	require.Equal(t, Circle, ShapeOf(4))
}

func TestLog_EqualRatiosAreEqualDistances(t *testing.T) {
	s := NewLog(1, 1000, 100, 400)
	require.InDelta(t, 100, s.At(1), 1e-9)
	require.InDelta(t, 200, s.At(10), 1e-9)
	require.InDelta(t, 300, s.At(100), 1e-9)
	require.InDelta(t, 400, s.At(1000), 1e-9)
}

func TestLog_PutsWhatLiesOutsideOnTheEnds(t *testing.T) {
	s := NewLog(1, 10, 0, 50)
	require.Equal(t, 0.0, s.At(0.1))
	require.Equal(t, 0.0, s.At(0))
	require.Equal(t, 0.0, s.At(-1))
	require.Equal(t, 50.0, s.At(99))
	for v, shown := range map[float64]bool{0: false, 0.99: false, 1: true, 5: true, 10: true, 10.1: false} {
		require.Equal(t, shown, s.Shows(v), v)
	}
}

func TestLog_Ticks(t *testing.T) {
	for _, test := range []struct {
		lo, hi float64
		most   int
		want   []float64
	}{
		{1, 10, 5, []float64{1, 2, 5, 10}},
		{0.4, 3, 6, []float64{0.5, 1, 2}},
		{1, 100, 5, []float64{1, 3, 10, 30, 100}},
		{1, 1e4, 5, []float64{1, 10, 100, 1e3, 1e4}},
		{1, 1e8, 5, []float64{1, 100, 1e4, 1e6, 1e8}},
		{1e-9, 5e-9, 5, []float64{1e-9, 2e-9, 5e-9}},
	} {
		got := NewLog(test.lo, test.hi, 0, 1).Ticks(test.most)
		require.InDeltaSlice(t, test.want, got, 1e-6, "%v to %v", test.lo, test.hi)
	}
}

func TestPlain_HasAttributesInPlaceOfClasses(t *testing.T) {
	c := New(10, 10, "plain")
	c.Plain(func(element, class string) string { return `fill="` + element + "-" + class + `"` })
	c.Rect(0, 0, 1, 1, "a")
	c.Line(0, 0, 1, 1, "b")
	c.Text(0, 0, Start, "c", "text")
	for i := range 4 {
		c.Marker(5, 5, 3, ShapeOf(i), "d", "")
	}
	text := c.String()
	wellFormed(t, text)
	require.NotContains(t, text, "class=")
	for _, want := range []string{"rect-a", "line-b", "text-c", "circle-d", "rect-d", "polygon-d"} {
		require.Contains(t, text, `fill="`+want+`"`)
	}
}

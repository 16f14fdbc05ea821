// Package svg writes the few shapes that plots need as well-formed SVG.
// Colours and fonts are left to a style sheet, through classes: that of the page, or one
// in the drawing; or to plain attributes.
package svg

import (
	"fmt"
	"strconv"
	"strings"
)

// Canvas is a drawing under construction.
type Canvas struct {
	width, height float64
	title         string
	look          func(element, class string) string
	body          strings.Builder
}

// New returns an empty drawing. The title is what a screen reader says.
func New(width, height float64, title string) *Canvas {
	return &Canvas{width: width, height: height, title: title}
}

// Style adds a style sheet, so that the drawing can stand alone.
func (c *Canvas) Style(sheet string) {
	fmt.Fprintf(&c.body, "<style>%s</style>\n", escape(sheet))
}

// Plain makes what is drawn from now on carry the attributes that look returns for
// an element and a class, in place of the class: some viewers know no style sheets.
func (c *Canvas) Plain(look func(element, class string) string) { c.look = look }

// as returns the attributes of an element.
func (c *Canvas) as(element, class string) string {
	if c.look != nil {
		return c.look(element, class)
	}
	return `class="` + escape(class) + `"`
}

// Rect draws a rectangle.
func (c *Canvas) Rect(x, y, width, height float64, class string) {
	fmt.Fprintf(&c.body, `<rect x="%s" y="%s" width="%s" height="%s" %s/>`+"\n",
		num(x), num(y), num(width), num(height), c.as("rect", class))
}

// Line draws a straight line.
func (c *Canvas) Line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.body, `<line x1="%s" y1="%s" x2="%s" y2="%s" %s/>`+"\n",
		num(x1), num(y1), num(x2), num(y2), c.as("line", class))
}

// Anchor says which point of a text lies at its position.
type Anchor string

// The anchors of SVG.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Text draws a line of text on the baseline y.
func (c *Canvas) Text(x, y float64, anchor Anchor, class, text string) {
	fmt.Fprintf(&c.body, `<text x="%s" y="%s" text-anchor="%s" %s>%s</text>`+"\n",
		num(x), num(y), anchor, c.as("text", class), escape(text))
}

// Shape is the form of a marker. Forms tell series apart without colour.
type Shape int

// The shapes, in the order in which series should use them.
const (
	Circle Shape = iota
	Square
	Diamond
	Triangle
	shapes
)

// ShapeOf returns the shape of series i.
func ShapeOf(i int) Shape { return Shape(i) % shapes }

// Marker draws a marker of about the given radius around a point, with a
// tooltip.
func (c *Canvas) Marker(x, y, radius float64, shape Shape, class, tooltip string) {
	title := ""
	if tooltip != "" {
		title = "<title>" + escape(tooltip) + "</title>"
	}
	switch shape {
	case Square:
		r := radius * 0.88
		fmt.Fprintf(&c.body, `<rect x="%s" y="%s" width="%s" height="%s" %s>%s</rect>`+"\n",
			num(x-r), num(y-r), num(2*r), num(2*r), c.as("rect", class), title)
	case Diamond:
		r := radius * 1.25
		c.polygon(class, title, x, y-r, x+r, y, x, y+r, x-r, y)
	case Triangle:
		r := radius * 1.15
		c.polygon(class, title, x, y-r, x+r, y+r*0.8, x-r, y+r*0.8)
	default:
		fmt.Fprintf(&c.body, `<circle cx="%s" cy="%s" r="%s" %s>%s</circle>`+"\n",
			num(x), num(y), num(radius), c.as("circle", class), title)
	}
}

// Arrow draws the mark of a line that goes on beyond the point, to the right or
// to the left.
func (c *Canvas) Arrow(x, y, radius float64, right bool, class, tooltip string) {
	back := -radius
	if !right {
		back = radius
	}
	c.polygon(class, "<title>"+escape(tooltip)+"</title>", x, y, x+1.6*back, y-radius, x+1.6*back, y+radius)
}

func (c *Canvas) polygon(class, inner string, coords ...float64) {
	points := make([]string, len(coords))
	for i, v := range coords {
		points[i] = num(v)
	}
	fmt.Fprintf(&c.body, `<polygon points="%s" %s>%s</polygon>`+"\n",
		strings.Join(points, " "), c.as("polygon", class), inner)
}

// String returns the drawing as an element that can stand in a page. It
// scales to the width it is given.
func (c *Canvas) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-label="%s">`+"\n%s</svg>",
		num(c.width), num(c.height), escape(c.title), c.body.String())
}

// num formats a coordinate to a tenth, which is finer than a pixel.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

func escape(s string) string { return escaper.Replace(s) }

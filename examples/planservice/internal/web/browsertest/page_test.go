package browsertest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/demo"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
	"github.com/latchfree/latchfree/examples/planservice/internal/web"
)

func TestPage(t *testing.T) {
	browser := startBrowser(t)
	for _, s := range []screen{{"desktop", 1280, 800, false}, {"phone", 390, 844, true}} {
		t.Run(s.name, func(t *testing.T) { t.Parallel(); drive(t, browser, s) })
	}
}

// drive changes the state of a service while its page is open.
func drive(t *testing.T, browser context.Context, s screen) {
	server, client := serve(t, service.Config{OpenTimeout: -1, Strategies: []api.Strategy{down(t)}})
	p := open(t, browser, s, server.URL)
	p.wait(`document.querySelector("h1")?.textContent === "planservice"`)
	value[bool](p, `window.opened = true`) // a reload would lose it

	ctx, plan := t.Context(), strings.Repeat("long-", 19)+"name"
	_, err := client.CreateAction(ctx, api.Action{Name: "back up"})
	require.NoError(t, err)
	_, err = client.CreatePlan(ctx, api.Plan{Name: plan, Actions: []string{"back up"}, Strategies: []string{"down", api.Direct}})
	require.NoError(t, err)
	for range 4 {
		_, err := client.Run(ctx, plan, api.RunPlan{Start: true})
		require.NoError(t, err)
	}
	_, err = client.ApplyPlan(ctx, plan, "", api.ApplyChangeset{Database: "memory:" + plan})
	require.NoError(t, err)
	p.wait(`document.querySelector("#plans").textContent.includes("` + plan + `")`)
	p.wait(`document.querySelectorAll("#changesets .applied").length === 4`)
	p.wait(`[...document.querySelectorAll("#breakers tr")].some(r => /^down\s*Open\s*3/.test(r.textContent))`)

	p.check(s, "page")

	// An event leaves the focus where it is.
	value[bool](p, `document.querySelector("#reset button").focus(), true`)
	at := value[string](p, `document.querySelector("#at").textContent`)
	p.wait(`document.querySelector("#at").textContent !== "` + at + `"`)
	assert.True(t, value[bool](p, `document.activeElement === document.querySelector("#reset button")`))

	p.do(chromedp.Click(chromedp.CSS("#reset button")))
	p.wait(`document.querySelectorAll("#breakers .Closed").length === 2`)
	breakers, err := client.Breakers(ctx)
	require.NoError(t, err)
	assert.Equal(t, "Closed", breakers[1].State)

	p.wait(`document.querySelector("#curve path").getAttribute("d").includes("L")`)
	assert.True(t, value[bool](p, `window.opened === true`), "the page was loaded again")
	assert.Empty(t, p.console())

	// A page that lacks a part is of another version.
	_, err = chromedp.Run(p.ctx, chromedp.WaitEvent(page.LoadEventFired, nil,
		chromedp.Evaluate[chromedp.Void](`document.querySelector("#tiles").remove()`)))
	require.NoError(t, err)
	p.wait(`document.querySelector("#tiles") && window.opened === undefined`)

	server.Listener.Close()
	server.CloseClientConnections()
	p.wait(`document.body.classList.contains("stale")`)
	assert.True(t, value[bool](p, `document.querySelector("#lost").checkVisibility()`))
	p.check(s, "lost")
}

// The page is clean at all widths when there is nothing, and when there is everything that it
// can show.
func TestPageWidths(t *testing.T) {
	browser := startBrowser(t)
	tick, openTimeout, seconds := 100*time.Millisecond, 500*time.Millisecond, 2
	if takesPictures() { // of the usual pace, and of more than a moment
		tick, openTimeout, seconds = 0, 0, 40
	}
	server, _ := serve(t, service.Config{OpenTimeout: openTimeout})
	screens := []screen{{"360", 360, 740, true}, {"768", 768, 1024, true}, {"1440", 1440, 900, false}}
	tabs := make([]*tab, len(screens))
	for i, s := range screens {
		tabs[i] = open(t, browser, s, server.URL)
		tabs[i].wait(`document.querySelector("#changesets")?.textContent.includes("none yet")`)
		assert.False(t, value[bool](tabs[i], `document.querySelector("#lost").checkVisibility()`))
		tabs[i].check(s, "empty")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- demo.Run(ctx, demo.Config{URL: server.URL, Tick: tick, Log: slog.New(slog.DiscardHandler)})
	}()
	for i, s := range screens {
		tabs[i].wait(fmt.Sprintf(`document.querySelector("#curve path").getAttribute("d").split("L").length > %d
			&& /^3 opened, 0 closed, [1-9]/.test(document.querySelector("#engine-counts").textContent)
			&& [".Closed", ".Open", ".HalfOpen", ".applied", ".sealed", ".open"].every(state => document.querySelector("td > " + state))`, seconds))
		tabs[i].check(s, "demo")
		assert.Empty(t, tabs[i].console())
	}
	cancel()
	assert.NoError(t, <-ended)
}

// check says what cannot be seen or read well on a screen, and takes the page's picture.
func (p *tab) check(s screen, name string) {
	p.t.Helper()
	assert.LessOrEqual(p.t, value[int64](p, `document.documentElement.scrollWidth`), s.width, "the page is wider than the screen")
	assert.Empty(p.t, value[[]string](p, tooWide))
	for _, scheme := range []string{"light", "dark"} {
		p.prefer(scheme)
		dark := value[float64](p, luminance+`luminance(getComputedStyle(document.body).backgroundColor)`) < 0.2
		assert.Equal(p.t, scheme == "dark", dark)
		assert.Empty(p.t, value[[]string](p, lowContrast), scheme)
		p.screenshot(name + "-" + s.name + "-" + scheme)
	}
}

// down returns a strategy that is down.
func down(t *testing.T) api.Strategy {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(server.Close)
	return api.Strategy{Name: "down", URL: server.URL}
}

// serve starts the service.
func serve(t *testing.T, c service.Config) (*httptest.Server, *api.Client) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	c.Log = log
	s, err := service.New(t.Context(), c)
	require.NoError(t, err)
	stop := make(chan struct{})
	server := httptest.NewServer(web.New(s, log, stop))
	go s.Sample(stop)
	t.Cleanup(func() {
		close(stop)
		server.Close()
		assert.NoError(t, s.Close(context.Background()))
	})
	return server, api.NewClient(server.URL, server.Client())
}

// tooWide comes to the elements that reach beyond the screen, or that have to be scrolled
// sideways.
const tooWide = `[...document.querySelectorAll("body *")]
	.filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
		|| e.matches(".scroll") && e.scrollWidth > e.clientWidth)
	.map(e => e.outerHTML)`

// luminance is that of WCAG 2, of a color as getComputedStyle has it.
const luminance = `function luminance(color) {
	const [r, g, b] = color.match(/[\d.]+/g).map(Number).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
`

// lowContrast comes to the elements whose text has less contrast than WCAG 2 wants.
const lowContrast = luminance + `
function background(e) {
	for (; e; e = e.parentElement) {
		const color = getComputedStyle(e).backgroundColor;
		if (!/, 0\)$/.test(color)) return color;
	}
	return "rgb(255, 255, 255)";
}
[...document.querySelectorAll("body *")]
	.filter(e => [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.data.trim()))
	.filter(e => {
		const [a, b] = [luminance(getComputedStyle(e).color), luminance(background(e))];
		return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
	})
	.map(e => e.outerHTML)`

// Package browsertest drives the status page in a browser, which it finds in PATH. Its
// tests are in a package of their own, so that those of package web build without chromedp.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// names are how browsers that speak the DevTools protocol are called.
var names = []string{
	"headless_shell", "headless-shell", "chromium", "chromium-browser",
	"google-chrome", "google-chrome-stable", "chrome", "msedge",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
}

// startBrowser starts a browser that ends with the test, or skips the test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skipf("no browser: install chromium or google-chrome (looked for %s)", strings.Join(names, ", "))
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// The sandbox needs rights that root and containers do not have. The page is ours.
		chromedp.NoSandbox,
	)...)
	t.Cleanup(stop)
	ctx, _ = chromedp.NewContext(ctx)
	require.NoError(t, chromedp.Do(ctx), "start %s", path)
	t.Cleanup(func() { assert.NoError(t, chromedp.Cancel(ctx)) })
	return ctx
}

// screen is what the page is looked at with.
type screen struct {
	name          string
	width, height int64
	phone         bool
}

// tab is a page in the browser.
type tab struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex
	problems []string // what the console shows as a warning or worse
}

// open opens a URL in a tab of its own.
func open(t *testing.T, browser context.Context, s screen, url string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	t.Cleanup(end)
	require.NoError(t, chromedp.Do(ctx))
	ctx, stop := context.WithTimeout(ctx, time.Minute) // which does not bound the tab's life
	t.Cleanup(stop)
	p := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, p.listen))
	size := []chromedp.EmulateViewportOption{}
	if s.phone {
		size = append(size, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait, chromedp.EmulateScale(2))
	}
	p.do(chromedp.EmulateViewport(s.width, s.height, size...), chromedp.Navigate(url))
	return p
}

// prefer sets the color scheme that the page is to have: light or dark.
func (p *tab) prefer(scheme string) {
	p.t.Helper()
	p.do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		return cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	})
}

func (p *tab) listen(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			problem = fmt.Sprintf("console.%s: %s", e.Type, values(e.Args))
		}
	case *runtime.EventExceptionThrown:
		problem = e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			problem += " " + thrown.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			problem = fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	}
	if problem != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, problem)
	}
}

func values(arguments []*runtime.RemoteObject) string {
	var all []string
	for _, a := range arguments {
		all = append(all, string(a.Value)+a.Description)
	}
	return strings.Join(all, " ")
}

// console returns what was wrong until now.
func (p *tab) console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problems
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, actions...))
}

// value returns what an expression of JavaScript, or its promise, comes to.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	result, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err)
	return result
}

// wait waits until a condition in JavaScript is true. It looks again whenever the page has
// changed.
func (p *tab) wait(condition string) {
	p.t.Helper()
	err := chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`new Promise(resolve => {
		const look = () => { if (%s) { observer.disconnect(); resolve(true); } };
		const observer = new MutationObserver(look);
		observer.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
		look();
	})`, condition), chromedp.EvalAwaitPromise))
	if errors.Is(err, context.DeadlineExceeded) {
		p.t.Fatalf("the page does not come to: %s", condition)
	}
	require.NoError(p.t, err)
}

// screenshot writes what the whole page looks like to the folder that the environment
// names, if it does.
func (p *tab) screenshot(name string) {
	p.t.Helper()
	folder := os.Getenv("PLANSERVICE_SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}

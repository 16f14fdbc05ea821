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

// find returns the path of a browser, or skips the test.
func find(t *testing.T) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("no browser: install chromium or google-chrome (looked for %s)", strings.Join(names, ", "))
	return ""
}

// startBrowser starts a browser that ends with the test, or skips the test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	ctx, err := startTwice(t, find(t))
	require.NoError(t, err)
	return ctx
}

// startTwice starts a browser once again if it fails, as it does now and then on a busy machine.
func startTwice(t *testing.T, path string) (context.Context, error) {
	ctx, err := start(t, path)
	if err != nil {
		t.Log("once again: ", err)
		ctx, err = start(t, path)
	}
	return ctx, err
}

// startTimeout is how long a browser may take to start. One that hangs is killed.
const startTimeout = time.Minute

// start starts a browser that ends with the test. The error has what the browser has printed.
func start(t *testing.T, path string) (context.Context, error) {
	printed := new(output)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// The sandbox needs rights that root and containers do not have. The page is ours.
		chromedp.NoSandbox,
		chromedp.CombinedOutput(printed),
	)...)
	ctx, cancel := chromedp.NewContext(allocator)
	timeout := time.AfterFunc(startTimeout, cancel)
	err := chromedp.Do(ctx)
	if !timeout.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		stop()
		err = fmt.Errorf("start %s: %w", path, err)
		if text := strings.TrimSpace(printed.String()); !strings.Contains(err.Error(), text) {
			err = fmt.Errorf("%w; it printed:\n%s", err, text)
		}
		return nil, err
	}
	t.Cleanup(stop)
	t.Cleanup(func() { assert.NoError(t, chromedp.Cancel(ctx)) })
	return ctx, nil
}

// output is what a process prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// A browser that fails is started once again. If it fails then, the error says what it printed.
func TestBrowserThatFails(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "starts")
	script := func(then string) string {
		path := filepath.Join(t.TempDir(), "browser")
		text := fmt.Sprintf("#!/bin/sh\necho start >>'%s'\n%s\necho no display\nexit 1\n", counter, then)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
		return path
	}
	starts := func() int {
		text, err := os.ReadFile(counter)
		require.NoError(t, err)
		return strings.Count(string(text), "start")
	}
	_, err := startTwice(t, script(""))
	assert.ErrorContains(t, err, "no display")
	assert.Equal(t, 2, starts())

	_, err = startTwice(t, script(fmt.Sprintf(`[ $(grep -c start '%s') -lt 4 ] || exec '%s' "$@"`, counter, find(t))))
	assert.NoError(t, err)
	assert.Equal(t, 4, starts())
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

// folder is where pictures of the page are to be written, if anywhere.
var folder = os.Getenv("PLANSERVICE_SCREENSHOTS")

func takesPictures() bool { return folder != "" }

// screenshot writes what the whole page looks like, if that is asked for.
func (p *tab) screenshot(name string) {
	p.t.Helper()
	if !takesPictures() {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}

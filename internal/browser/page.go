package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Serve serves a folder on 127.0.0.1, which browsers trust like https, for the length of a test, and returns its address.
func Serve(t testing.TB, dir string) string {
	t.Helper()
	s := httptest.NewServer(noStore(http.FileServer(http.Dir(dir))))
	t.Cleanup(s.Close)
	return s.URL
}

func noStore(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if strings.HasSuffix(r.URL.Path, ".wasm") {
			w.Header().Set("Content-Type", "application/wasm") // not every system's table of types has it
		}
		h.ServeHTTP(w, r)
	})
}

// Page is a tab.
type Page struct {
	ctx     context.Context
	crashed chan struct{}

	mu     sync.Mutex
	errors []string
	logs   []string
}

// Page opens an address in a tab of its own and waits until it has loaded. The tab is closed with the test. It has a window of its own,
// and is seen, unless options say otherwise.
func (b *Browser) Page(t testing.TB, url string, options ...chromedp.ContextOption) *Page {
	t.Helper()
	p, done, err := b.open(context.Background(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	p.Navigate(t, url)
	return p
}

// open makes a tab whose events are collected.
func (b *Browser) open(parent context.Context, options ...chromedp.ContextOption) (*Page, func(), error) {
	ctx, cancel := chromedp.NewContext(b.ctx, options...)
	stop := context.AfterFunc(parent, cancel)
	done := func() { stop(); cancel() }
	p := &Page{ctx: ctx, crashed: make(chan struct{})}
	if err := chromedp.Listen(ctx, p.event); err != nil {
		done()
		return nil, nil, fmt.Errorf("open a tab: %w", err)
	}
	return p, done, nil
}

// event collects what pages complain about. It runs in the loop that reads the browser's messages.
func (p *Page) event(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		text := strings.Join(texts(e.Args), " ")
		p.logs = append(p.logs, fmt.Sprintf("%s: %s", e.Type, text))
		if e.Type == "error" || e.Type == "assert" {
			p.errors = append(p.errors, fmt.Sprintf("console.%s: %s", e.Type, text))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		p.errors = append(p.errors, "exception: "+text)
	case *log.EventEntryAdded:
		p.logs = append(p.logs, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		if e.Entry.Level == "error" { // among them requests that failed
			p.errors = append(p.errors, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *inspector.EventTargetCrashed:
		p.errors = append(p.errors, "the page crashed")
		close(p.crashed)
	}
}

func texts(args []*runtime.RemoteObject) []string {
	var list []string
	for _, a := range args {
		switch {
		case a.Description != "":
			list = append(list, a.Description)
		case len(a.Value) > 0:
			list = append(list, strings.Trim(string(a.Value), `"`))
		default:
			list = append(list, string(a.Type))
		}
	}
	return list
}

// Context is chromedp's, for what this package has no method for.
func (p *Page) Context() context.Context { return p.ctx }

// Errors returns what the console showed in red so far: calls of console.error, exceptions and rejections that nobody caught,
// requests that failed, a crash.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

// Logs returns all of the console.
func (p *Page) Logs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.logs...)
}

// Timeout is how long each action of a Page may take before the test fails.
var Timeout = 3 * time.Minute

// do runs an action, or fails the test with the console's errors.
func do[T any](t testing.TB, p *Page, what string, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Timeout)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatalf("%s: %v\nconsole: %q", what, err, p.Logs())
	}
	return v
}

// Navigate goes to an address and waits until it has loaded.
func (p *Page) Navigate(t testing.TB, url string) {
	t.Helper()
	do(t, p, "open "+url, chromedp.Navigate(url))
}

// Eval evaluates a JavaScript expression, waits if it is a promise, and returns its value by way of JSON. An exception or a
// rejection fails the test.
func Eval[T any](t testing.TB, p *Page, expression string) T {
	t.Helper()
	return do(t, p, expression, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Exec is Eval for what has no value.
func (p *Page) Exec(t testing.TB, expression string) {
	t.Helper()
	do(t, p, expression, chromedp.Evaluate[chromedp.Void](expression, chromedp.EvalAwaitPromise))
}

// Wait waits until an expression is truthy.
func (p *Page) Wait(t testing.TB, expression string) {
	t.Helper()
	do(t, p, "wait for "+expression, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(Timeout)))
}

// Click clicks the element of a CSS selector once it is visible.
func (p *Page) Click(t testing.TB, selector string) {
	t.Helper()
	do(t, p, "click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Text returns the visible text of the element of a CSS selector.
func (p *Page) Text(t testing.TB, selector string) string {
	t.Helper()
	return do(t, p, "text of "+selector, chromedp.Text(chromedp.CSS(selector)))
}

// Screenshot writes a picture of the window to a PNG file, making its folder if need be.
func (p *Page) Screenshot(t testing.TB, path string) {
	t.Helper()
	png := do(t, p, "screenshot", chromedp.CaptureScreenshot())
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		t.Fatal(err)
	}
}

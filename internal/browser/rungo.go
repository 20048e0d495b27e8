package browser

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed host
var host embed.FS

// Program is a Go program compiled to GOOS=js GOARCH=wasm.
type Program struct {
	Path   string // of the module
	Args   []string
	Env    map[string]string // the runtime has room for some 8 KB of arguments and environment
	Worker bool              // run in a Web Worker instead of the page

	NeedsAdapter bool // fail before the start where there is no WebGPU adapter
	Stdout       io.Writer
	Stderr       io.Writer
}

// ErrCrashed is wrapped by errors of pages that ended before the program did.
var ErrCrashed = errors.New("the page crashed")

// RunGo runs a program in a page of its own and returns its exit code. When ctx ends first, the error is that of ctx.
func (b *Browser) RunGo(ctx context.Context, p *Program) (int, error) {
	code, err := b.runGo(ctx, p)
	if err != nil && ctx.Err() != nil { // it ends the page as well, and either may be noticed first
		err = ctx.Err()
	}
	return code, err
}

func (b *Browser) runGo(ctx context.Context, p *Program) (int, error) {
	handler, err := p.handler()
	if err != nil {
		return 0, err
	}
	server := httptest.NewServer(noStore(handler))
	defer server.Close()
	tab, done, err := b.open(ctx)
	if err != nil {
		return 0, err
	}
	defer done()

	exit := make(chan message, 1)
	var broken error // of a writer; only in the loop that reads the browser's messages
	receive := func(ev any) {
		called, ok := ev.(*runtime.EventBindingCalled)
		if !ok || called.Name != "wavelaneEmit" {
			return
		}
		var m message
		if err := json.Unmarshal([]byte(called.Payload), &m); err != nil {
			broken = errors.Join(broken, err)
		}
		if err := p.write(m.FD, m.Data); err != nil {
			broken = errors.Join(broken, err)
		}
		if m.Exit != nil {
			m.broken = broken
			select {
			case exit <- m:
			default: // it has ended already
			}
		}
	}
	if err := chromedp.Listen(tab.ctx, receive); err != nil {
		return 0, err
	}
	if _, err := chromedp.Call(tab.ctx, runtime.AddBinding, runtime.AddBindingParams{Name: "wavelaneEmit"}); err != nil {
		return 0, err
	}
	query := ""
	if p.Worker {
		query = "?worker"
	}
	if err := chromedp.Do(tab.ctx, chromedp.Navigate(server.URL+"/"+query)); err != nil {
		return 0, fmt.Errorf("open the program's page: %w", err)
	}
	select {
	case m := <-exit:
		if m.Error != "" {
			return *m.Exit, errors.New(m.Error)
		}
		return *m.Exit, m.broken
	case <-tab.crashed:
		return 0, ErrCrashed
	case <-tab.ctx.Done():
		return 0, fmt.Errorf("the browser ended: %w\n%s", ErrCrashed, b.Output())
	}
}

// message is what the page reports: output or the end.
type message struct {
	FD     int    `json:"fd"`
	Data   string `json:"data"` // a character per byte
	Exit   *int   `json:"exit"`
	Error  string `json:"error"`
	broken error
}

func (p *Program) write(fd int, data string) error {
	bytes := make([]byte, 0, len(data))
	for _, r := range data {
		bytes = append(bytes, byte(r))
	}
	w := p.Stderr
	if fd == 1 {
		w = p.Stdout
	}
	if len(bytes) == 0 || w == nil {
		return nil
	}
	_, err := w.Write(bytes)
	return err
}

// handler serves the program and what loads it.
func (p *Program) handler() (http.Handler, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go's wasm_exec.js: %w", err)
	}
	files, err := fs.Sub(host, "host")
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	maps.Copy(env, p.Env)
	config, err := json.Marshal(map[string]any{
		"args": append([]string{filepath.Base(p.Path)}, p.Args...), "env": env, "adapter": p.NeedsAdapter,
	})
	if err != nil {
		return nil, err
	}
	serve := func(path string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) }
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(files))
	mux.Handle("/program.wasm", serve(p.Path))
	mux.Handle("/wasm_exec.js", serve(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js")))
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/config.json", func(w http.ResponseWriter, r *http.Request) { w.Write(config) })
	return mux, nil
}

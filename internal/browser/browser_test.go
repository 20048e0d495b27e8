package browser

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const program = `package main

import (
	"fmt"
	"os"
	"syscall/js"
	"time"
)

func main() {
	switch os.Args[1] {
	case "echo":
		fmt.Println(os.Args[2], os.Getenv("WAVELANE_WORD"), js.Global().Get("document").Truthy())
		fmt.Fprint(os.Stderr, "\x00\xff€")
		os.Exit(7)
	case "panic":
		panic("on purpose")
	case "throw":
		js.Global().Call("eval", "throw new Error('thrown on purpose')")
	case "hang":
		fmt.Println("hanging")
		time.Sleep(time.Hour)
	}
}
`

func build(t *testing.T) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), program)
	wasm := filepath.Join(dir, "main.wasm")
	cmd := exec.Command("go", "build", "-o", wasm, filepath.Join(dir, "main.go"))
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return wasm
}

func write(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRunGo(t *testing.T) {
	wasm := build(t)
	b := Start(t)
	for _, c := range []struct {
		args           []string
		worker         bool
		code           int
		stdout, stderr string // the latter: a part
	}{
		{[]string{"echo", "hello"}, false, 7, "hello world true\n", "\x00\xff€"},
		{[]string{"echo", "hello"}, true, 7, "hello world false\n", "\x00\xff€"},
		{[]string{"panic"}, false, 2, "", "panic: on purpose"},
		{[]string{"throw"}, true, 2, "", "thrown on purpose"},
		{[]string{"nothing"}, false, 0, "", ""},
	} {
		var stdout, stderr bytes.Buffer
		code, err := b.RunGo(context.Background(), &Program{Path: wasm, Args: c.args, Worker: c.worker, NeedsAdapter: true,
			Env: map[string]string{"WAVELANE_WORD": "world"}, Stdout: &stdout, Stderr: &stderr})
		if err != nil || code != c.code || stdout.String() != c.stdout || !bytes.Contains(stderr.Bytes(), []byte(c.stderr)) {
			t.Errorf("%v worker=%v: exit code %d, %v\nstdout: %q\nstderr: %q", c.args, c.worker, code, err, stdout.String(), stderr.String())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if _, err := b.RunGo(ctx, &Program{Path: wasm, Args: []string{"hang"}}); err != context.DeadlineExceeded {
		t.Errorf("a program that hangs: %v", err)
	}
}

func TestPage(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "index.html"), `<title>page</title><button onclick="done = true; console.error('oops', 3)">go</button><p>text</p>
<script>fetch("missing"); setTimeout(() => { throw new Error("thrown") }, 0)</script>`)
	b := Start(t)
	p := b.Page(t, Serve(t, dir)+"/")
	p.Click(t, "button")
	p.Wait(t, "globalThis.done")
	if got := Eval[int](t, p, "Promise.resolve(6 * 7)"); got != 42 {
		t.Errorf("got %d", got)
	}
	if got := Eval[bool](t, p, "navigator.gpu.requestAdapter().then(a => a != null)"); !got {
		t.Error("there is no adapter")
	}
	if got := p.Text(t, "p"); got != "text" {
		t.Errorf("got %q", got)
	}
	png := filepath.Join(dir, "a", "b.png")
	p.Screenshot(t, png)
	if info, err := os.Stat(png); err != nil || info.Size() < 100 {
		t.Errorf("no picture: %v", err)
	}
	deadline := time.Now().Add(time.Minute)
	for len(p.Errors()) < 3 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if got := p.Errors(); len(got) < 3 {
		t.Errorf("of three errors: %q", got)
	}

	// A page that crashes ends what waits for it.
	wasm := build(t)
	tab, done, err := b.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	go chromedp.Do(tab.ctx, chromedp.Navigate("chrome://crash"))
	select {
	case <-tab.crashed:
	case <-time.After(Timeout):
		t.Error("nothing tells of the crash")
	}
	if code, err := b.RunGo(context.Background(), &Program{Path: wasm, Args: []string{"nothing"}}); code != 0 || err != nil {
		t.Errorf("after the crash: %d, %v", code, err)
	}
}

// Neither processes nor files are left, whatever ends the program that started the browser.
func TestNothingIsLeft(t *testing.T) {
	if os.Getenv("WAVELANE_TEST_KILL") != "" {
		b := Start(t)
		os.Stdout.WriteString(b.janitor.dir + "\n")
		time.Sleep(time.Hour)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNothingIsLeft$")
	cmd.Env = append(os.Environ(), "WAVELANE_TEST_KILL=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	dir := string(bytes.TrimSpace(line[:n]))
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for range 1200 {
		_, err := os.Stat(dir)
		if alive := processes(t, dir); os.IsNotExist(err) && alive == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s or processes that use it are left", dir)
}

// processes counts those with the profile on their command line, but for shells that are to remove it.
func processes(t *testing.T, dir string) (n int) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if text, _ := os.ReadFile(path); bytes.Contains(text, []byte("--user-data-dir="+dir)) {
			n++
		}
	}
	return n
}

func TestNoBrowser(t *testing.T) {
	t.Setenv("CHROMIUM", "/nonexistent")
	if _, err := Launch(context.Background()); err == nil {
		t.Error("started what is not there")
	}
}

package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Browser is a running Chromium with a profile of its own.
type Browser struct {
	ctx     context.Context // chromedp's; its tab stays blank
	stop    []func()
	output  output
	janitor *janitor
	once    sync.Once
}

// ErrNoBrowser is wrapped by errors of machines without Chromium.
var ErrNoBrowser = errors.New("no browser: install Debian's package chromium, or set CHROMIUM to a Chromium or Chrome of version 134 or newer")

// names are what Chromium is called in PATH.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Find returns the path of the browser: of the environment variable CHROMIUM, or the first of the usual names in PATH.
func Find() (string, error) {
	candidates := names
	if set := os.Getenv("CHROMIUM"); set != "" {
		candidates = []string{set}
	}
	for _, name := range candidates {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s not found: %w", strings.Join(candidates, ", "), ErrNoBrowser)
}

// Start launches a browser for the length of a test. Options come after those of [Launch].
func Start(t testing.TB, options ...chromedp.ExecAllocatorOption) *Browser {
	t.Helper()
	b, err := Launch(context.Background(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// patience is how long the browser may take to start.
const patience = 3 * time.Minute

// Launch starts a browser, which Close or the end of ctx stops.
func Launch(ctx context.Context, more ...chromedp.ExecAllocatorOption) (*Browser, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	b := &Browser{}
	if b.janitor, err = newJanitor(); err != nil {
		return nil, err
	}
	b.stop = append(b.stop, b.janitor.clean)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(b.janitor.dir),
		chromedp.Flag("headless", "new"),
		chromedp.NoSandbox, // for containers and root; the pages are ours
		chromedp.Flag("disable-gpu", false),
		chromedp.Flag("enable-unsafe-webgpu", true),
		chromedp.Flag("use-webgpu-adapter", "swiftshader"),
		chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.CombinedOutput(&b.output),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			// A group of its own, so that the janitor can kill all of it.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		}),
	)
	ctx, cancel := chromedp.NewExecAllocator(ctx, append(options, more...)...)
	b.stop = append(b.stop, cancel)
	b.ctx, cancel = chromedp.NewContext(ctx)
	b.stop = append(b.stop, cancel)
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(b.ctx) }()
	select {
	case err = <-started:
	case <-time.After(patience):
		err = fmt.Errorf("not ready after %v", patience)
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("start %s: %w\n%s", path, err, b.output.String())
	}
	b.janitor.watch(chromedp.FromContext(b.ctx).Browser.Process().Pid)
	return b, nil
}

// Close ends the browser and removes its profile. It is idempotent.
func (b *Browser) Close() {
	b.once.Do(func() {
		for i := len(b.stop) - 1; i >= 0; i-- {
			b.stop[i]()
		}
	})
}

// EndGPU kills the browser's GPU process, which is what becomes of it when the machine has no memory left. The browser starts another.
func (b *Browser) EndGPU() error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, path := range lines {
		text, _ := os.ReadFile(path)
		if !bytes.Contains(text, []byte("--user-data-dir="+b.janitor.dir)) || !bytes.Contains(text, []byte("--type=gpu-process")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return errors.New("no GPU process")
}

// Output returns what the browser itself has printed, which is mostly noise.
func (b *Browser) Output() string { return b.output.String() }

// output keeps the end of what is written to it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() > 1<<16 {
		o.text.Next(1 << 15)
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// janitor is a shell that owns the profile. When the pipe from this process closes, be it that the process dies, it kills the
// browser's process group and removes the profile.
type janitor struct {
	dir  string
	pipe io.WriteCloser
	cmd  *exec.Cmd
}

const cleaning = `
read -r pid
cat >/dev/null
for pass in 1 2 3; do # one may be born while the others die, and the last to go may still write
	[ -z "$pid" ] || kill -9 -- "-$pid" 2>/dev/null
	rm -rf -- "$1" 2>/dev/null
	sleep 0.1
done
rm -rf -- "$1"`

func newJanitor() (*janitor, error) {
	dir, err := os.MkdirTemp("", "wavelane-browser-")
	if err != nil {
		return nil, err
	}
	j := &janitor{dir: dir, cmd: exec.Command("/bin/sh", "-c", cleaning, "janitor", dir)}
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals to our group are not for it
	if j.pipe, err = j.cmd.StdinPipe(); err == nil {
		err = j.cmd.Start()
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("start the shell that cleans up: %w", err)
	}
	return j, nil
}

// watch tells the janitor whom to kill.
func (j *janitor) watch(pid int) { fmt.Fprintln(j.pipe, pid) }

// clean has the work done and waits for it.
func (j *janitor) clean() {
	j.pipe.Close()
	j.cmd.Wait()
}

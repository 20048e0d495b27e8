//go:build cgo && !js

package gpu

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

// Our copy of the C API's declarations must say what the pinned binding's headers say: every struct, enumerator, callback
// type and function, compared word by word.
func TestABI(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cogentcore/webgpu").Output()
	require.NoError(t, err)
	dir := filepath.Join(strings.TrimSpace(string(out)), "wgpu", "lib")
	var theirs string
	for _, name := range []string{"webgpu.h", "wgpu.h"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		theirs += string(text)
	}
	text, err := os.ReadFile("webgpu_abi.h")
	require.NoError(t, err)
	want, got := declarations(theirs), declarations(string(text))
	require.Greater(t, len(got), 150)
	for name, d := range got {
		if strings.HasSuffix(d, "{opaque}") {
			continue
		}
		require.Contains(t, want, name)
		require.Equal(t, want[name], d, name)
	}
}

// declarations returns the parts of a header by name, with blanks and attributes taken out.
func declarations(text string) map[string]string {
	text = regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`//[^\n]*`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`WGPU_(EXPORT|NULLABLE|\w+_ATTRIBUTE)\b`).ReplaceAllString(text, "")
	text = strings.Join(strings.Fields(text), " ")
	squeeze := func(s string) string {
		s = regexp.MustCompile(`\s*([*(),;={}])\s*`).ReplaceAllString(s, "$1")
		return strings.TrimSpace(strings.ReplaceAll(s, "struct ", ""))
	}
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`typedef struct (\w+) \{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		all[m[1]] = squeeze(m[2])
	}
	for _, m := range regexp.MustCompile(`typedef enum \w+ \{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		for _, e := range strings.Split(m[1], ",") {
			if name, value, ok := strings.Cut(squeeze(e), "="); ok {
				all[name] = value
			}
		}
	}
	for _, m := range regexp.MustCompile(`typedef (\w+) (WGPU\w+) ?;`).FindAllStringSubmatch(text, -1) {
		all[m[2]] = m[1]
	}
	for _, m := range regexp.MustCompile(`typedef struct (\w+) ?\* ?(\w+) ?;`).FindAllStringSubmatch(text, -1) {
		all[m[2]] = m[1] + "*"
	}
	for _, m := range regexp.MustCompile(`typedef void \(\*(\w+)\)(\([^)]*\))`).FindAllStringSubmatch(text, -1) {
		all[m[1]] = squeeze(m[2])
	}
	for _, m := range regexp.MustCompile(`(?:^|[;}] )([\w ]+[ *]+)(wgpu[A-Z]\w+)(\([^)]*\)) ?;`).FindAllStringSubmatch(resync(text), -1) {
		all[m[2]] = squeeze(m[1]) + squeeze(m[3])
	}
	return all
}

// resync doubles the separators, so that neighbouring declarations do not share one.
func resync(text string) string { return strings.ReplaceAll(text, ";", "; ; ") }

// Nothing is printed, whatever goes wrong. The test runs itself in an environment like a service's.
func TestSilence(t *testing.T) {
	if os.Getenv("WAVELANE_TEST_SILENCE") != "" {
		d := open(t)
		_, err := NewKernel(d, KernelDesc{WGSL: "nonsense", Bindings: unary, Workgroup: [3]uint32{1, 1, 1}})
		require.Error(t, err)
		y := make([]float32, 1)
		require.NoError(t, affine(t, d).Run(ctx, affineLaunch(1, 1, 1), y, []float32{1}))
		_, set := os.LookupEnv("XDG_RUNTIME_DIR")
		require.False(t, set, "the environment is left alone")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSilence$")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "XDG_RUNTIME_DIR=") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "WAVELANE_TEST_SILENCE=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), out.String()+errs.String())
	require.Empty(t, errs.String())
	require.Equal(t, "PASS", strings.TrimSpace(out.String()))
}

// Calls that the layers above would not make are errors of the library, not the end of the process.
func TestDriverErrors(t *testing.T) {
	d := open(t).drv.(*native)
	_, err := d.newBuffer(storageBuffer, 1<<60)
	require.Error(t, err)
	a, err := d.newBuffer(storageBuffer, 256)
	require.NoError(t, err)
	b, err := d.newBuffer(readbackBuffer, 256)
	require.NoError(t, err)
	up, err := d.newBuffer(uploadBuffer, 256)
	require.NoError(t, err)
	never := func(error) { t.Error("done was called for work that was not submitted") }
	for name, s := range map[string]*submission{
		"out of range":            {commands: []command{{from: a, to: b, fromOffset: 128, size: 256}}, staging: []object{b}},
		"unaligned":               {commands: []command{{from: a, to: b, size: 3}}, staging: []object{b}},
		"wrong usage":             {commands: []command{{from: b, to: a, size: 16}}, staging: []object{b}},
		"mapped, not handed over": {commands: []command{{from: up, to: a, size: 16}}},
		"result not handed over":  {commands: []command{{from: a, to: b, size: 16}}},
		"same buffer":             {commands: []command{{from: a, to: a, size: 16}}},
	} {
		s.done = never
		require.Error(t, d.submit(s), name)
	}
	require.Error(t, d.unmap(b))
	done := make(chan error)
	require.NoError(t, d.submit(&submission{commands: []command{{from: a, to: b, size: 256}}, staging: []object{b}, done: func(err error) { done <- err }}))
	require.NoError(t, <-done)
	again := &submission{commands: []command{{from: a, to: b, size: 256}}, staging: []object{b}, done: never}
	require.Error(t, d.submit(again), "still mapped")
	require.NoError(t, d.unmap(b))
	// What is wrong behind a cut is told when the work before it is done.
	require.NoError(t, d.submit(&submission{commands: []command{{from: a, to: b, size: 256}, {from: a, to: b, fromOffset: 128, size: 256}},
		cuts: []int{1}, staging: []object{b}, done: func(err error) { done <- err }}))
	require.ErrorContains(t, <-done, "submit")
	require.NoError(t, d.lost())
	up.free()
	a.free()
	b.free()
}

// Devices that are opened and closed at the same time do not disturb each other.
func TestOpenClose(t *testing.T) {
	errs := make(chan error)
	const workers = 4
	for range workers {
		go func() {
			var all error
			for range 5 {
				d, err := Open(ctx, WithSoftware(), WithTuneCache(t.TempDir()))
				if err != nil {
					all = errors.Join(all, err)
					continue
				}
				k, err := NewKernel(d, affineDesc())
				all = errors.Join(all, err)
				if err == nil {
					y := make([]float32, 1)
					all = errors.Join(all, k.Run(ctx, affineLaunch(1, 2, 1), y, []float32{3}))
					if y[0] != 7 {
						all = errors.Join(all, compute.ErrArgument)
					}
					k.RunAsync(affineLaunch(1, 2, 1), y, []float32{3}) // still in flight
				}
				all = errors.Join(all, d.Close())
			}
			errs <- all
		}()
	}
	for range workers {
		require.NoError(t, <-errs)
	}
}

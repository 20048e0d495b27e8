//go:build cgo && !js

package webgpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// openSoftware opens a software adapter.
func openSoftware(t *testing.T) Driver {
	list, err := Adapters(t.Context())
	require.NoError(t, err)
	i := slices.IndexFunc(list, func(a Adapter) bool { return a.Type == softwareAdapter })
	require.GreaterOrEqual(t, i, 0, "no software adapter")
	d, _, err := Open(t.Context(), list[i])
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// Calls that the layers above would not make are errors of the library, not the end of the process.
func TestDriverErrors(t *testing.T) {
	d := openSoftware(t)
	_, err := d.NewBuffer(StorageBuffer, 1<<60)
	require.Error(t, err)
	a, err := d.NewBuffer(StorageBuffer, 256)
	require.NoError(t, err)
	b, err := d.NewBuffer(ReadbackBuffer, 256)
	require.NoError(t, err)
	up, err := d.NewBuffer(UploadBuffer, 256)
	require.NoError(t, err)
	never := func(error) { t.Error("done was called for work that was not submitted") }
	for name, s := range map[string]*Submission{
		"out of range":            {Commands: []Command{{From: a, To: b, FromOffset: 128, Size: 256}}, Staging: []Object{b}},
		"unaligned":               {Commands: []Command{{From: a, To: b, Size: 3}}, Staging: []Object{b}},
		"wrong usage":             {Commands: []Command{{From: b, To: a, Size: 16}}, Staging: []Object{b}},
		"mapped, not handed over": {Commands: []Command{{From: up, To: a, Size: 16}}},
		"result not handed over":  {Commands: []Command{{From: a, To: b, Size: 16}}},
		"same buffer":             {Commands: []Command{{From: a, To: a, Size: 16}}},
	} {
		s.Done = never
		require.Error(t, d.Submit(s), name)
	}
	require.Error(t, d.Unmap(b))
	done := make(chan error)
	require.NoError(t, d.Submit(&Submission{Commands: []Command{{From: a, To: b, Size: 256}}, Staging: []Object{b}, Done: func(err error) { done <- err }}))
	require.NoError(t, <-done)
	again := &Submission{Commands: []Command{{From: a, To: b, Size: 256}}, Staging: []Object{b}, Done: never}
	require.Error(t, d.Submit(again), "still mapped")
	require.NoError(t, d.Unmap(b))
	// An error after a cut is told when the work before it is done.
	require.NoError(t, d.Submit(&Submission{Commands: []Command{{From: a, To: b, Size: 256}, {From: a, To: b, FromOffset: 128, Size: 256}},
		Cuts: []int{1}, Staging: []Object{b}, Done: func(err error) { done <- err }}))
	require.ErrorContains(t, <-done, "submit")
	require.NoError(t, d.Lost())
	up.Free()
	a.Free()
	b.Free()
}

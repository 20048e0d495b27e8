//go:build linux && !android && (amd64 || arm64)

package libcuda

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// unavailable opens a library that cannot be used, and returns the text of the error.
func unavailable(t *testing.T, path string) string {
	d, err := Open(path)
	require.ErrorIs(t, err, compute.ErrUnavailable)
	require.Nil(t, d)
	return err.Error()
}

func TestOpenWhatIsNoLibrary(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "libcuda.so.1")
	require.Contains(t, unavailable(t, missing), missing)

	file := filepath.Join(dir, "empty.so")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Contains(t, unavailable(t, file), file)
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("no library\n"), 1000), 0o600))
	require.Contains(t, unavailable(t, file), "invalid ELF header")
	unavailable(t, dir)

	_, err := Open("libcuda.so.1\x00")
	require.ErrorIs(t, err, compute.ErrArgument)
}

// TestOpenOnce opens one library from many goroutines.
func TestOpenOnce(t *testing.T) {
	link := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.Symlink(stubPath(t), link))
	drivers := make([]driver.Driver, 8)
	var wg sync.WaitGroup
	for i := range drivers {
		wg.Go(func() { drivers[i], _ = Open(link) })
	}
	wg.Wait()
	require.NotNil(t, drivers[0])
	for _, d := range drivers {
		require.Same(t, drivers[0], d)
	}
}

// TestInitialise lets cuInit return every code.
func TestInitialise(t *testing.T) {
	s := openStub(t)
	link := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.Symlink(stubPath(t), link)) // the same library, not opened yet
	for _, code := range results() {
		s.fail("cuInit", code)
		text := unavailable(t, link)
		require.Contains(t, text, "cuInit: "+code.Name()+", text of ")
		require.Contains(t, text, hints[code])
	}
	for code := range hints {
		require.Contains(t, results(), code)
	}
	s.fail("", 0)
	s.take()
	_, err := Open(link)
	require.NoError(t, err, "an Open after an error tries again")
	require.Equal(t, line("cuInit", 0), s.take())
}

// without is a copy of the library that lacks a function: another name of the same length stands in its table of names.
func without(t *testing.T, symbol string) string {
	library, err := os.ReadFile(stubPath(t))
	require.NoError(t, err)
	name := []byte("\x00" + symbol + "\x00")
	require.Contains(t, string(library), string(name))
	other := bytes.Clone(name)
	other[1] = 'X'
	path := filepath.Join(t.TempDir(), "without_"+symbol+".so")
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(library, name, other), 0o600))
	return path
}

func TestMissingFunctions(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[functions]()) {
		symbol := f.Name + f.Tag.Get("version")
		path := without(t, symbol)
		if f.Tag.Get("since") == "" {
			require.Contains(t, unavailable(t, path), "no function "+symbol)
			continue
		}
		// An old driver: what needs the function is not supported, all else is there.
		runtime.LockOSThread()
		s, r := control(t, path), random(t, 20)
		d, err := Open(path)
		require.NoError(t, err)
		s.begin(d)
		for _, m := range methods(s, r) {
			outs, result := s.call(m)
			trace := s.take()
			if !strings.Contains(m.trace, symbol+"(") {
				require.Equal(t, driver.Success, result, m.name)
				require.Equal(t, m.outs, outs, m.name)
				require.Equal(t, m.trace, trace, m.name)
				continue
			}
			want := driver.NotSupported
			if m.name == "FuncLoad" {
				want = driver.Success // functions are always there
			}
			require.Equal(t, want, result, m.name)
			require.Empty(t, trace)
			for _, o := range outs {
				require.Zero(t, o, m.name)
			}
		}
		s.trace(0)
		runtime.UnlockOSThread()
	}
}

func TestFallback(t *testing.T) {
	dir := t.TempDir()
	const nowhere = "libcuda_of_no_machine.so.9"
	garbage := filepath.Join(dir, "garbage.so")
	require.NoError(t, os.WriteFile(garbage, bytes.Repeat([]byte("no library\n"), 1000), 0o600))

	_, err := loadFirst(nowhere, filepath.Join(dir, nowhere))
	require.ErrorContains(t, err, nowhere)
	require.NotContains(t, err.Error(), dir, "the fallback is not there, and not the reason")
	_, err = loadFirst(nowhere, garbage)
	require.ErrorContains(t, err, garbage)
	_, err = loadFirst(garbage, stubPath(t))
	require.NoError(t, err)
	handle, err := loadFirst(stubPath(t), garbage)
	require.NoError(t, err)
	at, err := lookUp(handle, "cuInit")
	require.NoError(t, err)
	require.NotZero(t, at)
}

// childVariable tells the test's process that it is the child of TestSystemLibrary.
const childVariable = "LIBCUDA_TEST_CHILD"

// TestSystemLibrary opens the system's library in processes of their own: one whose loader finds the test's library first, and
// one where that lacks a function.
func TestSystemLibrary(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		if _, err := Open(""); err != nil {
			t.Logf("open: %v", err)
		} else {
			t.Log("open: fine")
		}
		return
	}
	child := func(dir string) string {
		c := exec.Command(os.Args[0], "-test.run=^TestSystemLibrary$", "-test.v")
		c.Env = append(os.Environ(), childVariable+"=1", "LD_LIBRARY_PATH="+dir)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, child(filepath.Dir(stubPath(t))), "open: fine")

	dir := t.TempDir()
	require.NoError(t, os.Rename(without(t, "cuInit"), filepath.Join(dir, "libcuda.so.1")))
	require.Contains(t, child(dir), "open: device unavailable: libcuda.so.1: no function cuInit")
}

package cudacorpus

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// python is the interpreter of the environment into which scripts/setup installs what compiles.
func python(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("scripts/setup installs NVIDIA's packages on linux/amd64")
	}
	requirements, err := os.ReadFile("requirements.txt")
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	folder := filepath.Join(cache, "wavelane", fmt.Sprintf("cuda-%x", sha256.Sum256(requirements))[:len("cuda-")+12])
	require.FileExists(t, filepath.Join(folder, "installed"), "scripts/setup test installs the compilers")
	return filepath.Join(folder, "bin", "python")
}

// tool is a program from NVIDIA's packages.
func tool(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(python(t))), "lib", "python*", "site-packages", "nvidia", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, found, "scripts/setup test installs %s", pattern)
	return found[0]
}

// unit is a file as a compiler translated it.
type unit struct {
	file, arch string
	text       []byte
	module     *ir.Module
}

// compile translates files of a folder for several architectures, on all cores.
func compile(t *testing.T, script, folder string, files, architectures []string) []unit {
	t.Helper()
	interpreter, out := python(t), t.TempDir()
	script, err := filepath.Abs(script)
	require.NoError(t, err)
	jobs, errs := min(runtime.NumCPU(), len(files)), make([]string, len(files))
	var wg sync.WaitGroup
	for j := range jobs {
		args := []string{script, out, strings.Join(architectures, ",")}
		for i := j; i < len(files); i += jobs {
			args = append(args, files[i])
		}
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), interpreter, args...)
			cmd.Dir = folder
			if said, err := cmd.CombinedOutput(); err != nil {
				errs[j] = err.Error() + ": " + string(said)
			}
		})
	}
	wg.Wait()
	require.Empty(t, strings.Join(errs, ""))
	paths, err := filepath.Glob(filepath.Join(out, "*.ptx"))
	require.NoError(t, err)
	var units []unit
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		part := strings.Split(filepath.Base(path), ".")
		u := unit{file: part[0], arch: part[1], text: text}
		u.module, err = parse.Module(filepath.Base(path), text)
		require.NoError(t, err)
		units = append(units, u)
	}
	require.NotEmpty(t, units)
	return units
}

// sources are the names of the files in a folder, sorted.
func sources(t *testing.T, folder, extension string) (files []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*"+extension))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, f := range all {
		files = append(files, filepath.Base(f))
	}
	return files
}

package cudacorpus

import (
	"crypto/sha256"
	"encoding/json"
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

// python is the interpreter of the environment into which scripts/setup installs a compiler: cuda or triton.
func python(t *testing.T, compiler string) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("scripts/setup installs the compilers on linux/amd64")
	}
	requirements, err := os.ReadFile(compiler + ".txt")
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	folder := filepath.Join(cache, "wavelane", fmt.Sprintf("%s-%x", compiler, sha256.Sum256(requirements))[:len(compiler)+1+12])
	require.FileExists(t, filepath.Join(folder, "installed"), "scripts/setup test installs the compilers")
	return filepath.Join(folder, "bin", "python")
}

// tool is a program from a compiler's packages.
func tool(t *testing.T, compiler, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(python(t, compiler))), "lib", "python*", "site-packages", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, found, "scripts/setup test installs %s", pattern)
	return found[0]
}

// unit is a file as a compiler translated it, or with Triton a kernel of a file.
type unit struct {
	file, arch, part string
	text             []byte
	module           *ir.Module
	// Of Triton: the bytes of dynamic shared memory, and of global memory for each block, that a launch takes.
	Shared, Scratch int
}

// compile translates files of a compiler's folder for several architectures, on all cores.
func compile(t *testing.T, compiler string, files, architectures []string) []unit {
	t.Helper()
	interpreter, out, folder := python(t, compiler), t.TempDir(), filepath.Join("testdata", compiler)
	script, err := filepath.Abs(filepath.Join("testdata", compiler+"_compile.py"))
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
		if len(part) > 3 {
			u.part = part[2]
			launch, err := os.ReadFile(strings.TrimSuffix(path, ".ptx") + ".json")
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(launch, &u))
		}
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

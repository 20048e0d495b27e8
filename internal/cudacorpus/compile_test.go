package cudacorpus

import (
	"cmp"
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

// compile translates files of a folder for several architectures, with a compiler that Python calls, on all cores.
func compile(t *testing.T, compiler, folder string, files, architectures []string) []unit {
	t.Helper()
	interpreter, out := python(t, compiler), t.TempDir()
	script, err := filepath.Abs(filepath.Join("testdata", compiler+"_compile.py"))
	require.NoError(t, err)
	var commands []*exec.Cmd
	for j, jobs := 0, min(runtime.NumCPU(), len(files)); j < jobs; j++ {
		args := []string{script, out, strings.Join(architectures, ",")}
		for i := j; i < len(files); i += jobs {
			args = append(args, files[i])
		}
		commands = append(commands, exec.CommandContext(t.Context(), interpreter, args...))
	}
	return compiled(t, folder, out, commands)
}

// compiled executes commands in a folder, on all cores, and reads the files that they have written to another.
func compiled(t *testing.T, folder, out string, commands []*exec.Cmd) []unit {
	t.Helper()
	errs := make([]string, len(commands))
	var wg sync.WaitGroup
	cores := make(chan struct{}, runtime.NumCPU())
	for j, cmd := range commands {
		cmd.Dir = folder
		wg.Go(func() {
			cores <- struct{}{}
			defer func() { <-cores }()
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

// withClang translates files of testdata/cuda by clang, which knows of CUDA what testdata/clang says. sm_86 needs PTX 7.1.
func withClang(t *testing.T, level string, files, architectures []string) []unit {
	t.Helper()
	clang := cmp.Or(os.Getenv("CLANG"), "clang")
	_, err := exec.LookPath(clang)
	require.NoError(t, err, "scripts/setup test installs clang")
	headers, err := filepath.Abs("testdata/clang")
	require.NoError(t, err)
	out := t.TempDir()
	var commands []*exec.Cmd
	for _, f := range files {
		for _, arch := range architectures {
			commands = append(commands, exec.CommandContext(t.Context(), clang, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib",
				"--cuda-gpu-arch="+arch, "-Xclang", "-target-feature", "-Xclang", "+ptx71", "-std=c++17", "-Wno-pass-failed", "-S", level,
				"-include", filepath.Join(headers, "cuda.h"), "-I", headers,
				"-o", filepath.Join(out, strings.TrimSuffix(f, ".cu")+"."+arch+".ptx"), f))
		}
	}
	return compiled(t, filepath.Join("testdata", "cuda"), out, commands)
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

// Package nccltest compiles a libnccl for tests, whose ranks are threads and processes of one machine without GPUs.
package nccltest

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed testdata/nccl.c
var source []byte

//go:embed requirements.txt
var requirements []byte

// Build compiles the library into a folder and returns its path. Before 22300 it has no ncclCommInitRankScalable.
func Build(folder string, version int, options ...string) (string, error) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "gcc"
	}
	file, library := filepath.Join(folder, "nccl.c"), filepath.Join(folder, fmt.Sprintf("libnccl-%d.so", version))
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	args := append([]string{"-shared", "-fPIC", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror", fmt.Sprintf("-DVERSION=%d", version), "-o", library}, options...)
	if out, err := exec.Command(compiler, append(args, file)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", compiler, err, out)
	}
	return library, nil
}

// Header returns where scripts/setup puts NVIDIA's nccl.h.
func Header() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "wavelane", fmt.Sprintf("nccl-%x", sha256.Sum256(requirements))[:5+12], "nccl.h"), err
}

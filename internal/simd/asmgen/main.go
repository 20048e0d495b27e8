// Command asmgen writes the assembly of package simd, the Go declarations of its functions, and the Go functions that pick
// among them, from the definitions in package kernels. Run it in its own folder:
//
//	go run .
//
// It is a module of its own, so that users of wavelane do not get what it depends on.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// root is internal/simd, seen from this folder.
const root = ".."

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "asmgen:", err)
		os.Exit(1)
	}
}

// write replaces the files that have changed.
func write() error {
	files, err := Generate()
	if err != nil {
		return err
	}
	for name, want := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if got, err := os.ReadFile(path); err == nil && bytes.Equal(got, want) {
			continue
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			return err
		}
	}
	return nil
}

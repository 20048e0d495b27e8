// Command gen writes the methods of devices (compute/ops_gen.go, compute/ops_sync_gen.go) and of batches (batch/ops_gen.go)
// from the catalogue, and what the JavaScript package knows of it (wasm/js/operations.js, wasm/js/operations.d.ts). Run it with go generate ./... after changing the catalogue; a test fails when its output is stale.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	files, err := Generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

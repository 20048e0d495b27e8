package main

import (
	"fmt"
	"maps"

	"github.com/wavelane/wavelane/internal/simd/asmgen/arm64"
	"github.com/wavelane/wavelane/internal/simd/asmgen/dispatch"
	"github.com/wavelane/wavelane/internal/simd/asmgen/kernels"
	"github.com/wavelane/wavelane/internal/simd/asmgen/wasm"
	"github.com/wavelane/wavelane/internal/simd/asmgen/x86"
)

// generators are what writes files, each by its path in internal/simd.
var generators = []func() (map[string][]byte, error){
	func() (map[string][]byte, error) { return dispatch.Files(kernels.All) },
	func() (map[string][]byte, error) { return dispatch.ChainFiles(kernels.Links) },
	x86.Files,
	arm64.Files,
	wasm.Files,
}

// Generate returns the contents of all generated files by their path in internal/simd.
func Generate() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, generate := range generators {
		files, err := generate()
		if err != nil {
			return nil, err
		}
		for name := range files {
			if _, twice := all[name]; twice {
				return nil, fmt.Errorf("two generators write %s", name)
			}
		}
		maps.Copy(all, files)
	}
	return all, nil
}

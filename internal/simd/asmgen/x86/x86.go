// Package x86 writes the kernels as assembly for amd64 in three sets of instructions: SSE2, AVX2 with FMA, and AVX-512.
package x86

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
	"github.com/wavelane/wavelane/internal/simd/asmgen/kernels"
)

// Files returns the generated files by their path in internal/simd.
func Files() (map[string][]byte, error) {
	files, err := kernelFiles(kernels.All)
	if err != nil {
		return nil, err
	}
	for _, more := range []func() (map[string][]byte, error){gemmFiles, transposeFiles, float64Files, halfFiles, windowFiles, chainFiles,
		blocksFiles, attendFiles, softmaxFiles} {
		more, err := more()
		if err != nil {
			return nil, err
		}
		maps.Copy(files, more)
	}
	return files, nil
}

// kernelFiles writes a file for each set, and the declarations of all.
func kernelFiles(all []*ir.Kernel) (map[string][]byte, error) {
	files := map[string][]byte{}
	config := printer.Config{Name: "internal/simd/asmgen", Pkg: "kernels"}
	var stubs bytes.Buffer
	for i, s := range sets {
		c := build.NewContext()
		w := &writer{c: c, set: s, table: &table{set: s, index: map[uint32]int{}}}
		for _, k := range all {
			w.labels = 0
			plan(s, k).write(w)
		}
		w.table.write(c)
		file, err := c.Result()
		if err != nil {
			return nil, fmt.Errorf("x86 %s: %w", s.name, err)
		}
		if err := pass.Compile.Execute(file); err != nil {
			return nil, fmt.Errorf("x86 %s: %w", s.name, err)
		}
		text, err := printer.NewGoAsm(config).Print(file)
		if err != nil {
			return nil, fmt.Errorf("x86 %s: %w", s.name, err)
		}
		files["kernels/"+strings.ToLower(s.name)+"_gen_amd64.s"] = text
		declared, err := printer.NewStubs(config).Print(file)
		if err != nil {
			return nil, fmt.Errorf("x86 %s: %w", s.name, err)
		}
		if i > 0 {
			_, after, _ := bytes.Cut(declared, []byte("package kernels\n"))
			declared = after
		}
		stubs.Write(declared)
	}
	text, err := format.Source(stubs.Bytes())
	if err != nil {
		return nil, fmt.Errorf("x86: %w", err)
	}
	files["kernels/stubs_gen_amd64.go"] = text
	return files, nil
}

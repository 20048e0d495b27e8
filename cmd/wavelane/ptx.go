//go:build !js

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/ptx/ir"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

func ptxCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ptx",
		Short: "Write, check and execute PTX, without a GPU",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(ptxEmitCommand(), ptxCheckCommand(), ptxRunCommand(), ptxOptCommand(), ptxMapCommand())
	return c
}

// readModule parses a file, "-" for standard input. Where there is no such file, it is the kernel of the catalogue with that name.
func readModule(file string) (*ir.Module, error) {
	var src []byte
	var err error
	if file == "-" {
		src, err = io.ReadAll(os.Stdin)
	} else {
		src, err = os.ReadFile(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if k := kit.KernelNamed(file); k != nil {
			return k.Module()
		}
		return nil, fmt.Errorf("%w, and no kernel of that name: 'wavelane ptx emit' lists them", err)
	}
	if err != nil {
		return nil, err
	}
	if src, err = ptxText(file, src); err != nil {
		return nil, err
	}
	return parse.Module(file, src)
}

// ptxText is the PTX in a file, or an error that says how to get PTX of what it is.
func ptxText(file string, src []byte) ([]byte, error) {
	what := ""
	switch {
	case bytes.HasPrefix(src, []byte("\x7fELF")):
		what = "machine code (ELF: a cubin, an object or a program)"
	case bytes.HasPrefix(src, []byte{0x50, 0xed, 0x55, 0xba}):
		what = "a fatbin"
	case bytes.HasPrefix(src, []byte("BC\xc0\xde")), bytes.HasPrefix(src, []byte{0x0b, 0x17, 0xc0, 0xde}), strings.HasSuffix(file, ".ll"):
		what = "LLVM's intermediate code"
	case slices.Contains([]string{".cu", ".cuh", ".c", ".cc", ".cpp"}, filepath.Ext(file)):
		what = "source code"
	}
	if what != "" {
		return nil, fmt.Errorf("%s is %s, and the software GPU executes PTX: compile it with 'nvcc -ptx -lineinfo', or take the PTX out of "+
			"what nvcc has built with 'cuobjdump -ptx %s' (docs/cuda-ci.md says how to do without a CUDA toolkit)", file, what, file)
	}
	if _, rest, ok := bytes.Cut(src, []byte("Fatbin ptx code:")); ok { // what cuobjdump -ptx prints
		if i := bytes.Index(rest, []byte("\n.version")); i >= 0 {
			src, _, _ = bytes.Cut(rest[i+1:], []byte("\nFatbin "))
		}
	}
	return src, nil
}

func parseDim(s string) (sim.Dim3, error) {
	d := [3]int{1, 1, 1}
	parts := strings.Split(s, ",")
	if len(parts) > 3 {
		return sim.Dim3{}, fmt.Errorf("%q: want X,Y,Z", s)
	}
	for i, p := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || n < 1 {
			return sim.Dim3{}, fmt.Errorf("%q: want X,Y,Z, each at least 1", s)
		}
		d[i] = n
	}
	return sim.Dim3{X: d[0], Y: d[1], Z: d[2]}, nil
}

package ptx_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines that compile, and lines that must not: the types of values are Go's own business. p is a pointer to float32 in
// global memory, s to uint32 in shared memory, f a float32, i a uint32, j an int32, h an F16, b a predicate, v a Var of
// float32.
var compiles = map[string]string{
	`keep(ptx.Add(k, f, ptx.Imm[float32](1)))`: "",
	`ptx.Store(k, ptx.At(k, p, i), f)`:         "",
	`v.Set(ptx.Fma(k, f, f, v.Get()))`:         "",
	`keep(ptx.Select(k, b, i, ptx.Imm(i0)))`:   "",
	`keep(ptx.Atomic(k, ptx.OpAdd, s, i))`:     "",
	`keep(ptx.LdMatrix[ptx.F16x2](k, s, 4))`:   "",
	`keep(ptx.Add(k, f, i))`:                   "does not match inferred type",
	`keep(ptx.Add(k, i, j))`:                   "does not match inferred type",
	`keep(ptx.Add(k, b, b))`:                   "does not satisfy",
	`keep(ptx.Add(k, p, i))`:                   "does not match",
	`keep(ptx.Add(k, f, 1))`:                   "cannot use 1",
	`keep(ptx.And(k, f, f))`:                   "does not satisfy",
	`keep(ptx.Shl(k, f, i))`:                   "does not satisfy",
	`keep(ptx.Shl(k, i, j))`:                   "cannot use j",
	`keep(ptx.Rem(k, f, f))`:                   "does not satisfy",
	`keep(ptx.Fma(k, i, i, i))`:                "does not satisfy",
	`keep(ptx.Mad(k, f, f, f))`:                "does not satisfy",
	`keep(ptx.Sqrt(k, h))`:                     "does not satisfy",
	`keep(ptx.Neg(k, i))`:                      "does not satisfy",
	`keep(ptx.MulWideU32(k, i, j))`:            "cannot use j",
	`keep(ptx.Lt(k, f, h))`:                    "does not match inferred type",
	`keep(ptx.Select(k, i, f, f))`:             "cannot use i",
	`keep(ptx.Load(k, i))`:                     "does not match",
	`keep(ptx.Load(k, f))`:                     "does not match",
	`ptx.Store(k, p, i)`:                       "does not match inferred type",
	`ptx.Store(k, s, f)`:                       "does not match inferred type",
	`keep(ptx.At(k, p, f))`:                    "does not satisfy",
	`keep(ptx.At(k, p, h))`:                    "does not satisfy",
	`v.Set(i)`:                                 "cannot use i",
	`v = f`:                                    "cannot use f",
	`f = v`:                                    "cannot use v",
	`keep(ptx.Atomic(k, ptx.OpAdd, s, f))`:     "does not match inferred type",
	`keep(ptx.LdMatrix[ptx.F16x2](k, p, 4))`:   "does not match",
	`keep(ptx.LdMatrix[float32](k, s, 4))`:     "does not satisfy",
	`ptx.CpAsync(k, p, p, 16)`:                 "does not match",
	`ptx.CpAsync(k, s, s, 16)`:                 "does not match",
	`ptx.MbarrierInit(k, s, i)`:                "cannot use s",
	`k.If(i, func() {})`:                       "cannot use i",
	`k.If(f, func() {})`:                       "cannot use f",
	`ptx.For(k, i, j, i, nil)`:                 "does not match inferred type",
	`ptx.For(k, f, f, f, nil)`:                 "does not satisfy",
	`keep(ptx.Imm[float32](i0))`:               "cannot use i0",
	`keep(ptx.Imm[string]("x"))`:               "does not satisfy",
	`var q ptx.Ptr[ptx.Shared, uint32] = p`:    "cannot use p",
	`keep(ptx.Dp4a(k, i, i, j))`:               "does not satisfy",
	`keep(ptx.SharedAddress(k, p))`:            "does not satisfy",
	`keep(ptx.Address(k, s))`:                  "does not satisfy",
	`keep(ptx.Redux(k, ptx.OpAdd, f, i))`:      "does not satisfy",
	`ptx.Wgmma[ptx.F16x2, ptx.F16x2](k, 8, []ptx.Reg[float32]{f}, d, d, ptx.WgmmaOptions{})`: "does not match",
}

func TestTypes(t *testing.T) {
	load := exports(t)
	for line, want := range compiles {
		src := fmt.Sprintf(`package p
import "github.com/wavelane/wavelane/ptx"
func keep(...any) {}
func f(k *ptx.Kernel, p ptx.Ptr[ptx.Global, float32], s ptx.Ptr[ptx.Shared, uint32], f ptx.Reg[float32], i ptx.Reg[uint32],
	j ptx.Reg[int32], h ptx.Reg[ptx.F16], b ptx.Reg[bool], v *ptx.Var[float32], d ptx.Descriptor) {
	var i0 uint32
	keep(k, p, s, f, i, j, h, b, v, d, i0)
	%s
}`, line)
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "p.go", src, 0)
		require.NoError(t, err)
		config := types.Config{Importer: importer.ForCompiler(fset, "gc", load)}
		_, err = config.Check("p", fset, []*ast.File{file}, nil)
		if want == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorContains(t, err, want, line)
	}
}

// exports opens the export data of this package and what it imports, which the go command has in its cache.
func exports(t *testing.T) func(path string) (io.ReadCloser, error) {
	goCommand, err := exec.LookPath("go")
	require.NoError(t, err)
	cmd := exec.Command(goCommand, "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", ".")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(filepath.Clean(files[path])) }
}

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
var (
	compiles = []string{
		`keep(ptx.Add(k, f, ptx.Imm[float32](1)))`,
		`ptx.Store(k, ptx.At(k, p, i), f)`,
		`v.Set(ptx.Fma(k, f, f, v.Get()))`,
		`keep(ptx.Select(k, b, i, ptx.Imm(i0)))`,
		`keep(ptx.Atomic(k, ptx.OpAdd, s, i))`,
		`keep(ptx.LdMatrix[ptx.F16x2](k, s, 4))`,
	}
	refused = []string{
		`keep(ptx.Add(k, f, i))`,
		`keep(ptx.Add(k, i, j))`,
		`keep(ptx.Add(k, b, b))`,
		`keep(ptx.Add(k, p, i))`,
		`keep(ptx.Add(k, f, 1))`,
		`keep(ptx.And(k, f, f))`,
		`keep(ptx.Shl(k, f, i))`,
		`keep(ptx.Shl(k, i, j))`,
		`keep(ptx.Rem(k, f, f))`,
		`keep(ptx.Fma(k, i, i, i))`,
		`keep(ptx.Mad(k, f, f, f))`,
		`keep(ptx.Sqrt(k, h))`,
		`keep(ptx.Neg(k, i))`,
		`keep(ptx.MulWideU32(k, i, j))`,
		`keep(ptx.Lt(k, f, h))`,
		`keep(ptx.Select(k, i, f, f))`,
		`keep(ptx.Load(k, i))`,
		`keep(ptx.Load(k, f))`,
		`ptx.Store(k, p, i)`,
		`ptx.Store(k, s, f)`,
		`keep(ptx.At(k, p, f))`,
		`keep(ptx.At(k, p, h))`,
		`v.Set(i)`,
		`v = f`,
		`f = v`,
		`keep(ptx.Atomic(k, ptx.OpAdd, s, f))`,
		`keep(ptx.LdMatrix[ptx.F16x2](k, p, 4))`,
		`keep(ptx.LdMatrix[float32](k, s, 4))`,
		`ptx.CpAsync(k, p, p, 16)`,
		`ptx.CpAsync(k, s, s, 16)`,
		`ptx.MbarrierInit(k, s, i)`,
		`k.If(i, func() {})`,
		`k.If(f, func() {})`,
		`ptx.For(k, i, j, i, nil)`,
		`ptx.For(k, f, f, f, nil)`,
		`keep(ptx.Imm[float32](i0))`,
		`keep(ptx.Imm[string]("x"))`,
		`var q ptx.Ptr[ptx.Shared, uint32] = p`,
		`keep(ptx.Dp4a(k, i, i, j))`,
		`keep(ptx.SharedAddress(k, p))`,
		`keep(ptx.Address(k, s))`,
		`keep(ptx.Redux(k, ptx.OpAdd, f, i))`,
		`ptx.Wgmma[ptx.F16x2, ptx.F16x2](k, 8, []ptx.Reg[float32]{f}, d, d, ptx.WgmmaOptions{})`,
	}
)

func TestTypes(t *testing.T) {
	load := exports(t)
	check := func(line string) error {
		src := fmt.Sprintf(`package p
import "github.com/wavelane/wavelane/ptx"
func keep(...any) {}
func f(k *ptx.Kernel, p ptx.Ptr[ptx.Global, float32], s ptx.Ptr[ptx.Shared, uint32], f ptx.Reg[float32], i ptx.Reg[uint32],
	j ptx.Reg[int32], h ptx.Reg[ptx.F16], b ptx.Reg[bool], v *ptx.Var[float32], d ptx.Descriptor) {
	var i0 uint32
	keep(k, p, s, f, i, j, h, b, v, d, i0)
//line tested.go:1
	%s
}`, line)
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "p.go", src, 0)
		require.NoError(t, err)
		config := types.Config{Importer: importer.ForCompiler(fset, "gc", load)}
		_, err = config.Check("p", fset, []*ast.File{file}, nil)
		return err
	}
	for _, line := range compiles {
		require.NoError(t, check(line), line)
	}
	for _, line := range refused {
		var at types.Error
		require.ErrorAs(t, check(line), &at, line)
		require.Equal(t, "tested.go", at.Fset.Position(at.Pos).Filename, "%s: %v", line, at)
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

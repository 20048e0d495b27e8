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

// Lines that compile, and lines that must not. Operands, which may be constants, are checked by Build: see TestMistakes. p is a pointer to float32 in
// global memory, s to uint32 in shared memory, f a float32, i a uint32, j an int32, h an F16, b a predicate, v a Var of
// float32.
var (
	compiles = []string{
		`keep(f.Add(1), i.And(3).Mad(4, i.Shr(3)))`,
		`p.At(i).Store(f)`,
		`v.Set(f.Fma(f, v.Get()))`,
		`keep(ptx.Select(b, i, 0))`,
		`keep(s.Atomic(ptx.OpAdd, i))`,
		`keep(ptx.LdMatrix[ptx.F16x2](s, 4))`,
	}
	refused = []string{
		`keep(p.Add(i))`,
		`keep(ptx.Select(i, f, f))`,
		`keep(i.Load())`,
		`keep(ptx.LoadIf(i, p, 0))`,
		`v = f`,
		`f = v`,
		`f = i.Add(1)`,
		`b = i.Add(1)`,
		`keep(ptx.LdMatrix[ptx.F16x2](p, 4))`,
		`keep(ptx.LdMatrix[float32](s, 4))`,
		`ptx.CpAsync(p, p, 16)`,
		`ptx.CpAsync(s, s, 16)`,
		`ptx.MbarrierAt(s).Init(i)`,
		`k.If(i, func() {})`,
		`k.If(f, func() {})`,
		`ptx.For(k, 0, 1, 1, func(f ptx.Reg[float32]) {})`,
		`keep(ptx.Imm[float32](i0))`,
		`keep(ptx.Imm[string]("x"))`,
		`var q ptx.Ptr[ptx.Shared, uint32] = p`,
		`keep(ptx.Dp4a(i, i, j))`,
		`keep(ptx.SharedAddress(p))`,
		`keep(ptx.Address(s))`,
		`keep(p.Prefetch("L3"))`,
		`ptx.Wgmma[ptx.F16x2, ptx.F16x2, float32]{N: 8}.MulAdd(k, []ptx.Reg[float32]{f}, d, d)`,
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

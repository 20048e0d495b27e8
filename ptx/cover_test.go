package ptx_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// covers are kernels that together use every exported function and method of the builder. Each file cover_*_test.go adds its
// own.
var covers []cover

// cover is a kernel with the least target and version for which ptxas was found to take it.
type cover struct {
	name    string
	target  string
	version string
	build   func(k *kernel)
}

// kernel is a kernel with a place to write results to.
type kernel struct {
	*ptx.Kernel
	m    *ptx.Module
	out  ptr
	next int
}

type ptr = ptx.Ptr[ptx.Global, uint8]

// keep stores a value, so that it is used.
func keep[T ptx.Elem](k *kernel, values ...ptx.Reg[T]) {
	for _, v := range values {
		ptx.Cast[T](k.out.Bytes(k.next)).Store(v)
		k.next += 16
	}
}

func keepP(k *kernel, values ...ptx.Reg[bool]) {
	for _, v := range values {
		keep(k, ptx.Select(v, ptx.Imm[uint32](1), 0))
	}
}

// get loads a value that nobody knows at build time.
func get[T ptx.Elem](k *kernel) ptx.Reg[T] {
	k.next += 16
	return ptx.Cast[T](k.out.Bytes(k.next - 16)).Load()
}

func gets[T ptx.Elem](k *kernel, n int) []ptx.Reg[T] {
	r := make([]ptx.Reg[T], n)
	for i := range r {
		r[i] = get[T](k)
	}
	return r
}

// module builds the kernel of c.
func (c cover) module(t *testing.T) *ir.Module {
	m := ptx.NewModule()
	k := &kernel{Kernel: m.Kernel(c.name), m: m}
	k.out = ptx.PointerParam[uint8](k.Kernel, "out", ptx.Align(16))
	c.build(k)
	out, err := m.Build()
	require.NoError(t, err, c.name)
	return out
}

// Every kernel prints as what parses to the same module, twice the same, and asks for no more than it needs.
func TestCoverParses(t *testing.T) {
	for _, c := range covers {
		m := c.module(t)
		text := m.String()
		require.Equal(t, text, c.module(t).String())
		require.Equal(t, c.target, m.Target.String(), c.name)
		require.Equal(t, c.version, m.Version.String(), c.name)
		back, err := parse.Module(c.name, []byte(text))
		require.NoError(t, err, "%s\n%s", c.name, text)
		require.Equal(t, text, back.String())
		require.True(t, ir.Equal(m, back), c.name)
	}
}

// Every kernel assembles for the least target and at the least version that Build found.
func TestPtxasCover(t *testing.T) {
	ptxas := ptxtest.Ptxas(t)
	for _, c := range covers {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := c.module(t)
			_, err := ptxtest.Assemble(t, ptxas, m.Target.String(), m.String(), "-O0")
			if errors.Is(err, ptxtest.ErrTarget) { // newer assemblers do not know old targets
				_, err = ptxtest.Assemble(t, ptxas, "sm_80", m.String(), "-O0")
			}
			require.NoError(t, err)
		})
	}
}

// The kernels above use every exported function and method that emits something.
func TestCoverIsComplete(t *testing.T) {
	used := map[string]bool{"Errorf": true} // which emits nothing
	files, err := filepath.Glob("cover_*_test.go")
	require.NoError(t, err)
	for _, f := range append(files, "cover_test.go") {
		ast.Inspect(parsed(t, f), func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				used[s.Sel.Name] = true
			}
			return true
		})
	}
	files, err = filepath.Glob("*.go")
	require.NoError(t, err)
	var missing []string
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, d := range parsed(t, f).Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && emits(d) && exportedReceiver(d) && !used[d.Name.Name] {
					missing = append(missing, d.Name.Name)
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR && d.Tok != token.CONST {
					continue
				}
				for _, s := range d.Specs {
					for _, n := range s.(*ast.ValueSpec).Names {
						if n.IsExported() && !used[n.Name] {
							missing = append(missing, n.Name)
						}
					}
				}
			}
		}
	}
	slices.Sort(missing)
	require.Empty(t, missing, "exported by the builder and in no kernel of cover_*_test.go")
}

// emits tells functions that have to do with a kernel: other ones have tests of their own.
func emits(d *ast.FuncDecl) bool {
	found := false
	ast.Inspect(d, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && (id.Name == "Kernel" || id.Name == "k" || id.Name == "Reg") {
			found = true
		}
		return true
	})
	return found
}

// exportedReceiver tells functions, and methods of exported types but for those that interfaces of the standard library ask
// for.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	if slices.Contains([]string{"Error", "Unwrap", "String"}, d.Name.Name) {
		return false
	}
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !exported {
			exported = id.IsExported()
			return false
		}
		return true
	})
	return exported
}

func parsed(t *testing.T, file string) *ast.File {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	return f
}

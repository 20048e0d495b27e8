package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoInternalTypes reads the exported declarations of every public package: a user can name, call and implement all they say.
func TestNoInternalTypes(t *testing.T) {
	exports, public := compiled(t)
	fset := token.NewFileSet()
	load := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range public {
		pkg, err := load.Import(path)
		require.NoError(t, err)
		for _, leak := range leaks(pkg) {
			t.Errorf("%s shows %v", leak.name, leak.typ)
		}
	}
}

// compiled returns the files of export data of all packages that the module links, and which of them users import.
func compiled(t *testing.T) (exports map[string]string, public []string) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Name,Standard", module+"/...").Output()
	require.NoError(t, err)
	exports = make(map[string]string)
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export, Name string
			Standard                 bool
		}
		err := list.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		exports[p.ImportPath] = p.Export
		if within(p.ImportPath, module) && p.Name != "main" && !internal(p.ImportPath) {
			public = append(public, p.ImportPath)
		}
	}
	require.Contains(t, public, module+"/batch")
	return exports, public
}

// internal reports whether only this module can import a package.
func internal(path string) bool {
	return within(path, module) && slices.Contains(strings.Split(path, "/"), "internal")
}

type leak struct {
	name string // package.Name, package.Type.Field or package.Type.Method
	typ  string
}

// leaks returns the exported declarations of a package that mention a type of an internal one.
func leaks(pkg *types.Package) (found []leak) {
	prefix := strings.TrimPrefix(pkg.Path(), module+"/")
	check := func(name string, t types.Type) {
		if hidden := mentioned(t); hidden != "" {
			found = append(found, leak{prefix + "." + name, hidden})
		}
	}
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		declared, ok := object.(*types.TypeName)
		if !ok {
			check(name, object.Type())
			continue
		}
		if declared.IsAlias() {
			check(name, types.Unalias(declared.Type()))
			continue
		}
		if structure, ok := declared.Type().Underlying().(*types.Struct); ok {
			for f := range structure.Fields() {
				if f.Exported() {
					check(name+"."+f.Name(), f.Type())
				}
			}
		} else if _, ok := declared.Type().Underlying().(*types.Interface); !ok {
			check(name, declared.Type().Underlying())
		}
		// Those of embedded types, which may be unexported, are part of what the type shows.
		methods := types.NewMethodSet(declared.Type())
		if !types.IsInterface(declared.Type()) {
			methods = types.NewMethodSet(types.NewPointer(declared.Type()))
		}
		for m := range methods.Methods() {
			if m.Obj().Exported() {
				check(name+"."+m.Obj().Name(), m.Type())
			}
		}
	}
	return found
}

// mentioned returns an internal type that a type names, or "".
func mentioned(t types.Type) string {
	switch t := t.(type) {
	case *types.Alias:
		if p := t.Obj().Pkg(); p != nil && internal(p.Path()) {
			return t.String()
		}
		return mentioned(types.Unalias(t))
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && internal(p.Path()) {
			return t.String()
		}
		for a := range t.TypeArgs().Types() {
			if hidden := mentioned(a); hidden != "" {
				return hidden
			}
		}
	case *types.TypeParam:
		return mentioned(t.Constraint())
	case *types.Map:
		return mentioned(t.Key()) + mentioned(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		return mentioned(t.Elem())
	case *types.Signature:
		for _, list := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range list.Variables() {
				if hidden := mentioned(v.Type()); hidden != "" {
					return hidden
				}
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if hidden := mentioned(f.Type()); hidden != "" {
				return hidden
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if hidden := mentioned(m.Type()); hidden != "" {
				return hidden
			}
		}
		for e := range t.EmbeddedTypes() {
			if hidden := mentioned(e); hidden != "" {
				return hidden
			}
		}
	case *types.Union:
		for term := range t.Terms() {
			if hidden := mentioned(term.Type()); hidden != "" {
				return hidden
			}
		}
	}
	return ""
}

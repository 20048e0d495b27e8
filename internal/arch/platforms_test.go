package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listed is what go list says of a package as one platform has it. That of a test has another path.
type listed struct {
	ImportPath, Dir, Name string
	GoFiles, SFiles       []string
	ImportMap             map[string]string
	Standard              bool
	Error                 *struct{ Err string }
}

// TestOtherPlatforms checks the types of all packages and their tests on platforms for which make test compiles little or nothing,
// and that what is declared there without a body has assembly.
func TestOtherPlatforms(t *testing.T) {
	fset, files := token.NewFileSet(), map[string]*ast.File{} // most are the same everywhere
	for _, platform := range []string{"linux/arm64", "js/wasm", "windows/amd64", "darwin/arm64"} {
		t.Run(platform, func(t *testing.T) {
			system, architecture, _ := strings.Cut(platform, "/")
			cmd := exec.Command("go", "list", "-deps", "-test", "-e", "-json=ImportPath,Dir,Name,GoFiles,SFiles,ImportMap,Standard,Error", module+"/...")
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture)
			out, err := cmd.Output()
			require.NoError(t, err)
			l := loader{fset: fset, files: files, packages: map[string]*types.Package{"unsafe": types.Unsafe},
				sizes: types.SizesFor("gc", architecture)}
			own := 0
			for list := json.NewDecoder(bytes.NewReader(out)); ; {
				var p listed
				err := list.Decode(&p)
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				if p.Error != nil {
					t.Errorf("%s: %s", p.ImportPath, p.Error.Err)
				}
				if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // go test writes the latter
					continue
				}
				inside := within(p.ImportPath, module)
				if inside {
					own++
				}
				for _, err := range l.check(&p, inside) {
					t.Error(err)
				}
			}
			require.Greater(t, own, 200, "packages of the module and their tests")
		})
	}
}

// loader has the packages that were checked, those first that others import.
type loader struct {
	fset     *token.FileSet
	files    map[string]*ast.File
	packages map[string]*types.Package
	sizes    types.Sizes
}

// check checks the declarations of a package, and what functions do if bodies is true.
func (l *loader) check(p *listed, bodies bool) (errs []error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		name = filepath.Join(p.Dir, name)
		f := l.files[name]
		if f == nil {
			var err error
			if f, err = parser.ParseFile(l.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				return append(errs, err)
			}
			l.files[name] = f
		}
		files = append(files, f)
	}
	if bodies {
		errs = l.missing(p, files)
	}
	config := types.Config{IgnoreFuncBodies: !bodies, Sizes: l.sizes, Error: func(err error) { errs = append(errs, err) },
		Importer: importing(func(path string) (*types.Package, error) {
			if other, ok := p.ImportMap[path]; ok {
				path = other
			}
			if found := l.packages[path]; found != nil {
				return found, nil
			}
			return nil, errors.New("no package " + path)
		})}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	l.packages[p.ImportPath], _ = config.Check(path, l.fset, files, nil) // Error has them all
	return errs
}

// missing returns an error for each function that has neither a body nor assembly nor another package's symbol.
func (l *loader) missing(p *listed, files []*ast.File) (errs []error) {
	var assembly []byte
	for _, name := range p.SFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return append(errs, err)
		}
		assembly = append(assembly, text...)
	}
	for _, f := range files {
		linked := map[string]bool{}
		for _, group := range f.Comments {
			for _, c := range group.List {
				if words := strings.Fields(c.Text); words[0] == "//go:linkname" {
					linked[words[1]] = true
				}
			}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil && !linked[fn.Name.Name] && !bytes.Contains(assembly, []byte("·"+fn.Name.Name+"(SB)")) {
				errs = append(errs, errors.New(l.fset.Position(fn.Pos()).String()+": "+fn.Name.Name+" has no body"))
			}
		}
	}
	return errs
}

type importing func(path string) (*types.Package, error)

func (f importing) Import(path string) (*types.Package, error) { return f(path) }

// TestPlatformsCheck makes sure that the test above can fail.
func TestPlatformsCheck(t *testing.T) {
	folder := t.TempDir()
	for text, wrong := range map[string]string{"func f()": "has no body", "var x int = \"\"": "cannot use", "func f() { g() }": "undefined: g", "var x = 1 << 3": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "x.go"), []byte("package x\n"+text), 0o600))
		l := loader{fset: token.NewFileSet(), files: map[string]*ast.File{}, packages: map[string]*types.Package{}}
		errs := l.check(&listed{ImportPath: "x", Dir: folder, GoFiles: []string{"x.go"}}, true)
		if wrong == "" {
			assert.Empty(t, errs)
		} else if assert.Len(t, errs, 1) {
			assert.ErrorContains(t, errs[0], wrong)
		}
	}
}

package arch

import (
	"bytes"
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/wavelane/wavelane"

// subtree is a package with everything below it. Inside a subtree imports are free.
type subtree struct {
	name  string // path in the module; "." is the root package alone
	layer int
	deps  []string // third-party import paths allowed, each with everything below it
}

// layers says on which layer each subtree is. Packages may import subtrees of lower layers, nothing else.
var layers = []subtree{
	{name: "compute", layer: 0},
	{name: "internal/measured", layer: 0},
	{name: "internal/monotime", layer: 0},
	{name: "internal/npy", layer: 0},
	{name: "internal/recent", layer: 0},
	{name: "internal/mapped", layer: 1},
	{name: "quant", layer: 2, deps: []string{"github.com/x448/float16"}},
	{name: "internal/program", layer: 2},
	{name: "internal/catalogue", layer: 3, deps: []string{"github.com/x448/float16"}},
	{name: "internal/memplan", layer: 3},
	{name: "internal/pretrained", layer: 3},
	{name: "internal/tokenizer", layer: 3, deps: []string{"golang.org/x/text/unicode/norm"}},
	{name: "internal/tune", layer: 3},
	{name: "internal/device", layer: 4},
	{name: "internal/lowering", layer: 4},
	{name: "wgsl", layer: 4},
	{name: "ptx", layer: 4, deps: []string{"golang.org/x/sys/cpu"}},
	{name: "internal/simd", layer: 4, deps: []string{"golang.org/x/sys/cpu", "github.com/x448/float16"}},
	{name: "internal/ptxkernels", layer: 5},
	{name: "internal/wgslkernels", layer: 5},
	{name: "simd", layer: 5, deps: []string{"github.com/cespare/xxhash/v2"}},
	{name: "gpu", layer: 6, deps: []string{"github.com/ebitengine/purego", "github.com/oliverbestmann/webgpu"}},
	{name: "cpu", layer: 6},
	{name: "cuda", layer: 6, deps: []string{"github.com/ebitengine/purego"}},
	{name: "internal/rewrite", layer: 7},
	{name: "batch", layer: 8},
	{name: "lz4", layer: 8},
	{name: "internal/route", layer: 8},
	{name: "onnx", layer: 9, deps: []string{"google.golang.org/protobuf/encoding/protowire"}},
	{name: "internal/decoder", layer: 9},
	{name: ".", layer: 9},
	{name: "dist", layer: 10, deps: []string{"github.com/ebitengine/purego"}},
	{name: "internal/benchmarks", layer: 10},
	{name: "llm", layer: 10},
	{name: "cmd", layer: 11, deps: []string{"github.com/spf13/cobra", "github.com/schollz/progressbar/v3", "golang.org/x/image/draw", "golang.org/x/term"}},
	{name: "examples", layer: 11, deps: []string{"github.com/schollz/progressbar/v3", "golang.org/x/term"}},
	{name: "wasm", layer: 11},
}

// outside are suites and generators, which may import anything and which nobody imports.
var outside = []string{"internal/conformance", "internal/cudacorpus", "internal/arch", "internal/gen", "internal/simd/simdtest", "internal/testseed", "internal/decoder/decodertest", "internal/ptxkernels/kerneltest", "internal/ptxtest", "wasm/internal/jstest"}

// devices are what the packages of anyDevice must not know: they reach them through the interfaces of internal/program only.
var devices = []string{"gpu", "cuda", "cpu"}

// anyDevice are the packages that work with every device through those interfaces.
var anyDevice = []string{"batch", "internal/rewrite", "internal/route"}

// pure are the subtrees whose importers must get neither cgo nor purego into their binary.
var pure = []string{"compute", "quant", "internal/program", "wgsl", "ptx", "simd", "cpu", "internal/rewrite", "batch", "lz4", "onnx", "internal/pretrained", "internal/tokenizer", "internal/decoder", "llm"}

// imports are the packages that one package of the module imports, over all platforms and build tags, without its tests.
type imports struct {
	pkg  string // path in the module
	from map[string]string
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range readModule(t) {
		if slices.ContainsFunc(outside, func(o string) bool { return within(p.pkg, o) }) {
			continue
		}
		for imported, file := range p.from {
			if err := check(p.pkg, imported); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// check says what is wrong with pkg importing imported, if anything is.
func check(pkg, imported string) error {
	from := find(pkg)
	if from == nil {
		return fmt.Errorf("%s is on no layer: give it one in this test", pkg)
	}
	target, internal := inModule(imported)
	if !internal {
		if standard(imported) || slices.ContainsFunc(from.deps, func(d string) bool { return within(imported, d) }) {
			return nil
		}
		return fmt.Errorf("%s may not depend on %s", pkg, imported)
	}
	to := find(target)
	switch {
	case to == nil:
		return fmt.Errorf("%s imports %s, which is on no layer", pkg, target)
	case to == from:
		return nil
	case to.layer > from.layer:
		return fmt.Errorf("%s (layer %d) imports upward: %s (layer %d)", pkg, from.layer, target, to.layer)
	case to.layer == from.layer:
		return fmt.Errorf("%s imports sideways on layer %d: %s", pkg, from.layer, target)
	case slices.Contains(anyDevice, from.name) && slices.Contains(devices, to.name):
		return fmt.Errorf("%s knows a device by name: %s", pkg, target)
	}
	return nil
}

// Families of PTX kernels import what they share, package kit and those below it, not each other. A convolution with a filter of one
// element is a matrix product.
func TestFamiliesOfKernels(t *testing.T) {
	const kernels, kit = "internal/ptxkernels", "internal/ptxkernels/kit"
	for _, p := range readModule(t) {
		if !within(p.pkg, kernels) || p.pkg == kernels || within(p.pkg, kernels+"/kerneltest") {
			continue
		}
		for imported, file := range p.from {
			target, internal := inModule(imported)
			if internal && within(target, kernels) && !within(target, kit) && !(p.pkg == kernels+"/conv" && target == kernels+"/gemm") {
				t.Errorf("%s: %s imports %s", file, p.pkg, target)
			}
		}
	}
}

// TestCheck makes sure that the test above can fail.
func TestCheck(t *testing.T) {
	for _, bad := range [][2]string{
		{"wgsl", module + "/gpu"},
		{"internal/program", module},
		{"gpu", module + "/cuda"},
		{"wgsl", module + "/internal/simd/kernels"},
		{"batch", module + "/gpu"},
		{"batch", module + "/cpu"},
		{"internal/rewrite", module + "/gpu"},
		{"internal/rewrite", module + "/batch"},
		{"internal/route", module + "/cpu"},
		{"batch", "github.com/oliverbestmann/webgpu/libs-linux"},
		{"simd", "github.com/ebitengine/purego"},
		{"examples/edges", module + "/cmd/wavelane"},
		{"surprise", "fmt"},
		{"batch", module + "/surprise"},
	} {
		require.Error(t, check(bad[0], bad[1]), "%v", bad)
	}
	for _, good := range [][2]string{
		{"batch", "context"},
		{"gpu", module + "/wgsl"},
		{"gpu/internal/webgpu", module + "/wgsl"},
		{".", module + "/batch"},
		{"cmd/wavelane", "github.com/spf13/cobra"},
	} {
		require.NoError(t, check(good[0], good[1]), "%v", good)
	}
}

// TestPurePackages follows the imports of the layers that promise it, standard library included, down to the leaves.
func TestPurePackages(t *testing.T) {
	graph := map[string]map[string]string{}
	for _, p := range readModule(t) {
		graph[p.pkg] = p.from
	}
	seen := map[string]bool{}
	var visit func(trail []string)
	visit = func(trail []string) {
		at := trail[len(trail)-1]
		if seen[at] {
			return
		}
		seen[at] = true
		if at == "C" || at == "runtime/cgo" || within(at, "github.com/ebitengine/purego") {
			t.Errorf("%s is linked by way of %s", at, strings.Join(trail, " → "))
			return
		}
		if pkg, internal := inModule(at); internal {
			for next := range graph[pkg] {
				visit(append(slices.Clone(trail), next))
			}
			return
		}
		if !standard(at) || at == "unsafe" || at == "syscall/js" { // the last exists only where there is no cgo
			return // the arrows' test lists the third-party packages allowed
		}
		for _, next := range standardImports(t, at) {
			visit(append(slices.Clone(trail), next))
		}
	}
	for _, h := range pure {
		for pkg := range graph {
			if within(pkg, h) {
				visit([]string{module + "/" + pkg})
			}
		}
	}
	require.True(t, seen["errors"], "the walk reached the standard library")
}

// TestLeftOut lists what is linked where packages cuda and gpu are left out, or were never imported: purego is not.
func TestLeftOut(t *testing.T) {
	const purego = "github.com/ebitengine/purego"
	list := func(pkg string, tags ...string) string {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-tags", strings.Join(tags, ",")}, pkg)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, list(module), purego, "the front door brings every device along")
	require.NotContains(t, list(module, "nocuda", "nogpu"), purego)
	require.NotContains(t, list(module+"/batch"), purego)
	require.NotContains(t, list(module+"/ptx/..."), purego)
	require.NotContains(t, list(module, "nocuda"), module+"/cuda\n")
}

// TestReferencesAreNotLinked builds a program with batches and looks for the float64 references of the catalogue, which are for tests
// and for batch.Compare.
func TestReferencesAreNotLinked(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	out, err := exec.Command("go", "build", "-o", program, module+"/examples/quickstart").CombinedOutput()
	require.NoError(t, err, "%s", out)
	symbols, err := exec.Command("go", "tool", "nm", program).Output()
	require.NoError(t, err)
	require.True(t, bytes.Contains(symbols, []byte(module+"/batch.(*Batch).Run")), "a program with batches")
	require.False(t, bytes.Contains(symbols, []byte(module+"/internal/catalogue/reference.")))
}

// standardImports returns what a package of the standard library imports on this platform with cgo enabled.
func standardImports(t *testing.T, pkg string) []string {
	context := build.Default
	context.CgoEnabled = true
	dir := filepath.Join(context.GOROOT, "src")
	p, err := context.Import(pkg, dir, 0)
	if err != nil { // the standard library's own third-party packages
		p, err = context.Import("vendor/"+pkg, dir, 0)
	}
	require.NoError(t, err)
	return p.Imports
}

func readModule(t *testing.T) []imports {
	root := filepath.Join("..", "..")
	found := map[string]imports{}
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if name != root && (base[0] == '.' || base[0] == '_' || base == "testdata" || nestedModule(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range f.Comments {
			if strings.HasPrefix(group.List[0].Text, "//go:build ignore") {
				return nil // a generator, run by hand
			}
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(dir)
		if found[pkg].from == nil {
			found[pkg] = imports{pkg, map[string]string{}}
		}
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			found[pkg].from[imported] = path.Join(pkg, d.Name())
		}
		return nil
	}))
	var all []imports
	for _, p := range found {
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}

func nestedModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// find returns the subtree that a package of the module belongs to, or nil.
func find(pkg string) *subtree {
	for i, h := range layers {
		if h.name == pkg || h.name != "." && within(pkg, h.name) {
			return &layers[i]
		}
	}
	return nil
}

// inModule strips the module's path, and reports whether there was one.
func inModule(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// standard reports whether a path belongs to the standard library: those have no dot in their first element.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

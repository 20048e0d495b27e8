//go:build !js

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/npy"
	"github.com/wavelane/wavelane/ptx/profile"
)

// scaled is what compilers make of a kernel in C++: y[i] = (x[i] + bias) · s.factor, without a check of bounds.
const scaled = header + `.const .align 4 .f32 bias;
.visible .entry _Z5scalePKfPf6Factor(.param .u64 x, .param .u64 y, .param .align 8 .b8 s[16])
{
	.reg .b32 %r<3>; .reg .f32 %f<5>; .reg .b64 %rd<5>;
	.loc 1 4 1
	mov.u32 %r1, %tid.x;
	ld.param.u64 %rd1, [x];
	ld.param.u64 %rd2, [y];
	mul.wide.u32 %rd3, %r1, 4;
	.loc 1 5 1
	add.s64 %rd1, %rd1, %rd3;
	ld.global.f32 %f1, [%rd1];
	ld.const.f32 %f2, [bias];
	ld.param.f32 %f3, [s+8];
	add.rn.f32 %f1, %f1, %f2;
	mul.rn.f32 %f1, %f1, %f3;
	add.s64 %rd2, %rd2, %rd3;
	st.global.f32 [%rd2], %f1;
	ret;
}
.file 1 "scale.cu"
`

// folder has scaled, its source, an array and launches of it.
func folder(t *testing.T, launches string) string {
	dir := t.TempDir()
	x, err := parseValue("arange:f32:2x2", "", nil)
	require.NoError(t, err)
	want, err := parseValue("buf:f64:4,8,12,16.0001", "", nil)
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"scale.ptx": []byte(scaled),
		"scale.cu":  []byte("// scale\n\n\n__global__ void scale(const float *x, float *y, Factor s) {\n  y[i] = (x[i] + bias) * s.factor;\n}\n"),
		"x.npy":     npyOf(&x, x.shape, x.bytes).Encode(), "want.npy": npyOf(&want, want.shape, want.bytes).Encode(), "run.json": []byte(launches),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return dir
}

const twice = `{
	"module": "scale.ptx", "symbols": {"bias": "f32:1"},
	"buffers": {"x": "x.npy", "y": "empty:f32:2x2", "z": "empty:f32:2x2"},
	"launches": [
		{"kernel": "scale", "block": 4, "args": ["x", "y", "struct:f64:0;f32:2"]},
		{"kernel": "_Z5scalePKfPf6Factor", "grid": [1, 1], "block": "4", "args": ["x", "z", "struct:u64:0;f32:4"]}
	],
	"save": {"z": "z.npy"}, "expect": {"z": "want.npy"}, "atol": 0.001
}`

// A launch file: arrays in and out, symbols, structures, two launches, what is expected.
func TestPTXRunLaunches(t *testing.T) {
	dir := folder(t, twice)
	file := filepath.Join(dir, "run.json")
	status, out, errOut := call(t.Context(), "ptx", "run", file)
	require.Zero(t, status, errOut)
	require.Equal(t, "y, f32[2 2]: 2 4 6 8\n", out, "z is saved and compared")
	z, err := npy.ReadFile(filepath.Join(dir, "z.npy"))
	require.NoError(t, err)
	require.Equal(t, []int{2, 2}, z.Shape)
	require.Equal(t, "\x00\x00\x80\x40\x00\x00\x00\x41\x00\x00\x40\x41\x00\x00\x80\x41", string(z.Data))

	status, _, errOut = call(t.Context(), "ptx", "run", file, "--atol", "1e-9", "--rtol", "0")
	require.Equal(t, 1, status)
	require.Contains(t, errOut, "z[1 1] is 16, want 16.0001")
	require.Contains(t, errOut, "1 of 4 elements of z")
	status, _, errOut = call(t.Context(), "ptx", "run", file, "--block", "4")
	require.Equal(t, 2, status)
	require.Contains(t, errOut, "run.json")

	// The same of a command line, where the one buffer that changes needs no name.
	line := []string{"ptx", "run", filepath.Join(dir, "scale.ptx"), "--kernel", "scale", "--block", "4", "--symbol", "bias=f32:1", "--arg",
		filepath.Join(dir, "x.npy"), "--arg", "y=empty:f32:4", "--arg", "struct:u64:0;f32:4"}
	status, out, errOut = call(t.Context(), append(line, "--expect", filepath.Join(dir, "want.npy"), "--save", "1="+filepath.Join(dir, "y.npy"))...)
	require.Zero(t, status, errOut)
	require.Empty(t, out)
	require.FileExists(t, filepath.Join(dir, "y.npy"))
	status, _, errOut = call(t.Context(), append(line, "--expect", "q="+filepath.Join(dir, "want.npy"))...)
	require.Equal(t, 2, status)
	require.Contains(t, errOut, "y, arg0")

	for replace, message := range map[[2]string]string{
		{`"module"`, `"modul"`}:          "modul",
		{`"block": 4`, `"block": [0]`}:   "at least 1",
		{`"x.npy"`, `"none.npy"`}:        "none.npy",
		{`["x", "y"`, `["x", "q"`}:       `no buffer "q"`,
		{`"f32:1"`, `"f32:x"`}:           "symbol bias",
		{`"bias"`, `"bios"`}:             "bios",
		{`;f32:2"`, `"`}:                 "structure of 8 bytes",
		{`"scale"`, `"scael"`}:           "no kernel scael",
		{`"save": {"z"`, `"save": {"q"`}: `no buffer "q"`,
		{"\n}", ""}:                      "run.json:",
	} {
		require.Contains(t, twice, replace[0])
		dir := folder(t, strings.Replace(twice, replace[0], replace[1], 1))
		status, _, errOut := call(t.Context(), "ptx", "run", filepath.Join(dir, "run.json"))
		require.NotZero(t, status, replace)
		require.Contains(t, errOut, message)
	}
}

// Errors are reported with the lines of the source, by the status that is asked for; a kernel goes on after them.
func TestPTXRunSanitize(t *testing.T) {
	dir := folder(t, "")
	run := func(args ...string) (int, string, string) {
		return call(t.Context(), append([]string{"ptx", "run", filepath.Join(dir, "scale.ptx"), "--block", "5", "--arg", "empty:f32:6", "--arg", "y=zeros:f32:4",
			"--arg", "struct:u64:0;f32:4"}, args...)...)
	}
	status, out, errOut := run("--error-exitcode", "7", "--annotate")
	require.Equal(t, 7, status)
	require.Contains(t, errOut, "Uninitialized __global__ memory read of size 4 bytes")
	require.Contains(t, errOut, "Invalid __global__ write of size 4 bytes")
	require.Contains(t, errOut, "y[i] = (x[i] + bias) * s.factor;", "the line of the source, found beside the PTX")
	require.Contains(t, errOut, "0 bytes past the end of y of 16 bytes")
	require.Contains(t, errOut, "ERROR SUMMARY: 2 errors")
	require.Contains(t, out, "::error file=scale.cu,line=5,title=memcheck::Invalid")
	status, _, errOut = run("--sanitize", "memcheck,racecheck")
	require.Equal(t, 1, status)
	require.Contains(t, errOut, "ERROR SUMMARY: 1 error\n")
	status, _, errOut = run("--sanitize", "leakcheck")
	require.Equal(t, 2, status)
	require.Contains(t, errOut, "initcheck")
}

// sampled reads a texture between the texels of its rows, and the same of a variable that the host binds; it writes what it finds to a
// surface, one channel the one, the other the other.
const sampled = header + `.global .texref bound;
.visible .entry sampled(.param .u64 t, .param .u64 s)
{
	.reg .b32 %r<4>; .reg .f32 %f<12>; .reg .b64 %rd<3>;
	ld.param.u64 %rd1, [t];
	ld.param.u64 %rd2, [s];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %tid.y;
	cvt.rn.f32.u32 %f1, %r1;
	cvt.rn.f32.u32 %f2, %r2;
	add.rn.f32 %f1, %f1, 0f3F800000;
	add.rn.f32 %f2, %f2, 0f3F000000;
	tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
	tex.1d.v4.f32.s32 {%f7, %f8, %f9, %f10}, [bound, {%r1}];
	shl.b32 %r3, %r1, 3;
	sust.b.2d.v2.b32.trap [%rd2, {%r3, %r2}], {%f3, %f7};
	ret;
}
`

// Textures and surfaces: of arrays and fills, of named buffers, as variables of the module.
func TestPTXRunImages(t *testing.T) {
	file := written(t, sampled)
	run := func(args ...string) (int, string, string) {
		return call(t.Context(), append([]string{"ptx", "run", file, "--block", "3,2", "--buffer", "y=zeros:f32:2x3x2", "--buffer",
			"line=buf:u8:0,51,255"}, args...)...)
	}
	bound := []string{"--symbol", "bound=texture+fractions:line"}
	status, out, errOut := run(append(bound, "--arg", "texture+linear:arange:f32:2x3", "--arg", "surface+channels:y")...)
	require.Zero(t, status, errOut)
	require.Equal(t, "y, f32[2 3 2]: 0.5 0 1.5 0.2 2 1 3.5 0 4.5 0.2 5 1\n", out)
	status, out, errOut = run(append(bound, "--arg", "texture+linear+border:arange:f32:2x3", "--arg", "surface+channels:y")...)
	require.Zero(t, status, errOut)
	require.Equal(t, "y, f32[2 3 2]: 0.5 0 1.5 0.2 1 1 3.5 0 4.5 0.2 2.5 1\n", out)
	for _, c := range [][]string{
		{"texture:arange:f32:2x3", "surface+channels:z", `no buffer "z"`}, {"texture:arange:f32:1x1x2x3", "surface:y", "no such image"},
		{"texture:arange:f64:2x3", "surface+channels:y", "texels of .f64"}, {"texture+linear:zeros:u32:2x3", "surface+channels:y", "interpolated"},
		{"texture:arange:f32:2x3", "surface:zeros:f32:2", "sust"}, {"surface:y", "surface+channels:y", "no handle of a .texref"},
	} {
		status, _, errOut := run(append(bound, "--arg", c[0], "--arg", c[1])...)
		require.NotZero(t, status, c)
		require.Contains(t, errOut, c[2])
	}
	status, _, errOut = run("--symbol", "bound=7", "--arg", "texture:arange:f32:2x3", "--arg", "surface+channels:y")
	require.Equal(t, 1, status)
	require.Contains(t, errOut, "symbol bound: want an image")
}

// FuzzLaunches: no launch file makes its reader panic, and what it takes is complete.
func FuzzLaunches(f *testing.F) {
	for _, s := range []string{twice, `{"module": "k", "launches": [{"block": [1, 2, 3], "args": ["zeros:f32:4", "y=texture+cube:x"]}]}`,
		`{"module": "k", "buffers": {"x": "struct:x"}, "launches": [{"grid": "1,1", "cooperative": true}]}`} {
		f.Add([]byte(s))
	}
	long := regexp.MustCompile(`[0-9]{4}|x[0-9x]{4}|0x|@|npy`) // large arrays, files
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := decodePlan("launches.json", text)
		if err != nil || long.Match(text) {
			return
		}
		require.NotEmpty(t, p.Module)
		require.NotEmpty(t, p.Launches)
		if p.parse() != nil {
			return
		}
		for _, l := range p.Launches {
			require.Len(t, l.values, len(l.Args))
			for _, v := range l.values {
				if v.buffer != "" {
					require.Contains(t, p.values, v.buffer)
				}
			}
		}
	})
}

func TestPTXRunProfile(t *testing.T) {
	dir := folder(t, twice)
	html, js := filepath.Join(dir, "p.html"), filepath.Join(dir, "p.json")
	status, _, errOut := call(t.Context(), "ptx", "run", filepath.Join(dir, "run.json"), "--profile="+html, "--profile="+js, "--profile", "--gpu", "L4")
	require.Zero(t, status, errOut)
	require.Contains(t, errOut, "scale.cu:5: y[i] = (x[i] + bias) * s.factor;")
	text, err := os.ReadFile(html)
	require.NoError(t, err)
	require.Contains(t, string(text), "y[i] = (x[i] &#43; bias) * s.factor;")
	text, err = os.ReadFile(js)
	require.NoError(t, err)
	var p profile.Profile
	require.NoError(t, json.Unmarshal(text, &p))
	require.Len(t, p.Kernels, 1)
	k := p.Kernels[0]
	require.Equal(t, 2, k.Launches)
	require.EqualValues(t, 2*4*2, k.Flops)
	require.EqualValues(t, 2*13, k.Instructions)
	require.Equal(t, 4.0, k.LanesPerWarp())
	require.EqualValues(t, 2*2, k.Sectors)
	require.EqualValues(t, 16, k.Roofline.Operations)
	require.EqualValues(t, 4*32, k.Roofline.Bytes)
	require.Len(t, k.Lines, 2)
	require.Equal(t, 5, k.Lines[1].Pos.Line)
	require.InDelta(t, 1, k.Lines[0].Share+k.Lines[1].Share, 1e-12)
	for _, bad := range [][]string{{"--profile=x.pdf"}, {"--profile", "--gpu", "toaster"}} {
		status, _, _ := call(t.Context(), append([]string{"ptx", "run", filepath.Join(dir, "run.json")}, bad...)...)
		require.Equal(t, 2, status)
	}
}

// What is no PTX is refused with the way to get some; what cuobjdump prints is taken.
func TestPTXRunRefuses(t *testing.T) {
	for _, c := range [][2]string{{"k.cubin", "\x7fELF\x02"}, {"k.fatbin", "\x50\xed\x55\xba"}, {"k.bc", "BC\xc0\xde"}, {"k.cu", "__global__ void k() {}"}} {
		file := filepath.Join(t.TempDir(), c[0])
		require.NoError(t, os.WriteFile(file, []byte(c[1]), 0o600))
		status, _, errOut := call(t.Context(), "ptx", "run", file)
		require.Equal(t, 1, status)
		require.Contains(t, errOut, "nvcc -ptx")
		require.Contains(t, errOut, "cuobjdump -ptx "+file)
	}
	dump := written(t, "\nFatbin elf code:\n=====\narch = sm_52\n\nFatbin ptx code:\n=====\narch = sm_52\n\n"+half+"\nFatbin elf code:\n")
	status, out, errOut := call(t.Context(), "ptx", "run", dump, "--block", "3", "--arg", "zeros:f32:4", "--arg", "2.0", "--arg", "0", "--arg", "3")
	require.Zero(t, status, errOut)
	require.Equal(t, "arg0, f32[4]: 0 2 4 0\n", out)
}

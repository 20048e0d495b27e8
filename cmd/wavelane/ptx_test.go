//go:build !js

package main

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/opt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/parse"
)

// emittedFile is a file with a kernel of the library.
func emittedFile(t *testing.T, kernel string) string {
	status, out, errOut := call(t.Context(), "ptx", "emit", kernel)
	require.Zero(t, status, errOut)
	return written(t, out)
}

func written(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "kernel.ptx")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

const header = ".version 7.0\n.target sm_80\n.address_size 64\n"

// half stores half of its index, in a kernel with a parameter of each kind.
const half = header + `.visible .entry half(.param .u64 out, .param .f32 factor, .param .s64 offset, .param .u32 n)
{
	.reg .pred %p<2>; .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .b64 %rd<5>;
	mov.u32 %r1, %tid.x;
	ld.param.u32 %r2, [n];
	setp.ge.u32 %p1, %r1, %r2;
	@%p1 bra END;
	ld.param.f32 %f1, [factor];
	cvt.rn.f32.u32 %f2, %r1;
	mul.rn.f32 %f1, %f1, %f2;
	ld.param.u64 %rd1, [out];
	ld.param.s64 %rd2, [offset];
	add.s64 %rd1, %rd1, %rd2;
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd4, %rd1, %rd3;
	st.global.f32 [%rd4], %f1;
END:
	ret;
}
`

func TestPTXEmit(t *testing.T) {
	status, list, errOut := call(t.Context(), "ptx", "emit")
	require.Zero(t, status, errOut)
	for _, f := range kit.Families() {
		require.Contains(t, "\n"+list, "\n"+f.Name+": "+f.Kernels[0].Name+" ")
	}
	for _, name := range []string{"softmax", "wgmma_f16_128x256_kk"} {
		status, out, errOut := call(t.Context(), "ptx", "emit", name)
		require.Zero(t, status, errOut)
		m, err := parse.Module("", []byte(out))
		require.NoError(t, err)
		require.Len(t, m.Funcs, 1)
		require.Equal(t, name, m.Funcs[0].Name)
	}
	status, out, errOut := call(t.Context(), "ptx", "emit", "--family", "move")
	require.Zero(t, status, errOut)
	m, err := parse.Module("move", []byte(out))
	require.NoError(t, err)
	require.Len(t, m.Funcs, len(kit.FamilyOf("move").Kernels))
	for _, bad := range [][]string{{"--family", "toaster"}, {"softmax", "--family", "move"}} {
		status, _, errOut = call(t.Context(), append([]string{"ptx", "emit"}, bad...)...)
		require.Equal(t, 2, status)
		require.Contains(t, errOut, "family")
	}
	status, _, errOut = call(t.Context(), "ptx", "emit", "toaster")
	require.Equal(t, 2, status)
	require.Contains(t, errOut, "toaster")
}

func TestPTXRun(t *testing.T) {
	const want = "arg4, f32[4]: 11 22 NaN 44\n"
	values := []string{"--arg", "1", "--arg", "u32:0", "--arg", "buf:f32:1,2,3,4", "--arg", "buf:f32:10,20,nan,40", "--arg", "zeros:f32:4", "--seed", "5"}
	file := emittedFile(t, "add_flat")
	args := append([]string{"ptx", "run", file, "--kernel", "add_flat", "--grid", "1", "--block", "256"}, values...)
	status, out, errOut := call(t.Context(), args...)
	require.Zero(t, status, errOut)
	require.Equal(t, want, out)
	// By its name, and with as many threads as it requires.
	status, out, errOut = call(t.Context(), append([]string{"ptx", "run", "add_flat"}, values...)...)
	require.Zero(t, status, errOut)
	require.Equal(t, want, out)

	status, out, errOut = call(t.Context(), append(args, "--json", "--schedules", "3")...)
	require.Zero(t, status, errOut)
	var buffers []struct {
		Name, Type string
		Shape      []int
		Values     []any
	}
	require.NoError(t, json.Unmarshal([]byte(out), &buffers))
	require.Len(t, buffers, 1)
	require.Equal(t, "arg4", buffers[0].Name)
	require.Equal(t, "f32", buffers[0].Type)
	require.Equal(t, []int{4}, buffers[0].Shape)
	require.Equal(t, []any{11.0, 22.0, "NaN", 44.0}, buffers[0].Values)
}

func TestPTXRunArguments(t *testing.T) {
	file := written(t, half)
	status, out, errOut := call(t.Context(), "ptx", "run", file, "--block", "3,1,1", "--arg", "zeros:f32:4", "--arg", "f32:.5", "--arg", "4",
		"--arg", "u32:0x3")
	require.Zero(t, status, errOut)
	require.Equal(t, "arg0, f32[4]: 0 0 0.5 1\n", out)

	bytes := filepath.Join(t.TempDir(), "bytes")
	require.NoError(t, os.WriteFile(bytes, []byte{1, 2, 3, 4, 5, 6, 7, 8}, 0o644))
	status, out, errOut = call(t.Context(), "ptx", "run", file, "--block", "1", "--arg", "out=buf:u8:@"+bytes, "--arg", "1.0", "--arg", "s64:0",
		"--arg", "u32:1")
	require.Zero(t, status, errOut)
	require.Equal(t, "out, u8[8]: 0 0 0 0 5 6 7 8\n", out)
}

func TestValues(t *testing.T) {
	rng := func() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
	for text, want := range map[string][]any{
		"buf:u8:1,0xff":              {uint64(1), uint64(255)},
		"buf:s8:-1,127":              {int64(-1), int64(127)},
		"buf:float16:0.1,-inf":       {json.Number("0.099975586"), "-Inf"},
		"buf:bf16:1,nan":             {json.Number("1"), "NaN"},
		"buf:f64:0.1":                {json.Number("0.1")},
		"buf:u64:0xffffffffffffffff": {uint64(0xffffffffffffffff)},
		"zeros:s16:2":                {int64(0), int64(0)},
		"ones:f16:2":                 {json.Number("1"), json.Number("1")},
		"arange:int32:3":             {int64(0), int64(1), int64(2)},
		"arange:f32:3:1,-0.5":        {json.Number("1"), json.Number("0.5"), json.Number("0")},
		"s32:-7":                     {int64(-7)},
		"null":                       {uint64(0)},
	} {
		v, err := parseValue(text, "", rng())
		require.NoError(t, err, text)
		require.Equal(t, want, elements(v.typ, v.bytes), text)
	}
	for _, text := range []string{"", "7x", "u32:", "u32:-1", "u8:256", "f32:x", "b32:1", "buf:", "buf:f32", "buf:f32:", "buf:f32:1,,2", "buf:x:1",
		"buf:u8:@/nonexistent", "zeros:f32:-1", "zeros:f32:0", "zeros:f64:99999999999999", "zeros:f32:9999999x9999999", "rand:s32:4", "rand:f32:4:1,0",
		"zeros:f32:4:1,2", "arange:f32:4:1", "none.npy", "struct:7", "struct:f32:1;zeros:f32:4", "struct:", "texture:7", "texture+fast:zeros:f32:4",
		"surface+linear:zeros:f32:4", "texture:texture:zeros:f32:4", "struct:texture:zeros:f32:4"} {
		_, err := parseValue(text, "", rng())
		require.Error(t, err, text)
	}
	a, err := parseValue("rand:f32:64x3:-1,1", "", rng())
	require.NoError(t, err)
	require.Equal(t, []int{64, 3}, a.shape)
	b, err := parseValue("rand:s32:500:-2,3", "", rng())
	require.NoError(t, err)
	for i := range 192 {
		require.Less(t, math.Abs(float(a.typ, load(a.at(i)))), 1.0)
	}
	seen := map[float64]bool{}
	for i := range 500 {
		seen[float(b.typ, load(b.at(i)))] = true
	}
	require.Equal(t, map[float64]bool{-2: true, -1: true, 0: true, 1: true, 2: true}, seen)

	s, err := parseValue("struct:u8:1; f64:2; x; s16:-1", "", rng())
	require.NoError(t, err)
	bytes, err := s.layout(func(*value) (uint64, error) { return 0x1122, nil })
	require.NoError(t, err)
	require.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x22, 0x11, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0}, bytes)
}

// FuzzValue: no text makes parseValue panic, and arrays have as many elements as their shape says.
func FuzzValue(f *testing.F) {
	for _, s := range []string{"7", "rand:f32:2x3:0,1", "struct:f32:1;x", "buf:u8:1,2", "texture+linear:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "@") || strings.Contains(s, ".npy") || len(s) > 20 { // files; large arrays
			return
		}
		v, err := parseValue(s, "", rand.New(rand.NewPCG(1, 2)))
		if err == nil && v.array {
			n := v.typ.Size()
			for _, k := range v.shape {
				n *= k
			}
			require.Len(t, v.bytes, n)
		}
	})
}

// TestPTXErrors is what people get wrong: each a message that names it, and a status.
func TestPTXErrors(t *testing.T) {
	file := written(t, half)
	good := "--arg zeros:f32:4 --arg f32:1 --arg s64:0 --arg u32:3"
	for _, c := range []struct {
		args, message string
		status        int
	}{
		{"run " + written(t, half[:len(half)/2]) + " " + good, "kernel.ptx:", 1},
		{"run " + written(t, strings.Replace(half, "mul.rn.f32", "mull.rn.f32", 1)) + " " + good, "kernel.ptx:13:2: there is no instruction mull", 1},
		{"run /nonexistent.ptx", "nonexistent.ptx", 1},
		{"run " + file + " --arg zeros:f32:4", "4 parameters", 2},
		{"run " + file + " --arg zeros:f32:4 --arg u32:1 --arg s64:0 --arg u32:3", "argument 1", 2},
		{"run " + file + " --arg zeros:f32:4 --arg f32:1 --arg s64:0 --arg u64:3", "argument 3", 2},
		{"run " + file + " --arg zeros:f32:4 --arg f32:1 --arg s64:x --arg u32:3", "argument 2", 2},
		{"run " + file + " --kernel third " + good, "half", 1},
		{"run " + file + " --shared 999999 " + good, "shared", 1},
		{"run " + file + " --shared -1 " + good, "--shared", 2},
		{"run " + file + " --block 1025 " + good, "1024", 1},
		{"run " + file + " --block 32,0 " + good, "--block", 2},
		{"run " + file + " --grid 1,2,3,4 " + good, "--grid", 2},
		{"run " + file + " --block 5 --arg zeros:f32:4 --arg f32:1 --arg s64:0 --arg u32:5", "is out of bounds: 4 bytes", 1},
		{"run add_flat --arg u32:2 --arg u32:0 --arg zeros:f32:8 --arg zeros:f32:4 --arg zeros:f32:8", "is out of bounds: 16 bytes", 1},
		{"run add_flat --block 128 --arg u32:1 --arg u32:0 --arg zeros:f32:4 --arg zeros:f32:4 --arg zeros:f32:4", "256", 1},
		{"run add_fast", "no kernel of that name", 1},
		{"run", "arg", 2},
		{"check /nonexistent.ptx", "nonexistent.ptx", 1},
		{"check " + file + " --gpu toaster", "toaster", 2},
		{"check " + file + " --block x", "--block", 2},
		{"check " + written(t, header), "entry", 0},
		{"run " + written(t, header), "no kernel", 1},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, out, errOut := call(t.Context(), append([]string{"ptx"}, strings.Fields(c.args)...)...)
			require.Contains(t, errOut+out, c.message)
			require.Equal(t, c.status, status, errOut)
		})
	}
}

func TestPTXCheck(t *testing.T) {
	file := emittedFile(t, "top_k")
	status, out, errOut := call(t.Context(), "ptx", "check", file, "--gpu", "h200", "--sm", "90")
	require.Zero(t, status, errOut)
	require.Contains(t, out, "top_k")
	status, byName, errOut := call(t.Context(), "ptx", "check", "top_k", "--gpu", "h200", "--sm", "90")
	require.Zero(t, status, errOut)
	require.Contains(t, byName, "roofline")
	status, out, errOut = call(t.Context(), "ptx", "check", file, "--json", "--strict")
	require.Zero(t, status, errOut)
	require.True(t, json.Valid([]byte(out)), out)

	m, err := os.ReadFile(file)
	require.NoError(t, err)
	broken := written(t, strings.Replace(string(m), "bar.sync 0;", "", 1))
	status, out, errOut = call(t.Context(), "ptx", "check", broken, "--bugs")
	require.Equal(t, 1, status)
	require.Contains(t, errOut, "bug")
	require.NotEmpty(t, out)
}

func TestPTXOpt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernel.ptx")
	require.NoError(t, os.WriteFile(file, []byte(`.version 7.0
.target sm_80
.address_size 64

.visible .entry two(.param .u64 y)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd;
	ld.param.u64 %rd, [y];
	mov.u32 %r0, 21;
	add.u32 %r1, %r0, %r0;
	mul.lo.u32 %r2, %r0, 5;
	st.global.u32 [%rd], %r1;
	ret;
}
`), 0o644))
	status, out, errOut := call(t.Context(), "ptx", "opt", file, "--stats")
	require.Zero(t, status, errOut)
	require.Contains(t, out, ", 42;")
	require.NotContains(t, out, "mul")
	require.Contains(t, errOut, "6 instructions, now 3\n")
	require.Contains(t, errOut, "dead: ")
	require.NoError(t, os.WriteFile(file, []byte(out), 0o644))
	status, out, errOut = call(t.Context(), "ptx", "run", file, "--arg", "zeros:u32:1")
	require.Zero(t, status, errOut)
	require.Equal(t, "arg0, u32[1]: 42\n", out)

	status, out, errOut = call(t.Context(), "ptx", "opt", "softmax", "--unroll", "4", "--json")
	require.Zero(t, status, errOut)
	var stats opt.Stats
	require.NoError(t, json.Unmarshal([]byte(out), &stats))
	require.Positive(t, stats.Before)
	status, _, errOut = call(t.Context(), "ptx", "opt", "softmax", "--unroll", "-1")
	require.Equal(t, 2, status)
	require.Contains(t, errOut, "--unroll -1")
}

func TestPTXInterrupt(t *testing.T) {
	file := written(t, header+".visible .entry spin()\n{\nL:\n\tbra L;\n}\n")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	status, _, errOut := call(ctx, "ptx", "run", file)
	require.Equal(t, 130, status, errOut)
}

package gpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

func TestKernelRuns(t *testing.T) {
	d := open(t)
	r := random(t)
	k := affine(t, d)
	for _, n := range []int{1, 3, 63, 64, 65, 1000, 100_003} {
		x, y := floats(r, n), make([]float32, n)
		require.NoError(t, k.Run(ctx, affineLaunch(n, 2, 1), y, x))
		for i := range x {
			require.InDelta(t, x[i]*2+1, y[i], 1e-6, "n=%d i=%d", n, i)
		}
	}
	idle(t, d)
}

// 20,000,000 elements need more workgroups than one grid dimension holds.
func TestBeyondOneGridDimension(t *testing.T) {
	d := open(t)
	const n = 20_000_000
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(i % 1021)
	}
	k := affine(t, d)
	l := affineLaunch(n, 1, 0.5)
	require.Greater(t, int(l.Grid[1]), 1)
	require.NoError(t, k.Run(ctx, l, y, x))
	for i := range x {
		if y[i] != x[i]+0.5 {
			require.Equal(t, x[i]+0.5, y[i], "i=%d", i)
		}
	}
}

func TestTensors(t *testing.T) {
	d := open(t)
	r := random(t)
	for _, n := range []int{0, 1, 2, 3, 5, 1023} {
		for _, data := range []any{floats(r, n), make([]int32, n), make([]uint32, n), make([]compute.F16, n)} {
			switch s := data.(type) {
			case []int32:
				for i := range s {
					s[i] = r.Int32() - 1<<30
				}
			case []uint32:
				for i := range s {
					s[i] = r.Uint32()
				}
			case []compute.F16:
				for i := range s {
					s[i] = compute.F16(r.Uint32())
				}
			}
			x, err := d.Upload(ctx, data)
			require.NoError(t, err)
			dt, _, _ := program.TypeOf(data)
			require.Equal(t, []int{n}, x.Shape())
			require.Equal(t, dt, x.DType())
			got := program.MakeSlice(program.Type{DType: dt, Shape: []int{n}})
			require.NoError(t, fetch(ctx, x, got))
			require.Equal(t, data, got)
			require.NoError(t, x.Close())
			require.NoError(t, x.Close())
			require.ErrorIs(t, fetch(ctx, x, got), compute.ErrClosed)
		}
	}
	idle(t, d)
}

// A tensor can be used before its upload has completed.
func TestTensorAtOnce(t *testing.T) {
	d := open(t)
	k := affine(t, d)
	x, f := d.UploadAsync([]float32{1, 2, 3}, 3)
	y, g := k.ApplyAsync(affineLaunch(3, 10, 0), compute.Float32, []int{3}, x)
	x.Close() // what runs keeps it alive
	z := make([]float32, 3)
	require.NoError(t, k.Run(ctx, affineLaunch(3, 1, 1), z, y))
	require.Equal(t, []float32{11, 21, 31}, z)
	require.NoError(t, f.Await(ctx))
	require.NoError(t, g.Await(ctx))
	y.Close()
	idle(t, d)
}

// The binding's own map calls die of this within a second.
func TestReadbackUnderGC(t *testing.T) {
	d := open(t)
	r := random(t)
	data := floats(r, 1000)
	x, err := d.Upload(ctx, data)
	require.NoError(t, err)
	defer x.Close()
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var keep [][]byte
			for i := 0; !stop.Load(); i++ {
				keep = append(keep, make([]byte, 1<<(i%16)))
				if i%256 == 0 {
					keep = nil
					runtime.GC()
					yield()
				}
			}
		}()
	}
	times := many
	if testing.Short() { // in addition to a whole run: without cgo, for the race detector
		times /= 4
	}
	for i := range times {
		got := make([]float32, len(data))
		require.NoError(t, fetch(ctx, x, got), "readback %d", i)
		require.Equal(t, data, got, "readback %d", i)
	}
	stop.Store(true)
	wg.Wait()
}

func TestShared(t *testing.T) {
	d := open(t)
	seed := random(t)
	var wg sync.WaitGroup
	for g := range 8 {
		x := floats(seed, 500+g)
		wg.Add(1)
		go func() {
			defer wg.Done()
			k, err := NewKernel(ctx, d, affineDesc())
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 60 {
				y := make([]float32, len(x))
				a, f := d.UploadAsync(x)
				b, h := k.ApplyAsync(affineLaunch(len(x), 2, float32(i)), compute.Float32, []int{len(x)}, a)
				if err := k.Run(ctx, affineLaunch(len(x), 1, float32(g)), y, b); err != nil {
					t.Error(err)
				}
				a.Close()
				b.Close()
				if err := errors.Join(f.Await(ctx), h.Await(ctx)); err != nil {
					t.Error(err)
				}
				for j := range x {
					if want := x[j]*2 + float32(i) + float32(g); abs(want-y[j]) > 1e-4 {
						t.Errorf("goroutine %d, run %d: y[%d] = %v, want %v", g, i, j, y[j], want)
						return
					}
				}
			}
		}()
	}
	wg.Wait()
	idle(t, d)
	s := d.Stats()
	require.EqualValues(t, 1, s.PipelineMisses, "eight goroutines want one pipeline")
}

func abs(x float32) float32 { return max(x, -x) }

func TestCancelledWait(t *testing.T) {
	d := open(t)
	k, l := slow(t, d)
	y := []float32{-7}
	// On a busy machine a run may not have begun at its deadline.
	for limit := 5 * time.Millisecond; d.Memory().InUse == 0; limit *= 2 {
		short, cancel := context.WithTimeout(ctx, limit)
		err := k.Run(short, l, y, []float32{1})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, "no run of %v has left anything for the GPU to use", limit)
	}
	y[0] = -8 // ours again
	idle(t, d)
	require.Equal(t, float32(-8), y[0], "an abandoned run must not write")
	require.NoError(t, k.Run(ctx, Launch{Grid: [3]uint32{1, 1, 1}, Params: []uint32{1}}, y, []float32{1}))
	require.NotEqual(t, float32(-8), y[0])
	require.Eventually(t, func() bool { return quiet(d) }, time.Minute, time.Millisecond, "nothing is going on on an idle device")
}

func TestCloseInFlight(t *testing.T) {
	d := open(t)
	k, l := slow(t, d)
	x, err := d.Upload(ctx, []float32{1, 2})
	require.NoError(t, err)
	y := make([]float32, 64)
	f := k.RunAsync(l, y, x)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.NoError(t, f.Await(ctx), "work in flight finishes")
	require.NotZero(t, y[63])

	_, err = d.Upload(ctx, []float32{1})
	require.ErrorIs(t, err, compute.ErrClosed)
	require.ErrorIs(t, k.Run(ctx, l, y, []float32{1}), compute.ErrClosed)
	require.ErrorIs(t, fetch(ctx, x, y[:2]), compute.ErrClosed)
	_, err = NewKernel(ctx, d, affineDesc())
	require.ErrorIs(t, err, compute.ErrClosed)
	require.NoError(t, x.Close())
	d.Trim()
	require.Eventually(t, func() bool { m := d.Memory(); return m.InUse+m.Cached == 0 }, time.Minute, time.Millisecond)
}

func TestBadInput(t *testing.T) {
	d, other := open(t), open(t)
	k := affine(t, d)
	foreign, err := other.Upload(ctx, []float32{1, 2, 3})
	require.NoError(t, err)
	defer foreign.Close()
	three, y := []float32{1, 2, 3}, make([]float32, 3)
	limits := d.Info().Limits
	kernel := func(change func(*KernelDesc)) error {
		desc := affineDesc()
		change(&desc)
		_, err := NewKernel(ctx, d, desc)
		return err
	}
	upload := func(data any, shape ...int) error {
		_, err := d.Upload(ctx, data, shape...)
		return err
	}
	launch := func(x, y, z uint32) Launch { return Launch{Grid: [3]uint32{x, y, z}, Params: []uint32{3}} }
	okay := affineLaunch(3, 2, 0)
	cases := []struct {
		name string
		err  error
		is   error
		text string
	}{
		{"upload nil", upload(nil), compute.ErrArgument, "nil"},
		{"upload of a wrong type", upload([]float64{1}), compute.ErrDType, "float64"},
		{"upload of a wrong length", upload(three, 2, 2), compute.ErrShape, "[2 2]"},
		{"upload of a negative shape", upload(three, -3), compute.ErrShape, "[-3]"},
		{"upload with too many axes", upload(three, 1, 1, 1, 1, 1, 1, 1, 1, 3), compute.ErrShape, "axes"},
		{"operand nil", k.Run(ctx, okay, y, nil), compute.ErrArgument, "operand 0"},
		{"operand missing", k.Run(ctx, okay, y), compute.ErrArgument, "takes 1 operands"},
		{"operand too many", k.Run(ctx, okay, y, three, three), compute.ErrArgument, "takes 1 operands, got [[3] [3]]"},
		{"operand of a wrong length", k.Run(ctx, okay, y, compute.Operand{Data: three, Shape: []int{4}}), compute.ErrShape, "[4]"},
		{"destination nil", k.Run(ctx, okay, nil, three), compute.ErrArgument, "destination"},
		{"destination of a wrong type", k.Run(ctx, okay, 5, three), compute.ErrDType, "int"},
		{"tensor of another device", k.Run(ctx, okay, y, foreign), compute.ErrForeignTensor, "[3]"},
		{"no workgroups", k.Run(ctx, launch(0, 1, 1), y, three), compute.ErrArgument, "affine [[3]]: grid [0 1 1]"},
		{"too many workgroups", k.Run(ctx, launch(1, limits.MaxWorkgroups+1, 1), y, three), compute.ErrTooLarge, "65535"},
		{"too many parameters", k.Run(ctx, Launch{Grid: [3]uint32{1, 1, 1}, Params: make([]uint32, 5)}, y, three), compute.ErrArgument, "5 parameters"},
		{"no WGSL", kernel(func(k *KernelDesc) { k.WGSL = "" }), compute.ErrArgument, "affine"},
		{"no bindings", kernel(func(k *KernelDesc) { k.Bindings = nil }), compute.ErrArgument, "0 bindings"},
		{"too few bindings", kernel(func(k *KernelDesc) { k.Bindings = unary[1:] }), compute.ErrArgument, "affine"},
		{"result not written", kernel(func(k *KernelDesc) { k.Bindings = []wgsl.Access{wgsl.Read} }), compute.ErrArgument, "ReadWrite"},
		{"operand written", kernel(func(k *KernelDesc) { k.Bindings = []wgsl.Access{wgsl.ReadWrite, wgsl.ReadWrite} }), compute.ErrArgument, "must be Read"},
		{"too many bindings", kernel(func(k *KernelDesc) {
			k.Bindings = append(make([]wgsl.Access, limits.MaxStorageBuffers), wgsl.ReadWrite)
		}), compute.ErrTooLarge, "storage buffers"},
		{"uniform missing", kernel(func(k *KernelDesc) { k.Uniform = 0 }), compute.ErrArgument, "affine"},
		{"uniform not a multiple", kernel(func(k *KernelDesc) { k.Uniform = 20 }), compute.ErrArgument, "multiple of 16"},
		{"uniform too large", kernel(func(k *KernelDesc) { k.Uniform = 512 }), compute.ErrArgument, "256"},
		{"workgroup empty", kernel(func(k *KernelDesc) { k.Workgroup = [3]uint32{64, 0, 1} }), compute.ErrArgument, "[64 0 1]"},
		{"workgroup too large", kernel(func(k *KernelDesc) { k.Workgroup = [3]uint32{1 << 20, 1, 1} }), compute.ErrTooLarge, "1048576"},
		{"workgroup memory", kernel(func(k *KernelDesc) { k.Shared = 1 << 30 }), compute.ErrTooLarge, "workgroup memory"},
		{"workgroup too large in the text only", kernel(func(k *KernelDesc) {
			k.WGSL = "@compute @workgroup_size(65536) fn main() {}"
		}), compute.ErrTooLarge, "affine"},
		{"workgroup too large by an override", kernel(func(k *KernelDesc) {
			k.WGSL = "override n: u32 = 1 << 16; @compute @workgroup_size(n) fn main() {}"
		}), compute.ErrTooLarge, "[65536 1 1]"},
		{"workgroup memory in the text only", kernel(func(k *KernelDesc) {
			k.WGSL = "var<workgroup> w: array<f32, 100000000>;" + k.WGSL
		}), compute.ErrTooLarge, "400000000 bytes of workgroup memory"},
		{"one float beyond the limit", kernel(func(k *KernelDesc) {
			k.WGSL = fmt.Sprintf("var<workgroup> w: array<f32, %d>;", limits.MaxShared/4+1) + k.WGSL
		}), compute.ErrTooLarge, "workgroup memory"},
		{"workgroup memory of a size unknown", kernel(func(k *KernelDesc) {
			k.WGSL = "override n: u32; var<workgroup> w: array<f32, n>;" + k.WGSL
		}), compute.ErrUnsupported, "workgroup variable w"},
		{"zero byte", kernel(func(k *KernelDesc) { k.WGSL += "\x00" }), compute.ErrArgument, "UTF-8"},
		{"not UTF-8", kernel(func(k *KernelDesc) { k.Label = "\xff" }), compute.ErrArgument, "UTF-8"},
		{"nil device", func() error { _, err := NewKernel(ctx, nil, affineDesc()); return err }(), compute.ErrArgument, "nil device"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorIs(t, c.err, c.is)
			require.ErrorContains(t, c.err, c.text)
			require.NoError(t, k.Run(ctx, okay, y, three), "the device stays usable")
			require.Equal(t, []float32{2, 4, 6}, y)
		})
	}
	idle(t, d)
}

func TestTooLarge(t *testing.T) {
	d := open(t, WithLimits(wgsl.Caps{MaxBuffer: 1 << 20, MaxBinding: 1 << 18}))
	require.EqualValues(t, 1<<20, d.Info().Limits.MaxBuffer)
	k := affine(t, d)
	_, err := d.Upload(ctx, make([]float32, 1<<18+4))
	require.ErrorIs(t, err, compute.ErrTooLarge)
	require.ErrorContains(t, err, "[262148]")
	n := 1<<16 + 4 // a buffer can hold it, a binding cannot
	err = k.Run(ctx, affineLaunch(n, 1, 0), make([]float32, n), make([]float32, n))
	require.ErrorIs(t, err, compute.ErrTooLarge)
	require.ErrorContains(t, err, "affine [[65540]]")
	n -= 4
	require.NoError(t, k.Run(ctx, affineLaunch(n, 1, 0), make([]float32, n), make([]float32, n)))
	idle(t, d)
}

// More inputs and results than one staging buffer holds.
func TestStagingSplits(t *testing.T) {
	d := open(t, WithLimits(wgsl.Caps{MaxBuffer: 1 << 16, MaxBinding: 1 << 16}))
	r := random(t)
	p, io := &program.Program{}, &program.IO{}
	for range 5 {
		s := p.Add(program.F32(10_000), program.FromHost)
		p.Read = append(p.Read, s)
		io.Host = append(io.Host, floats(r, 10_000))
		io.Read = append(io.Read, make([]float32, 10_000))
	}
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	require.NoError(t, x.Start(io).Await(ctx))
	require.Equal(t, io.Host, io.Read)
	require.NoError(t, x.Close())
	idle(t, d)
}

func TestDefaultLimits(t *testing.T) {
	d := open(t, WithDefaultLimits())
	require.Equal(t, wgsl.DefaultCaps, d.Info().Limits)
	k := affine(t, d)
	y := make([]float32, 100)
	require.NoError(t, k.Run(ctx, affineLaunch(100, 0, 3), y, make([]float32, 100)))
	require.Equal(t, float32(3), y[99])
}

// What a compiler finds has the line where it is, the kernel's label and a message, whose words are the compiler's own.
func TestShaderError(t *testing.T) {
	d := open(t)
	for name, c := range map[string]struct {
		wgsl string
		line int
		is   error
	}{
		"type":       {"\n  fn f() {\n    let x: i32 = 1.5;\n}", 3, compute.ErrArgument},
		"syntax":     {"\n\n  @compute fn main(", 3, compute.ErrArgument},
		"name":       {"fn f() { let a = foo(3); }", 1, compute.ErrArgument},
		"validation": {"@compute @workgroup_size(64) fn main() { var x = 3; x = 3.5f; }", 1, compute.ErrArgument},
		"entry":      {"@compute @workgroup_size(64) fn other() {}", 0, compute.ErrArgument},
		"binding":    {"@group(0) @binding(7) var<storage, read> x: array<f32>;\n@compute @workgroup_size(1) fn main() { let a = x[0]; }", 0, compute.ErrArgument},
		"deep":       {"fn f() -> i32 { return " + repeat("(", 100_000) + "1" + repeat(")", 100_000) + "; }", 0, compute.ErrUnsupported},
		"prefix":     {"fn f() -> i32 { return " + repeat("- ", 100_000) + "1; }", 0, compute.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewKernel(ctx, d, KernelDesc{Label: "mine", WGSL: c.wgsl, Bindings: unary, Workgroup: [3]uint32{1, 1, 1}})
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, "mine")
			if c.is == compute.ErrUnsupported {
				return // refused before a compiler sees it
			}
			var s *ShaderError
			require.ErrorAs(t, err, &s)
			require.Equal(t, c.line, s.Line, s.Details)
			require.Equal(t, c.line > 0, s.Column > 0, s.Details)
			require.NotEmpty(t, s.Message)
			require.NotContains(t, s.Message, "\n")
			require.Equal(t, "mine", s.Label)
		})
	}
	deepest := fmt.Sprintf("fn f() -> i32 { return %s1%s; }\n", repeat("(", maxNesting-1), repeat(")", maxNesting-1))
	_, err := NewKernel(ctx, d, KernelDesc{WGSL: deepest + affineWGSL, Bindings: unary, Uniform: 16, Workgroup: [3]uint32{64, 1, 1}})
	require.NoError(t, err, "the deepest text let through must compile")
}

func repeat(s string, n int) string {
	b := make([]byte, 0, len(s)*n)
	for range n {
		b = append(b, s...)
	}
	return string(b)
}

// The catalogue's operations reach the device through the embedded methods.
func TestOps(t *testing.T) {
	d := open(t)
	r := random(t)
	x := floats(r, 1000)
	y := make([]float32, len(x))
	require.NoError(t, d.ReLU(ctx, y, x))
	for i := range x {
		require.Equal(t, max(x[i], 0), y[i])
	}
	require.ErrorIs(t, d.ReLU(ctx, y[:5], x), compute.ErrShape)
	require.NoError(t, d.ReLU(ctx, []float32{}, []float32{}), "empty tensors are fine")
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.ReLU(ctx, y, x), compute.ErrClosed)
}

// A buffer smaller than the type in the WGSL is refused, and so is a uniform.
func TestSmallBuffers(t *testing.T) {
	d := open(t)
	k, err := NewKernel(ctx, d, KernelDesc{Label: "fixed", Bindings: unary, Workgroup: [3]uint32{1, 1, 1}, WGSL: `
struct S { a: array<f32, 64>, b: f32 }
@group(0) @binding(0) var<storage, read> x: S;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { y[0] = x.b; }`})
	require.NoError(t, err)
	x, y := make([]float32, 65), make([]float32, 4)
	x[64] = 7
	err = k.Run(ctx, Launch{Grid: [3]uint32{1, 1, 1}}, y, x[:64])
	require.ErrorIs(t, err, compute.ErrArgument)
	require.ErrorContains(t, err, "256 bytes")
	require.NoError(t, k.Run(ctx, Launch{Grid: [3]uint32{1, 1, 1}}, y, x))
	require.Equal(t, float32(7), y[0])

	desc := affineDesc()
	desc.WGSL = strings.Replace(desc.WGSL, "struct Params {", "struct Params { more: vec4<u32>,", 1)
	_, err = NewKernel(ctx, d, desc)
	require.ErrorIs(t, err, compute.ErrArgument)
}

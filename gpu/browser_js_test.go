package gpu

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"syscall/js"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

func TestBrowserInfo(t *testing.T) {
	i := open(t).Info()
	t.Logf("%+v", i)
	require.Equal(t, Software, i.Type)
	require.Equal(t, "browser", i.Backend)
	require.NotEmpty(t, i.Architecture)
	require.NotEmpty(t, i.VendorName)
	require.Contains(t, i.Name, i.VendorName)
	if i.has("subgroups") {
		require.LessOrEqual(t, i.SubgroupMin, i.SubgroupMax)
		require.Positive(t, i.SubgroupMin)
	}
	require.ErrorIs(t, Available(ctx), compute.ErrUnavailable)
	require.ErrorContains(t, Available(ctx), "WithSoftware")
	list, err := Adapters(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1, "the same adapter, whatever is asked for")
}

// Features that are granted can be used.
func TestBrowserFeatures(t *testing.T) {
	d := open(t)
	for feature, text := range map[string]string{
		"shader-f16": "enable f16;\n" + strings.Replace(affineWGSL, "x[i] * p.scale", "f32(f16(x[i])) * p.scale", 1),
		"subgroups": "enable subgroups;\n" + strings.Replace(affineWGSL, "if (i < p.n)", `let sum = subgroupAdd(0u);
  if (i < p.n + sum)`, 1),
	} {
		if !d.Info().has(feature) {
			t.Logf("%s is not offered", feature)
			continue
		}
		desc := affineDesc()
		desc.WGSL = text
		k, err := NewKernel(ctx, d, desc)
		require.NoError(t, err, feature)
		y := make([]float32, 3)
		require.NoError(t, k.Run(ctx, affineLaunch(3, 2, 1), y, []float32{1, 2, 3}), feature)
		require.Equal(t, []float32{3, 5, 7}, y, feature)
	}
}

// later runs f in a function that JavaScript calls, in which nothing may wait.
func later(f func()) {
	var call js.Func
	call = js.FuncOf(func(js.Value, []js.Value) any {
		defer call.Release()
		f()
		return nil
	})
	js.Global().Call("setTimeout", call, 0)
}

// Everything but opening can be done in a function called by JavaScript.
func TestInsideCallback(t *testing.T) {
	d := open(t)
	type result struct {
		f *compute.Future
		y []float32
	}
	got := make(chan result, 3)
	later(func() {
		y := make([]float32, 3)
		got <- result{d.ReLUAsync(y, []float32{-1, 0, 2}), y}
		k, f := NewKernelAsync(d, affineDesc())
		got <- result{f, nil}
		x, _ := d.UploadAsync([]float32{1, 2, 3})
		z := make([]float32, 3)
		got <- result{k.RunAsync(affineLaunch(3, 2, 0), z, x), z}
		x.Close()
	})
	for _, want := range [][]float32{{0, 0, 2}, nil, {2, 4, 6}} {
		r := <-got
		require.NoError(t, r.f.Await(ctx))
		require.Equal(t, want, r.y)
	}
	idle(t, d)
}

// What does not come into being is told with the first run that uses it, and by nothing else.
func TestLateErrors(t *testing.T) {
	d := open(t)
	k := affine(t, d)
	d.pool.maxBuffer = 1 << 50 // let what the browser must refuse get there
	b, err := d.pool.get(webgpu.StorageBuffer, 1<<45)
	require.NoError(t, err)
	x := newTensor(d, program.F32(3), b)
	y := make([]float32, 3)
	err = k.Run(ctx, affineLaunch(3, 1, 0), y, x)
	require.ErrorContains(t, err, "create a storage buffer of 35184372088832 bytes")
	_, _, _, err = x.GPUBuffer()
	require.ErrorContains(t, err, "create a storage buffer")
	require.NoError(t, x.Close())
	idle(t, d)
	require.Zero(t, d.Memory().Cached&(1<<45), "what failed is not kept")

	real := d.lowerStep
	d.lowerStep = func(s *program.Step, in, out []program.Type, caps *wgsl.Caps, choose lowering.Chooser) (wgslkernels.Lowering, error) {
		l, err := real(s, in, out, caps, choose)
		broken := *l.Actions[0].Launch.Kernel
		broken.Key, broken.Source = "broken", "\n  fn f( {"+broken.Source
		l.Actions[0].Launch.Kernel = &broken
		return l, err
	}
	for range 2 {
		err = d.ReLU(ctx, y, []float32{1, 2, 3})
		var s *ShaderError
		require.ErrorAs(t, err, &s)
		require.Equal(t, 2, s.Line)
		require.Equal(t, "broken", s.Label)
	}
	d.lowerStep = real
	require.NoError(t, d.ReLU(ctx, y, []float32{1, -2, 3}))
	require.Equal(t, []float32{1, 0, 3}, y)
	idle(t, d)
}

// Work on what a failed run was to fill fails as well.
func TestErrorsSpread(t *testing.T) {
	d := open(t)
	k := affine(t, d)
	event := js.Global().Get("GPUUncapturedErrorEvent").New("uncapturederror",
		map[string]any{"error": js.Global().Get("GPUOutOfMemoryError").New("injected")})
	d.GPUDevice().Call("dispatchEvent", event) // told with the next submission
	x, f := d.UploadAsync([]float32{1, 2, 3})
	y, g := k.ApplyAsync(affineLaunch(3, 1, 1), compute.Float32, []int{3}, x)
	require.ErrorIs(t, f.Await(ctx), compute.ErrOutOfMemory)
	require.ErrorIs(t, g.Await(ctx), compute.ErrOutOfMemory)
	require.ErrorIs(t, fetch(ctx, y, make([]float32, 3)), compute.ErrOutOfMemory)
	x.Close()
	y.Close()
	z := make([]float32, 3)
	require.NoError(t, k.Run(ctx, affineLaunch(3, 1, 1), z, []float32{1, 2, 3}))
	require.Equal(t, []float32{2, 3, 4}, z)
	idle(t, d)
}

// Errors that no scope catches come with the next run.
func TestUncaptured(t *testing.T) {
	d := open(t)
	d.GPUDevice().Call("createBuffer", map[string]any{"size": 16, "usage": bufferMapRead | bufferMapWrite})
	y := make([]float32, 1)
	require.Error(t, d.ReLU(ctx, y, []float32{1}))
	require.NoError(t, d.ReLU(ctx, y, []float32{1}))
}

// await waits for a promise.
func await(t *testing.T, promise js.Value) js.Value {
	kept := make(chan js.Value, 1)
	resolved := js.FuncOf(func(_ js.Value, args []js.Value) any { kept <- args[0]; return nil })
	rejected := js.FuncOf(func(_ js.Value, args []js.Value) any {
		t.Error("promise rejected: ", args[0].Call("toString").String())
		kept <- js.Null()
		return nil
	})
	defer resolved.Release()
	defer rejected.Release()
	promise.Call("then", resolved, rejected)
	return <-kept
}

// WebGPU's usage flags of buffers.
const (
	bufferMapRead, bufferMapWrite, bufferCopySrc, bufferCopyDst, bufferStorage = 1, 2, 4, 8, 128
)

// requestDevice opens a device as a page does.
func requestDevice(t *testing.T) js.Value {
	adapter := await(t, js.Global().Get("navigator").Get("gpu").Call("requestAdapter"))
	return await(t, adapter.Call("requestDevice"))
}

func TestInterop(t *testing.T) {
	page := requestDevice(t)
	before := webgpu.Live()
	d, err := AdoptDevice(page, WithTuneCache(tuneDir(t)))
	require.NoError(t, err)
	require.True(t, d.GPUDevice().Equal(page))
	require.Equal(t, Software, d.Info().Type)
	k := affine(t, d)

	// Elements in the page's buffer, from byte 256 on.
	buffer := page.Call("createBuffer", map[string]any{"size": 512, "usage": bufferStorage | bufferCopySrc | bufferCopyDst})
	words := js.Global().Get("Float32Array").New(3)
	for i := range 3 {
		words.SetIndex(i, i+5)
	}
	page.Get("queue").Call("writeBuffer", buffer, 256, words)
	x, err := d.ImportBuffer(buffer, 256, compute.Float32, 3)
	require.NoError(t, err)
	got := make([]float32, 3)
	require.NoError(t, fetch(ctx, x, got))
	require.Equal(t, []float32{5, 6, 7}, got)

	// The result is read by the page.
	y, f := k.ApplyAsync(affineLaunch(3, 2, 1), compute.Float32, []int{3}, x)
	require.NotNil(t, y, f.Err())
	out, offset, size, err := y.(*Tensor).GPUBuffer()
	require.NoError(t, err)
	require.EqualValues(t, 12, size)
	staging := page.Call("createBuffer", map[string]any{"size": 16, "usage": bufferMapRead | bufferCopyDst})
	encoder := page.Call("createCommandEncoder")
	encoder.Call("copyBufferToBuffer", out, float64(offset), staging, 0, 12)
	page.Get("queue").Call("submit", []any{encoder.Call("finish")})
	await(t, staging.Call("mapAsync", 1)) // for reading
	result := js.Global().Get("Float32Array").New(staging.Call("getMappedRange"))
	for i, want := range []float64{11, 13, 15} {
		require.Equal(t, want, result.Index(i).Float())
	}
	require.NoError(t, f.Await(ctx))
	require.NoError(t, y.Close())
	_, _, _, err = y.(*Tensor).GPUBuffer()
	require.ErrorIs(t, err, compute.ErrClosed)
	require.NoError(t, x.Close())
	require.Equal(t, "unmapped", buffer.Get("mapState").String())
	idle(t, d)

	for name, c := range map[string]struct {
		buffer js.Value
		offset uint64
		shape  []int
		is     error
	}{
		"no buffer":   {js.Null(), 0, []int{3}, compute.ErrArgument},
		"shape":       {buffer, 0, []int{-1}, compute.ErrShape},
		"alignment":   {buffer, 4, []int{3}, compute.ErrArgument},
		"too short":   {buffer, 256, []int{65}, compute.ErrShape},
		"beyond":      {buffer, 1024, []int{1}, compute.ErrShape},
		"mapped":      {staging, 0, []int{1}, compute.ErrArgument},
		"wrong usage": {page.Call("createBuffer", map[string]any{"size": 512, "usage": bufferStorage}), 0, []int{1}, compute.ErrArgument},
	} {
		_, err := d.ImportBuffer(c.buffer, c.offset, compute.Float32, c.shape...)
		require.ErrorIs(t, err, c.is, name)
	}
	require.NoError(t, d.Close())
	_, err = d.ImportBuffer(buffer, 0, compute.Float32, 3)
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = AdoptDevice(js.Global())
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = AdoptDevice(page, WithLimits(wgsl.Caps{MaxBuffer: 1 << 50}))
	require.ErrorIs(t, err, compute.ErrUnsupported)

	// The page's device lives on, and its loss is nobody's business any more.
	page.Call("pushErrorScope", "validation")
	page.Call("createBuffer", map[string]any{"size": 16, "usage": bufferStorage})
	require.True(t, await(t, page.Call("popErrorScope")).IsNull())
	page.Call("destroy")
	require.Eventually(t, func() bool { return webgpu.Live() == before }, time.Minute, time.Millisecond, "%d functions, %d before", webgpu.Live(), before)
}

// held counts the JavaScript values that Go holds.
func held() int {
	runtime.GC()
	time.Sleep(5 * time.Millisecond) // finalizers
	program := js.Global().Get("goProgram")
	return program.Get("_values").Length() - program.Get("_idPool").Length()
}

// 10,000 runs leave nothing behind.
func TestNoLeak(t *testing.T) {
	d := open(t)
	x, err := program.ExecutorOf(d).Compile(t.Context(), chain(t, affine(t, d), 64, 2))
	require.NoError(t, err)
	in, out := make([]float32, 64), make([]float32, 64)
	const together = 50
	runs := func(n int) {
		for range n / together {
			var all []*compute.Future
			for range together {
				all = append(all, x.Start(&program.IO{Host: []any{in}, Read: []any{out}}))
			}
			for _, f := range all {
				require.NoError(t, f.Await(ctx))
			}
		}
	}
	memory := func() (values, heap, functions int) {
		var m runtime.MemStats
		values = held()
		runtime.ReadMemStats(&m)
		return values, int(m.HeapAlloc), webgpu.Live()
	}
	runs(1000)
	idle := d.Memory()
	values, heap, functions := memory()
	runs(10_000)
	valuesAfter, heapAfter, functionsAfter := memory()
	t.Logf("values %d → %d, heap %d → %d, functions %d → %d", values, valuesAfter, heap, heapAfter, functions, functionsAfter)
	require.InDelta(t, values, valuesAfter, 100)
	require.Less(t, heapAfter, heap+1<<20)
	require.Equal(t, functions, functionsAfter)
	require.LessOrEqual(t, d.Memory().Buffers, idle.Buffers)
	x.Close()
	require.NoError(t, d.Close())
}

// A context that ends while Open waits ends the wait.
func TestOpenGivesUp(t *testing.T) {
	short, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	time.Sleep(time.Millisecond)
	_, err := webgpu.Adapters(short, "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// What our layer takes to record a dispatch: a run of one against one of 1,001, both without the wait for the device.
func BenchmarkDispatch(b *testing.B) {
	d := open(b)
	k := affine(b, d)
	in, out := make([]float32, 64), make([]float32, 64)
	start := func(steps int) func() time.Duration {
		x, err := program.ExecutorOf(d).Compile(b.Context(), chain(b, k, 64, steps))
		require.NoError(b, err)
		b.Cleanup(func() { x.Close() })
		return func() time.Duration {
			t := time.Now()
			f := x.Start(&program.IO{Host: []any{in}, Read: []any{out}})
			took := time.Since(t)
			require.NoError(b, f.Await(ctx))
			return took
		}
	}
	const more = 1000
	one, many := start(1), start(1+more)
	one()
	many() // makes the bind groups
	var few, all time.Duration
	n := 0
	for b.Loop() {
		few += one()
		all += many()
		n++
	}
	b.ReportMetric(float64((all-few).Microseconds())/float64(n*more), "µs/dispatch")
	b.ReportMetric(float64(few.Microseconds())/float64(n), "µs/run")
}

// The same with a bind group made for each dispatch, because each run is on another tensor.
func BenchmarkDispatchRebound(b *testing.B) {
	const steps = 500
	d := open(b)
	k := affine(b, d)
	p := &program.Program{}
	s := p.Add(program.F32(64), program.FromTensor)
	for range steps {
		_, err := p.ApplyKernel(k, program.Attr{Options: affineLaunch(64, 2, 1)}, program.F32(64), s)
		require.NoError(b, err)
	}
	x, err := program.ExecutorOf(d).Compile(b.Context(), p)
	require.NoError(b, err)
	defer x.Close()
	var tensors [2]compute.Tensor
	for i := range tensors {
		tensors[i], err = d.Upload(ctx, make([]float32, 64))
		require.NoError(b, err)
	}
	var took time.Duration
	n := 0
	for b.Loop() {
		t := time.Now()
		f := x.Start(&program.IO{Tensors: []compute.Tensor{tensors[n%2]}})
		took += time.Since(t)
		require.NoError(b, f.Await(ctx))
		n++
	}
	b.ReportMetric(float64(took.Microseconds())/float64(n*steps), "µs/dispatch")
}

// A browser's clock is coarse, so that short kernels are measured in rows.
func TestTune(t *testing.T) {
	d := open(t, WithAutotune(compute.TuneCached))
	p := &program.Program{}
	y, err := p.Apply(catalogue.Lookup("softmax"), program.Attr{}, p.Add(program.F32(8, 1000), program.FromHost))
	require.NoError(t, err)
	p.Read = []program.Slot{y}
	list, err := executor{d}.Tune(ctx, p)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "rows", list[0].Class)
	require.Equal(t, []string{"tree", "subgroups"}, list[0].Variants)
	require.Positive(t, list[0].Median[0])
	t.Logf("%+v", list)
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	require.NoError(t, x.Close())
	require.Equal(t, []compute.Choice{{Class: "rows", Problem: list[0].Problem, Variant: list[0].Winner, Why: "measured", Uses: 1}}, d.Choices())
	idle(t, d)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = executor{d}.Tune(ended, p)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, d.Close())
	_, err = executor{d}.Tune(ctx, p)
	require.ErrorIs(t, err, compute.ErrClosed)
}

// A buffer as large as the adapter allows, which SwiftShader refuses when it comes to allocate it; should one allow it, the run works.
// Nothing is injected, and nothing is filled, so that it costs the machine nothing. That many buffers together are too much cannot be
// provoked so: SwiftShader takes them from the process until the machine has no more, and then the browser ends the process rather than
// let an allocation fail. What becomes of that, a lost device, is what TestGPUProcessEnds of wasm/browser sees.
func TestOutOfMemory(t *testing.T) {
	d := open(t)
	n := int(d.Info().Limits.MaxBuffer / 4)
	fill := func(n int) ([]compute.Tensor, error) {
		p := &program.Program{}
		y, err := p.Apply(catalogue.Fill, program.Attr{Scalars: []float32{7}, Options: compute.FillOptions{Shape: []int{n}}})
		require.NoError(t, err)
		p.Keep = []program.Slot{y}
		x, err := program.ExecutorOf(d).Compile(t.Context(), p)
		require.NoError(t, err)
		io := &program.IO{Keep: make([]compute.Tensor, 1)}
		err = x.Start(io).Await(ctx)
		require.NoError(t, x.Close())
		return io.Keep, err
	}
	for range 2 {
		kept, err := fill(n)
		if err == nil {
			require.NoError(t, kept[0].Close())
			continue
		}
		require.ErrorIs(t, err, compute.ErrOutOfMemory)
		require.NoError(t, kept[0].Close())
		require.ErrorContains(t, err, strconv.Itoa(4*n)+" bytes")
	}
	kept, err := fill(5) // it goes on
	require.NoError(t, err)
	y := make([]float32, 5)
	require.NoError(t, fetch(ctx, kept[0], y))
	require.Equal(t, []float32{7, 7, 7, 7, 7}, y)
	require.NoError(t, kept[0].Close())
	idle(t, d)
}

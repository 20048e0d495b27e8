package misuse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/wgsl"
)

const (
	deadline = 100 * time.Millisecond
	// A machine with two cores, all of which the software GPUs use, may leave a goroutine waiting for as long as this. What would wait
	// for the device waits for longer: busy is the least time that its kernel takes.
	overrun = 500 * time.Millisecond
	busy    = time.Second
)

// target is a device and what can be done with it.
type target struct {
	device batch.Device
	ops    compute.Ops
	spin   func(ctx context.Context, time time.Duration) error // runs a kernel of the user's that takes about so long
	load   func(ctx context.Context, number uint64) error      // makes a kernel of the user's of a text with the number in it
	reopen func(ctx context.Context) error                     // opens and closes another device of the kind
	close  func() error
}

// targets are devices of each kind.
var targets = map[string]func(t *testing.T) *target{"cpu": openCPU, "webgpu": openWebGPU, "cuda": openCUDA, "cuda checked": openChecked}

// Deadlines hold whatever the device does: computing, compiling, loading, tuning, copying, opening and closing. Each state is some of
// these at random, then one call of another goroutine's.
func TestDeadlines(t *testing.T) {
	states := 4
	if os.Getenv("WAVELANE_PROOFS") == "all" {
		states = 100
	}
	for name, open := range targets {
		t.Run(name, func(t *testing.T) {
			largest, where := time.Duration(0), ""
			seed := testseed.Of(t)
			for i := range states {
				var over time.Duration
				var state string
				// What waits for the device does so every time, and what waited for a core of a busy machine does not.
				for range 3 {
					if over, state = oneState(t, open(t), rand.New(rand.NewPCG(seed, uint64(i)))); over <= overrun {
						break
					}
				}
				if over > largest {
					largest, where = over, state
				}
				if over > overrun {
					t.Errorf("state %d, %s: returned %v after its deadline", i, state, over)
				}
			}
			t.Logf("%d states, a deadline of %v: the largest overrun is %v, %s", states, deadline, largest, where)
		})
	}
}

// oneState brings the device into a state, and returns how much later than its deadline a call returned.
func oneState(t *testing.T, d *target, r *rand.Rand) (over time.Duration, state string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	defer func() {
		cancel()
		work.Wait()
		if err := d.close(); err != nil {
			t.Errorf("%s: close: %v", state, err)
		}
	}()
	state = "idle"
	for range r.IntN(3) {
		name, do := activity(d, r)
		if r.IntN(10) == 0 {
			name, do = "closing", func(context.Context) error { return d.close() }
		}
		state += ", " + name
		work.Go(func() {
			if err := do(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, compute.ErrClosed) {
				t.Errorf("%s in the background: %v", name, err)
			}
		})
	}
	time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	name, call := activity(d, r)
	state += ", then " + name
	limited, end := context.WithTimeout(ctx, deadline)
	defer end()
	start := time.Now()
	err := call(limited)
	over = time.Since(start) - deadline
	closed := errors.Is(err, compute.ErrClosed) && strings.Contains(state, "closing")
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !closed {
		t.Errorf("%s: %v", state, err)
	}
	return over, state
}

// activity is something to do with a device, which may take long.
func activity(d *target, r *rand.Rand) (name string, do func(ctx context.Context) error) {
	const n = 96
	x, y := make([]float32, n*n), make([]float32, n*n)
	seed := r.Uint64()
	r = rand.New(rand.NewPCG(seed, 0))
	all := []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"a kernel", func(ctx context.Context) error { return d.spin(ctx, busy) }},
		{"an operation", func(ctx context.Context) error { return d.ops.ReLU(ctx, y, x) }},
		{"a start", func(ctx context.Context) error { return d.ops.TanhAsync(y, x).AwaitOrAbandon(ctx) }},
		{"loading", func(ctx context.Context) error { return d.load(ctx, seed) }},
		{"a product", func(ctx context.Context) error { return d.ops.MatMul(ctx, y, x, x, n, n, n) }},
		{"softmax", func(ctx context.Context) error { return d.ops.Softmax(ctx, y, x, n, n) }},
		{"an upload", func(ctx context.Context) error {
			tensor, err := d.ops.Upload(ctx, make([]float32, 4<<20))
			if err == nil {
				err = tensor.Close()
			}
			return err
		}},
		{"a readback", func(ctx context.Context) error {
			tensor, err := d.ops.Upload(ctx, x)
			if err != nil {
				return err
			}
			defer tensor.Close()
			return compute.Read(ctx, tensor, y)
		}},
		{"an expression", func(ctx context.Context) error {
			b := batch.New(d.device)
			b.ReadInto(expression(b, b.Upload(x, n, n), r), y)
			return b.Run(ctx)
		}},
		{"replays", func(ctx context.Context) error {
			b := batch.New(d.device)
			b.ReadInto(expression(b, b.Upload(x, n, n), r), y)
			plan, err := b.Compile(ctx)
			if err != nil {
				return err
			}
			defer plan.Close()
			for range 20 {
				if err := plan.Run(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
		{"tuning", func(ctx context.Context) error {
			b := batch.New(d.device)
			v := b.Upload(x, n, n)
			b.ReadInto(b.MatMul(b.Softmax(v), v), y)
			plan, err := b.Compile(ctx)
			if err != nil {
				return err
			}
			defer plan.Close()
			_, err = plan.Tune(ctx)
			return err
		}},
		{"opening", d.reopen},
	}
	c := all[r.IntN(len(all))]
	return c.name, c.do
}

// expression is a chain of elementwise operations at random, for which no device has compiled code.
func expression(b *batch.Batch, v batch.Value, r *rand.Rand) batch.Value {
	for range 2 + r.IntN(6) {
		v = []func(batch.Value) batch.Value{b.Sin, b.Tanh, b.Sigmoid, b.ReLU, b.Abs, b.Exp}[r.IntN(6)](v)
	}
	return v
}

func must[T any](t *testing.T) func(x T, err error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func openCPU(t *testing.T) *target {
	d := must[*cpu.Device](t)(cpu.Open(t.Context()))
	k := must[*cpu.Kernel](t)(cpu.NewKernel(d, "wait", func(_ compute.Operand, _ []compute.Operand, launch any) error {
		time.Sleep(launch.(time.Duration))
		return nil
	}))
	return &target{d, d.Ops, func(ctx context.Context, long time.Duration) error {
		b := batch.New(d)
		b.ReadInto(b.Kernel(k, long, compute.Float32, []int{1}), make([]float32, 1))
		return b.Run(ctx)
	}, func(_ context.Context, number uint64) error {
		_, err := cpu.NewKernel(d, fmt.Sprint(number), func(compute.Operand, []compute.Operand, any) error { return nil })
		return err
	}, func(ctx context.Context) error {
		other, err := cpu.Open(ctx)
		if err == nil {
			err = other.Close()
		}
		return err
	}, d.Close}
}

// spinWGSL takes time in proportion to its workgroups.
const spinWGSL = `
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var v = f32(id.x);
  for (var i = 0u; i < 60000u; i++) { v = fract(v * 1.7) + 0.1; }
  y[0] = v;
}`

func openWebGPU(t *testing.T) *target {
	ctx := t.Context()
	open := func(ctx context.Context) (*gpu.Device, error) {
		return gpu.Open(ctx, gpu.WithSoftware(), gpu.WithTuneCache(cacheDir(t)))
	}
	d := must[*gpu.Device](t)(open(ctx))
	k := must[*gpu.Kernel](t)(gpu.NewKernel(ctx, d, gpu.KernelDesc{WGSL: spinWGSL, Bindings: []wgsl.Access{wgsl.ReadWrite}, Workgroup: [3]uint32{64, 1, 1}}))
	groups, took := uint32(2), time.Duration(0)
	for took < 30*time.Millisecond && groups < 1<<14 {
		groups *= 2
		start := time.Now()
		if err := k.Run(ctx, gpu.Launch{Grid: [3]uint32{groups, 1, 1}}, make([]float32, 4)); err != nil {
			t.Fatal(err)
		}
		took = time.Since(start)
	}
	return &target{d, d.Ops, func(ctx context.Context, long time.Duration) error {
		n := min(65_535, uint32(float64(groups)*float64(long)/float64(took)))
		return k.Run(ctx, gpu.Launch{Grid: [3]uint32{n, 1, 1}}, make([]float32, 4))
	}, func(ctx context.Context, number uint64) error {
		text := strings.Replace(spinWGSL, "1.7", fmt.Sprintf("1.%d", number), 1)
		_, err := gpu.NewKernel(ctx, d, gpu.KernelDesc{WGSL: text, Bindings: []wgsl.Access{wgsl.ReadWrite}, Workgroup: [3]uint32{64, 1, 1}})
		return err
	}, func(ctx context.Context) error {
		other, err := open(ctx)
		if err == nil {
			err = other.Close()
		}
		return err
	}, d.Close}
}

const spinPTX = `.version 8.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u32 n)
{
	.reg .b32 %r<3>;
	.reg .pred %p<2>;
	ld.param.u32 %r1, [n];
	mov.u32 %r2, 0;
again:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %r1;
	@%p1 bra again;
	ret;
}
`

func openCUDA(t *testing.T) *target { return openSoftware(t) }

func openChecked(t *testing.T) *target { return openSoftware(t, cuda.SoftwareOptions{Checked: true}) }

func openSoftware(t *testing.T, o ...cuda.SoftwareOptions) *target {
	open := func(ctx context.Context) (*cuda.Device, error) {
		return cuda.Open(ctx, cuda.WithSoftware(o...), cuda.WithCache(cacheDir(t)))
	}
	d := must[*cuda.Device](t)(open(t.Context()))
	m := must[*cuda.Module](t)(d.Load(spinPTX))
	k := must[*cuda.Kernel](t)(m.Kernel("spin"))
	run := func(ctx context.Context, n uint32) error {
		s, err := d.NewStream(cuda.StreamOptions{})
		if err != nil {
			return err
		}
		defer s.Close()
		rec, err := s.Begin()
		if err != nil {
			return err
		}
		if err := rec.Launch(k, cuda.Launch{Block: [3]uint32{1}}, args.U32(n)); err != nil {
			return err
		}
		w, err := rec.Submit()
		if err != nil {
			return err
		}
		_, err = w.Wait(ctx)
		return err
	}
	n, took := uint32(1), time.Duration(0)
	for took < 30*time.Millisecond {
		n *= 2
		start := time.Now()
		if err := run(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		took = time.Since(start)
	}
	return &target{d, d.Ops, func(ctx context.Context, long time.Duration) error {
		return run(ctx, uint32(float64(n)*float64(long)/float64(took)))
	}, func(_ context.Context, number uint64) error {
		m, err := d.Load(strings.ReplaceAll(spinPTX, "again", fmt.Sprintf("again%d", number)))
		if err == nil {
			err = m.Close()
		}
		return err
	}, func(ctx context.Context) error {
		other, err := open(ctx)
		if err == nil {
			err = other.Close()
		}
		return err
	}, d.Close}
}

// Close does not wait for a kernel that runs; the kernel finishes, and what is called later is refused.
func TestCloseOfABusyDevice(t *testing.T) {
	for name, open := range targets {
		t.Run(name, func(t *testing.T) {
			var took time.Duration
			for range 3 { // as above
				d := open(t)
				done := make(chan error, 1)
				go func() { done <- d.spin(context.Background(), busy) }()
				time.Sleep(50 * time.Millisecond)
				start := time.Now()
				if err := d.close(); err != nil {
					t.Fatal(err)
				}
				took = time.Since(start)
				if err := d.ops.ReLU(context.Background(), make([]float32, 1), make([]float32, 1)); !errors.Is(err, compute.ErrClosed) {
					t.Errorf("an operation of a closed device: %v", err)
				}
				if err := <-done; err != nil && !errors.Is(err, compute.ErrClosed) { // it may not have begun
					t.Errorf("the kernel: %v", err)
				}
				if took <= overrun {
					break
				}
			}
			if t.Logf("closed in %v", took); took > overrun {
				t.Errorf("Close took %v while a kernel of %v ran", took, busy)
			}
		})
	}
}

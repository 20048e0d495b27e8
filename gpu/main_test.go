package gpu

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/wgsl"
)

var ctx = context.Background()

// open opens a software device for a test. Without one the test fails: a suite that skips itself proves nothing.
func open(t testing.TB, opts ...Option) *Device {
	t.Helper()
	d, err := Open(ctx, append([]Option{WithSoftware(), WithTuneCache(tuneDir(t))}, opts...)...)
	require.NoError(t, err, noAdapter)
	t.Cleanup(func() { d.Close() })
	return d
}

// random returns the random numbers of a test.
func random(t testing.TB) *rand.Rand { return testseed.Rand(t) }

func floats(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32()*8 - 4
	}
	return x
}

var unary = []wgsl.Access{wgsl.Read, wgsl.ReadWrite}

// affineWGSL computes y = x·p.scale + p.add with a grid of any shape.
const affineWGSL = `
struct Params { n: u32, scale: f32, add: f32, pad: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(num_workgroups) g: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  let i = ((w.z * g.y + w.y) * g.x + w.x) * 64u + l;
  if (i < p.n) { y[i] = x[i] * p.scale + p.add; }
}`

func affineDesc() KernelDesc {
	return KernelDesc{Label: "affine", WGSL: affineWGSL, Bindings: unary, Uniform: 16, Workgroup: [3]uint32{64, 1, 1}}
}

func affine(t testing.TB, d *Device) *Kernel {
	t.Helper()
	k, err := NewKernel(ctx, d, affineDesc())
	require.NoError(t, err)
	return k
}

func affineLaunch(n int, scale, add float32) Launch {
	groups := uint32((n + 63) / 64)
	grid := [3]uint32{max(groups, 1), 1, 1}
	if groups > 65535 {
		grid[1] = (groups + 65534) / 65535
		grid[0] = (groups + grid[1] - 1) / grid[1]
	}
	return Launch{Grid: grid, Params: []uint32{uint32(n), f32bits(scale), f32bits(add)}}
}

// addWGSL computes z = x + y over the length of z.
const addWGSL = `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&z)) { z[id.x] = x[id.x] + y[id.x]; }
}`

func add(t testing.TB, d *Device) *Kernel {
	t.Helper()
	k, err := NewKernel(ctx, d, KernelDesc{Label: "add", WGSL: addWGSL,
		Bindings: []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.ReadWrite}, Workgroup: [3]uint32{64, 1, 1}})
	require.NoError(t, err)
	return k
}

// slowWGSL keeps the device busy for p.rounds of arithmetic.
const slowWGSL = `
struct Params { rounds: u32, a: u32, b: u32, c: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var v = x[0];
  for (var i = 0u; i < p.rounds; i++) { v = fract(v * 1.7 + f32(id.x)) + 0.1; }
  y[id.x % arrayLength(&y)] = v;
}`

func slow(t testing.TB, d *Device) (*Kernel, Launch) {
	t.Helper()
	k, err := NewKernel(ctx, d, KernelDesc{Label: "slow", WGSL: slowWGSL, Bindings: unary, Uniform: 16, Workgroup: [3]uint32{64, 1, 1}})
	require.NoError(t, err)
	return k, Launch{Grid: [3]uint32{1024, 1, 1}, Params: []uint32{slowRounds}}
}

// idle waits until nothing is in flight, then requires that no memory is in use.
func idle(t testing.TB, d *Device) {
	t.Helper()
	require.Eventually(t, func() bool { return d.Memory().InUse == 0 }, time.Minute, time.Millisecond, "memory in use: %+v", d.Memory())
}

// quiet reports whether the driver has nothing in flight.
func quiet(d *Device) bool { return d.drv.(interface{ Idle() bool }).Idle() }

// chain is a program: a host vector, steps of scale·x + add, one result.
func chain(t testing.TB, k *Kernel, n, steps int) *program.Program {
	t.Helper()
	p := &program.Program{}
	s := p.Add(program.F32(n), program.FromHost)
	for i := range steps {
		var err error
		s, err = p.ApplyKernel(k, program.Attr{Options: affineLaunch(n, 1, float32(i+1))}, program.F32(n), s)
		require.NoError(t, err)
	}
	p.Read = []program.Slot{s}
	return p
}

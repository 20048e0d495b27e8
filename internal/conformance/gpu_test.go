package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/tune"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

// openSoftware opens the software adapter, which every machine that runs this suite must have, or the one of the index WAVELANE_ADAPTER.
func openSoftware(t testing.TB, note string, opts ...gpu.Option) (string, *gpu.Device) {
	t.Helper()
	if s := os.Getenv("WAVELANE_ADAPTER"); s != "" {
		i, err := strconv.Atoi(s)
		require.NoError(t, err)
		opts = append(opts, gpu.WithAdapter(i))
	}
	d, err := gpu.Open(context.Background(), append([]gpu.Option{gpu.WithSoftware(), gpu.WithAutotune(compute.TuneOff)}, opts...)...)
	require.NoError(t, err, "no software WebGPU adapter: 'scripts/setup test' installs the Vulkan loader and Mesa's software driver (packages libvulkan1 and mesa-vulkan-drivers)")
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return fmt.Sprintf("webgpu (%s, %s%s)", d.Info().Name, d.Info().Backend, note), d
}

func TestWebGPU(t *testing.T) {
	name, d := openSoftware(t, "")
	RunSampled(t, name, program.ExecutorOf(d))
}

func TestWebGPUParity(t *testing.T) {
	name, d := openSoftware(t, ", batches and items")
	RunParity(t, name, program.ExecutorOf(d))
}

// No loop of a kernel is cut short, however long a dimension is. A third of the cases, each entry among them.
func TestWebGPULong(t *testing.T) {
	name, dev := openSoftware(t, ", long dimensions")
	RunLong(t, name, 3, program.ExecutorOf(dev))
}

// The limits that every WebGPU grants are enough.
func TestWebGPUDefaultLimits(t *testing.T) {
	name, d := openSoftware(t, ", default limits", gpu.WithDefaultLimits())
	RunEntries(t, name, program.ExecutorOf(d), catalogue.All()...)
}

// What Direct3D 12's older compiler wants of kernels.
func TestWebGPUCountedLoops(t *testing.T) {
	name, d := openSoftware(t, ", counted loops", gpu.WithLimits(wgsl.Caps{CountedLoops: true}))
	RunEntries(t, name, program.ExecutorOf(d), catalogue.AttentionLSE, catalogue.AttentionBackward, catalogue.LZ4Compress)
}

// Small grids and bindings: what is split on big problems is split here on small ones.
func TestWebGPUTinyLimits(t *testing.T) {
	tiny := wgsl.DefaultCaps
	tiny.MaxWorkgroups = 64
	tiny.MaxBinding = 1 << 16
	name, dev := openSoftware(t, ", tiny limits", gpu.WithLimits(tiny))
	d := newDevice(name, program.ExecutorOf(dev))
	for _, e := range catalogue.All() {
		t.Run(e.Name, func(t *testing.T) {
			cases, err := casesOf(e)
			require.NoError(t, err)
			if e.Class == program.Matrix {
				cases = d.refused(t, cases, tiny.MaxBinding)
			}
			d.cases(t, sample(cases, again))
		})
	}
	d.log(t)
}

// refused returns the cases of matrices that fit these limits. The others, where rows or whole operands that cannot be cut
// are larger than a binding, must be few and must be refused with an error that says what to do.
func (d *testDevice) refused(t *testing.T, cases []*testCase, binding uint64) (fit []*testCase) {
	for _, c := range cases {
		in := c.inputs(newSource(Seed(), c.entry.Name, c.number))
		large := slices.ContainsFunc(in, func(o operand) bool { return uint64(o.Bytes()) > binding })
		p := &program.Program{}
		var slots []program.Slot
		for _, o := range in {
			slots = append(slots, p.Add(o.Type, program.FromHost))
		}
		_, err := p.Apply(c.entry, c.attr, slots...)
		require.NoError(t, err)
		ex, err := d.Compile(t.Context(), p)
		if large && errors.Is(err, compute.ErrTooLarge) {
			require.Contains(t, err.Error(), "multiply in blocks")
			continue
		}
		require.NoError(t, err, c.describe(in))
		require.NoError(t, ex.Close())
		fit = append(fit, c)
	}
	require.Greater(t, len(fit), len(cases)*9/10)
	return fit
}

// Those that need extensions of WGSL are in TestWebGPUExtensions.
func TestWebGPUVariants(t *testing.T) {
	classes := webGPUVariants(t, func(v [2]string) bool { return !extends(v) })
	require.GreaterOrEqual(t, classes["matmul"], 3, "matmul has at least three variants besides the default: %v", classes)
}

// webGPUVariants forces those of the variants that are asked for. It returns how many of each class there are.
func webGPUVariants(t *testing.T, asked func(v [2]string) bool) map[string]int {
	name, probe := openSoftware(t, "")
	caps := probe.Info().Caps()
	return runVariants(t, name, asked, func(s *program.Step, in, out []program.Type, choose tune.Chooser) error {
		_, err := wgslkernels.Lower(s, in, out, &caps, choose)
		return err
	}, func(t *testing.T, v [2]string) program.Executor {
		_, dev := openSoftware(t, "", gpu.WithVariant(v[0], v[1]))
		return program.ExecutorOf(dev)
	})
}

func TestGuardsWebGPU(t *testing.T) {
	_, d := openSoftware(t, "")
	testGuards(t, d, 4)
}

func TestProfileWebGPU(t *testing.T) {
	_, d := openSoftware(t, "")
	var code bytes.Buffer
	require.NoError(t, testProfile(t, d).Code(&code))
	require.Contains(t, code.String(), "@compute")
	require.Contains(t, code.String(), "special_number")
}

func TestQuantAccuracyWebGPU(t *testing.T) {
	name, d := openSoftware(t, "")
	testQuantAccuracy(t, name, program.ExecutorOf(d))
}

func TestCompareWebGPU(t *testing.T) {
	_, d := openSoftware(t, "")
	testCompare(t, d)
}

func TestElementsWebGPU(t *testing.T) {
	_, d := openSoftware(t, "")
	testElements(t, d)
}

func BenchmarkGuardsWebGPU(b *testing.B) {
	_, d := openSoftware(b, "")
	guardCost(b, d)
}

func TestMisuseWebGPU(t *testing.T) {
	_, d := openSoftware(t, "")
	testMisuse(t, d, (*gpu.Device)(nil), d.Ops)
}

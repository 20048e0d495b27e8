//go:build !js

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/tune"
)

// openCUDA opens the software GPU; with the build tag hardware, the GPU of this machine.
func openCUDA(t *testing.T, opts ...cuda.Option) (string, *cuda.Device) {
	t.Helper()
	if cudaSoftware {
		opts = append(opts, cuda.WithSoftware())
	}
	d, err := cuda.Open(context.Background(), append(opts, cuda.WithCache(t.TempDir()))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	i := d.Info()
	return fmt.Sprintf("cuda (%s, %s, CUDA %s)", i.Name, i.Target(), i.Driver), d
}

func TestCUDAMemory(t *testing.T) {
	name, d := openCUDA(t)
	testMemory(t, name, d)
	testForks(t, name, d)
}

// Half of the cases: tests of the kernels launch every one of them, by more schedules than the device has.
func TestCUDASoftware(t *testing.T) {
	name, d := openCUDA(t)
	run(t, name, program.ExecutorOf(d), 2, limitsOf)
}

// No loop of a kernel depends on how long a dimension is.
func TestCUDALong(t *testing.T) {
	name, d := openCUDA(t)
	RunLong(t, name+", long dimensions", 12, program.ExecutorOf(d))
}

func TestCUDAVariants(t *testing.T) {
	name, probe := openCUDA(t)
	caps := kit.DefaultCaps
	caps.Multiprocessors, caps.Target = probe.Info().Multiprocessors, probe.Info().CodeTarget()
	classes := runVariants(t, name, func([2]string) bool { return true },
		func(s *program.Step, in, out []program.Type, choose tune.Chooser) error {
			_, err := ptxkernels.Lower(s, in, out, &caps, choose)
			return err
		}, func(t *testing.T, v [2]string) program.Executor {
			_, d := openCUDA(t, cuda.WithVariant(v[0], v[1]))
			return program.ExecutorOf(d)
		})
	for _, class := range []string{"matmul", "conv2d", "attention", "quant_matmul"} {
		require.NotZero(t, classes[class], class)
	}
}

func TestGuardsCUDASoftware(t *testing.T) {
	_, d := openCUDA(t)
	testGuards(t, d, 7)
}

func TestProfileCUDASoftware(t *testing.T) {
	_, d := openCUDA(t)
	var code bytes.Buffer
	require.NoError(t, testProfile(t, d).Code(&code))
	require.Contains(t, code.String(), ".visible .entry inspect")
}

func TestQuantAccuracyCUDASoftware(t *testing.T) {
	name, d := openCUDA(t)
	testQuantAccuracy(t, name, program.ExecutorOf(d))
}

func TestCompareCUDASoftware(t *testing.T) {
	_, d := openCUDA(t)
	testCompare(t, d)
}

func TestElementsCUDASoftware(t *testing.T) {
	_, d := openCUDA(t)
	testElements(t, d)
}

func TestCUDAVariesFused(t *testing.T) {
	name, d := openCUDA(t)
	testVaryFused(t, name, d, "after a norm")
}

func TestMisuseCUDASoftware(t *testing.T) {
	_, d := openCUDA(t)
	testMisuse(t, d, (*cuda.Device)(nil), d.Ops)
}

//go:build !js

package gpu

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

// Nothing is printed, whatever goes wrong. The test runs itself in an environment like a service's.
func TestSilence(t *testing.T) {
	if os.Getenv("WAVELANE_TEST_SILENCE") != "" {
		d := open(t)
		_, err := NewKernel(ctx, d, KernelDesc{WGSL: "nonsense", Bindings: unary, Workgroup: [3]uint32{1, 1, 1}})
		require.Error(t, err)
		y := make([]float32, 1)
		require.NoError(t, affine(t, d).Run(ctx, affineLaunch(1, 1, 1), y, []float32{1}))
		_, set := os.LookupEnv("XDG_RUNTIME_DIR")
		require.False(t, set, "the environment is left alone")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSilence$")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "XDG_RUNTIME_DIR=") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "WAVELANE_TEST_SILENCE=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), out.String()+errs.String())
	require.Empty(t, errs.String())
	require.Equal(t, "PASS", strings.TrimSpace(out.String()))
}

// Devices that are opened and closed at the same time do not disturb each other.
func TestOpenClose(t *testing.T) {
	errs := make(chan error)
	const workers = 4
	for range workers {
		go func() {
			var all error
			for range 5 {
				d, err := Open(ctx, WithSoftware(), WithTuneCache(t.TempDir()))
				if err != nil {
					all = errors.Join(all, err)
					continue
				}
				k, err := NewKernel(ctx, d, affineDesc())
				all = errors.Join(all, err)
				if err == nil {
					y := make([]float32, 1)
					all = errors.Join(all, k.Run(ctx, affineLaunch(1, 2, 1), y, []float32{3}))
					if y[0] != 7 {
						all = errors.Join(all, compute.ErrArgument)
					}
					k.RunAsync(affineLaunch(1, 2, 1), y, []float32{3}) // still in flight
				}
				all = errors.Join(all, d.Close())
			}
			errs <- all
		}()
	}
	for range workers {
		require.NoError(t, <-errs)
	}
}

// Kernels with loops are warned of on the driver that ends them early.
func TestLoopWarning(t *testing.T) {
	var out bytes.Buffer
	d := open(t, WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	looped := affineWGSL + "fn unused() { for (var i = 0u; i < 2u; i++) {} }"
	desc := KernelDesc{Label: "straight", WGSL: affineWGSL, Bindings: unary, Uniform: 16, Workgroup: [3]uint32{64, 1, 1}}
	_, err := NewKernel(ctx, d, desc)
	require.NoError(t, err)
	require.NotContains(t, out.String(), "straight")
	desc.Label, desc.WGSL = "looped", looped
	_, err = NewKernel(ctx, d, desc)
	require.NoError(t, err)
	require.Equal(t, strings.Contains(d.Info().Name, "llvmpipe"), strings.Contains(out.String(), "kernel=looped"), out.String())
}

//go:build !js

package benchmarks

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func software(t *testing.T) *wavelane.Device {
	dev, err := wavelane.Open(t.Context(), wavelane.WithDevice("cuda"), wavelane.WithSoftware())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// What is measured on the GPU's clock is what the device does for a program: the same bits.
func TestMeasuredIsWhatRuns(t *testing.T) {
	dev := software(t)
	all := slices.Concat(memoryBound, computeBound, quantisedFew, quantisedMany)
	halves := func(shape ...int) program.Type { return program.Type{DType: compute.Float16, Shape: shape} }
	all = append(all, measured{name: "matmul", entry: catalogue.MatMul, attr: program.Attr{Options: compute.MatMulOptions{}},
		small: f32s([]int{70, 90}, []int{90, 33})},
		measured{name: "wgmma", entry: catalogue.MatMul, attr: program.Attr{Options: compute.MatMulOptions{}},
			small: []program.Type{halves(128, 4096), halves(4096, 256)}})
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			m.in = m.small
			c := &cleanups{}
			defer c.run()
			k, err := newClock(dev, c)
			require.NoError(t, err)
			o, err := k.operation(t.Context(), m, "")
			require.NoError(t, err)
			require.Equal(t, m.name == "wgmma", strings.HasPrefix(o.variant, "wgmma"), o.variant)
			p, io := &program.Program{}, &program.IO{}
			var slots []program.Slot
			for i, b := range o.in { // before the operation changes them, if it does
				x := program.MakeSlice(m.in[i])
				require.NoError(t, b.Download(t.Context(), program.Bytes(x)))
				slots = append(slots, p.Add(m.in[i], program.FromHost))
				io.Host = append(io.Host, x)
			}
			g, err := k.repeat(1, o.capture)
			require.NoError(t, err)
			took, whole, err := k.run(t.Context(), func(r *cuda.Recording) error { return r.Replay(g) })
			require.NoError(t, err)
			require.Positive(t, took)
			require.Greater(t, whole, took)

			out, err := p.ApplyAll(m.entry, m.attr, slots...)
			require.NoError(t, err)
			p.Read = out
			for _, s := range out {
				io.Read = append(io.Read, program.MakeSlice(p.Values[s].Type))
			}
			x, err := program.ExecutorOf(dev).Compile(t.Context(), p)
			require.NoError(t, err)
			require.NoError(t, x.Start(io).Await(t.Context()))
			require.NoError(t, x.Close())
			for i, b := range o.out {
				got := make([]byte, b.Len())
				require.NoError(t, b.Download(t.Context(), got))
				require.Equal(t, program.Bytes(io.Read[i]), got, "result %d", i)
			}
		})
	}
}

func TestQuantiles(t *testing.T) {
	times := durations(5, 1, 4, 2, 3)
	require.Equal(t, 2.0, quantile(times, 0.25))
	require.EqualValues(t, 3, median(times))
	require.Equal(t, 3.25, quantile(durations(4, 1, 3, 2), 0.75))
	require.Equal(t, 7.0, quantile(durations(7), 0.25))
	require.EqualValues(t, 1, median(durations(0)))
}

// What is measured of quantised weights on a GPU: few rows by weights that no cache holds, and the rows of a prompt.
func TestQuantisedIsMeasured(t *testing.T) {
	listed := map[string]Benchmark{}
	for _, b := range onCUDA() {
		listed[b.Name] = b
	}
	for _, format := range []string{"q4_k", "q5_k", "q6_k", "q8_0"} {
		for _, rows := range []string{"", "_8"} {
			require.Equal(t, "GB/s", listed["cuda_quant_"+format+rows].Unit, format+rows)
		}
	}
	for _, m := range quantisedFew {
		require.Greater(t, m.in[1].Bytes(), 256*mega, m.name)
	}
	for _, format := range []string{"q4_k", "q6_k"} {
		require.Equal(t, "GFLOPS", listed["cuda_quant_matmul_"+format].Unit, format)
	}
	require.Equal(t, 512, quantisedMany[0].in[0].Shape[0])
}

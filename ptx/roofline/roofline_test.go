package roofline_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/roofline"
)

func TestModel(t *testing.T) {
	m, err := roofline.Named("rtx 4090")
	require.NoError(t, err)
	ridge, err := m.Ridge(roofline.F32)
	require.NoError(t, err)
	require.InDelta(t, 82, ridge, 0.1)
	for _, c := range []struct {
		intensity, flops float64
		bound            roofline.Bound
	}{{0, 0, roofline.MemoryBound}, {0.25, 252e9, roofline.MemoryBound}, {81, 81.648e12, roofline.MemoryBound},
		{83, 82.6e12, roofline.ComputeBound}, {math.Inf(1), 82.6e12, roofline.ComputeBound}} {
		a, err := m.Attainable(roofline.F32, c.intensity)
		require.NoError(t, err)
		require.InEpsilon(t, c.flops+1, a+1, 1e-12)
		b, err := m.Bound(roofline.F32, c.intensity)
		require.NoError(t, err)
		require.Equal(t, c.bound, b)
	}
	e, err := m.Efficiency(roofline.F32, 0.25, 126e9)
	require.NoError(t, err)
	require.InEpsilon(t, 0.5, e, 1e-12)
	s, err := m.Seconds(roofline.F32, 82.6e12, 2016e9)
	require.NoError(t, err)
	require.InEpsilon(t, 2, s, 1e-12)
	require.Equal(t, "RTX 4090 (sm_89, 128 SMs): 1008 GB/s, bf16 165.2 T, f16 165.2 T, f32 82.6 T, f64 1.291 T, fp8 330.3 T, "+
		"int8 660.6 T, tf32 82.6 T", m.String())
}

func TestModelErrors(t *testing.T) {
	m, err := roofline.Named("A100")
	require.NoError(t, err)
	_, err = m.Ridge(roofline.FP8)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	_, err = m.Bound(roofline.FP8, 1)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	_, err = m.Attainable(roofline.F32, -1)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = m.Attainable(roofline.F32, math.NaN())
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = m.Efficiency(roofline.F32, 0, 1)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = roofline.Named("H1000")
	require.ErrorIs(t, err, compute.ErrArgument)
	require.ErrorContains(t, err, "H200")
	for _, s := range []string{"", "{}", `{"bandwidth":1}`, `{"bandwidth":-1,"peak":{"f32":1}}`} {
		_, err = roofline.Parse([]byte(s))
		require.ErrorIs(t, err, compute.ErrArgument)
	}
}

// Measured figures replace those of the data sheet in a copy and nowhere else.
func TestMeasured(t *testing.T) {
	m, err := roofline.Named("H200")
	require.NoError(t, err)
	measured := m.WithMeasured(4.3e12, map[roofline.Rate]float64{roofline.F32: 55e12})
	require.True(t, measured.Measured)
	require.Equal(t, 4.3e12, measured.Bandwidth)
	require.Equal(t, 55e12, measured.Peak[roofline.F32])
	require.Equal(t, m.Peak[roofline.BF16], measured.Peak[roofline.BF16])
	measured.Peak[roofline.F64] = 1
	again, err := roofline.Named("H200")
	require.NoError(t, err)
	require.Equal(t, m, again)
	require.False(t, again.Measured)
	data, err := json.Marshal(measured)
	require.NoError(t, err)
	back, err := roofline.Parse(data)
	require.NoError(t, err)
	require.Equal(t, measured, back)
}

func TestKnown(t *testing.T) {
	require.Equal(t, []string{"A100", "H100", "H200", "L4", "RTX 4090", "B200", "Orin"}, roofline.Names())
	for _, name := range roofline.Names() {
		m, err := roofline.Named(name)
		require.NoError(t, err)
		l, err := m.Limits()
		require.NoError(t, err, name)
		require.Positive(t, m.L2)
		// Dense tensor rates: f16 and bf16 equal, int8 twice, and f32 below what so many multiprocessors do at 3 GHz.
		require.Equal(t, m.Peak[roofline.F16], m.Peak[roofline.BF16])
		require.InDelta(t, 2, m.Peak[roofline.Int8]/m.Peak[roofline.F16], 2.01)
		require.Less(t, m.Peak[roofline.F32], float64(m.SMs)*128*2*3e9, name)
		require.GreaterOrEqual(t, l.Shared, l.MaxShared+l.SystemShared)
	}
}

func TestOccupancy(t *testing.T) {
	for _, c := range []struct {
		why                            string
		sm, threads, registers, shared int
		blocks, warps                  int
		limiters                       []roofline.Limiter
	}{
		// CUDA C++ Best Practices Guide, "Calculating Occupancy": 75 % and 63 % on 7.0.
		{"guide", 70, 128, 37, 0, 12, 48, []roofline.Limiter{roofline.ByRegisters}},
		{"guide", 70, 320, 37, 0, 4, 40, []roofline.Limiter{roofline.ByRegisters}},
		{"all warps at 32 registers", 80, 256, 32, 0, 8, 64, []roofline.Limiter{roofline.ByWarps, roofline.ByRegisters}},
		{"33 registers round up to 40", 80, 256, 33, 0, 6, 48, []roofline.Limiter{roofline.ByRegisters}},
		{"33 and 40 are the same", 80, 256, 40, 0, 6, 48, []roofline.Limiter{roofline.ByRegisters}},
		{"255 registers", 90, 256, 255, 0, 1, 8, []roofline.Limiter{roofline.ByRegisters}},
		{"1024 threads fit with 64", 90, 1024, 64, 0, 1, 32, []roofline.Limiter{roofline.ByRegisters}},
		{"and not with 65", 90, 1024, 65, 0, 0, 0, []roofline.Limiter{roofline.ByRegisters}},
		{"blocks", 89, 32, 16, 0, 24, 24, []roofline.Limiter{roofline.ByBlocks}},
		{"a part of a warp is a warp", 80, 33, 0, 0, 32, 64, []roofline.Limiter{roofline.ByWarps, roofline.ByBlocks}},
		{"no system use before sm_80", 75, 64, 32, 32 << 10, 2, 4, []roofline.Limiter{roofline.ByShared}},
		{"half of shared does not fit twice beside the system's", 80, 64, 32, 82 << 10, 1, 2, []roofline.Limiter{roofline.ByShared}},
		{"81 KiB does", 80, 64, 32, 81 << 10, 2, 4, []roofline.Limiter{roofline.ByShared}},
		{"the most", 90, 384, 168, 227 << 10, 1, 12, []roofline.Limiter{roofline.ByRegisters, roofline.ByShared}},
		{"sm_89 holds 48 warps", 89, 512, 32, 0, 3, 48, []roofline.Limiter{roofline.ByWarps}},
		{"nothing fits into partitions with 5 warps of 128", 86, 160, 128, 0, 3, 15, []roofline.Limiter{roofline.ByRegisters}},
	} {
		l, err := roofline.LimitsOf(c.sm)
		require.NoError(t, err)
		o, err := l.Occupancy(c.threads, c.registers, c.shared)
		require.NoError(t, err, c.why)
		require.Equal(t, c.blocks, o.Blocks, c.why)
		require.Equal(t, c.warps, o.Warps, c.why)
		require.Equal(t, c.limiters, o.Limiters, c.why)
		require.InDelta(t, float64(c.warps)/float64(l.MaxWarps), o.Share, 1e-15, c.why)
	}
	l, err := roofline.LimitsOf(70)
	require.NoError(t, err)
	o, err := l.Occupancy(128, 37, 0)
	require.NoError(t, err)
	require.Equal(t, "12 blocks, 48 warps (75 %), limited by registers", o.String())
}

func TestOccupancyErrors(t *testing.T) {
	_, err := roofline.LimitsOf(42)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	l, err := roofline.LimitsOf(90)
	require.NoError(t, err)
	for _, c := range []struct {
		threads, registers, shared int
		want                       error
	}{{0, 32, 0, compute.ErrArgument}, {-1, 32, 0, compute.ErrArgument}, {32, -1, 0, compute.ErrArgument},
		{32, 32, -1, compute.ErrArgument}, {1025, 32, 0, compute.ErrTooLarge}, {32, 256, 0, compute.ErrTooLarge},
		{32, 32, 227<<10 + 1, compute.ErrTooLarge}} {
		_, err := l.Occupancy(c.threads, c.registers, c.shared)
		require.ErrorIs(t, err, c.want)
	}
}

// More of anything never lets more blocks in, whatever the architecture.
func TestOccupancyFalls(t *testing.T) {
	for _, sm := range []int{70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121} {
		l, err := roofline.LimitsOf(sm)
		require.NoError(t, err)
		blocks := func(threads, registers, shared int) int {
			o, err := l.Occupancy(threads, registers, shared)
			require.NoError(t, err)
			require.LessOrEqual(t, o.Warps, l.MaxWarps)
			require.NotEmpty(t, o.Limiters)
			return o.Blocks
		}
		for threads := 32; threads <= 1024; threads += 96 {
			for registers := 0; registers < 255; registers += 7 {
				for shared := 0; shared+4096 <= l.MaxShared; shared += 9973 {
					n := blocks(threads, registers, shared)
					require.GreaterOrEqual(t, n, blocks(threads, registers, shared+4096))
					if registers > 0 {
						require.GreaterOrEqual(t, n, blocks(threads, registers+1, shared))
					}
				}
			}
		}
	}
}

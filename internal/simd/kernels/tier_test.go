package kernels

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/wavelane/wavelane/compute"
)

// expected is the best tier of this machine, found in another way than by detect; a run cannot pass on slower code.
func expected() Tier {
	switch runtime.GOARCH {
	case "amd64":
		switch {
		case cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ:
			return AVX512
		case cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C:
			return AVX2
		}
		return SSE
	case "arm64":
		return NEON
	case "wasm":
		if runtime.GOOS == "js" {
			return SIMD128
		}
	}
	return Scalar
}

func TestBestTierIsAvailable(t *testing.T) {
	tiers := Available()
	require.Equal(t, Scalar, tiers[0])
	require.Equal(t, expected(), tiers[len(tiers)-1])
	require.IsIncreasing(t, tiers)
	got, err := forced("")
	require.NoError(t, err)
	require.Equal(t, expected(), got)
}

func TestForced(t *testing.T) {
	have := map[Tier]bool{}
	for _, tier := range Available() {
		have[tier] = true
	}
	for i, name := range names {
		got, err := forced(name)
		if have[Tier(i)] {
			require.NoError(t, err)
			require.Equal(t, Tier(i), got)
			require.Equal(t, name, got.String())
			continue
		}
		require.ErrorIs(t, err, compute.ErrUnavailable)
		require.ErrorContains(t, err, Variable+": instruction set "+name+": this machine has scalar")
		require.Equal(t, expected(), got, "work goes on with the best")
		require.ErrorIs(t, SetTier(Tier(i)), compute.ErrUnavailable)
	}
	for _, name := range []string{"AVX2", "avx", "avx2 ", "go", "0"} {
		_, err := forced(name)
		require.ErrorIs(t, err, compute.ErrArgument, name)
		require.ErrorContains(t, err, "possible here are scalar")
	}
	require.ErrorIs(t, SetTier(99), compute.ErrUnavailable)
	require.Equal(t, "tier 99", Tier(99).String())
}

func TestSetTier(t *testing.T) {
	before := Active()
	defer func() { require.NoError(t, SetTier(before)) }()
	for _, tier := range Available() {
		require.NoError(t, SetTier(tier))
		require.Equal(t, tier, Active())
	}
}

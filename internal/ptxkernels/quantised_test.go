package ptxkernels

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Each way to multiply many rows of x with quantised weights is right for whatever calls have it, also where it is not the default:
// some of those calls, other ones by each seed.
func TestQuantisedVariants(t *testing.T) {
	for _, name := range []string{"mma_s8", "tile"} {
		t.Run(name, func(t *testing.T) {
			var chosen atomic.Int64
			t.Cleanup(func() { require.NotZero(t, chosen.Load()) })
			conformance.RunEach(t, "software GPU, "+name, 8, func(t *testing.T) program.Executor {
				r := NewRig(t, kerneltest.EveryCheck(conformance.Seed()))
				r.Pick = func(_, _ string, names []string) int {
					i := slices.Index(names, name)
					if i >= 0 {
						chosen.Add(1)
					}
					return max(i, 0)
				}
				return r
			}, catalogue.QuantMatMulRowMajor, catalogue.QuantRMSNormMatVec, catalogue.QuantQKV, catalogue.QuantGateUpSwiGLU)
		})
	}
}

// So is what GPUs without tensor cores for bytes run, or without products of bytes at all.
func TestQuantisedOldGPUs(t *testing.T) {
	for _, sm := range []int{50, 75} {
		t.Run(ir.Target{SM: sm}.String(), func(t *testing.T) {
			conformance.RunEach(t, "software GPU", 12, func(t *testing.T) program.Executor {
				r := NewRig(t, kerneltest.EveryCheck(conformance.Seed()))
				r.Caps.Target = ir.Target{SM: sm}
				return r
			}, catalogue.QuantMatMulRowMajor, catalogue.QuantQKV, catalogue.QuantGateUpSwiGLU)
		})
	}
}

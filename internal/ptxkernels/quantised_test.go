package ptxkernels

import (
	"testing"

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
		runVariant(t, name, 8, catalogue.QuantMatMulRowMajor, catalogue.QuantRMSNormMatVec, catalogue.QuantQKV, catalogue.QuantGateUpSwiGLU)
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

package ptxkernels

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// dispatch is how a kernel that works on a batch spreads it.
type dispatch uint8

// The ways.
const (
	// gridOverItems runs the kernel of a single item on more blocks, or on more iterations of them.
	gridOverItems dispatch = iota
	// registersOverItems holds the sums of several items in registers, so that what they share is read once: kernels of the
	// same family, specialised to the number of items.
	registersOverItems
)

// kernelParity says, for entries whose batched kernels have a reference of one item, how the batch is dispatched.
var kernelParity = map[*program.Entry]dispatch{
	catalogue.RMSNorm: gridOverItems, catalogue.LayerNorm: gridOverItems, catalogue.Softmax: gridOverItems, catalogue.AddRMSNorm: gridOverItems,
	catalogue.SwiGLU: gridOverItems, catalogue.Add: gridOverItems, catalogue.Rope: gridOverItems, catalogue.Attention: gridOverItems,
	catalogue.MatMul: registersOverItems,
}

// Batched kernels give what those of one item give, on GPUs of every size.
func TestKernelParity(t *testing.T) {
	conformance.RunParity(t, "software GPU, batches and items", NewRig(t, kerneltest.EveryCheck(conformance.Seed())))
}

// What a batch and an item launch is of the declared structure, and addresses shared memory in 32 bits.
func TestKernelParityStructure(t *testing.T) {
	paired := map[*program.Entry]bool{}
	for _, p := range conformance.Pairings() {
		paired[p.Entry] = true
		strategy, ok := kernelParity[p.Entry]
		require.True(t, ok, "%s is paired, and kernelParity does not say how it is dispatched", p.Entry.Name)
		batch, _, err := lowerCall(p.Entry, p.Call, &kit.DefaultCaps, 0)
		require.NoError(t, err)
		single, _, err := lowerCall(p.Entry, p.Single(), &kit.DefaultCaps, 0)
		require.NoError(t, err)
		many, one := launchedBy(batch), launchedBy(single)
		switch strategy {
		case gridOverItems:
			require.Equal(t, one, many, "%s: a batch has other kernels", p.Entry.Name)
		case registersOverItems:
			require.NotEmpty(t, many)
			require.Equal(t, one[0].Family, many[0].Family, p.Entry.Name)
			require.Equal(t, len(single.Actions), len(batch.Actions), "%s: items are not done together", p.Entry.Name)
		}
		for _, k := range append(many, one...) {
			require.NotContains(t, verdictOf(t, kit.FamilyOf(k.Family)).findings, "SharedMemU64Addressing of "+k.Name)
		}
	}
	for e := range kernelParity {
		require.True(t, paired[e], "%s has no pairing", e.Name)
	}
}

// launchedBy are the kernels that a lowering launches, in order.
func launchedBy(l kit.Lowering) (kernels []*kit.Kernel) {
	for _, a := range l.Actions {
		if a.Launch != nil && !slices.Contains(kernels, a.Launch.Kernel) {
			kernels = append(kernels, a.Launch.Kernel)
		}
	}
	return kernels
}

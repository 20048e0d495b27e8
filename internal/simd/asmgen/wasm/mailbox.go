package wasm

import "github.com/wavelane/wavelane/internal/simd/asmgen/ir"

// A call passes its operands in a mailbox, a structure in the memory of the Go program whose address the module imports, so
// that the call itself has no arguments to box. These are the offsets of its fields, as kernels/mailbox_js.go declares them:
//
//	type mailbox struct {
//		op, n    uint32            // operation and number of elements
//		pointers [5]unsafe.Pointer // y and inputs
//		params   [4]float32
//		results  [4]float32        // merged accumulators
//		words    [8]uint32         // dimensions and strides, of matrix products
//		lanes    [2*Lanes]float32  // accumulators that are not merged
//	}
//
// Addresses are of 32 bits, the lower half of a Go pointer.
const (
	boxOp       = 0
	boxN        = 4
	boxPointers = 8
	boxParams   = boxPointers + 8*maxPointers
	boxResults  = boxParams + 4*maxParams
	boxWords    = boxResults + 4*maxResults
	boxLanes    = boxWords + 4*maxWords
	boxSize     = boxLanes + 4*ir.Lanes*maxUnmerged

	maxPointers = 5
	maxParams   = 4
	maxResults  = 4
	maxWords    = 8
	maxUnmerged = 2
)

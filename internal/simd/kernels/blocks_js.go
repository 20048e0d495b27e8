package kernels

import "unsafe"

// BlocksOp is an operation of the side module for package blocks.
type BlocksOp uint32

// Operations on weights; see package blocks.
const (
	BlocksDequantize  = BlocksOp(opDequantize)
	BlocksColumns     = BlocksOp(opColumns)
	BlocksMultiply    = BlocksOp(opMultiply)
	BlocksMultiply8   = BlocksOp(opMultiply8)
	BlocksMultiplyOne = BlocksOp(opMultiplyOne)
)

// RunBlocks runs an operation on what package blocks has as its call.
func RunBlocks(op BlocksOp, call unsafe.Pointer) {
	openBox(uint32(op), 0)
	box.pointers[0] = call
	runBox()
	closeBox()
}

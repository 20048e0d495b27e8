package kernels

import "unsafe"

// Block runs the macro-kernel of package gemm: block points to a gemm.Block with at least one row, column and step.
func Block(block unsafe.Pointer) {
	openBox(opBlock, 0)
	box.pointers[0] = block
	runBox()
	closeBox()
}

package kernels

// addressesAVX2 and addressesAVX512 return the addresses of the links' code, by operation.
func addressesAVX2() *[linkOps]uintptr
func addressesAVX512() *[linkOps]uintptr

// runChain is not marked noescape: what links point at must be where it stays.
func runChain(links *Link, n int)

// ChainWidth is the number of elements that links take at a time; 0 where the active tier has no links.
func ChainWidth() int {
	switch active {
	case AVX512:
		return 8 * 16
	case AVX2:
		return 4 * 8
	}
	return 0
}

func linkCode(op LinkOp) uintptr {
	if active == AVX512 {
		return addressesAVX512()[op]
	}
	return addressesAVX2()[op]
}

// RunChain runs links on n elements, a multiple of ChainWidth. The last link is LinkAgain. Chains must not take much time:
// nothing interrupts them.
func RunChain(links []Link, n int) {
	if n > 0 {
		runChain(&links[0], n)
	}
}

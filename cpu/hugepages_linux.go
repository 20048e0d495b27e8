package cpu

import (
	"syscall"
	"unsafe"
)

// hugePages has the system give large pages for memory that holds zeros. Where it gives them to who asks only, softmax of 16 MB takes 1.5
// times as long without: in a virtual machine each small page that the processor does not remember costs two walks.
func hugePages(data []uint64) {
	const align = 64 << 10 // no smaller than a page of any processor
	p := unsafe.Pointer(&data[0])
	skip := -uintptr(p) % align
	if n := 8*uintptr(len(data)) - skip; n >= align {
		b := unsafe.Slice((*byte)(unsafe.Add(p, skip)), n&^(align-1))
		// What the runtime has used before has small pages already: it is given back, and is zero again when it is next used. If either
		// call fails, pages are as they were.
		syscall.Madvise(b, syscall.MADV_DONTNEED)
		syscall.Madvise(b, syscall.MADV_HUGEPAGE)
	}
}

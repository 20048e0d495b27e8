package ir

import (
	"fmt"
	"strings"
)

// Tensor memory of sm_100: its allocation, what moves between it and registers or shared memory, and products that leave their results there.
const tensorForms = `
tcgen05.alloc.$group.sync.aligned{.shared::cta}.b32 a s:u32 | 100a 8.6
tcgen05.dealloc.$group.sync.aligned.b32 r:u32 s:u32 | 100a 8.6
tcgen05.relinquish_alloc_permit.$group.sync.aligned | 100a 8.6
tcgen05.wait::ld.sync.aligned | 100a 8.6
tcgen05.wait::st.sync.aligned | 100a 8.6
tcgen05.mma.$group.$kind$collector M:b32 r:u64 r:u64 r:u32 p | 100a 8.6
tcgen05.mma.$group.$kind$collector M:b32 M:b32 r:u64 r:u32 p | 100a 8.6
tcgen05.mma.cta_group::1.$kind$collector M:b32 r:u64 r:u64 r:u32 4r:u32 p | 100a 8.6
tcgen05.mma.cta_group::1.$kind$collector M:b32 M:b32 r:u64 r:u32 4r:u32 p | 100a 8.6
tcgen05.mma.cta_group::2.$kind$collector M:b32 r:u64 r:u64 r:u32 8r:u32 p | 100a 8.6
tcgen05.mma.cta_group::2.$kind$collector M:b32 M:b32 r:u64 r:u32 8r:u32 p | 100a 8.6
tcgen05.mma.$group.(kind::f16 kind::tf32)$collector M:b32 r:u64 r:u64 r:u32 p i:0..15 | 100a 8.6
tcgen05.mma.$group.(kind::f16 kind::tf32)$collector M:b32 M:b32 r:u64 r:u32 p i:0..15 | 100a 8.6
tcgen05.mma.$group.$scaled$collector M:b32 r:u64 r:u64 r:u32 M:b32 M:b32 p | 100a 8.6
tcgen05.mma.$group.$scaled$collector M:b32 M:b32 r:u64 r:u32 M:b32 M:b32 p | 100a 8.6
tcgen05.mma.sp.$group.$kind$collector M:b32 r:u64 r:u64 M:b32 r:u32 p | 100a 8.6
tcgen05.mma.sp.$group.$kind$collector M:b32 M:b32 r:u64 M:b32 r:u32 p | 100a 8.6
tcgen05.mma.sp.cta_group::1.$kind$collector M:b32 r:u64 r:u64 M:b32 r:u32 4r:u32 p | 100a 8.6
tcgen05.mma.sp.cta_group::1.$kind$collector M:b32 M:b32 r:u64 M:b32 r:u32 4r:u32 p | 100a 8.6
tcgen05.mma.sp.cta_group::2.$kind$collector M:b32 r:u64 r:u64 M:b32 r:u32 8r:u32 p | 100a 8.6
tcgen05.mma.sp.cta_group::2.$kind$collector M:b32 M:b32 r:u64 M:b32 r:u32 8r:u32 p | 100a 8.6
tcgen05.mma.sp.$group.(kind::f16 kind::tf32)$collector M:b32 r:u64 r:u64 M:b32 r:u32 p i:0..15 | 100a 8.6
tcgen05.mma.sp.$group.(kind::f16 kind::tf32)$collector M:b32 M:b32 r:u64 M:b32 r:u32 p i:0..15 | 100a 8.6
tcgen05.mma.sp.$group.$scaled$collector M:b32 r:u64 r:u64 M:b32 r:u32 M:b32 M:b32 p | 100a 8.6
tcgen05.mma.sp.$group.$scaled$collector M:b32 M:b32 r:u64 M:b32 r:u32 M:b32 M:b32 p | 100a 8.6
tcgen05.commit.$group.mbarrier::arrive::one{.shared::cluster}.b64 a | 100a 8.6
tcgen05.commit.$group.mbarrier::arrive::one{.shared::cluster}.multicast::cluster.b64 a r:u16 | 100a 8.6
tcgen05.cp.$group.(128x256b 4x256b 128x128b){.(b8x16.b6x16_p32 b8x16.b4x16_p64)} M r:u64 | 100a 8.6
tcgen05.cp.$group.($multicast){.(b8x16.b6x16_p32 b8x16.b4x16_p64)} M r:u64 | 100a 8.6
tcgen05.fence::before_thread_sync | 100a 8.6
tcgen05.fence::after_thread_sync | 100a 8.6`

// tensorMoves are the forms of loads from tensor memory and stores to it, with as many registers as a shape and a count take.
func tensorMoves() string {
	var b strings.Builder
	for _, shape := range []struct {
		name      string
		registers int // for x1
		most      int
		half      string // the distance of the second half
	}{{"32x32b", 1, 128, ""}, {"16x64b", 1, 128, ""}, {"16x128b", 2, 64, ""}, {"16x256b", 4, 32, ""}, {"16x32bx2", 1, 128, " i"}} {
		for n := 1; n <= shape.most; n *= 2 {
			regs := n * shape.registers
			fmt.Fprintf(&b, "tcgen05.ld.sync.aligned.%s.x%d{.pack::16b}.b32 %dd:b32 M%s | 100a 8.6\n", shape.name, n, regs, shape.half)
			fmt.Fprintf(&b, "tcgen05.st.sync.aligned.%s.x%d{.unpack::16b}.b32 M%s %dr:b32 | 100a 8.6\n", shape.name, n, shape.half, regs)
		}
	}
	return b.String()
}

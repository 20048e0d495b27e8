package tensorcore

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx/tensormap"
)

// Descriptor is a decoded matrix descriptor of wgmma: where a tile lies in shared memory. Sources: PTX ISA, "Asynchronous
// Warpgroup Level Matrix Shared Memory Layout", and the canonical layouts in the comments of CUTLASS's mma_sm90_desc.hpp.
type Descriptor struct {
	start   uint32 // address in the block's shared memory, a multiple of 16
	leading uint32 // bytes, see Address
	stride  uint32 // bytes, see Address
	base    uint32 // phase of the swizzle at the start of the pattern, in rows of 128 bytes
	swizzle tensormap.Swizzle
}

// descriptorFields are the bits that mean something.
const descriptorFields = 0xc00e_3fff_3fff_3fff

// DecodeDescriptor decodes the 64 bits of a descriptor. Bits that belong to no field are an error.
func DecodeDescriptor(d uint64) (Descriptor, error) {
	if d&^descriptorFields != 0 {
		return Descriptor{}, fmt.Errorf("matrix descriptor 0x%016x has bits 0x%x outside its fields", d, d&^descriptorFields)
	}
	return Descriptor{
		start: uint32(d&0x3fff) << 4, leading: uint32(d>>16&0x3fff) << 4, stride: uint32(d>>32&0x3fff) << 4,
		base:    uint32(d >> 49 & 7),
		swizzle: tensormap.Swizzle((4 - d>>62) & 3), // 1, 2, 3 are the spans 128, 64, 32; 0 none
	}, nil
}

// Address is the address of an element. mn is its row in A or its column in B, size its bytes. Without trans the matrix is
// K-major: neighbours along k are neighbours in memory.
//
// A tile is made of atoms: 8 rows of 16 bytes, or of the swizzle's span.
//   - K-major: a row of an atom runs along k, the 8 rows along mn. The next 8 rows are stride away; without swizzle the next 16
//     bytes along k are leading away, with it the row is long enough.
//   - MN-major: a row runs along mn, the 8 rows along k. With swizzle the next atom along mn is leading away and the
//     next along k is stride away; without, the other way round.
func (d *Descriptor) Address(mn, k, size int, trans bool) uint32 {
	span := d.swizzle.Span()
	inner, outer := k, mn
	if trans {
		inner, outer = mn, k
	}
	innerStep, outerStep := int(d.leading), int(d.stride)
	switch {
	case trans && d.swizzle == tensormap.NoSwizzle:
		innerStep, outerStep = outerStep, innerStep
	case !trans && d.swizzle != tensormap.NoSwizzle:
		innerStep = span // not reached: 32 bytes of k lie in one row
	}
	along := inner * size
	addr := int(d.start) + along/span*innerStep + along%span + outer/8*outerStep + outer%8*span
	phase := uint64(d.base) << 7
	return uint32(d.swizzle.Apply(uint64(addr)-phase) + phase)
}

// Holds tells whether a row along k of so many bytes lies within an atom, or in several that are leading away from each other.
func (d *Descriptor) Holds(bytes int) bool {
	return d.swizzle == tensormap.NoSwizzle || bytes <= d.swizzle.Span()
}

// chunk is the number of neighbouring bytes along a row that lie together in memory whatever the swizzle.
const chunk = 16

// Chunks calls f with the addresses of the pieces of 16 bytes that rows first to first+n hold, k elements long.
func (d *Descriptor) Chunks(first, n, k, size int, trans bool, f func(addr uint32)) {
	stepMN, stepK := 1, chunk/size
	if trans {
		stepMN, stepK = stepK, stepMN
	}
	for mn := first; mn < first+n; mn += stepMN {
		for at := 0; at < k; at += stepK {
			f(d.Address(mn, at, size, trans))
		}
	}
}

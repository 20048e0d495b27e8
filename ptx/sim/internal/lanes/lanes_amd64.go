package lanes

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

var vectors = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// FMA is r = x·y + z in float32, rounded once, with PTX's one NaN.
func FMA(r, x, y, z *[Size]uint32) {
	if vectors {
		fma(r, x, y, z)
	} else {
		fmaGo(r, x, y, z)
	}
}

// Vectors tells whether the processor has what [Run] needs.
func Vectors() bool { return vectors }

// Run executes a list that [End] has made, on registers of 32 bits, of 64 bits and predicates, and words of parameters. All of them have to be
// there. Only with [Vectors].
func Run(r32 [][Size]uint32, r64 [][Size]uint64, p []uint32, params []byte, list []Op) {
	run(unsafe.SliceData(r32), unsafe.SliceData(r64), unsafe.SliceData(p), unsafe.SliceData(params), &list[0])
}

// Add is r = x + y in float32, with PTX's one NaN.
func Add(r, x, y *[Size]uint32) {
	if vectors {
		add(r, x, y)
	} else {
		addGo(r, x, y)
	}
}

// Sub is r = x − y in float32, with PTX's one NaN.
func Sub(r, x, y *[Size]uint32) {
	if vectors {
		sub(r, x, y)
	} else {
		subGo(r, x, y)
	}
}

// Mul is r = x·y in float32, with PTX's one NaN.
func Mul(r, x, y *[Size]uint32) {
	if vectors {
		mul(r, x, y)
	} else {
		mulGo(r, x, y)
	}
}

// Offsets is to = x + add. All lanes are at most limit, which is less than 1<<63, if the highest bit is neither in all, which is every
// bit of any lane, nor in bad.
func Offsets(to, x *[Size]uint64, add, limit uint64) (all, bad uint64) {
	if vectors {
		return offsets(to, x, add, limit)
	}
	return offsetsGo(to, x, add, limit)
}

// Offsets32 is Offsets of registers of 32 bits.
func Offsets32(to *[Size]uint64, x *[Size]uint32, add, limit uint64) (all, bad uint64) {
	if vectors {
		return offsets32(to, x, add, limit)
	}
	return offsets32Go(to, x, add, limit)
}

// Load4 loads four words for each lane from offsets that are within the data.
func Load4(r0, r1, r2, r3 *[Size]uint32, data []byte, off *[Size]uint64) {
	if vectors {
		load4(r0, r1, r2, r3, &data[0], off)
	} else {
		load4Go(r0, r1, r2, r3, data, off)
	}
}

// Those in lanes_amd64.s and ops_amd64.s.

//go:noescape
func fma(r, x, y, z *[Size]uint32)

//go:noescape
func run(r32 *[Size]uint32, r64 *[Size]uint64, p *uint32, params *byte, list *Op)

//go:noescape
func add(r, x, y *[Size]uint32)

//go:noescape
func sub(r, x, y *[Size]uint32)

//go:noescape
func mul(r, x, y *[Size]uint32)

//go:noescape
func offsets(to, x *[Size]uint64, add, limit uint64) (all, bad uint64)

//go:noescape
func offsets32(to *[Size]uint64, x *[Size]uint32, add, limit uint64) (all, bad uint64)

//go:noescape
func load4(r0, r1, r2, r3 *[Size]uint32, data *byte, off *[Size]uint64)

//go:build !amd64

package lanes

// FMA is r = x·y + z in float32, rounded once, with PTX's one NaN.
func FMA(r, x, y, z *[Size]uint32) { fmaGo(r, x, y, z) }

// Vectors tells whether the processor has what [Run] needs.
func Vectors() bool { return false }

// Run executes lists with [Vectors] alone.
func Run([][Size]uint32, [][Size]uint64, []uint32, []byte, []Op) { panic("lanes: without vectors") }

// Add is r = x + y in float32, with PTX's one NaN.
func Add(r, x, y *[Size]uint32) { addGo(r, x, y) }

// Sub is r = x − y in float32, with PTX's one NaN.
func Sub(r, x, y *[Size]uint32) { subGo(r, x, y) }

// Mul is r = x·y in float32, with PTX's one NaN.
func Mul(r, x, y *[Size]uint32) { mulGo(r, x, y) }

// Offsets is to = x + add. All lanes are at most limit, which is less than 1<<63, if the highest bit is neither in all, which is every
// bit of any lane, nor in bad.
func Offsets(to, x *[Size]uint64, add, limit uint64) (all, bad uint64) {
	return offsetsGo(to, x, add, limit)
}

// Offsets32 is Offsets of registers of 32 bits.
func Offsets32(to *[Size]uint64, x *[Size]uint32, add, limit uint64) (all, bad uint64) {
	return offsets32Go(to, x, add, limit)
}

// Load4 loads four words for each lane from offsets that are within the data.
func Load4(r0, r1, r2, r3 *[Size]uint32, data []byte, off *[Size]uint64) {
	load4Go(r0, r1, r2, r3, data, off)
}

package ptx

import "fmt"

// Swizzle is how the 16-byte chunks of rows of shared memory are permuted for [Wgmma] and tensor copies: within spans of
// so many bytes.
type Swizzle int

// The swizzles.
const (
	NoSwizzle  Swizzle = 0
	Swizzle32  Swizzle = 32
	Swizzle64  Swizzle = 64
	Swizzle128 Swizzle = 128
)

// Descriptor says where [Wgmma] finds a matrix in shared memory.
type Descriptor struct{ bits Reg[uint64] }

// DescriptorBits is a descriptor without its address: byte offsets between core matrices along the leading and the
// strided dimension, and the swizzle. The fields are in units of 16 bytes at bits 16 and 32, the swizzle at 62.
func DescriptorBits(leading, stride int, s Swizzle) uint64 {
	code := map[Swizzle]uint64{Swizzle128: 1, Swizzle64: 2, Swizzle32: 3}[s]
	return uint64(leading>>4&0x3fff)<<16 | uint64(stride>>4&0x3fff)<<32 | code<<62
}

// NewDescriptor is the descriptor of the matrix at p. Tiles with a swizzle are aligned to 8 of its spans: 1,024 bytes
// for [Swizzle128], and 8 rows of a span are a stride apart.
func NewDescriptor[T Elem](k *Kernel, p Ptr[Shared, T], leading, stride int, s Swizzle) Descriptor {
	const most = 0x3fff << 4
	switch {
	case leading < 0 || stride < 0 || leading > most || stride > most || leading%16 != 0 || stride%16 != 0:
		k.fail("offsets %d and %d of a matrix descriptor; wanted multiples of 16 up to %d", leading, stride, most)
	case s != NoSwizzle && s != Swizzle32 && s != Swizzle64 && s != Swizzle128:
		k.fail("a swizzle of %d bytes; 0, 32, 64 and 128 are possible", s)
	}
	units := SharedAddress(p).Shr(4).And(0x3fff)
	return Descriptor{Convert[uint64](units).Or(DescriptorBits(leading, stride, s))}
}

// Advance is the descriptor of a matrix so many bytes further, a multiple of 16: 32 for the next slice along K.
func (d Descriptor) Advance(k *Kernel, bytes int) Descriptor {
	if bytes%16 != 0 {
		k.fail("a matrix descriptor advanced by %d bytes; wanted a multiple of 16", bytes)
	}
	if bytes == 0 {
		return d
	}
	return Descriptor{d.bits.Add(uint64(bytes >> 4))}
}

// AdvanceBy is the descriptor of a matrix units of 16 bytes further.
func (d Descriptor) AdvanceBy(k *Kernel, units Reg[uint64]) Descriptor {
	return Descriptor{d.bits.Add(units)}
}

// Bits is the descriptor as a number.
func (d Descriptor) Bits() Reg[uint64] { return d.bits }

// DescriptorOf is a number as a descriptor.
func DescriptorOf(bits Reg[uint64]) Descriptor { return Descriptor{bits} }

// WgmmaOptions are the details of [Wgmma].
type WgmmaOptions struct {
	Zero           bool      // d begins as 0, whatever it holds
	Accumulate     Reg[bool] // d begins as 0 where this is false; the zero value means true
	NegateA        bool      // of floating-point matrices
	NegateB        bool
	TransA, TransB bool // the matrix lies M- or N-major in shared memory, 16-bit types only
	SatFinite      bool // of integers
}

// WgmmaElem is the operands of Wgmma.
type WgmmaElem interface {
	F16x2 | BF16x2 | TF32 | S8x4 | U8x4 | E4M3x4 | E5M2x4
}

// WgmmaAccumulator is what Wgmma sums up in.
type WgmmaAccumulator interface{ float32 | F16x2 | int32 }

// Wgmma adds to d the product of a, 64×K, and b, K×n, of a warpgroup: 128 threads, warps in order. n is a multiple of 8
// up to 256; K is 32 bytes of elements. It runs in the background: between it and what touched d before, there has to be
// a [Kernel.WgmmaFence]; d may be read after [Kernel.WgmmaCommit] and [Kernel.WgmmaWait]. Each thread has n/2 elements
// of d.
func Wgmma[A, B WgmmaElem, C WgmmaAccumulator](k *Kernel, n int, d []*Var[C], a, b Descriptor, o WgmmaOptions) {
	wgmma[A, B](k, n, d, inRegister(k, a.bits), b, o, false)
}

// WgmmaReg is [Wgmma] with a in registers: four of each thread.
func WgmmaReg[A, B WgmmaElem, C WgmmaAccumulator](k *Kernel, n int, d []*Var[C], a []Reg[A], b Descriptor, o WgmmaOptions) {
	if k.counted("a", len(a), 4) {
		wgmma[A, B](k, n, d, operands(allInRegisters(k, a)), b, o, true)
	}
}

func wgmma[A, B WgmmaElem, C WgmmaAccumulator](k *Kernel, n int, d []*Var[C], a arg, b Descriptor, o WgmmaOptions,
	inRegs bool) {
	at, per := partOf(typeOf[A]())
	bt, _ := partOf(typeOf[B]())
	ct, cn := partOf(typeOf[C]())
	if n < 8 || n > 256 || n%8 != 0 {
		k.fail("wgmma with n = %d; wanted a multiple of 8 up to 256", n)
		return
	}
	if !k.counted("d", len(d), n/2/cn) {
		return
	}
	acc := make(vector, len(d))
	for i, v := range d {
		if v == nil || v.k != k {
			k.fail("d[%d] is no variable of this kernel", i)
			return
		}
		acc[i] = result{&value{k: k, reg: v.reg}}
	}
	scale := o.Accumulate
	if o.Zero {
		scale = Imm(false)
	} else if scale.v == nil {
		scale = Imm(true)
	}
	code := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s", n, 8*per, ct, at, bt)
	if o.SatFinite {
		code += ".satfinite"
	}
	args := []arg{acc, a, inRegister(k, b.bits), scale}
	if at.IsFloat() {
		args = append(args, sign(o.NegateA), sign(o.NegateB))
	}
	if per == 2 {
		if !inRegs {
			args = append(args, flag(o.TransA))
		}
		args = append(args, flag(o.TransB))
	} else if o.TransA || o.TransB {
		k.fail("wgmma transposes elements of 16 bits only")
	}
	in := k.emit(code, args...)
	in.fresh = o.Zero
	for _, v := range d {
		v.view = 0
	}
}

func sign(negate bool) lit {
	if negate {
		return -1
	}
	return 1
}

func flag(b bool) lit {
	if b {
		return 1
	}
	return 0
}

// WgmmaFence orders what touched registers before it with Wgmma behind it.
func (k *Kernel) WgmmaFence() { k.emit("wgmma.fence.sync.aligned") }

// WgmmaCommit makes a group of all Wgmma since the last one.
func (k *Kernel) WgmmaCommit() { k.emit("wgmma.commit_group.sync.aligned") }

// WgmmaWait waits until at most pending groups are under way.
func (k *Kernel) WgmmaWait(pending int) { k.emit("wgmma.wait_group.sync.aligned", lit(pending)) }

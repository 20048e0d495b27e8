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
func NewDescriptor[T Elem](p Ptr[Shared, T], leading, stride int, s Swizzle) Descriptor {
	const most = 0x3fff << 4
	switch k := p.need(); {
	case k == nil:
		return Descriptor{noKernel[uint64]()}
	case leading < 0 || stride < 0 || leading > most || stride > most || leading%16 != 0 || stride%16 != 0:
		k.fail("offsets %d and %d of a matrix descriptor; wanted multiples of 16 up to %d", leading, stride, most)
	case s != NoSwizzle && s != Swizzle32 && s != Swizzle64 && s != Swizzle128:
		k.fail("a swizzle of %d bytes; 0, 32, 64 and 128 are possible", s)
	}
	units := SharedAddress(p).Shr(4).And(0x3fff)
	return Descriptor{Convert[uint64](units).Or(DescriptorBits(leading, stride, s))}
}

// Bytes is the descriptor of a matrix n bytes further, a multiple of 16: 32 for the next slice along K.
func (d Descriptor) Bytes(n int) Descriptor {
	k := d.bits.kernel()
	switch {
	case k == nil || n == 0:
		return d
	case n%16 != 0:
		k.fail("a matrix descriptor advanced by %d bytes; wanted a multiple of 16", n)
	}
	return Descriptor{d.bits.Add(uint64(n >> 4))}
}

// Bits is the descriptor as a number.
func (d Descriptor) Bits() Reg[uint64] { return d.bits }

// DescriptorOf is a number as a descriptor.
func DescriptorOf(bits Reg[uint64]) Descriptor { return Descriptor{bits} }

// WgmmaElem is the operands of Wgmma.
type WgmmaElem interface {
	F16x2 | BF16x2 | TF32 | S8x4 | U8x4 | E4M3x4 | E5M2x4
}

// WgmmaAccumulator is what Wgmma sums up in.
type WgmmaAccumulator interface{ float32 | F16x2 | int32 }

// Wgmma is the product of a, 64×K, and b, K×N, of a warpgroup: 128 threads, warps in order. N is a multiple of 8 up to 256; K is 32
// bytes of elements. Each thread has N/2 elements of the accumulator.
//
// Products run in the background: between one and what touched its accumulator before, there has to be a [Kernel.WgmmaFence]; it may
// be read after [Kernel.WgmmaCommit] and [Kernel.WgmmaWait].
type Wgmma[A, B WgmmaElem, C WgmmaAccumulator] struct {
	N                int
	NegateA, NegateB bool // of floating-point matrices
	TransA, TransB   bool // the matrix lies M- or N-major in shared memory, 16-bit types only
	SatFinite        bool // of integers
}

// NewAccumulator is an accumulator without values as yet.
func (w Wgmma[A, B, C]) NewAccumulator(k *Kernel) []*Var[C] {
	_, per := partOf(typeOf[C]())
	d := make([]*Var[C], max(0, w.N)/2/per)
	for i := range d {
		d[i] = NewVar[C](k)
	}
	return d
}

// MulAdd adds a·b to d.
func (w Wgmma[A, B, C]) MulAdd(k *Kernel, d []*Var[C], a, b Descriptor) {
	w.emit(k, d, inRegister(k, a.bits), b, Imm(true), false)
}

// MulAddIf adds a·b to d where add, and sets d to it elsewhere. add is the same in all threads, a Reg[bool] or a constant.
func (w Wgmma[A, B, C]) MulAddIf(k *Kernel, add any, d []*Var[C], a, b Descriptor) {
	w.emit(k, d, inRegister(k, a.bits), b, lift[bool](k, add), false)
}

// MulAddReg is [Wgmma.MulAdd] with a in registers: four of each thread.
func (w Wgmma[A, B, C]) MulAddReg(k *Kernel, d []*Var[C], a []Reg[A], b Descriptor) {
	if k.counted("a", len(a), 4) {
		w.emit(k, d, operands(allInRegisters(k, a)), b, Imm(true), true)
	}
}

func (w Wgmma[A, B, C]) emit(k *Kernel, d []*Var[C], a arg, b Descriptor, add Reg[bool], inRegs bool) {
	at, per := partOf(typeOf[A]())
	bt, _ := partOf(typeOf[B]())
	ct, cn := partOf(typeOf[C]())
	n := w.N
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
	code := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s", n, 8*per, ct, at, bt)
	if w.SatFinite {
		code += ".satfinite"
	}
	args := []arg{acc, a, inRegister(k, b.bits), add}
	if at.IsFloat() {
		args = append(args, sign(w.NegateA), sign(w.NegateB))
	}
	if per == 2 {
		if !inRegs {
			args = append(args, flag(w.TransA))
		}
		args = append(args, flag(w.TransB))
	} else if w.TransA || w.TransB {
		k.fail("wgmma transposes elements of 16 bits only")
	}
	in := k.emit(code, args...)
	zero, known := add.constant()
	in.fresh = known && zero == 0
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

// WgmmaFence orders what touched registers before it with Wgmma after it.
func (k *Kernel) WgmmaFence() { k.emit("wgmma.fence.sync.aligned") }

// WgmmaCommit makes a group of all Wgmma since the last one.
func (k *Kernel) WgmmaCommit() { k.emit("wgmma.commit_group.sync.aligned") }

// WgmmaWait waits until at most pending groups are under way.
func (k *Kernel) WgmmaWait(pending int) { k.emit("wgmma.wait_group.sync.aligned", lit(pending)) }

package ptx

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Shape is the sizes of a matrix product: M×K by K×N.
type Shape struct{ M, N, K int }

// The shapes of [Mma], and of [Wmma] from M16N16K16 on.
var (
	M8N8K4    = Shape{8, 8, 4}
	M16N8K4   = Shape{16, 8, 4}
	M16N8K8   = Shape{16, 8, 8}
	M16N8K16  = Shape{16, 8, 16}
	M16N8K32  = Shape{16, 8, 32}
	M16N16K8  = Shape{16, 16, 8}
	M16N16K16 = Shape{16, 16, 16}
	M32N8K16  = Shape{32, 8, 16}
	M8N32K16  = Shape{8, 32, 16}
)

// String is "m16n8k16".
func (s Shape) String() string { return fmt.Sprintf("m%dn%dk%d", s.M, s.N, s.K) }

// MatrixElem is the operands of matrix products, as registers hold them.
type MatrixElem interface {
	F16x2 | BF16x2 | TF32 | S8x4 | U8x4 | E4M3x4 | E5M2x4 | float64
}

// Accumulator is what matrix products sum up in.
type Accumulator interface {
	float32 | F16x2 | int32 | float64
}

// partOf is the type of one element, and how many a register holds.
func partOf(t *typeInfo) (ir.Type, int) {
	switch t {
	case &infos.f16x2:
		return ir.F16, 2
	case &infos.bf16x2:
		return ir.BF16, 2
	case &infos.s8x4, &infos.u8x4, &infos.e4m3x4, &infos.e5m2x4:
		return t.op, 4
	}
	return t.op, 1
}

// counted reports a fragment of the wrong number of registers.
func (k *Kernel) counted(what string, got, want int) bool {
	if got != want {
		k.fail("%s: %d registers, want %d", what, got, want)
	}
	return got == want
}

func ldmatrix[R Word32, T Elem](p Ptr[Shared, T], n int, trans string) []Reg[R] {
	k := p.need()
	if k == nil {
		return nil
	}
	regs, out := several[R](k, n)
	k.emit(fmt.Sprintf("ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16", n, trans), out, p)
	return regs
}

func stmatrix[R Word32, T Elem](p Ptr[Shared, T], regs []Reg[R], trans string) {
	k := p.need()
	if k == nil {
		return
	}
	k.emit(fmt.Sprintf("stmatrix.sync.aligned.m8n8.x%d%s.shared.b16", len(regs), trans), p, operands(allInRegisters(k, regs)))
}

// LdMatrix loads n (1, 2 or 4) matrices of 8×8 elements of 16 bits from shared memory. Lanes 8i to 8i+7 give the
// addresses of the rows of matrix i, 16 bytes each. Lane l gets of each matrix the elements 2(l%4) and 2(l%4)+1 of row
// l/4.
func LdMatrix[R Word32, T Elem](p Ptr[Shared, T], n int) []Reg[R] {
	return ldmatrix[R](p, n, "")
}

// LdMatrixTrans is [LdMatrix] of the transposed matrices.
func LdMatrixTrans[R Word32, T Elem](p Ptr[Shared, T], n int) []Reg[R] {
	return ldmatrix[R](p, n, ".trans")
}

// StMatrix is the inverse of [LdMatrix].
func StMatrix[R Word32, T Elem](p Ptr[Shared, T], regs []Reg[R]) { stmatrix(p, regs, "") }

// StMatrixTrans is the inverse of [LdMatrixTrans].
func StMatrixTrans[R Word32, T Elem](p Ptr[Shared, T], regs []Reg[R]) {
	stmatrix(p, regs, ".trans")
}

// MovMatrix transposes a matrix of 8×8 elements of 16 bits that lies as [LdMatrix] puts it.
func MovMatrix[R Word32](x Reg[R]) Reg[R] {
	k := kernelOf(x)
	if k == nil {
		return noKernel[R]()
	}
	return def[R](k, "movmatrix.sync.aligned.m8n8.trans.b16", inRegister(k, x))
}

// Mma is a·b + c, of a warp: a row-major, b column-major, spread over the lanes as the PTX ISA says for the shape. A
// register holds a pair, four bytes, or one element. The fragments have M·K, K·N and M·N elements, over 32 lanes. s8
// products can be modified by [SatFinite].
func Mma[A, B MatrixElem, C Accumulator](k *Kernel, s Shape, a []Reg[A], b []Reg[B], c []Reg[C], mods ...Mod) []Reg[C] {
	at, an := partOf(typeOf[A]())
	bt, bn := partOf(typeOf[B]())
	ct, cn := partOf(typeOf[C]())
	d, out := several[C](k, len(c))
	if k.counted("a", len(a), s.M*s.K/32/an) && k.counted("b", len(b), s.K*s.N/32/bn) && k.counted("c", len(c), s.M*s.N/32/cn) {
		code := withMods("mma.sync.aligned."+s.String()+".row.col", "", mods, ct.String(), at.String(), bt.String(), ct.String())
		k.emit(code, out, operands(allInRegisters(k, a)), operands(allInRegisters(k, b)), operands(allInRegisters(k, c)))
	}
	return d
}

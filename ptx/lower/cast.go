package lower

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx"
)

const castBlock = 256

// casts are the kernels by what they read and what they write.
var casts = map[[2]compute.DType]*Kernel{
	{compute.Float16, compute.Float32}: register(Kernel{Family: "unary", Name: "widen", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x, halves as float32, exactly. Parameters: u32 quads, f16* x, f32* y.", build: convert[ptx.F16, float32]}),
	{compute.Float32, compute.Float16}: register(Kernel{Family: "unary", Name: "narrow", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x rounded to halves, ties to even. Parameters: u32 quads, f32* x, f16* y.", build: convert[float32, ptx.F16]}),
	{compute.BFloat16, compute.Float32}: register(Kernel{Family: "unary", Name: "widen_bf16", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x, bfloat16 as float32, exactly. Parameters: u32 quads, bf16* x, f32* y.", build: convert[ptx.BF16, float32]}),
	{compute.Float32, compute.BFloat16}: register(Kernel{Family: "unary", Name: "narrow_bf16", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x rounded to bfloat16, ties to even. Parameters: u32 quads, f32* x, bf16* y.", build: convert[float32, ptx.BF16]}),
	{compute.Float16, compute.BFloat16}: register(Kernel{Family: "unary", Name: "half_to_bf16", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x, halves rounded to bfloat16, ties to even. Parameters: u32 quads, f16* x, bf16* y.", build: convert[ptx.F16, ptx.BF16]}),
	{compute.BFloat16, compute.Float16}: register(Kernel{Family: "unary", Name: "bf16_to_half", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x, bfloat16 rounded to halves, ties to even. Parameters: u32 quads, bf16* x, f16* y.", build: convert[ptx.BF16, ptx.F16]}),
}

// cast converts n elements.
func (s *step) cast(x Buffer, from compute.DType, y Buffer, to compute.DType, n int) {
	switch {
	case n == 0:
	case from == to:
		s.copyBytes(x, y, n*to.Size())
	default:
		quads := ceilDiv(n, 4)
		s.launch(casts[[2]compute.DType{from, to}], s.strides(quads, castBlock), quads, x, y)
	}
}

// elem is the element type of a buffer: scratch memory holds float32.
func (s *step) elem(x Buffer) compute.DType {
	if x.Role == Operand {
		return s.in[x.Index].DType
	}
	return compute.Float32
}

// inFloat32 is a buffer as float32: itself, or a copy in scratch memory.
func (s *step) inFloat32(x Buffer) Buffer {
	from := s.elem(x)
	if from == compute.Float32 {
		return x
	}
	n := s.in[x.Index].Len()
	y := s.scratch(4 * n)
	s.cast(x, from, y, compute.Float32, n)
	return y
}

// convert makes elements of one type those of another, four at a time. The last four may lie partly beyond the end, where there
// is room.
func convert[T, U floating](k *ptx.Kernel) {
	count := ptx.Param[uint32](k, "quads")
	x := ptx.PointerParam[T](k, "x", ptx.Align(16))
	y := ptx.PointerParam[U](k, "y", ptx.Align(16))
	ptx.For(k, k.GlobalID(ptx.X), count, ptx.Mul(k, k.Nctaid(ptx.X), ptx.Imm[uint32](castBlock)), func(i ptx.Reg[uint32]) {
		at := ptx.Shl(k, i, ptx.Imm[uint32](2))
		var r [4]ptx.Reg[U]
		for j, v := range ptx.Load4(k, ptx.At(k, x, at)) {
			r[j] = fromFloat32[U](k, toFloat32(k, v))
		}
		ptx.Store4(k, ptx.At(k, y, at), r)
	})
}

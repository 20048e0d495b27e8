package kit

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

const castBlock = 256

// casts are the kernels by what they read and what they write.
var casts = map[[2]compute.DType]*Kernel{
	{compute.Float16, compute.Float32}: Register(Kernel{Family: "unary", Name: "widen", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x, halves as float32, exactly. Parameters: u32 quads, f16* x, f32* y.", Build: convert[ptx.F16, float32]}),
	{compute.Float32, compute.Float16}: Register(Kernel{Family: "unary", Name: "narrow", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x rounded to halves, ties to even. Parameters: u32 quads, f32* x, f16* y.", Build: convert[float32, ptx.F16]}),
	{compute.BFloat16, compute.Float32}: Register(Kernel{Family: "unary", Name: "widen_bf16", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x, bfloat16 as float32, exactly. Parameters: u32 quads, bf16* x, f32* y.", Build: convert[ptx.BF16, float32]}),
	{compute.Float32, compute.BFloat16}: Register(Kernel{Family: "unary", Name: "narrow_bf16", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x rounded to bfloat16, ties to even. Parameters: u32 quads, f32* x, bf16* y.", Build: convert[float32, ptx.BF16]}),
	{compute.Float16, compute.BFloat16}: Register(Kernel{Family: "unary", Name: "half_to_bf16", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x, halves rounded to bfloat16, ties to even. Parameters: u32 quads, f16* x, bf16* y.", Build: convert[ptx.F16, ptx.BF16]}),
	{compute.BFloat16, compute.Float16}: Register(Kernel{Family: "unary", Name: "bf16_to_half", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x, bfloat16 rounded to halves, ties to even. Parameters: u32 quads, bf16* x, f16* y.", Build: convert[ptx.BF16, ptx.F16]}),
}

// Cast converts n elements.
func (s *Step) Cast(x Buffer, from compute.DType, y Buffer, to compute.DType, n int) {
	switch {
	case n == 0:
	case from == to:
		s.Copy(x, y, n*to.Size())
	default:
		quads := CeilDiv(n, 4)
		s.Launch(casts[[2]compute.DType{from, to}], s.GridStride(quads, castBlock), quads, x, y)
	}
}

// Elem is the element type of a buffer: scratch memory holds float32.
func (s *Step) Elem(x Buffer) compute.DType {
	if x.Role == lowering.Operand {
		return s.Operands[x.Index].DType
	}
	return compute.Float32
}

// InFloat32 is a buffer as float32: itself, or a copy in scratch memory.
func (s *Step) InFloat32(x Buffer) Buffer {
	from := s.Elem(x)
	if from == compute.Float32 {
		return x
	}
	n := s.Operands[x.Index].Len()
	y := s.NewScratch(4 * n)
	s.Cast(x, from, y, compute.Float32, n)
	return y
}

// convert makes elements of one type those of another, four at a time. The last four may lie partly beyond the end, where there
// is room.
func convert[T, U scalar.Floating](k *ptx.Kernel) {
	count := ptx.Param[uint32](k, "quads")
	x := ptx.PointerParam[T](k, "x", ptx.Align(16))
	y := ptx.PointerParam[U](k, "y", ptx.Align(16))
	ptx.For(k, k.GlobalID(ptx.X), count, k.Nctaid(ptx.X).Mul(castBlock), func(i ptx.Reg[uint32]) {
		at := i.Shl(2)
		var r [4]ptx.Reg[U]
		for j, v := range x.At(at).Load4() {
			r[j] = scalar.FromFloat32[U](k, scalar.ToFloat32(k, v))
		}
		y.At(at).Store4(r)
	})
}

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
	{compute.Float16, compute.Float32}:  castKernel("widen", "y is x, halves as float32, exactly.", convert[ptx.F16, float32]),
	{compute.Float32, compute.Float16}:  castKernel("narrow", "y is x rounded to halves, ties to even.", convert[float32, ptx.F16]),
	{compute.BFloat16, compute.Float32}: castKernel("widen_bf16", "y is x, bfloat16 as float32, exactly.", convert[ptx.BF16, float32]),
	{compute.Float32, compute.BFloat16}: castKernel("narrow_bf16", "y is x rounded to bfloat16, ties to even.", convert[float32, ptx.BF16]),
	{compute.Float16, compute.BFloat16}: castKernel("half_to_bf16", "y is x, halves rounded to bfloat16, ties to even.", convert[ptx.F16, ptx.BF16]),
	{compute.BFloat16, compute.Float16}: castKernel("bf16_to_half", "y is x, bfloat16 rounded to halves, ties to even.", convert[ptx.BF16, ptx.F16]),
	{compute.Uint8, compute.Float32}:    castKernel("widen_u8", "y is x, bytes as float32.", convert[uint8, float32]),
	{compute.Float32, compute.Uint8}:    castKernel("narrow_u8", "y is x"+toByte, convert[float32, uint8]),
	{compute.Uint8, compute.Float16}:    castKernel("u8_to_half", "y is x, bytes as halves.", convert[uint8, ptx.F16]),
	{compute.Float16, compute.Uint8}:    castKernel("half_to_u8", "y is x"+toByte, convert[ptx.F16, uint8]),
	{compute.Uint8, compute.BFloat16}:   castKernel("u8_to_bf16", "y is x, bytes as bfloat16.", convert[uint8, ptx.BF16]),
	{compute.BFloat16, compute.Uint8}:   castKernel("bf16_to_u8", "y is x"+toByte, convert[ptx.BF16, uint8]),
}

const toByte = " rounded to bytes, ties to even, and 0 or 255 where there is none."

// castParams are those of casts; elements come four at a time.
type castParams struct {
	Quads int
	X, Y  Buffer `of:"numbers"`
}

func castKernel(name, doc string, build func(k *ptx.Kernel, p *Params, at *castParams)) *Kernel {
	return Define(Kernel{Family: "unary", Name: name, Block: [3]int{castBlock, 1, 1}, Doc: doc}, build)
}

// Cast converts n elements.
func (s *Step) Cast(x Buffer, from compute.DType, y Buffer, to compute.DType, n int) {
	switch {
	case n == 0:
	case from == to:
		s.Copy(x, y, n*to.Size())
	default:
		quads := CeilDiv(n, 4)
		s.Launch(casts[[2]compute.DType{from, to}], s.GridStride(quads, castBlock), castParams{quads, x, y})
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
func convert[T, U scalar.Castable](k *ptx.Kernel, p *Params, at *castParams) {
	count, x, y := p.U32(&at.Quads), Ptr[T](p, &at.X, ptx.Align(16)), Ptr[U](p, &at.Y, ptx.Align(16))
	ptx.For(k, k.GlobalID(ptx.X), count, k.Nctaid(ptx.X).Mul(castBlock), func(i ptx.Reg[uint32]) {
		at := i.Shl(2)
		var r [4]ptx.Reg[U]
		for j, v := range x.At(at).Load4() {
			r[j] = scalar.FromFloat32[U](k, scalar.ToFloat32(k, v))
		}
		y.At(at).Store4(r)
	})
}

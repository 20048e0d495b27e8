package lower

import "github.com/wavelane/wavelane/ptx"

const castBlock = 256

var (
	widen = register(Kernel{Family: "unary", Name: "widen", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x, halves as float32, exactly. Parameters: u32 quads, f16* x, f32* y.", build: convert[ptx.F16, float32]})
	narrow = register(Kernel{Family: "unary", Name: "narrow", Block: [3]int{castBlock, 1, 1},
		Doc: "y is x rounded to halves, ties to even. Parameters: u32 quads, f32* x, f16* y.", build: convert[float32, ptx.F16]})
)

// convert makes elements of one type those of another, four at a time. The last four may lie partly beyond the end, where there
// is room.
func convert[T, U float32 | ptx.F16](k *ptx.Kernel) {
	count := ptx.Param[uint32](k, "quads")
	x := ptx.PointerParam[T](k, "x", ptx.Align(16))
	y := ptx.PointerParam[U](k, "y", ptx.Align(16))
	ptx.For(k, k.GlobalID(ptx.X), count, ptx.Mul(k, k.Nctaid(ptx.X), ptx.Imm[uint32](castBlock)), func(i ptx.Reg[uint32]) {
		at := ptx.Shl(k, i, ptx.Imm[uint32](2))
		var r [4]ptx.Reg[U]
		for j, v := range ptx.Load4(k, ptx.At(k, x, at)) {
			r[j] = ptx.Convert[U](k, v)
		}
		ptx.Store4(k, ptx.At(k, y, at), r)
	})
}

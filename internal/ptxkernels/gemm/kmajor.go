package gemm

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Tensor cores take operands of 32 bits from shared memory K-major only, and TMA does not transpose: other operands are transposed in
// memory first, which is worth it where each element is multiplied often.
const (
	kMajorTile = 32
	kMajorRows = 8 // of a tile that a block has at a time
)

type kMajorParams struct {
	Rows, Cols   int // of x; rows are the depth
	Pitch        int // elements from row to row of y
	Across, Down scalar.Divide
	X, Y         kit.Buffer
}

var kMajorKernel = kit.Define(kit.Kernel{Family: "matmul_wgmma_tf32", Name: "k_major_f32", Block: [3]int{kMajorTile, kMajorRows, 1},
	Doc: "y[z][col·pitch + row] = x[z][row][col] of float32. One block for each tile of 32 × 32; one row more in shared memory keeps banks apart."},
	func(k *ptx.Kernel, p *kit.Params, of *kMajorParams) {
		rows, cols, pitch := p.U32(&of.Rows), p.U32(&of.Cols), p.U32(&of.Pitch)
		x, y := kit.Ptr[float32](p, &of.X), kit.Ptr[float32](p, &of.Y)
		tile := ptx.SharedArray[float32](k, "tile", kMajorTile*(kMajorTile+1))
		rest, across := p.Divisor(&of.Across).Split(k, k.Ctaid(ptx.X))
		z, down := p.Divisor(&of.Down).Split(k, rest)
		left, top := across.Mul(kMajorTile), down.Mul(kMajorTile)
		tx, ty := k.Tid(ptx.X), k.Tid(ptx.Y)
		x = x.At(z.MulWide(rows).Mul(ptx.Convert[uint64](cols)))
		y = y.At(z.MulWide(cols).Mul(ptx.Convert[uint64](pitch)))
		for i := 0; i < kMajorTile; i += kMajorRows {
			row, col := top.Add(ty).Add(i), left.Add(tx)
			v := ptx.LoadIf(row.Lt(rows).And(col.Lt(cols)), x.At(row.MulWide(cols).Add(ptx.Convert[uint64](col))), 0)
			tile.At(ty.Add(i).Mad(kMajorTile+1, tx)).Store(v)
		}
		k.Barrier()
		for i := 0; i < kMajorTile; i += kMajorRows {
			col, row := left.Add(ty).Add(i), top.Add(tx)
			v := tile.At(tx.Mad(kMajorTile+1, ty.Add(i))).Load()
			ptx.StoreIf(row.Lt(rows).And(col.Lt(cols)), y.At(col.MulWide(pitch).Add(ptx.Convert[uint64](row))), v)
		}
	})

// toKMajor is an operand of float32 with its rows, of the depth, as columns: n of the bound, in batch matrices. Rows of the result
// begin at multiples of 16 bytes.
func (m *Problem) toKMajor(x kit.Buffer, n, batch int) (y kit.Buffer, pitch int) {
	pitch = (m.K + 3) &^ 3
	y = m.NewScratch(4 * batch * n * pitch)
	across, down := kit.CeilDiv(n, kMajorTile), kit.CeilDiv(m.K, kMajorTile)
	m.Launch(kMajorKernel, [3]int{batch * across * down, 1, 1}, kMajorParams{Rows: m.K, Cols: n, Pitch: pitch,
		Across: scalar.Divide(across), Down: scalar.Divide(down), X: x, Y: y})
	return y, pitch
}

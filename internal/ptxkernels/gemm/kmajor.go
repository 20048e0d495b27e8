package gemm

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// Tensor cores take operands of 32 bits from shared memory K-major only, and TMA neither transposes nor cuts numbers in two: that is done
// in memory first, which is worth it where each element is multiplied often.
const (
	kMajorTile = 32
	kMajorRows = 8 // of a tile that a block has at a time
)

type kMajorParams struct {
	Rows, Cols   int // rows are the depth
	Pitch        int // elements from row to row of y
	Across, Down scalar.Divide
	X, Y         kit.Buffer
}

var (
	kMajorWhole   = newKMajor("k_major_f32", "y[z][col·pitch + row] = x[z][row][col] of float32.", false, 1)
	kMajorParts   = newKMajor("k_major_parts", "y[2z][col·pitch + row] and y[2z + 1][…] are x[z][row][col] as the sum of two TF32.", false, 2)
	kMajorAlready = newKMajor("k_major_already_parts", "y[2z][col·pitch + row] and y[2z + 1][…] are x[z][col][row] as the sum of two TF32.", true, 2)
)

func newKMajor(name, doc string, already bool, parts int) *kit.Kernel {
	return kit.Define(kit.Kernel{Family: "matmul_k_major", Name: name, Block: [3]int{kMajorTile, kMajorRows, 1},
		Doc: doc + " One block for each tile of 32 × 32."}, func(k *ptx.Kernel, p *kit.Params, of *kMajorParams) {
		rows, cols, pitch := p.U32(&of.Rows), p.U32(&of.Cols), p.U32(&of.Pitch)
		x, y := kit.Ptr[float32](p, &of.X), kit.Ptr[float32](p, &of.Y)
		rest, across := p.Divisor(&of.Across).Split(k, k.Ctaid(ptx.X))
		z, down := p.Divisor(&of.Down).Split(k, rest)
		left, top := across.Mul(kMajorTile), down.Mul(kMajorTile)
		tx, ty := k.Tid(ptx.X), k.Tid(ptx.Y)
		x = x.At(z.MulWide(rows).Mul(ptx.Convert[uint64](cols)))
		matrix := cols.MulWide(pitch)
		y = y.At(ptx.Convert[uint64](z.Mul(parts)).Mul(matrix))
		each := func(f func(i int, along, other ptx.Reg[uint32])) {
			for i := 0; i < kMajorTile; i += kMajorRows {
				f(i, tx, ty.Add(i))
			}
		}
		load := func(row, col, at ptx.Reg[uint32], length, other ptx.Reg[uint32]) scalar.Float {
			return ptx.LoadIf(row.Lt(rows).And(col.Lt(cols)), x.At(at.MulWide(length).Add(ptx.Convert[uint64](other))), 0)
		}
		var values [kMajorTile / kMajorRows]scalar.Float
		if already {
			each(func(i int, row, col ptx.Reg[uint32]) {
				row, col = top.Add(row), left.Add(col)
				values[i/kMajorRows] = load(row, col, col, rows, row)
			})
		} else {
			// One word more in each row keeps banks apart.
			tile := ptx.SharedArray[float32](k, "tile", kMajorTile*(kMajorTile+1))
			each(func(i int, col, row ptx.Reg[uint32]) {
				r, c := top.Add(row), left.Add(col)
				tile.At(row.Mad(kMajorTile+1, col)).Store(load(r, c, r, cols, c))
			})
			k.Barrier()
			each(func(i int, row, col ptx.Reg[uint32]) {
				values[i/kMajorRows] = tile.At(row.Mad(kMajorTile+1, col)).Load()
			})
		}
		each(func(i int, row, col ptx.Reg[uint32]) {
			row, col = top.Add(row), left.Add(col)
			there, to := row.Lt(rows).And(col.Lt(cols)), y.At(col.MulWide(pitch).Add(ptx.Convert[uint64](row)))
			v := values[i/kMajorRows]
			if parts == 1 {
				ptx.StoreIf(there, to, v)
				return
			}
			high, low := tiling.TF32Parts(v)
			ptx.StoreIf(there, ptx.Cast[uint32](to), high)
			ptx.StoreIf(there, ptx.Cast[uint32](to.At(matrix)), low)
		})
	})
}

// toKMajor is an operand of float32 with its depth along rows, which may be so already, in as many parts as wgmma multiplies: n of the
// bound, in batch matrices. Rows of the result begin at multiples of 16 bytes.
func (m *Problem) toKMajor(x kit.Buffer, n, batch, parts int, already bool) (y kit.Buffer, pitch int) {
	kernel := kMajorWhole
	if parts == 2 {
		kernel = kMajorParts
		if already {
			kernel = kMajorAlready
		}
	}
	pitch = (m.K + 3) &^ 3
	y = m.NewScratch(4 * parts * batch * n * pitch)
	across, down := kit.CeilDiv(n, kMajorTile), kit.CeilDiv(m.K, kMajorTile)
	m.Launch(kernel, [3]int{batch * across * down, 1, 1}, kMajorParams{Rows: m.K, Cols: n, Pitch: pitch,
		Across: scalar.Divide(across), Down: scalar.Divide(down), X: x, Y: y})
	return y, pitch
}

package kernels

import "github.com/wavelane/wavelane/ptx"

// Layout is how a tile lies in shared memory, so that its columns are in different banks.
type Layout uint8

// The layouts.
const (
	Padded   Layout = iota // a word is left free behind each row
	Swizzled               // column c of row r lies at c XOR r
)

// Transpose turns rows into columns.
func Transpose(l Layout) Kernel {
	const tile = 32
	name := map[Layout]string{Padded: "transpose_padded", Swizzled: "transpose_swizzled"}[l]
	return Kernel{
		Name: name, Sizes: "rows cols", Block: [3]int{tile, 8, 1},
		// Tiles are counted in one dimension: the others end at 65,535 blocks.
		Grid:  func(sizes ...int) [3]int { return [3]int{ceilDiv(sizes[0], tile) * ceilDiv(sizes[1], tile), 1, 1} },
		Doc:   "y[c][r] = x[r][c]. Parameters: u32 rows, u32 cols, f32* x, f32* y. One block per tile of 32 × 32.",
		build: func(k *ptx.Kernel) { buildTranspose(k, l, tile) },
	}
}

func buildTranspose(k *ptx.Kernel, l Layout, tile int) {
	rows := ptx.Param[uint32](k, "rows")
	cols := ptx.Param[uint32](k, "cols")
	x := ptx.PointerParam[float32](k, "x")
	y := ptx.PointerParam[float32](k, "y")
	pitch := tile
	if l == Padded {
		pitch++
	}
	shared := ptx.SharedArray[float32](k, "tile", tile*pitch)
	place := func(r, c ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, float32] {
		if l == Swizzled {
			c = ptx.Xor(k, c, r)
		}
		return ptx.At(k, shared, ptx.Mad(k, r, u32(pitch), c))
	}
	tilesX := ptx.Shr(k, ptx.Add(k, cols, u32(tile-1)), u32(5))
	block := k.Ctaid(ptx.X)
	top := ptx.Mul(k, ptx.Div(k, block, tilesX), u32(tile))
	left := ptx.Mul(k, ptx.Rem(k, block, tilesX), u32(tile))
	tx, ty := k.Tid(ptx.X), k.Tid(ptx.Y)

	// each runs f for the rows of the tile that the thread has, with this row and the thread's column in the tile.
	each := func(f func(i ptx.Reg[uint32])) {
		for d := 0; d < tile; d += 8 {
			f(ptx.Add(k, ty, u32(d)))
		}
	}
	c := ptx.Add(k, left, tx)
	each(func(i ptx.Reg[uint32]) {
		r := ptx.Add(k, top, i)
		inside := ptx.And(k, ptx.Lt(k, r, rows), ptx.Lt(k, c, cols))
		k.If(inside, func() {
			ptx.Store(k, place(i, tx), ptx.Load(k, ptx.At(k, row(k, x, r, cols), c)))
		})
	})
	k.Barrier()
	r := ptx.Add(k, top, tx)
	each(func(i ptx.Reg[uint32]) {
		c := ptx.Add(k, left, i)
		inside := ptx.And(k, ptx.Lt(k, r, rows), ptx.Lt(k, c, cols))
		k.If(inside, func() {
			ptx.Store(k, ptx.At(k, row(k, y, c, rows), r), ptx.Load(k, place(tx, i)))
		})
	})
}

package move

import (
	"math/bits"
	"slices"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// A tile has 2^tileLog words: as many rows and columns as the shape asks for, both powers of two, from 2 to half the tile.
const (
	tileLog   = 11
	tileSteps = 1 << tileLog / moveThreads // words of each thread
)

// exchanged returns the axis along which x is contiguous, if that is not the last, along which y is: then a box is best moved
// by tiles, as soon as it fills some. It returns -1 for other boxes.
func (b box) exchanged() int {
	last := len(b.shape) - 1
	if last < 1 || b.to[last] != 1 {
		return -1
	}
	p := slices.Index(b.from[:last], 1)
	if p < 0 || b.shape[p] < 1<<tileLog/2/b.shape[last] {
		return -1
	}
	return p
}

// tileRows is the logarithm of a tile's rows for matrices of these sizes.
func tileRows(rows, cols int) int {
	const square = tileLog / 2
	log := func(n int) int { return max(1, bits.Len(uint(n-1))) } // of the least power of two from n on
	if r := log(rows); r < square {
		return r
	}
	if c := log(cols); c < square {
		return tileLog - c
	}
	return square
}

// transposed moves a box whose axis p is contiguous in x, and the last one in y.
func transposed(s *kit.Step, b box, p int) {
	last := len(b.shape) - 1
	rows, cols := b.shape[p], b.shape[last]
	log := tileRows(rows, cols)
	down, across := kit.CeilDiv(rows, 1<<log), kit.CeilDiv(cols, 1<<(tileLog-log))
	others := func(s []int) []int { return slices.Delete(slices.Clone(s[:last]), p, p+1) }
	shape := others(b.shape)
	s.Launch(transposeKernel, [3]int{program.Len(shape) * down * across, 1, 1}, transposeParams{rows, cols, uint32(b.from[last]), uint32(b.to[p]), log,
		scalar.Divide(down), scalar.Divide(across), boxParamsOf(program.MaxRank-2, shape, others(b.from), others(b.to)),
		b.operand.Plus(4 * b.x0), kit.Out.Plus(4 * b.y0)})
}

// transposeParams are those of transpose: the box is of matrices.
type transposeParams struct {
	Rows, Cols   int
	XCol         uint32        `name:"x_col"` // strides in words, as int32
	YRow         uint32        `name:"y_row"`
	Log          int           // of the rows of a tile
	Down, Across scalar.Divide `array:"tiles"` // of a matrix
	boxParams
	X, Y kit.Buffer `of:"u32"`
}

var transposeKernel = kit.Define(kit.Kernel{Family: "move", Name: "transpose", Block: [3]int{moveThreads, 1, 1},
	Doc: "y[row·y_row + col] = x[col·x_col + row] for matrices that are the elements of a box. One block for each tile."}, buildTranspose)

func buildTranspose(k *ptx.Kernel, p *kit.Params, of *transposeParams) {
	rows, cols := p.U32(&of.Rows), p.U32(&of.Cols)
	xCol, yRow := kit.Read(p, &of.XCol), kit.Read(p, &of.YRow)
	log, axes := p.U32(&of.Log), of.read(p, program.MaxRank-2)
	x, y := kit.Ptr[uint32](p, &of.X), kit.Ptr[uint32](p, &of.Y)
	// Each column of a matrix is a row of the tile, with a word left free after it, so that neither side meets one bank twice.
	tile := ptx.SharedArray[uint32](k, "tile", 1<<tileLog+1<<(tileLog-1))

	one := ptx.Imm(uint32(1))
	across := ptx.Imm(uint32(tileLog)).Sub(log)
	rest, col := p.Divisor(&of.Across).Split(k, k.Ctaid(ptx.X))
	matrix, row := p.Divisor(&of.Down).Split(k, rest)
	left, top := col.Shl(across), row.Shl(log)
	xs, ys := axes.places(k, []ptx.Reg[uint32]{matrix})
	pitch := one.Shl(log).Add(one)

	// each gives f the places of the thread's words in a tile that is walked in rows of 2^width words.
	each := func(width ptx.Reg[uint32], f func(j int, major, minor ptx.Reg[uint32])) {
		mask := one.Shl(width).Sub(one)
		for j := range tileSteps {
			i := k.Tid(ptx.X).Add(uint32(j * moveThreads))
			f(j, i.Shr(width), i.And(mask))
		}
	}
	inside := func(r, c ptx.Reg[uint32]) ptx.Reg[bool] { return r.Lt(rows).And(c.Lt(cols)) }
	var words [tileSteps]ptx.Reg[uint32]
	each(log, func(j int, c, r ptx.Reg[uint32]) {
		c, r = left.Add(c), top.Add(r)
		at := c.Mad(xCol, xs[0].Add(r))
		words[j] = ptx.LoadIf(inside(r, c), unitAt(k, x, 1, at), 0)
	})
	each(log, func(j int, c, r ptx.Reg[uint32]) { tile.At(c.Mad(pitch, r)).Store(words[j]) })
	k.Barrier()
	each(across, func(_ int, r, c ptx.Reg[uint32]) {
		word := tile.At(c.Mad(pitch, r)).Load()
		c, r = left.Add(c), top.Add(r)
		at := r.Mad(yRow, ys[0].Add(c))
		ptx.StoreIf(inside(r, c), unitAt(k, y, 1, at), word)
	})
}

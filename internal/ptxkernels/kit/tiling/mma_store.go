package tiling

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// MMAScratchRow is bytes from row to row of the shared memory in which a warp turns results from fragments to rows: of 32 columns,
// and as many more that fragments meet each bank once.
const MMAScratchRow = 40 * 4

// Flags of the result's type; float32 without either.
const (
	ResultF16 = 1 << (iota + 16)
	ResultBF16
)

// RowWriter writes the results of a warp row by row, 32 columns at a time: bias, activation and conversion take four neighbours of
// a lane, and are there once for all chunks.
type RowWriter struct {
	K       *ptx.Kernel
	Lane    ptx.Reg[uint32]
	Scratch ptx.Ptr[ptx.Shared, uint32] // of the warp
	M, N    ptx.Reg[uint32]
	Bias    ptx.Ptr[ptx.Global, float32]
	C       ptx.Ptr[ptx.Global, uint8]
	Parts   ptx.Ptr[ptx.Global, float32]

	to                                       ptx.Ptr[ptx.Global, uint8] // c, or the parts of this number
	act                                      ptx.Reg[uint32]
	vector, toF16, toBF16, ofRows, ofColumns ptx.Reg[bool]
	product                                  ptx.Reg[uint64] // the first element of the product

	After *Epilogue // of what is whole, nil if there is none
	whole ptx.Reg[bool]
	z     ptx.Reg[uint32] // number of the product
}

// Begin is about a segment's tile of product z. Parts of it are written as they are.
func (x *RowWriter) Begin(s Segment, z, flags, act ptx.Reg[uint32]) {
	k, whole := x.K, s.whole()
	to := ptx.PtrVarOf(x.C)
	k.If(whole.Not(), func() { to.Set(ptx.Cast[uint8](x.Parts.At(s.before()))) })
	x.to, x.whole, x.z = to.Get(), whole, z
	x.act = ptx.Select(whole, act, 0)
	flags = flags.And(ptx.Select(whole, ptx.Imm(uint32(math.MaxUint32)), VectorC))
	has := func(flag uint32) ptx.Reg[bool] { return scalar.HasFlag(x.K, flags, flag) }
	x.vector, x.toF16, x.toBF16, x.ofRows, x.ofColumns = has(VectorC), has(ResultF16), has(ResultBF16), has(BiasOfRows), has(BiasOfColumns)
	x.product = z.MulWide(x.M).Mul(ptx.Convert[uint64](x.N))
}

// Chunks writes n chunks of rows × 32 results; the first begins at (top, left), each next one 32 columns further, or with below
// so many rows. sum is an element of the lane in a chunk: of each 16 × 8, lane 4g+t has columns 2t and 2t+1 of rows g and g+8.
// It is asked for row 0 or 8 of each 16, and for column 0 or 1 of each 8.
func (x *RowWriter) Chunks(n, rows int, top, left ptx.Reg[uint32], below bool, sum func(i, row, col int) *ptx.Var[float32]) {
	k := x.K
	g, t := x.Lane.Shr(2), x.Lane.And(3)
	to := x.Scratch.Bytes(g.Mad(MMAScratchRow, t.Shl(3)))
	r, c := x.Lane.Shr(3), x.Lane.And(7).Shl(2)
	from := x.Scratch.Bytes(r.Mad(MMAScratchRow, c.Shl(2)))
	top, left = top.Add(r), left.Add(c)
	each := func(f func(i ptx.Reg[uint32])) {
		ptx.For(k, 0, n, 1, f, ptx.NoUnroll())
	}
	if n == 1 {
		each = func(f func(i ptx.Reg[uint32])) { f(ptx.U32(0)) }
	}
	each(func(i ptx.Reg[uint32]) {
		if n > 1 { // a barrier lies between the first chunk and what was in scratch memory before it
			k.WarpSync(ptx.FullWarp())
		}
		put := func(chunk int) {
			for row := 0; row < rows; row += 8 {
				for col := 0; col < 32; col += 8 {
					pair := [2]ptx.Reg[float32]{sum(chunk, row, col).Get(), sum(chunk, row, col+1).Get()}
					ptx.Cast[float32](to.Bytes(row*MMAScratchRow + col*4)).Store2(pair)
				}
			}
		}
		for chunk := range n - 1 {
			k.If(i.Eq(chunk), func() { put(chunk) })
		}
		if n == 1 {
			put(0)
		} else {
			k.If(i.Eq(n-1), func() { put(n - 1) })
		}
		k.WarpSync(ptx.FullWarp())
		if below {
			x.rows(rows, i.Mad(rows, top), left, ptx.Cast[float32](from))
		} else {
			x.rows(rows, top, i.Mad(32, left), ptx.Cast[float32](from))
		}
	})
}

// rows writes four neighbours in every fourth of so many rows, from (row, col) on.
func (x *RowWriter) rows(rows int, row, col ptx.Reg[uint32], from ptx.Ptr[ptx.Shared, float32]) {
	k, zero := x.K, ptx.Imm(float32(0))
	inside := func(i int) ptx.Reg[bool] { return col.Add(i).Lt(x.N) }
	var bias [4]*ptx.Var[float32]
	for i := range bias {
		bias[i] = ptx.VarOf(k, ptx.LoadIf(x.ofColumns.And(inside(i)), x.Bias.At(col).At(i), zero))
	}
	at := ptx.PtrVarOf(from)
	ptx.For(k, row, row.Add(rows), 4, func(row ptx.Reg[uint32]) {
		v := at.Get().Load4()
		at.Set(at.Get().Bytes(4 * MMAScratchRow))
		there := row.Lt(x.M)
		ofRow := ptx.LoadIf(x.ofRows.And(there), x.Bias.At(row), zero)
		y := make([]ptx.Reg[float32], 4)
		for i := range y {
			y[i] = v[i].Add(bias[i].Get()).Add(ofRow)
		}
		y = scalar.Activate(k, x.act, y)
		if x.After != nil {
			y = x.Finish(row, col, inside, y)
		}
		element := x.product.Add(row.MulWide(x.N).Add(ptx.Convert[uint64](col)))
		k.If(there, func() { x.Four(element, inside, y) })
	}, ptx.NoUnroll())
}

// Finish is what becomes of four neighbours of a tile that is whole.
func (x *RowWriter) Finish(row, col ptx.Reg[uint32], inside func(i int) ptx.Reg[bool], y []ptx.Reg[float32]) []ptx.Reg[float32] {
	k, v := x.K, scalar.VariablesOf(x.K, y)
	k.If(x.whole.And(row.Lt(x.M)), func() {
		v.Set(x.After.Apply(v.Get(), func(i int) Site { return Site{Z: x.z, Row: row, Col: col.Add(i)} }, inside, x.vector))
	})
	return v.Get()
}

// Four writes neighbours, those that are inside.
func (x *RowWriter) Four(element ptx.Reg[uint64], inside func(i int) ptx.Reg[bool], y []ptx.Reg[float32]) {
	k := x.K
	k.If(x.toF16.Or(x.toBF16), func() {
		to := ptx.Cast[uint16](x.to.Bytes(element.Shl(1)))
		pair := func(i int) ptx.Reg[uint32] {
			f := ptx.Bitcast[uint32](ptx.ConvertPair[ptx.F16x2](y[i], y[i+1]))
			b := ptx.Bitcast[uint32](ptx.ConvertPair[ptx.BF16x2](y[i], y[i+1]))
			return ptx.Select(x.toF16, f, b)
		}
		pairs := [2]ptx.Reg[uint32]{pair(0), pair(2)}
		k.If(x.vector, func() {
			k.When(inside(0), func() { ptx.Cast[uint32](to).Store2(pairs) })
		}, func() {
			for i := range 4 {
				lo, hi := ptx.Unpack32(pairs[i/2])
				ptx.StoreIf(inside(i), to.At(i), [2]ptx.Reg[uint16]{lo, hi}[i%2])
			}
		})
	}, func() {
		to := ptx.Cast[float32](x.to.Bytes(element.Shl(2)))
		strip{k, func(i int) ptx.Ptr[ptx.Global, float32] { return to.At(i) }, inside, x.vector}.store(y)
	})
}

package norm

import (
	"slices"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// rowOp is what a kernel over rows accumulates of a row, and how it changes the row's elements by that.
type rowOp struct {
	threadgroup.Accumulator[float32]
	neutral float64 // stands where a row has no element
	// partial is the partial result of the elements of a tile, to which g belong with Gradient.
	partial func(x, g []scalar.Float, l rowTile) []scalar.Float
	// coefficients are what apply needs of the whole row.
	coefficients func(acc []scalar.Float) []scalar.Float
	// apply changes element x, where the vectors have the elements v. With Gradient v is g alone.
	apply func(x scalar.Float, coefficients, v []scalar.Float) scalar.Float
}

const (
	KeptUnits = 8 // accesses of four elements that a lane can keep in registers
	// Those that it has under way where it cannot keep them: of neighbours, and of single elements.
	loopVectors, loopSingles = 4, 2
)

// second is what a second matrix m is to rows.
type second uint8

const (
	noSecond second = iota // there is none
	added                  // x + m takes the place of x, and is a result, too
	gated                  // silu(m) multiplies the result
	Gradient               // m·v takes part as g: m is the gradient of a norm's result. Two coefficients of each row are a result
)

// rowsParams are those of kernels over rows. What a kernel does not need has no element.
type rowsParams struct {
	threadgroup.Work
	Stage, Units int       `array:"-"` // Units is 1 or 8 if these hold a lane's share of a row, else 0
	Eps          []float32 `names:"eps"`
	X            kit.Buffer
	M            []kit.Buffer `names:"m"`
	Vectors      []kit.Buffer `names:"v,w"`
	Sum          []kit.Buffer `names:"sum"`
	Y            kit.Buffer
	Norms        []kit.Buffer `names:"norms"`
	Partial      kit.Buffer
}

// rows is a kernel over the rows of a matrix.
type rows struct {
	*kit.Kernel
	words int // of a partial result
	second
}

// rowsKernel makes y of x, by vectors as long as a row. x is read once where a lane's share of the row fits its registers. y may be x.
func rowsKernel(name, doc string, words int, m second, scalars, vectors int, op func(t threadgroup.Group, eps scalar.Float) rowOp) rows {
	with := func(what ...second) []kit.Buffer { return make([]kit.Buffer, kit.FlagIf(1, slices.Contains(what, m))) }
	params := rowsParams{Eps: make([]float32, scalars), M: with(added, gated, Gradient), Vectors: make([]kit.Buffer, vectors), Sum: with(added),
		Norms: with(Gradient)}
	return rows{kit.Register(kit.Kernel{Family: "rows", Name: name, Block: [3]int{threadgroup.Threads, 1, 1}, Doc: doc, Params: params,
		BuildWith: func(k *ptx.Kernel, h *kit.Prologue, _ *kit.Epilogue) {
			at := params
			p := kit.NewParams(k, &at)
			t := threadgroup.Of(p, &at.Work)
			stage, units := p.U32(&at.Stage), p.U32(&at.Units)
			var eps scalar.Float
			if scalars > 0 {
				eps = kit.Read(p, &at.Eps[0])
			}
			b := rowsBuilder{rowOp: op(t, eps), second: m}
			b.Reducer = threadgroup.ReducerOf(t, b.rowOp.Accumulator)
			pointer := func(field *kit.Buffer) ptx.Ptr[ptx.Global, float32] { return kit.Ptr[float32](p, field) }
			row := func(field *kit.Buffer) ptx.Ptr[ptx.Global, float32] { return threadgroup.RowOf(t, pointer(field)) }
			var matrix, sum ptx.Ptr[ptx.Global, float32]
			if h != nil {
				b.prologue = threadgroup.PrologueOf(t, h, &at.X)
				k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
			} else {
				b.loads = append(b.loads, row(&at.X))
			}
			if m != noSecond {
				matrix = row(&at.M[0])
			}
			for i := range vectors {
				b.reads = append(b.reads, pointer(&at.Vectors[i]))
			}
			if m == added {
				sum = row(&at.Sum[0])
			}
			b.stores = append(b.stores, row(&at.Y))
			switch m {
			case added:
				b.loads, b.stores = append(b.loads, matrix), append(b.stores, sum)
			case gated:
				b.reads = append(b.reads, matrix)
			case Gradient:
				b.loads, b.reads = append(b.loads, matrix, b.reads[0]), nil
				b.norms = pointer(&at.Norms[0])
			}
			b.build(stage, units, pointer(&at.Partial))
		}}), words, m}
}

// rowsBuilder writes a kernel over rows. A lane accesses units of four elements: neighbours, if the work is in vectors, else as
// far from each other as the group has lanes.
type rowsBuilder struct {
	threadgroup.Reducer[float32]
	rowOp
	second
	prologue *threadgroup.Prologue          // in place of loads; nil if there is none
	loads    []ptx.Ptr[ptx.Global, float32] // what x and g are made of
	reads    []ptx.Ptr[ptx.Global, float32] // the elements v of results
	stores   []ptx.Ptr[ptx.Global, float32] // the results
	norms    ptx.Ptr[ptx.Global, float32]   // of all rows
	from     ptx.Reg[uint32]                // first element of a lane
	stride   ptx.Reg[uint64]                // bytes from one element of a unit to the next, if they are no neighbours
}

func (b *rowsBuilder) build(stage, units ptx.Reg[uint32], partial ptx.Ptr[ptx.Global, float32]) {
	k := b.K
	b.from = b.Start.Add(ptx.Select(b.Vector(), b.Lane.Shl(2), b.Lane))
	b.stride = b.Lanes.MulWide(4)
	k.If(units.Eq(1), func() { b.resident(1) }, func() {
		k.If(units.Ne(0), func() { b.resident(KeptUnits) }, func() { b.streaming(stage, partial) })
	})
}

// resident changes rows that so many units of each lane hold.
func (b *rowsBuilder) resident(units int) {
	l := b.tileAt(b.from, units, 0)
	l.whole = units == KeptUnits // or a unit of each lane would hold the row
	b.byWidth(l.load)
	coefficients := b.finish(b.AllReduce(l.partial()))
	b.byWidth(func(width int) { l.store(width, coefficients) })
}

// streaming changes rows of any length, which it reads twice. The second time it goes backwards: it begins with what caches hold.
func (b *rowsBuilder) streaming(stage ptx.Reg[uint32], partial ptx.Ptr[ptx.Global, float32]) {
	b.Run(stage, b.Parts, partial, func(p threadgroup.Partial[float32]) {
		b.tiles(false, func(l rowTile, _ int) { p.Accumulate(l.partial()) })
	}, func(all []scalar.Float) {
		coefficients := b.finish(all)
		b.tiles(true, func(l rowTile, width int) { l.store(width, coefficients) })
	})
}

// finish makes coefficients, of which the first task of a row leaves two with Gradient.
func (b *rowsBuilder) finish(all []scalar.Float) []scalar.Float {
	coefficients := b.coefficients(all)
	if b.second == Gradient {
		b.K.If(b.Active.And(b.Lane.Or(b.Start).Eq(0)), func() {
			b.norms.Bytes(b.Row.MulWide(8)).Store2([2]scalar.Float{coefficients[0], coefficients[1]})
		})
	}
	return coefficients
}

// byWidth writes f for accesses of four elements and of one.
func (b *rowsBuilder) byWidth(f func(width int)) {
	b.K.If(b.Vector(), func() { f(4) }, func() { f(1) })
}

// tiles walks over the tiles of a task, loaded.
func (b *rowsBuilder) tiles(backwards bool, f func(l rowTile, width int)) {
	b.byWidth(func(width int) {
		units := loopVectors
		if width == 1 {
			units = loopSingles
		}
		step := b.Lanes.Mul(4 * units) // a power of two
		place := func(at ptx.Reg[uint32]) ptx.Reg[uint32] { return at }
		if backwards {
			longest := b.End.Sub(1).Sub(b.from)
			last := b.from.Add(longest.And(ptx.U32(0).Sub(step)))
			both := b.from.Add(last)
			place = func(at ptx.Reg[uint32]) ptx.Reg[uint32] { return both.Sub(at) }
		}
		ptx.For(b.K, b.from, b.End, step, func(at ptx.Reg[uint32]) {
			l := b.tileAt(place(at), units, width)
			l.load(width)
			f(l, width)
		}, ptx.NoUnroll())
	})
}

package quantised

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// Products of many rows of activations with packed weights by tensor cores (mma.sync). A block has 64 rows of x and 128 of
// weights; each of its warps has 32 of these, which it takes from memory to registers itself, as the operand with 16 rows. Four values
// of a word of quants are just what a lane of that operand has, and it has the scales of its rows: nothing is moved between lanes. Parts
// of x are in shared memory, in stages that are filled ahead.
//
// Weights stay integers, which are exact as bytes and as halves: their scales are multiplied with sums of the 16 or 32 products that
// share them. These sums begin at zero, for what tensor cores add up they do not round to nearest.
const (
	quantMmaM       = halvesTile
	quantMmaN       = 128
	quantMmaThreads = 128
	quantMmaRows    = 32 // of weights, of a warp
	quantMmaStages  = 2
)

// quantMmaKind is what x becomes.
//
//	s8     bytes, see quant_bytes
//	f16    halves, of rows that are multiplied by a power of two: the relative error of a value is 2⁻¹¹ at most
//	f16x2  sums of two halves, of 22 bits: as exact as float32 for a product. Rows with Inf or NaN are multiplied as float32
type quantMmaKind struct {
	name  string
	parts int // halves of a value, 0 of bytes
}

var (
	quantBytesMma  = quantMmaKind{"s8", 0}
	quantHalfMma   = quantMmaKind{"f16", 1}
	quantHalvesMma = quantMmaKind{"f16x2", 2}
)

func (q quantMmaKind) bytes() bool { return q.parts == 0 }

// size of a value, in bytes.
func (q quantMmaKind) size() int { return max(1, 2*q.parts) }

// deep is the depth of a stage.
func (q quantMmaKind) deep() int {
	if q.bytes() {
		return 128
	}
	return halvesDepth
}

// Stage is where in it scales and sums begin, and how many bytes it has.
func (q quantMmaKind) Stage(f *blockFormat) (scales, size int) {
	scales = quantMmaM * q.row()
	switch {
	case q.bytes():
		return scales, scales + quantMmaM*q.deep()/4
	case f.affine:
		return scales, scales + quantMmaM*4*q.deep()/f.apart()
	}
	return scales, scales
}

// row is how many bytes a row of x has in a stage.
func (q quantMmaKind) row() int { return q.deep() * q.size() }

// quantMmaParams are those of quant_mma: of bytes with Scales, of halves with Factors, of two halves with Exact, too.
type quantMmaParams struct {
	M, N, K, Split int           `array:"sizes"` // Split is the depth of a split
	Words, Blocks  int           // of a row of weights
	Biased         int           // 0 or 1
	Down, Tiles    scalar.Divide // tiles of x, and of a split
	X              kit.Buffer    `of:"s8 or f16"`
	Scales         []kit.Buffer  `of:"u32" names:"scales"`
	Factors        []kit.Buffer  `names:"factors"` // of rows of x
	Exact          []kit.Buffer  `names:"exact"`   // x
	Weights        kit.Buffer    `of:"u32"`
	Bias, C        kit.Buffer
}

func (q quantMmaKind) params() (p quantMmaParams) {
	one := func(there bool) []kit.Buffer { return make([]kit.Buffer, kit.FlagIf(1, there)) }
	p.Scales, p.Factors, p.Exact = one(q.bytes()), one(!q.bytes()), one(q.parts == 2)
	return p
}

// quantMmaKernels are by kind and format.
var quantMmaKernels = map[quantMmaKind]map[*blockFormat]*kit.Kernel{
	quantBytesMma: quantMmaOf(quantBytesMma, "x that quant_bytes has rounded, by mma.sync on int8"),
	quantHalfMma:  quantMmaOf(quantHalfMma, "x that quant_halves has rounded, by mma.sync on halves"),
	quantHalvesMma: quantMmaOf(quantHalvesMma, "x as sums of two halves, which quant_halves has made, by mma.sync; rows whose factor is "+
		"NaN as float32"),
}

func quantMmaOf(kind quantMmaKind, doc string) map[*blockFormat]*kit.Kernel {
	return ofFormats(func(f *blockFormat) *kit.Kernel {
		name := "quant_mma_" + kind.name + "_" + f.name()
		_, stage := kind.Stage(f)
		return kit.Register(kit.Kernel{Family: name, Name: name, Block: [3]int{quantMmaThreads, 1, 1}, Shared: quantMmaStages*stage + 8*quantMmaN,
			Doc:    "c[split] = x·wᵀ + bias over a split of the depth, for " + doc + ".",
			Params: kind.params(),
			Build: func(k *ptx.Kernel) {
				(&quantMma{quantMmaKind: kind, blockFormat: f, k: k, calc: scalar.Math{K: k}}).Build()
			}})
	})
}

// quantMma is a kernel under construction.
type quantMma struct {
	quantMmaKind
	*blockFormat
	k    *ptx.Kernel
	calc scalar.Math
	*kit.Params
	of          quantMmaParams
	memory      ptx.Ptr[ptx.Shared, uint8]
	lane        ptx.Reg[uint32]
	group, in   ptx.Reg[uint32] // of four lanes, and the lane in it
	m, n, depth ptx.Reg[uint32]
	blocks      ptx.Reg[uint32]
	weights     ptx.Ptr[ptx.Global, uint8]
	table       ptx.Ptr[ptx.Shared, uint64] // addresses of the lane's rows of weights, which take fewer instructions to read than registers to keep
	top, left   ptx.Reg[uint32]             // of the tile
	wide        ptx.Reg[bool]               // it has more than half of its rows of x
	first, end  ptx.Reg[uint32]             // of the depth
	// Of 16 rows of weights by 8 of x: lane 4g+t has columns 2t and 2t+1 of rows g and g+8.
	sums [quantMmaRows / 16][quantMmaM / 8]scalar.Variables[float32]
}

// apart is how many values of x share a sum, which only minima need.
func (f *blockFormat) apart() int {
	switch {
	case !f.affine:
		return 0
	case f.runScales():
		return 16
	}
	return 32
}

// Build writes the kernel.
func (q *quantMma) Build() {
	k := q.k
	q.of = q.params()
	q.Params = kit.NewParams(k, &q.of)
	p := q.Params
	x := kit.Ptr[uint8](p, &q.of.X, ptx.Align(16))
	var scales ptx.Ptr[ptx.Global, uint8]
	var factors, exact ptx.Ptr[ptx.Global, float32]
	if q.bytes() {
		scales = kit.Ptr[uint8](p, &q.of.Scales[0], ptx.Align(16))
	} else {
		factors = kit.Ptr[float32](p, &q.of.Factors[0])
	}
	if q.parts == 2 {
		exact = kit.Ptr[float32](p, &q.of.Exact[0], ptx.Align(16))
	}
	q.weights = kit.Ptr[uint8](p, &q.of.Weights, ptx.Align(16))
	bias, c := kit.Ptr[float32](p, &q.of.Bias), kit.Ptr[float32](p, &q.of.C)
	blocks := 3 // what ptxas needs to know lest it saves registers and spills
	if q.parts == 2 || q.runScales() {
		blocks = 2
	}
	k.MinBlocks(blocks)
	q.memory = ptx.DynamicShared[uint8](k, ptx.Align(128))
	tid := k.Tid(ptx.X)
	q.lane = tid.And(31)
	q.group, q.in = q.lane.Shr(2), q.lane.And(3)
	split, tile := p.Divisor(&q.of.Tiles).Split(k, k.Ctaid(ptx.X))
	across, down := p.Divisor(&q.of.Down).Split(k, tile)
	q.top, q.left = down.Mul(quantMmaM), across.Mul(quantMmaN)
	q.m, q.n = q.U32(&q.of.M), q.U32(&q.of.N)
	q.depth, q.blocks = q.U32(&q.of.K), q.blocksOf(p, &q.of.Blocks)
	_, stage := q.Stage(q.blockFormat)
	table := ptx.Cast[uint64](q.memory.Bytes(quantMmaStages * stage))
	table.At(tid).Store(ptx.Address(q.rowOf(q.left.Add(tid))))
	q.table = table.At(q.column().Sub(q.left))
	for i := range q.sums {
		for j := range q.sums[i] {
			q.sums[i][j] = scalar.Zeros(k, 4)
		}
	}
	q.first = split.Mul(q.U32(&q.of.Split))
	q.end = q.depth.Min(q.first.Add(q.U32(&q.of.Split)))
	q.mainloop(x, scales)
	c = c.At(split.MulWide(q.m).Mul(ptx.Convert[uint64](q.n)))
	biased := q.U32(&q.of.Biased).Ne(0)
	q.Write(factors, biased, bias, c)
	if q.parts == 2 {
		q.exceptions(factors, exact, biased, bias, c)
	}
}

// rowOf is a row of weights; beyond the last row it is repeated, and not written.
func (q *quantMma) rowOf(row ptx.Reg[uint32]) ptx.Ptr[ptx.Global, uint8] {
	row = row.Min(q.n.Sub(1))
	return q.weights.Bytes(row.MulWide(q.U32(&q.of.Words)).Shl(2))
}

// column of the result that is the lane's first.
func (q *quantMma) column() ptx.Reg[uint32] {
	k := q.k
	return k.Tid(ptx.X).Shr(5).Mad(quantMmaRows, q.left.Add(q.group))
}

// mainloop goes over the depth.
func (q *quantMma) mainloop(x, scales ptx.Ptr[ptx.Global, uint8]) {
	k := q.k
	_, stage := q.Stage(q.blockFormat)
	ring, coming := tiling.NewPipeline(k, quantMmaStages, stage), ptx.VarOf(k, q.first)
	bring := q.bringer(x, scales)
	fill := func() {
		k.If(coming.Get().Lt(q.end), func() { bring(ring.Write.Get(), coming.Get()) })
		ring.Commit()
		coming.Set(coming.Get().Add(q.deep()))
	}
	for range quantMmaStages - 1 {
		fill()
	}
	ring.Wait()
	ptx.For(k, q.first, q.end, q.deep(), func(d ptx.Reg[uint32]) {
		fill()
		q.multiply(ring.Read.Get(), d)
		ring.Release()
		ring.Wait()
	}, ptx.NoUnroll())
	k.CpAsyncWaitAll()
}

// bringer returns what has a stage filled with x from the next depth on, from one time to the next. Beyond the rows there are zeros;
// nobody reads what lies beyond the depth.
func (q *quantMma) bringer(x, scales ptx.Ptr[ptx.Global, uint8]) func(stage, d ptx.Reg[uint32]) {
	k, tid := q.k, q.k.Tid(ptx.X)
	rows := q.m.Sub(q.top)
	_, size := q.Stage(q.blockFormat)
	k.If(rows.Lt(quantMmaM), func() {
		ptx.For(k, tid.Shl(4), quantMmaStages*size, 16*quantMmaThreads, func(at ptx.Reg[uint32]) {
			ptx.Cast[uint32](q.memory.Bytes(at)).Store4([4]ptx.Reg[uint32]{ptx.U32(0), ptx.U32(0), ptx.U32(0), ptx.U32(0)})
		}, ptx.NoUnroll())
		k.Barrier()
	})
	if q.bytes() {
		return q.bringBytes(x, scales, rows)
	}
	return q.bringHalves(x, rows)
}

// bringHalves is for stages that lie in memory as they are to be.
func (q *quantMma) bringHalves(x ptx.Ptr[ptx.Global, uint8], rows ptx.Reg[uint32]) func(stage, d ptx.Reg[uint32]) {
	k, tid := q.k, q.k.Tid(ptx.X)
	stages := q.depth.Add(halvesDepth - 1).Shr(scalar.Log2(halvesDepth))
	number := q.top.Div(halvesTile).Mad(stages, q.first.Shr(scalar.Log2(halvesDepth)))
	at := number.MulWide(halvesStage(q.parts)).Add(ptx.Convert[uint64](tid.Shl(4)))
	from := ptx.PtrVarOf(x.Bytes(at))
	scalesAt, size := q.Stage(q.blockFormat)
	return func(stage, _ ptx.Reg[uint32]) {
		to := q.memory.Bytes(stage).Bytes(tid.Shl(4))
		const slice = 16 * quantMmaThreads // bytes
		for i := 0; i < scalesAt; i += slice {
			k.When(rows.Gt(i/q.row()), func() { ptx.CpAsync(to.Bytes(i), from.Get().Bytes(i), 16) })
		}
		if q.affine {
			of := scalesAt // sums of 16, and after them those of 32
			if q.apart() == 32 {
				of += halvesDepth / 16 * 4 * halvesTile
			}
			there := tid.And(halvesTile/4 - 1).Shl(2).Lt(rows)
			if n := (size - scalesAt) / 16; n < quantMmaThreads {
				there = there.And(tid.Lt(n))
			}
			k.When(there, func() { ptx.CpAsync(to.Bytes(scalesAt), from.Get().Bytes(of), 16) })
		}
		from.Set(from.Get().Bytes(halvesStage(q.parts)))
	}
}

// bringBytes is for rows of bytes. Chunks of 16 are permuted in their rows, lest those of neighbouring rows share banks.
func (q *quantMma) bringBytes(x, scales ptx.Ptr[ptx.Global, uint8], rows ptx.Reg[uint32]) func(stage, d ptx.Reg[uint32]) {
	k, tid := q.k, q.k.Tid(ptx.X)
	// rowwise brings size bytes of row, and of each row so many threads after it as bring one: those from the thread's number among
	// these on. Rows are long bytes, and have first before those that the block begins with.
	rowwise := func(x ptx.Ptr[ptx.Global, uint8], row, among, first, long ptx.Reg[uint32], each, size int) func(
		to ptx.Ptr[ptx.Shared, uint8], d ptx.Reg[uint32]) {
		step := quantMmaThreads / each
		at := ptx.Convert[uint64](first.Add(among.Mul(size)))
		from := ptx.PtrVarOf(x.Bytes(q.top.Add(row).MulWide(long).Add(at)))
		further := long.MulWide(step)
		return func(to ptx.Ptr[ptx.Shared, uint8], d ptx.Reg[uint32]) {
			at := from.Get()
			for i := range quantMmaM / step {
				there := row.Add(i * step).Lt(rows)
				if q.units() == 1 { // the depth may end within the stage
					there = there.And(d.Add(among.Mul(q.deep() / each)).Lt(q.depth))
				}
				k.When(there, func() { ptx.CpAsync(to.Bytes(i*size*quantMmaThreads), at, size) })
				if i+1 < quantMmaM/step {
					at = at.Bytes(further)
				}
			}
			from.Set(from.Get().Bytes(each * size))
		}
	}
	const chunks = 8
	row, chunk := tid.Shr(scalar.Log2(chunks)), tid.And(chunks-1)
	to := row.Mad(q.row(), chunk.Xor(row.And(7)).Shl(4))
	values := rowwise(x, row, chunk, q.first, q.depth, chunks, 16)
	// A thread has the scales and the sums of 32 values.
	quarter := func(n ptx.Reg[uint32]) ptx.Reg[uint32] { return n.Shr(2) }
	sums := rowwise(scales, quarter(tid), tid.And(3), quarter(q.first), quarter(q.depth), 4, 8)
	scalesAt, _ := q.Stage(q.blockFormat)
	return func(stage, d ptx.Reg[uint32]) {
		base := q.memory.Bytes(stage)
		values(base.Bytes(to), d)
		sums(base.Bytes(tid.Shl(3).Xor(tid.And(16))).Bytes(scalesAt), d) // permuted, too
	}
}

// Write writes what lies within the result.
func (q *quantMma) Write(factors ptx.Ptr[ptx.Global, float32], biased ptx.Reg[bool], bias, y ptx.Ptr[ptx.Global, float32]) {
	column := q.column()
	inside := func(i int) ptx.Reg[bool] { return column.Add(8 * i).Lt(q.n) }
	var biases [quantMmaRows / 8]scalar.Float
	for i := range biases {
		biases[i] = ptx.LoadIf(biased.And(inside(i)), bias.At(column).At(8*i), 0)
	}
	q.eachColumns(func(j int) {
		for col := range 2 {
			row := q.top.Add(q.in.Shl(1)).Add(8*j + col)
			there, factor := row.Lt(q.m), ptx.F32(1)
			if !q.bytes() {
				factor = ptx.LoadIf(there, factors.At(row), 0)
			}
			if q.parts == 2 {
				there = there.And(factor.Eq(factor))
			}
			to := y.At(row.MulWide(q.n)).At(column)
			for i := range biases {
				v := q.sums[i/2][j][i%2*2+col].Get()
				if q.bytes() {
					v = v.Add(biases[i])
				} else {
					v = v.Fma(factor, biases[i])
				}
				ptx.StoreIf(there.And(inside(i)), to.At(8*i), v)
			}
		}
	})
}

// eachColumns calls f with the number of every eight rows of x. With up to half of them, the others are left out.
func (q *quantMma) eachColumns(f func(j int)) {
	const half = quantMmaM / 2 / 8
	for j := range half {
		f(j)
	}
	q.k.If(q.m.Sub(q.top).Gt(quantMmaM/2), func() {
		for j := range half {
			f(half + j)
		}
	})
}

// exceptions are rows of x with Inf or NaN, whose products are those of float32: a thread has a column of the result.
func (q *quantMma) exceptions(factors, x ptx.Ptr[ptx.Global, float32], biased ptx.Reg[bool], bias, y ptx.Ptr[ptx.Global, float32]) {
	k := q.k
	exceptional := func(row ptx.Reg[uint32]) ptx.Reg[bool] {
		v := ptx.LoadIf(row.Lt(q.m), factors.At(row), 0)
		return v.SetP(ptx.Nan, v)
	}
	mine := q.top.Add(q.lane)
	some := exceptional(mine)
	for i := 32; i < quantMmaM; i += 32 {
		some = some.Or(exceptional(mine.Add(i)))
	}
	k.If(k.VoteAny(some, ptx.FullWarp()), func() {
		column := q.left.Add(k.Tid(ptx.X))
		weights, inside := q.rowOf(column), column.Lt(q.n)
		bias := ptx.LoadIf(biased.And(inside), bias.At(column), 0)
		ptx.For(k, q.top, q.top.Add(quantMmaM), 1, func(row ptx.Reg[uint32]) {
			k.If(exceptional(row), func() {
				sum := ptx.VarOf(k, ptx.F32(0))
				x := x.At(row.MulWide(q.depth))
				ptx.For(k, q.first, q.end, 4, func(d ptx.Reg[uint32]) {
					w := q.Four(k, q.blocks, weights, d)
					for i, v := range x.At(d).Load4(ptx.ReadOnly) {
						sum.Set(w[i].Fma(v, sum.Get()))
					}
				}, ptx.NoUnroll())
				to := y.At(row.MulWide(q.n)).At(column)
				ptx.StoreIf(inside, to, sum.Get().Add(bias))
			})
		}, ptx.NoUnroll())
	})
}

// tensor multiplies by tensor cores what x has become.
func (p *quantProduct) tensor(x *quantActivations) {
	down, across := kit.CeilDiv(p.m, quantMmaM), kit.CeilDiv(p.n, quantMmaN)
	parts, depth := p.splitsOf(down * across)
	p.Split(parts, func(r tiling.Result) {
		row := packedRowOf(p.blockFormat, p.Type, p.depth)
		of := quantMmaParams{M: p.m, N: p.n, K: p.depth, Split: depth, Words: row.Words, Blocks: row.Blocks, Biased: int(min(r.Flags, 1)),
			Down: scalar.Divide(down), Tiles: scalar.Divide(down * across), X: x.values, Weights: p.w, Bias: p.bias, C: r.Y}
		if x.bytes() {
			of.Scales = []kit.Buffer{x.scales}
		} else {
			of.Factors = []kit.Buffer{x.factors}
		}
		if x.parts == 2 {
			of.Exact = []kit.Buffer{x.exact}
		}
		p.Launch(quantMmaKernels[x.quantMmaKind][p.blockFormat], [3]int{down * across * parts, 1, 1}, of)
	})
}

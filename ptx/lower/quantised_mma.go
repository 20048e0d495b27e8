package lower

import "github.com/wavelane/wavelane/ptx"

// Products of activations as bytes with packed weights by tensor cores (mma.sync on int8). A block has 64 rows of x and 128 rows of
// weights; each of its warps has 16 of these, which it takes from memory to registers itself. Four values of a word of quants are
// just what a lane of an operand has, so nothing is moved between lanes but scales. Bytes of x are in shared memory, 128 of each row
// at a time, in stages that are filled ahead.
const (
	quantMmaM      = 64
	quantMmaN      = 128
	quantMmaDepth  = 128
	quantMmaStages = 3
	quantMmaScales = quantMmaM * quantMmaDepth // where in a stage scales begin, in bytes
	quantMmaStage  = quantMmaScales + quantMmaM*quantMmaDepth/4
)

// Arguments in the array sizes of quant_mma.
const (
	quantMmaSizeM = iota
	quantMmaSizeN
	quantMmaSizeK
	quantMmaSplit // depth of a split
	quantMmaWords // of a row of weights
	quantMmaBlocks
	quantMmaBias                                 // 0 or 1
	quantMmaDown                                 // tiles of x: a divisor
	quantMmaTiles = quantMmaDown + divisorWords  // of a split: a divisor
	quantMmaSizes = quantMmaTiles + divisorWords //
)

var quantMmaKernels = map[*blockFormat]*Kernel{}

func init() {
	for _, f := range blockFormats {
		quantMmaKernels[f] = register(Kernel{Family: "quant_mma_" + f.name(), Name: "quant_mma_" + f.name(), Block: [3]int{teamThreads, 1, 1},
			Doc: "c[split] = x·wᵀ + bias over a split of the depth, for x that quant_bytes has rounded, by mma.sync on int8. Parameters: u32 " +
				"sizes[] (rows of x, rows of weights, values of a row, depth of a split, words and blocks of a row of weights, whether " +
				"there is a bias; as divisors tiles of x, tiles of a split), s8* x, u32* scales, u32* weights, f32* bias, f32* c.",
			build: func(k *ptx.Kernel) { (&quantMma{blockFormat: f, k: k, calc: calc{k}}).build() }})
	}
}

// quantMma is a kernel under construction.
type quantMma struct {
	*blockFormat
	k         *ptx.Kernel
	calc      calc
	sizes     ptx.Array[uint32]
	memory    ptx.Ptr[ptx.Shared, uint8]
	lane      ptx.Reg[uint32]
	group, in ptx.Reg[uint32] // of four lanes, and the lane in it
	depth     ptx.Reg[uint32] // values of a row
	rows      [2]ptx.Ptr[ptx.Global, uint8]
	blocks    ptx.Reg[uint32]
	sums      [4][2]variables[float32] // of 16 rows of x by 8 of weights
}

func (q *quantMma) build() {
	k := q.k
	q.sizes = ptx.ParamArray[uint32](k, "sizes", quantMmaSizes)
	x, scales := ptx.PointerParam[uint8](k, "x", ptx.Align(16)), ptx.PointerParam[uint8](k, "scales", ptx.Align(16))
	weights := ptx.PointerParam[uint8](k, "weights", ptx.Align(16))
	bias, c := ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[float32](k, "c")
	k.MinBlocks(map[bool]int{true: 1, false: 2}[q.runScales()]) // what ptxas needs to know lest it saves registers and spills
	q.memory = ptx.SharedArray[uint8](k, "tiles", quantMmaStages*quantMmaStage, ptx.Align(128))
	tid := k.Tid(ptx.X)
	q.lane = ptx.And(k, tid, u32(31))
	q.group, q.in = ptx.Shr(k, q.lane, u32(2)), ptx.And(k, q.lane, u32(3))
	split, tile := divisorAt(k, q.sizes, quantMmaTiles).split(k, k.Ctaid(ptx.X))
	across, down := divisorAt(k, q.sizes, quantMmaDown).split(k, tile)
	top := ptx.Mul(k, down, u32(quantMmaM))
	left := ptx.Mad(k, across, u32(quantMmaN), ptx.Mul(k, ptx.Shr(k, tid, u32(5)), u32(16)))
	m, n := q.size(quantMmaSizeM), q.size(quantMmaSizeN)
	q.depth, q.blocks = q.size(quantMmaSizeK), q.blocksAt(k, q.sizes, quantMmaBlocks)
	for j := range q.rows { // beyond the last row it is repeated, and not written
		row := ptx.Min(k, ptx.Add(k, left, ptx.Add(k, q.group, u32(8*j))), ptx.Sub(k, n, u32(1)))
		q.rows[j] = ptx.AtByte(k, weights, ptx.Shl(k, ptx.MulWideU32(k, row, q.size(quantMmaWords)), u32(2)))
		for i := range q.sums {
			q.sums[i][j] = variablesOf(k, constants(make([]float32, 4)))
		}
	}
	first := ptx.Mul(k, split, q.size(quantMmaSplit))
	end := ptx.Min(k, q.depth, ptx.Add(k, first, q.size(quantMmaSplit)))
	bring := q.bringer(x, scales, top, m)
	next := func(v *ptx.Var[uint32]) {
		n := ptx.Add(k, v.Get(), u32(quantMmaStage))
		v.Set(ptx.Select(k, ptx.Eq(k, n, u32(quantMmaStages*quantMmaStage)), u32(0), n))
	}
	to, from, coming := ptx.VarOf(k, u32(0)), ptx.VarOf(k, u32(0)), ptx.VarOf(k, first)
	fill := func() {
		k.If(ptx.Lt(k, coming.Get(), end), func() { bring(to.Get(), coming.Get()) })
		k.CpAsyncCommit()
		next(to)
		coming.Set(ptx.Add(k, coming.Get(), u32(quantMmaDepth)))
	}
	for range quantMmaStages - 1 {
		fill()
	}
	arrived := func() { // what is to be multiplied next; and what the stage to be filled next had is multiplied
		k.CpAsyncWait(quantMmaStages - 2)
		k.Barrier()
	}
	arrived()
	ptx.For(k, first, end, u32(quantMmaDepth), func(d ptx.Reg[uint32]) {
		fill()
		q.multiply(from.Get(), d)
		next(from)
		arrived()
	}, ptx.NoUnroll())
	k.CpAsyncWaitAll()
	q.write(bias, c, split, top, left, m, n)
}

func (q *quantMma) size(i int) ptx.Reg[uint32] { return q.sizes.At(q.k, i) }

// bringer returns what has a stage filled with x from a depth on. Chunks of 16 bytes are permuted in their rows, lest those of
// neighbouring rows share banks. Rows beyond the last repeat it; beyond the depth there are zeros.
func (q *quantMma) bringer(x, scales ptx.Ptr[ptx.Global, uint8], top, m ptx.Reg[uint32]) func(stage, d ptx.Reg[uint32]) {
	k, tid := q.k, q.k.Tid(ptx.X)
	const chunks = quantMmaDepth / 16
	last := ptx.Sub(k, m, u32(1))
	place := func(row ptx.Reg[uint32]) ptx.Reg[uint64] {
		return ptx.MulWideU32(k, ptx.Min(k, ptx.Add(k, top, row), last), q.depth)
	}
	copyTo := func(to ptx.Ptr[ptx.Shared, uint8], from ptx.Ptr[ptx.Global, uint8], at ptx.Reg[uint64], there ptx.Reg[bool], shift, bytes int) {
		at = ptx.Select(k, there, at, u64(0))
		ptx.CpAsyncFill(k, to, ptx.AtByte(k, from, ptx.Shr(k, at, u32(shift))), bytes, ptx.Select(k, there, u32(bytes), u32(0)))
	}
	row, chunk := ptx.Shr(k, tid, u32(log2(chunks))), ptx.And(k, tid, u32(chunks-1))
	const step = teamThreads / chunks // rows that all threads bring at once
	to := ptx.Mad(k, row, u32(quantMmaDepth), ptx.Shl(k, ptx.Xor(k, chunk, ptx.And(k, row, u32(chunks-1))), u32(4)))
	row4, chunk4 := ptx.Shr(k, tid, u32(2)), ptx.And(k, tid, u32(3))
	return func(stage, d ptx.Reg[uint32]) {
		base := ptx.AtByte(k, q.memory, stage)
		at := ptx.Add(k, d, ptx.Shl(k, chunk, u32(4)))
		there := ptx.Lt(k, at, q.depth)
		for i := 0; i < quantMmaM/step; i++ {
			from := ptx.Add(k, place(ptx.Add(k, row, u32(i*step))), ptx.Convert[uint64](k, at))
			copyTo(ptx.AtByte(k, base, to).Bytes(i*step*quantMmaDepth), x, from, there, 0, 16)
		}
		// A thread has the scale and the sums of 32 values.
		at = ptx.Add(k, d, ptx.Shl(k, chunk4, u32(5)))
		from := ptx.Add(k, place(row4), ptx.Convert[uint64](k, at))
		copyTo(ptx.AtByte(k, base, ptx.Shl(k, tid, u32(3))).Bytes(quantMmaScales), scales, from, ptx.Lt(k, at, q.depth), 2, 8)
	}
}

// mmaMagic is 1.5·2²³, as an integer: with it as the beginning of a sum of integers, the sum is the bits of a float that much larger.
const mmaMagic = 0x4b400000

// multiply adds the products of a stage, which begins at depth d: of as many values at a time as units share words.
func (q *quantMma) multiply(stage, d ptx.Reg[uint32]) {
	k := q.k
	base := ptx.AtByte(k, q.memory, stage)
	steps := 1 << (q.run - 4) // of 32 values
	group := func(o ptx.Reg[uint32]) {
		units := map[int][2]operand8{} // of both eights of rows
		at := ptx.Add(k, d, o)
		for s := range steps {
			var b [2]pair8
			for half := range 2 {
				u, run := q.unitAt(s, half)
				if _, ok := units[u]; !ok {
					units[u] = q.load(at, u)
				}
				for j := range b {
					b[j].take(half, units[u][j], run)
				}
			}
			for i := range q.sums {
				q.add(base, o, i, s, b)
			}
		}
	}
	end := u32(quantMmaDepth)
	if q.units() == 1 { // the depth may end within the stage
		end = ptx.Min(k, end, ptx.Sub(k, q.depth, d))
	}
	if steps*32 == quantMmaDepth {
		group(u32(0))
	} else {
		ptx.For(k, u32(0), end, u32(32*steps), group, ptx.NoUnroll())
	}
}

// unitAt is which of the units of a group, and which run of it, has the first or the last 16 values of the s-th 32.
func (q *quantMma) unitAt(s, half int) (unit, run int) {
	c := 32*s + 16*half
	return c >> 4 & (1<<(q.run-4) - 1), c >> q.run & 1
}

// operand8 is a word of both runs of a unit, of the row of weights that is the lane's, with the scales of the rows in the columns of
// the result that are.
type operand8 struct {
	words         [2]ptx.Reg[uint32]
	scale, offset [2][2]float // of each run, of both columns
}

// pair8 is what a product of 32 values takes of two runs; if they share a scale, that of the first.
type pair8 struct {
	words         [2]ptx.Reg[uint32]
	scale, offset [2][2]float
}

func (p *pair8) take(half int, x operand8, run int) {
	p.words[half], p.scale[half], p.offset[half] = x.words[run], x.scale[run], x.offset[run]
}

// load reads unit u of the group that begins at depth d.
func (q *quantMma) load(d ptx.Reg[uint32], u int) (x [2]operand8) {
	k := q.k
	unit := known(0)
	if q.units() > 1 {
		first := ptx.And(k, ptx.Shr(k, d, u32(q.run+1)), u32(1<<(7-q.run)-1))
		unit = number{reg: ptx.Shl(k, first, u32(q.run-4)), n: u, low: q.run - 4}
	}
	block := ptx.Shr(k, d, u32(log2(q.len())))
	// Units that are the second half of 32 values whose scale is the same have it from the first.
	bare := q.units() > 1 && !q.runScales() && u%2 == 1
	r := q.reader(k, q.blocks, unit, []number{known(0), known(1)}, found(q.in), false, bare)
	for j := range x {
		packed := r.load(q.rows[j], block)
		for run := range 2 {
			x[j].words[run] = r.quants(packed, run)[0]
		}
		if bare {
			continue
		}
		scale, minimum := r.scale(packed)
		for run := range 2 {
			if run == 1 && q.grouped() {
				break
			}
			x[j].scale[run] = q.ofColumns(scale[run])
			if q.affine {
				x[j].offset[run] = q.ofColumns(minimum[run])
			}
		}
	}
	return x
}

// ofColumns is what the lanes whose rows of weights are the lane's two columns of the result have.
func (q *quantMma) ofColumns(v float) (y [2]float) {
	k := q.k
	for i := range y {
		y[i] = ptx.Shuffle(k, ptx.ShuffleIndex, v, ptx.Add(k, ptx.Shl(k, q.in, u32(3)), u32(4*i)), 32, ptx.FullWarp())
	}
	return y
}

// add adds the products of the i-th 16 rows of x, 32 values of each, the s-th behind value o of the stage, with both eights of weights.
func (q *quantMma) add(base ptx.Ptr[ptx.Shared, uint8], o ptx.Reg[uint32], i, s int, b [2]pair8) {
	k, c := q.k, q.calc
	// Lanes name rows of 16 bytes: of eight rows, the next eight, and both once more 16 bytes further.
	row := ptx.And(k, q.lane, u32(15))
	chunk := ptx.Add(k, ptx.Add(k, ptx.Shr(k, q.lane, u32(4)), ptx.Shr(k, o, u32(4))), u32(2*s))
	chunk = ptx.Xor(k, chunk, ptx.And(k, row, u32(7)))
	at := ptx.AtByte(k, base, ptx.Mad(k, row, u32(quantMmaDepth), ptx.Shl(k, chunk, u32(4)))).Bytes(16 * i * quantMmaDepth)
	a := castAll[ptx.S8x4](k, ptx.LdMatrix[uint32](k, at, 4))
	// The scales of both rows that the lane has of the result, and the sums of both halves.
	var scale [2]float
	var sums [2][2]ptx.Reg[int32]
	ofRow := ptx.AtByte(k, base, ptx.Add(k, ptx.Shl(k, q.group, u32(5)), ptx.Shr(k, o, u32(2))))
	for r := range scale {
		words := ptx.Load2(k, ptx.Cast[uint32](ofRow).Bytes(quantMmaScales+(16*i+8*r)*quantMmaDepth/4+8*s))
		scale[r] = ptx.Bitcast[float32](k, words[0])
		if q.affine || q.zero > 0 {
			both := ptx.Bitcast[int32](k, words[1])
			sums[r] = [2]ptx.Reg[int32]{ptx.Bfe(k, both, u32(0), u32(16)), ptx.Shr(k, both, u32(16))}
		}
	}
	turns := 1
	if q.runScales() {
		turns = 2
	}
	for turn := range turns {
		var begin [2]ptx.Reg[int32]
		var floatSum [2]float
		for r := range begin {
			begin[r] = ptx.Imm(int32(mmaMagic))
			if !q.affine && q.zero == 0 {
				continue
			}
			sum := sums[r][turn]
			if turns == 1 {
				sum = ptx.Add(k, sums[r][0], sums[r][1])
			}
			if q.zero > 0 {
				begin[r] = ptx.Mad(k, sum, ptx.Imm(int32(-q.zero)), begin[r])
			} else {
				floatSum[r] = ptx.Convert[float32](k, sum)
			}
		}
		for j := range b {
			start := []ptx.Reg[int32]{begin[0], begin[0], begin[1], begin[1]}
			var dots []ptx.Reg[int32]
			if turns == 1 {
				dots = ptx.Mma(k, ptx.M16N8K32, a, castAll[ptx.S8x4](k, b[j].words[:]), start)
			} else {
				dots = ptx.Mma(k, ptx.M16N8K16, a[2*turn:2*turn+2], castAll[ptx.S8x4](k, b[j].words[turn:turn+1]), start)
			}
			for e, sum := range q.sums[i][j] {
				r, col := e/2, e%2
				y := c.sub(ptx.Bitcast[float32](k, dots[e]), num(3<<22))
				w := b[j].scale[turn][col]
				if q.affine {
					y = c.fma(w, y, c.neg(c.mul(b[j].offset[turn][col], floatSum[r])))
					sum.Set(c.fma(y, scale[r], sum.Get()))
				} else {
					sum.Set(c.fma(y, c.mul(w, scale[r]), sum.Get()))
				}
			}
		}
	}
}

// write writes what lies within the result.
func (q *quantMma) write(bias, y ptx.Ptr[ptx.Global, float32], split, top, left, m, n ptx.Reg[uint32]) {
	k, c := q.k, q.calc
	y = ptx.At(k, y, ptx.Mul(k, ptx.MulWideU32(k, split, m), ptx.Convert[uint64](k, n)))
	biased := ptx.Ne(k, q.size(quantMmaBias), u32(0))
	for j := range 2 {
		for col := range 2 {
			column := ptx.Add(k, ptx.Add(k, left, ptx.Shl(k, q.in, u32(1))), u32(8*j+col))
			inside := ptx.Lt(k, column, n)
			b := ptx.LoadIf(k, ptx.And(k, biased, inside), ptx.At(k, bias, column), num(0))
			for i := range q.sums {
				for r := range 2 {
					row := ptx.Add(k, ptx.Add(k, top, q.group), u32(16*i+8*r))
					to := ptx.At(k, ptx.At(k, y, ptx.MulWideU32(k, row, n)), column)
					ptx.StoreIf(k, ptx.And(k, inside, ptx.Lt(k, row, m)), to, c.add(q.sums[i][j][2*r+col].Get(), b))
				}
			}
		}
	}
}

// tensor multiplies bytes by tensor cores.
func (p *quantProduct) tensor(values, scales Buffer) {
	down, across := ceilDiv(p.m, quantMmaM), ceilDiv(p.n, quantMmaN)
	parts, depth := p.splitsOf(down * across)
	p.split(parts, func(flags uint32, y Buffer) {
		packed := packedSizes(p.blockFormat, p.Type, p.depth)
		sizes := words(p.m, p.n, p.depth, depth, int(packed[0]), int(packed[1]), int(min(flags, 1)))
		sizes = append(append(sizes, divisorOf(down)...), divisorOf(down*across)...)
		p.launch(quantMmaKernels[p.blockFormat], [3]int{down * across * parts, 1, 1}, sizes, values, scales, p.w, p.bias, y)
	})
}

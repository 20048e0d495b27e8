package quantised

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// Products of up to eight rows of x as bytes with packed weights by tensor cores (mma.sync on int8). Here weights are the operand of
// 16 rows and x is that of eight columns, so that nothing is idle with eight rows, and weights are unpacked once for all. A warp has
// 16 rows of weights, of which it takes what it multiplies from memory straight to registers; the warps of a group share rows and cut
// their blocks between them.
const (
	thinVectors = 8  // rows of x
	thinRows    = 16 // of weights
)

var quantThinKernels = ofFormats(func(f *blockFormat) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "quant_thin_" + f.name(), Name: "quant_thin_" + f.name(), Block: [3]int{threadgroup.Threads, 1, 1},
		Doc: "x·wᵀ for up to 8 rows of x that quant_bytes has rounded, by mma.sync on int8.", Params: gemvFields(true),
		Build: func(k *ptx.Kernel) {
			k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
			(&quantThin{quantGemv: quantGemvOf(k, f, thinVectors, true)}).Build()
		}})
})

// quantThin is a kernel under construction.
type quantThin struct {
	*quantGemv
	group, in ptx.Reg[uint32] // of four lanes, and the lane in it
	warp      ptx.Reg[uint32] // in the block
	readers   []*unitReader   // of the units of a block
	totals    scalar.Variables[float32]
	x         ptx.Ptr[ptx.Global, uint8]     // of the row that is the lane's, from its first word on
	heads     [2]ptx.Ptr[ptx.Global, uint32] // scales and sums of both rows of x that are the lane's columns of the result
	minima    ptx.Ptr[ptx.Global, uint32]    // scales and sums of the row that is the lane's as an operand, from its first block on
}

// pairs tells whether a lane takes two neighbouring words of weights and of x at a time: 32 values that share a scale are then those
// of four lanes.
func (f *blockFormat) pairs() bool { return !f.grouped() && !f.runScales() }

// Build writes the kernel.
func (t *quantThin) Build() {
	k := t.k
	x, scales := t.rounded()
	t.matrices()
	tid := k.Tid(ptx.X)
	lane := tid.And(31)
	t.group, t.in, t.warp = lane.Shr(2), lane.And(3), tid.Shr(5)
	task := t.taskOf(t.warp.Shr(t.log))
	for i := range t.rows {
		t.rows[i] = t.rowAt(t.Place(t.row(task, i).Add(t.group)))
	}
	cols := t.U32(&t.of.K)
	word := 4
	if t.pairs() {
		word = 8
	}
	last := t.U32(&t.of.Count).Sub(1) // row of x, which is repeated
	rowOf := t.group.Min(last)
	t.x = x.Bytes(rowOf.MulWide(cols)).Bytes(t.in.Mul(word))
	across := cols.Shr(2) // bytes of the scales and sums of a row
	for i := range t.heads {
		col := t.in.Shl(1).Add(i)
		t.heads[i] = scales.Bytes(col.Min(last).MulWide(across))
	}
	t.findUnits()
	if t.affine && !t.grouped() {
		first := t.in
		if t.runScales() {
			first = t.in.Shr(1)
		}
		t.minima = scales.Bytes(rowOf.MulWide(across)).Bytes(first.Shl(3))
	}
	t.totals = scalar.Zeros(k, 4)
	warps := ptx.U32(1).Shl(t.log)
	ptx.For(k, t.warp.And(warps.Sub(1)), cols.Shr(scalar.Log2(t.len())), warps, t.step)
	t.Write()
}

// taskOf is the number of a task of the block.
func (t *quantThin) taskOf(i ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := t.k
	return k.Ctaid(ptx.X).Mad(ptx.U32(threadgroup.Warps).Shr(t.log), i)
}

func (t *quantThin) findUnits() {
	k := t.k
	words, unit, step := t.in, known, 1
	if t.pairs() {
		which := t.in.Shr(1)
		words, step = t.in.And(1).Shl(1), 2
		unit = func(u int) number { return number{reg: which, n: u, mask: ^1} }
	}
	bytes := found(words).times(k, 4)
	blocks := t.blocksOf(t.Params, &t.of.Blocks)
	for u := 0; u < t.units(); u += step {
		r := &unitReader{blockFormat: t.blockFormat, k: k, blocks: blocks, unit: unit(u), runs: []number{known(0), known(1)}, pair: t.pairs()}
		r.find(bytes, true, u == 0 || !t.pairs())
		t.readers = append(t.readers, r)
	}
}

// thinProduct is 16 or 32 values of a block that share a scale.
type thinProduct struct {
	reader, run int
	words       [2][]ptx.Reg[uint32] // of both rows
	x           []ptx.Reg[uint32]
	block, half int // of 32 values, and which half of it it is
}

// step adds the products of a block.
func (t *quantThin) step(block ptx.Reg[uint32]) {
	k := t.k
	packed := [2][]packedUnit{t.Load(0, block), t.Load(1, block)}
	x := t.x.Bytes(block.Mul(t.len()))
	headBytes := block.Mul(t.len() / 4)
	var heads [2][]ptx.Reg[uint32]
	for i, p := range t.heads {
		heads[i] = t.Head(p.Bytes(headBytes))
	}
	var scales, minima [2][][]scalar.Float
	for i := range packed {
		for n, r := range t.readers {
			var scale, minimum []scalar.Float
			if t.grouped() {
				scale, minimum = r.scale(packed[i][n])
			} else {
				scale = r.scaleOnly(packed[i][n])
			}
			scales[i], minima[i] = append(scales[i], scale), append(minima[i], minimum)
		}
	}
	totals := t.totals.Get()
	for _, p := range t.products(packed, x) {
		var columns [2]scalar.Float // scales of both columns
		var begin [2]ptx.Reg[int32]
		var sums [2]ptx.Reg[int32]
		for col := range columns {
			columns[col] = ptx.Bitcast[float32](heads[col][2*p.block])
			begin[col] = ptx.Imm(int32(mmaMagic))
			if t.zero > 0 || t.affine && t.grouped() {
				sums[col] = t.sumOf(p, heads[col][2*p.block+1])
			}
			if t.zero > 0 {
				begin[col] = sums[col].Mad(int32(-t.zero), begin[col])
			}
		}
		shape, a := ptx.M16N8K16, []ptx.Reg[uint32]{p.words[0][0], p.words[1][0]}
		if len(p.x) == 2 {
			shape, a = ptx.M16N8K32, append(a, p.words[0][1], p.words[1][1])
		}
		dots := ptx.Mma(k, shape, tiling.CastAll[ptx.S8x4](k, a), tiling.CastAll[ptx.S8x4](k, p.x),
			[]ptx.Reg[int32]{begin[0], begin[1], begin[0], begin[1]})
		for e, dot := range dots {
			row, col := e/2, e%2
			y := ptx.Bitcast[float32](dot).Sub(3 << 22)
			totals[e] = y.Fma(scales[row][p.reader][p.run].Mul(columns[col]), totals[e])
			if t.affine && t.grouped() {
				sum := columns[col].Mul(ptx.Convert[float32](sums[col]))
				totals[e] = minima[row][p.reader][p.run].Neg().Fma(sum, totals[e])
			}
		}
	}
	if t.affine && !t.grouped() {
		for e, sum := range t.ofMinima(packed, headBytes) {
			totals[e] = packed[e/2][0].m.Neg().Fma(sum, totals[e])
		}
	}
	t.totals.Set(totals)
}

// Load reads a block of the i-th row.
func (t *quantThin) Load(i int, block ptx.Reg[uint32]) (units []packedUnit) {
	for _, r := range t.readers {
		var x packedUnit
		for e, u := range units { // what it has in common with others
			other := t.readers[e]
			if r.low.n == other.low.n {
				x.low = u.low
			}
			if t.pairs() || r.high.n == other.high.n {
				x.high = u.high
			}
			if r.scalesAt().n == other.scalesAt().n {
				x.scales = u.scales
			}
			x.d, x.m, x.hasD = u.d, u.m, true
		}
		units = append(units, r.loadNext(t.rows[i], block, x))
	}
	return units
}

// Head is the scales and the sums of a row of x, alternately.
func (t *quantThin) Head(p ptx.Ptr[ptx.Global, uint32]) (words []ptx.Reg[uint32]) {
	for i := 0; i < t.units(); i += 2 {
		switch {
		case t.units() > 1:
			four := p.At(2 * i).Load4(ptx.ReadOnly)
			words = append(words, four[:]...)
		case t.affine || t.zero > 0:
			two := p.Load2(ptx.ReadOnly)
			words = two[:]
		default:
			words = []ptx.Reg[uint32]{p.Load(ptx.ReadOnly)}
		}
	}
	return words
}

// sumOf is the sum of the bytes of x in a product.
func (t *quantThin) sumOf(p thinProduct, halves ptx.Reg[uint32]) ptx.Reg[int32] {
	k := t.k
	switch {
	case !t.runScales():
		return sumOfHalves(k, halves)
	case p.half == 0:
		return ptx.Bitcast[int32](halves.Prmt(0, 0x9910))
	}
	return ptx.Bitcast[int32](halves).Shr(16)
}

// products are those of a block, with x from the lane's first word of it on.
func (t *quantThin) products(packed [2][]packedUnit, x ptx.Ptr[ptx.Global, uint8]) (all []thinProduct) {
	word := func(at int) ptx.Reg[uint32] { return ptx.Cast[uint32](x.Bytes(at)).Load(ptx.ReadOnly) }
	quants := func(p *thinProduct, run int) {
		for i := range p.words {
			p.words[i] = append(p.words[i], t.readers[p.reader].quants(packed[i][p.reader], run)...)
		}
	}
	for b := range t.units() {
		switch {
		case t.grouped():
			p := thinProduct{x: []ptx.Reg[uint32]{word(0), word(16)}}
			quants(&p, 0)
			quants(&p, 1)
			all = append(all, p)
		case t.pairs():
			two := ptx.Cast[uint32](x.Bytes(32 * b)).Load2(ptx.ReadOnly)
			p := thinProduct{reader: b / 2, run: b % 2, block: b, x: two[:]}
			quants(&p, p.run)
			all = append(all, p)
		default:
			for half := range 2 {
				at := 32*b + 16*half
				unit := at>>(t.run+1)<<(t.run-4) | at>>4&(1<<(t.run-4)-1)
				p := thinProduct{reader: unit, run: at >> t.run & 1, block: b, half: half, x: []ptx.Reg[uint32]{word(at)}}
				quants(&p, p.run)
				all = append(all, p)
			}
		}
	}
	return all
}

// ofMinima is what the minima of a block of 256, as integers, are multiplied by: Σ minimum · sum of x, for each result of the lane. That
// is a small product by itself, in TF32, where sums are two numbers each.
func (t *quantThin) ofMinima(packed [2][]packedUnit, bytes ptx.Reg[uint32]) []scalar.Float {
	k := t.k
	var words [2][]ptx.Reg[uint32] // four minima each
	for i := range words {
		for n := 0; n < len(t.readers); n += 2 {
			words[i] = append(words[i], t.readers[n].minimumWord(packed[i][n]))
		}
	}
	selector := t.in.Add(byteSelector(0))
	head, sums := t.minima.Bytes(bytes), scalar.Constants(make([]float32, 4))
	for n := 0; n < len(words[0]); n += 2 {
		var a, high, low []ptx.Reg[uint32]
		for j := range 2 {
			for i := range words {
				a = append(a, ptx.Bitcast[uint32](byteFloat(k, words[i][n+j], selector, 0)))
			}
			blocks := 4
			if t.runScales() {
				blocks = 2
			}
			two := head.At(2 * blocks * (n + j)).Load2(ptx.ReadOnly)
			var sum ptx.Reg[int32]
			if t.runScales() {
				odd := t.in.And(1).Ne(0)
				sum = ptx.Bitcast[int32](two[1].Prmt(0, ptx.Select(odd, ptx.U32(0xbb32), 0x9910)))
			} else {
				sum = sumOfHalves(k, two[1])
			}
			s := ptx.Bitcast[float32](two[0]).Mul(ptx.Convert[float32](sum))
			upper := ptx.Bitcast[uint32](s).And(0xffffe000)
			high = append(high, upper)
			low = append(low, ptx.Bitcast[uint32](s.Sub(ptx.Bitcast[float32](upper))).And(0xffffe000))
		}
		sums = tiling.MMA[ptx.TF32](k, ptx.M16N8K8, a, low, sums)
		sums = tiling.MMA[ptx.TF32](k, ptx.M16N8K8, a, high, sums)
	}
	return sums
}

// Write adds up what the warps of a group have, and writes it: a thread has one row of x and two of weights.
func (t *quantThin) Write() {
	k, c := t.k, t.calc
	const apart = 32 + 2   // from a result of a lane to its next, so that threads that read meet all banks
	const each = 4 * apart // results of a warp
	memory := ptx.SharedArray[float32](k, "totals", threadgroup.Warps*each)
	tid := k.Tid(ptx.X)
	for e, v := range t.totals {
		memory.At(t.warp.Mad(each, tid.And(31))).At(apart * e).Store(v.Get())
	}
	k.Barrier()
	warps := ptx.U32(1).Shl(t.log)
	const pairs = thinVectors * thinRows / 2
	gate, biased := scalar.HasFlag(k, t.flags, quantGate), scalar.HasFlag(k, t.flags, quantBiased)
	ptx.For(k, tid, ptx.U32(threadgroup.Warps*pairs).Shr(t.log), threadgroup.Threads, func(o ptx.Reg[uint32]) {
		which := o.Shr(scalar.Log2(pairs))
		group, col := o.And(7), o.Shr(3).And(7)
		at := group.Mad(4, col.Shr(1))
		at = col.And(1).Mad(apart, at)
		at = which.Shl(t.log).Mad(each, at)
		from := memory.At(at)
		sums := scalar.Zeros(k, 2)
		ptx.For(k, 0, warps, 1, func(w ptx.Reg[uint32]) {
			p := from.At(w.Mul(each))
			for i, s := range sums {
				s.Set(s.Get().Add(p.At(2 * apart * i).Load()))
			}
		}, ptx.NoUnroll())
		task, there := t.taskOf(which), col.Lt(t.U32(&t.of.Count))
		var y [2]scalar.Float
		var to [2]ptx.Ptr[ptx.Global, float32]
		var ok [2]ptx.Reg[bool]
		for i := range y {
			row := t.row(task, i).Add(group)
			ok[i] = there.And(row.Lt(t.U32(&t.of.Tasks)))
			place, m := t.Place(row)
			y[i] = sums[i].Get().Add(ptx.LoadIf(biased, t.elementOf(m, t.biases, place), 0))
			across := m.pick(k, t.U32(&t.of.N0), t.U32(&t.of.N1), t.U32(&t.of.N2))
			to[i] = t.elementOf(m, t.y, place).At(col.MulWide(across))
		}
		y[0] = c.Where(gate, c.Silu(y[0]).Mul(y[1]), y[0])
		ptx.StoreIf(ok[0], to[0], y[0])
		ptx.StoreIf(ok[1].And(gate.Not()), to[1], y[1])
	}, ptx.NoUnroll())
}

// thin is for m rows of x, two to eight, from the first on.
func (c *quantCall) thin(weights []quantWeight, first, m int, values, scales kit.Buffer) {
	rows, total := rowsOf(weights)
	step, second := thinRows, thinRows/2
	if c.gate {
		total, step, second = rows[0], thinRows/2, rows[0]
	}
	tasks, blocks, log := kit.CeilDiv(total, step), c.k/weights[0].len(), 0
	for 1<<log < threadgroup.Warps && 1<<log < blocks && tasks<<log < threadgroup.BusyLanes/32*c.Caps.Multiprocessors {
		log++
	}
	c.launchGemv(quantThinKernels[weights[0].blockFormat], kit.CeilDiv(tasks, threadgroup.Warps>>log), weights, first, m,
		c.bytesFrom(values, scales, first), log, total, step, second)
}

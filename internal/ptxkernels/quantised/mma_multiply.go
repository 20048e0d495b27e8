package quantised

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// multiply adds the products of a stage, which begins at depth d, 32 values at a time: of K-quants a run of two units, of the other
// formats both runs of one. That lanes read words of K-quants again for their other runs takes less than to keep them.
func (q *quantMma) multiply(stage, d ptx.Reg[uint32]) {
	k := q.k
	base := q.memory.Bytes(stage)
	end := ptx.U32(q.deep())
	if q.units() == 1 { // the depth may end within the stage
		end = end.Min(q.depth.Sub(d))
	}
	ptx.For(k, 0, end, 32, func(o ptx.Reg[uint32]) {
		a := q.Load(d.Add(o))
		o = o.And(q.deep() - 32) // it is, but those who check cannot know
		if q.bytes() {
			q.addBytes(base, o, a)
		} else {
			q.addHalves(base, o, a)
		}
	}, ptx.NoUnroll())
}

// quantRun is what a lane has of a run of a row of weights: a word of integers, and the scale and the minimum. Runs that share them
// with the one before have none.
type quantRun struct {
	word           ptx.Reg[uint32]
	scale, minimum scalar.Float
}

// Load reads both halves of 32 values at depth d, of all rows that are the lane's.
func (q *quantMma) Load(d ptx.Reg[uint32]) (a [2][quantMmaRows / 8]quantRun) {
	k := q.k
	block := d.Shr(scalar.Log2(q.len()))
	var rows [quantMmaRows / 8]ptx.Ptr[ptx.Global, uint8]
	for j := range rows {
		rows[j] = ptx.PtrAt[ptx.Global, uint8](k, q.table.At(8*j).Load())
	}
	read := func(r *unitReader, halves ...int) {
		for j, p := range rows {
			packed := r.Load(p, block)
			for i, half := range halves {
				a[half][j].word = r.quants(packed, i)[0]
			}
			if r.bare {
				continue
			}
			scale, minimum := r.scale(packed)
			a[halves[0]][j].scale = scale[0]
			if q.affine {
				a[halves[0]][j].minimum = minimum[0].Neg()
			}
		}
	}
	if q.units() == 1 {
		read(q.reader(k, q.blocks, known(0), []number{known(0), known(1)}, found(q.in), false, false), 0, 1)
		return a
	}
	c := found(d)
	run, unit := c.field(k, q.run, 1), c.field(k, q.run+1, 7-q.run).times(k, 1<<(q.run-4))
	if q.run > 5 {
		unit = unit.plus(k, c.field(k, 5, q.run-5).times(k, 2))
	}
	for half := range a {
		bare := half == 1 && !q.runScales() // it has the scale of the first
		read(q.reader(k, q.blocks, number{reg: unit.value(k), n: half, low: 1}, []number{run}, found(q.in), false, bare), half)
	}
	return a
}

// groups is the number of sums for 32 values: one, or one for each run if these have scales of their own.
func (q *quantMma) groups() int {
	if q.runScales() {
		return 2
	}
	return 1
}

// chunkAt is where a chunk of 16 bytes in a row of x is, of which the lane knows the row.
func (q *quantMma) chunkAt(base ptx.Ptr[ptx.Shared, uint8], row, chunk ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, uint8] {
	chunk = chunk.Xor(q.lane.And(7))
	return base.Bytes(row.Mad(q.row(), chunk.Shl(4)))
}

// halves are the four values of a word as two pairs.
func (q *quantMma) halves(w ptx.Reg[uint32]) (pairs [2]ptx.Reg[ptx.F16x2]) {
	zero := q.zero
	if q.bits == 8 { // signed
		w, zero = w.Xor(0x80808080), 128
	}
	const magic = 0x64646464 // with a byte below it, a half that is 1024 more
	less := ptx.F16Of(float32(1024 + zero))
	for i := range pairs {
		pair := ptx.Bitcast[ptx.F16x2](w.Prmt(magic, 0x4140+0x0202*i))
		pairs[i] = pair.Sub(ptx.PairF16(less, less))
	}
	return pairs
}

// addHalves adds the products of 32 values, those after value o of the stage; a is both halves of them.
func (q *quantMma) addHalves(base ptx.Ptr[ptx.Shared, uint8], o ptx.Reg[uint32], a [2][quantMmaRows / 8]quantRun) {
	k := q.k
	// A fragment has pairs of rows g and g+8, then those of these rows 8 further.
	var of [2][quantMmaRows / 16][]ptx.Reg[ptx.F16x2]
	for half := range of {
		for i := range of[half] {
			upper, lower := q.halves(a[half][2*i].word), q.halves(a[half][2*i+1].word)
			of[half][i] = []ptx.Reg[ptx.F16x2]{upper[0], lower[0], upper[1], lower[1]}
		}
	}
	// The lanes of an eighth name 16 bytes of eight rows of x, those of the next eighth the 16 bytes after: both halves of a part.
	row := q.lane.And(7)
	var from []ptx.Ptr[ptx.Shared, uint8]
	for part := range q.parts {
		chunk := o.Shr(5).Mul(4 * q.parts).Add(q.lane.Shr(3))
		from = append(from, q.chunkAt(base, row, chunk.Add(4*part)))
	}
	at, _ := q.Stage(q.blockFormat)
	var sums ptx.Ptr[ptx.Shared, float32]
	if q.affine {
		unit := o.Shr(5).Mul(q.groups() * 4 * quantMmaM)
		sums = ptx.Cast[float32](base.Bytes(unit.Add(q.in.Shl(3))).Bytes(at))
	}
	q.eachColumns(func(j int) {
		if j%2 == 0 || q.parts == 2 {
			k.WarpSync(ptx.FullWarp()) // lest ptxas read ahead until it has no registers left
		}
		var x [][]ptx.Reg[ptx.F16x2]
		for _, p := range from {
			x = append(x, ptx.LdMatrix[ptx.F16x2](p.Bytes(8*j*q.row()), 4))
		}
		for group := range q.groups() {
			halves := []int{0, 1}
			if q.groups() == 2 {
				halves = []int{group}
			}
			var total [2]scalar.Float
			if q.affine {
				total = sums.At(8*j + group*quantMmaM).Load2()
			}
			for i := range q.sums {
				d := scalar.Constants(make([]float32, 4))
				for part := q.parts - 1; part >= 0; part-- {
					for _, h := range halves {
						d = ptx.Mma(k, ptx.M16N8K16, of[h][i], x[part][2*h:2*h+2], d)
					}
				}
				for e, sum := range q.sums[i][j] {
					w := a[group][2*i+e/2]
					if q.affine {
						sum.Set(w.minimum.Fma(total[e%2], sum.Get()))
					}
					sum.Set(w.scale.Fma(d[e], sum.Get()))
				}
			}
		}
	})
}

// mmaMagic is 1.5·2²³, as an integer: with it as the beginning of a sum of integers, the sum is the bits of a float that much larger.
const mmaMagic = 0x4b400000

// addBytes is addHalves of bytes.
func (q *quantMma) addBytes(base ptx.Ptr[ptx.Shared, uint8], o ptx.Reg[uint32], a [2][quantMmaRows / 8]quantRun) {
	k := q.k
	// The lanes of an eighth name 16 bytes of eight rows of x, of the next eighth the 16 bytes after, and of the others the same of
	// the next eight rows.
	row := q.lane.And(7).Or(q.lane.Shr(1).And(8))
	chunk := o.Shr(4).Add(q.lane.Shr(3).And(1))
	from := q.chunkAt(base, row, chunk)
	at, _ := q.Stage(q.blockFormat)
	unit := o.Shr(2).Xor(q.in.And(2).Shl(3))
	ofColumns := base.Bytes(q.in.Shl(6).Add(unit)).Bytes(at)
	var x []ptx.Reg[uint32]
	q.eachColumns(func(j int) {
		if j%2 == 0 {
			k.WarpSync(ptx.FullWarp()) // as in addHalves
			x = ptx.LdMatrix[uint32](from.Bytes(8*j*q.row()), 4)
		}
		// The scales of both rows that the lane has of x, and the sums of both halves.
		var scale [2]scalar.Float
		var halves [2][2]ptx.Reg[int32]
		for col := range scale {
			words := ptx.Cast[uint32](ofColumns).Bytes((8*j + col) * q.deep() / 4).Load2()
			scale[col] = ptx.Bitcast[float32](words[0])
			if q.affine || q.zero > 0 {
				both := ptx.Bitcast[int32](words[1])
				halves[col] = [2]ptx.Reg[int32]{both.Bfe(0, 16), both.Shr(16)}
			}
		}
		for group := range q.groups() {
			var begin [2]ptx.Reg[int32]
			var total [2]scalar.Float
			for col := range begin {
				begin[col] = ptx.Imm(int32(mmaMagic))
				if !q.affine && q.zero == 0 {
					continue
				}
				sum := halves[col][group]
				if q.groups() == 1 {
					sum = halves[col][0].Add(halves[col][1])
				}
				if q.zero > 0 {
					begin[col] = sum.Mad(int32(-q.zero), begin[col])
				} else {
					total[col] = ptx.Convert[float32](sum)
				}
			}
			for i := range q.sums {
				start := []ptx.Reg[int32]{begin[0], begin[1], begin[0], begin[1]}
				words := []ptx.Reg[uint32]{a[group][2*i].word, a[group][2*i+1].word}
				shape, b := ptx.M16N8K16, x[j%2*2+group:][:1]
				if q.groups() == 1 {
					words = append(words, a[1][2*i].word, a[1][2*i+1].word)
					shape, b = ptx.M16N8K32, x[j%2*2:][:2]
				}
				dots := ptx.Mma(k, shape, tiling.CastAll[ptx.S8x4](k, words), tiling.CastAll[ptx.S8x4](k, b), start)
				for e, sum := range q.sums[i][j] {
					w, col := a[group][2*i+e/2], e%2
					y := ptx.Bitcast[float32](dots[e]).Sub(3 << 22)
					if q.affine {
						y = w.scale.Fma(y, w.minimum.Mul(total[col]))
						sum.Set(y.Fma(scale[col], sum.Get()))
					} else {
						sum.Set(y.Fma(w.scale.Mul(scale[col]), sum.Get()))
					}
				}
			}
		}
	})
}

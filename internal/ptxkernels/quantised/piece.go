package quantised

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// A piece is what a lane has of a row of weights at a time, where x is of bytes: one unit of formats with blocks of 32, and two of the
// others, which share what is loaded and unpacked. Those of Q4_K and Q5_K are neighbours: their runs are the halves of the same 32
// values, with one scale. Those of the others have four runs in four neighbouring blocks of 32 of x, whose bits are in the same bytes.
type pieceReader struct {
	*blockFormat
	k     *ptx.Kernel
	units []*unitReader
	first ptx.Reg[uint32] // value of the first piece in its block
	parts []piecePart
	half  number // which half of a block of 32 the parts with one run are
}

// pieceUnits is the number of units of a piece.
func (f *blockFormat) pieceUnits() int { return min(2, f.units()) }

// pieces of a block.
func (f *blockFormat) pieces() int { return f.units() / f.pieceUnits() }

// piecePart is runs of a piece that share a scale, or a block of x.
type piecePart struct {
	unit, run int // whose scale it is
	runs      []pieceRun
}

// pieceRun is 16 values of a piece.
type pieceRun struct {
	unit, run int
	at        int             // its first value, from the first of the piece
	high      ptx.Reg[uint32] // mask of the high bits where they are
}

// readPieces is for the lane's piece of a block.
func (f *blockFormat) readPieces(k *ptx.Kernel, blocks, lane ptx.Reg[uint32]) *pieceReader {
	p := &pieceReader{blockFormat: f, k: k, first: ptx.U32(0), half: known(0)}
	if f.units() == 1 {
		p.units = append(p.units, f.readUnits(k, blocks, known(0)))
		p.parts = []piecePart{{runs: []pieceRun{{at: 0}, {run: 1, at: 16}}}}
		return p
	}
	piece := found(lane.And(f.pieces() - 1))
	both := []number{known(0), known(1)}
	unit := func(i int) number {
		if !f.runScales() {
			return number{reg: piece.reg.Shl(1), n: i, low: 1}
		}
		last := piece.field(k, 1, 1).reg.Shl(2)
		return number{reg: last.Or(piece.field(k, 0, 1).reg), n: 2 * i, mask: 2}
	}
	for i := range 2 {
		r := &unitReader{blockFormat: f, k: k, blocks: blocks, unit: unit(i), runs: both, whole: true, bare: !f.runScales() && i == 1}
		r.find(known(0), i == 0 || f.bits != 2, i == 0 || !f.runScales())
		p.units = append(p.units, r)
	}
	p.first = f.firstOf(k, unit(0)).reg
	mask := func(unit, run int) (m ptx.Reg[uint32]) {
		if f.highBits > 0 {
			m = shiftLeft(k, ptx.ConstIn(k, everyByte(f.highBits)), p.units[unit].shiftH[run])
		}
		return m
	}
	if !f.runScales() {
		for run := range 2 {
			p.parts = append(p.parts, piecePart{run: run,
				runs: []pieceRun{{0, run, 32 * run, mask(0, run)}, {1, run, 32*run + 16, mask(1, run)}}})
		}
		return p
	}
	p.half = piece.field(k, 0, 1)
	for i := range 4 { // in the order of the blocks of x
		unit, run := i>>1, i&1
		if f.run == 6 {
			unit, run = i&1, i>>1
		}
		p.parts = append(p.parts, piecePart{unit, run, []pieceRun{{unit, run, 32 * i, mask(unit, run)}}})
	}
	return p
}

// Load reads the piece in block of the row that begins at row.
func (p *pieceReader) Load(row ptx.Ptr[ptx.Global, uint8], block ptx.Reg[uint32]) (x []packedUnit) {
	x = append(x, p.units[0].Load(row, block))
	if len(p.units) == 1 {
		return x
	}
	var shared packedUnit
	if p.runScales() {
		if p.highBits > 0 {
			shared.high = x[0].high
		}
		if p.bits == 2 {
			shared.low = x[0].low
		} else {
			shared.scales = x[0].scales
		}
		shared.d, shared.m, shared.hasD = x[0].d, x[0].m, true
	}
	return append(x, p.units[1].loadNext(row, block, shared))
}

// pieceWeights are the parts of a piece ready to be multiplied.
type pieceWeights struct {
	scale, minimum []scalar.Float // of each part
	low, high      [][]ptx.Reg[uint32]
}

// weights unpacks a piece. What is multiplied are bytes where they are in their words, 1 << excess too large, which the scales undo:
// shifts take as long as masks.
func (p *pieceReader) weights(x []packedUnit) (w pieceWeights) {
	scales, minima := make([][]scalar.Float, len(p.units)), make([][]scalar.Float, len(p.units))
	for i, r := range p.units {
		if !r.bare {
			scales[i], minima[i] = r.scale(x[i])
		}
	}
	for _, part := range p.parts {
		scale := scales[part.unit][part.run]
		if n := p.excess(part); n > 0 {
			scale = scale.Mul(1 / float64(int(1)<<n))
		}
		w.scale = append(w.scale, scale)
		if p.affine {
			w.minimum = append(w.minimum, minima[part.unit][part.run])
		}
		var low, high []ptx.Reg[uint32]
		for _, run := range part.runs {
			r := p.units[run.unit]
			if p.grouped() || p.bits == 8 {
				low = append(low, r.quants(x[run.unit], run.run)...)
				continue
			}
			for i, word := range x[run.unit].low {
				low = append(low, word.And(everyByte((1<<p.bits-1)<<p.excess(part))))
				if p.highBits > 0 {
					high = append(high, x[run.unit].high[i].And(run.high))
				}
			}
		}
		w.low, w.high = append(w.low, low), append(w.high, high)
	}
	return w
}

// excess is how far to the left of where they belong the low bits of a part are multiplied.
func (p *pieceReader) excess(part piecePart) int {
	if p.grouped() || p.bits == 8 {
		return 0
	}
	return p.units[part.unit].shift[part.run].n
}

// dot is the sum of the products of part i with bytes of x, whose sum is sum, as if it were unpacked but for its excess.
func (p *pieceReader) dot(w pieceWeights, i int, x []ptx.Reg[uint32], sum ptx.Reg[int32]) ptx.Reg[int32] {
	k, part := p.k, p.parts[i]
	excess := p.excess(part)
	begin := ptx.Imm(int32(0))
	if p.zero > 0 {
		begin = sum.Mul(int32(-p.zero << excess))
	}
	chain := func(words []ptx.Reg[uint32], from ptx.Reg[int32]) ptx.Reg[int32] {
		for n, word := range words {
			if p.bits == 8 {
				from = ptx.Dp4a(ptx.Bitcast[ptx.S8x4](word), ptx.Bitcast[ptx.S8x4](x[n]), from)
			} else {
				from = ptx.Dp4a(ptx.Bitcast[ptx.U8x4](word), ptx.Bitcast[ptx.S8x4](x[n]), from)
			}
		}
		return from
	}
	if len(w.high[i]) > 0 {
		high, up := chain(w.high[i], ptx.Imm(int32(0))), p.highTo+excess
		if at := p.units[part.unit].shiftH[part.run]; at.known && at.n <= up {
			up -= at.n
		} else { // zeros are shifted out
			high = high.Shr(at.value(k))
		}
		begin = high.Mad(int32(1)<<up, begin)
	}
	return chain(w.low[i], begin)
}

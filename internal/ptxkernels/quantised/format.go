package quantised

import (
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/quant"
)

// blockFormat is a format of quantised weights as kernels read it. All ten are alike: a unit is 32 values of a row, in two runs of
// 16 neighbours, whose low bits are in the same 16 bytes (but in Q8_0). A block is one unit, or eight of them. A run has a scale,
// and some formats have a minimum for it.
//
// Of a value's number in its block, bit run says which run of a unit it is in, bits 2 and 3 which word of the run's four, and the
// others are the unit's number.
type blockFormat struct {
	compute.BlockFormat
	run    int
	block  int // bytes of a block in the first plane
	low    int // where in it the low bits begin
	bits   int // how many these are: 2, 4 or 8
	high   int // where in it the bytes with the high bits begin, if highBits
	scales int // where in it those of runs are, if there are any
	// The high bits of a value, and where they belong. Those of formats with blocks of 32 are a word of the second plane.
	highBits, highTo int
	zero             int  // is subtracted from what is stored
	affine           bool // runs have minima
}

var blockFormats = []*blockFormat{
	{BlockFormat: compute.Q4_0, run: 4, block: 16, bits: 4, zero: 8},
	{BlockFormat: compute.Q4_1, run: 4, block: 16, bits: 4, affine: true},
	{BlockFormat: compute.Q5_0, run: 4, block: 16, bits: 4, highBits: 1, highTo: 4, zero: 16},
	{BlockFormat: compute.Q5_1, run: 4, block: 16, bits: 4, highBits: 1, highTo: 4, affine: true},
	{BlockFormat: compute.Q8_0, run: 4, block: 32, bits: 8},
	{BlockFormat: compute.Q2_K, run: 5, block: 80, bits: 2, low: quant.Q2_KQuants, scales: quant.Q2_KScales, affine: true},
	{BlockFormat: compute.Q3_K, run: 5, block: 96, bits: 2, low: quant.Q3_KQuants, high: quant.Q3_KHigh, highBits: 1, highTo: 2, zero: 4},
	{BlockFormat: compute.Q4_K, run: 5, block: quant.Q4_KSize, bits: 4, low: quant.Q4_KQuants, affine: true},
	{BlockFormat: compute.Q5_K, run: 5, block: quant.Q5_KSize, bits: 4, low: quant.Q5_KQuants, high: quant.Q5_KHigh, highBits: 1, highTo: 4,
		affine: true},
	{BlockFormat: compute.Q6_K, run: 6, block: 208, bits: 4, low: quant.Q6_KLow, high: quant.Q6_KHigh, highBits: 3, highTo: 4,
		scales: quant.Q6_KScales, zero: 32},
}

// name is what names of kernels say.
func (f *blockFormat) name() string { return strings.ToLower(f.String()) }

// ofFormats has something for each format.
func ofFormats[T any](f func(f *blockFormat) T) map[*blockFormat]T {
	of := map[*blockFormat]T{}
	for _, b := range blockFormats {
		of[b] = f(b)
	}
	return of
}

func blockFormatOf(b compute.BlockFormat) *blockFormat {
	for _, f := range blockFormats {
		if f.BlockFormat == b {
			return f
		}
	}
	return nil // the catalogue's check has refused it
}

// planes of a row.
func (f *blockFormat) planes() int { return len(quant.Type(f.BlockFormat).Planes()) }

// packedRow is the parameters that tell of rows of packed weights.
type packedRow struct {
	Words, Blocks int // of a row
}

// packedRowOf is that of weights with rows of cols values.
func packedRowOf(f *blockFormat, w program.Type, cols int) packedRow {
	return packedRow{w.Shape[1], cols / f.len()}
}

// blocksOf is the number of blocks of a row, where it takes them to find a plane.
func (f *blockFormat) blocksOf(p *kit.Params, blocks *int) (n ptx.Reg[uint32]) {
	if f.planes() > 1 {
		n = p.U32(blocks)
	}
	return n
}

// units of a block.
func (f *blockFormat) units() int { return f.len() / 32 }

// len is how many values a block has.
func (f *blockFormat) len() int { return quant.Type(f.BlockFormat).BlockLen() }

// grouped tells whether both runs of a unit have the same scale.
func (f *blockFormat) grouped() bool { return f.units() == 1 }

// runScales tells whether neighbouring runs have different scales.
func (f *blockFormat) runScales() bool {
	return f.BlockFormat == compute.Q2_K || f.BlockFormat == compute.Q3_K || f.BlockFormat == compute.Q6_K
}

// between is how many values lie between the beginnings of the runs of a unit.
func (f *blockFormat) between() int { return 1 << f.run }

// number is one that a kernel knows while it is built, or finds, or in part: then it is reg + n. Its bits below low, and those of mask,
// are n's, and zeros in reg.
type number struct {
	reg   ptx.Reg[uint32]
	known bool
	n     int
	low   int
	mask  int
}

func known(n int) number { return number{known: true, n: n, reg: ptx.U32(n)} }

func found(r ptx.Reg[uint32]) number { return number{reg: r} }

// value is the whole number.
func (x number) value(k *ptx.Kernel) ptx.Reg[uint32] {
	if x.known || x.n == 0 {
		return x.reg
	}
	return x.reg.Add(x.n)
}

func (x number) times(k *ptx.Kernel, n int) number {
	switch {
	case x.known:
		return known(x.n * n)
	case n == 1:
		return x
	}
	return number{reg: x.reg.Mul(n), n: n * x.n}
}

func (x number) plus(k *ptx.Kernel, y number) number {
	switch {
	case x.known && y.known:
		return known(x.n + y.n)
	case x.known:
		return number{reg: y.reg, n: x.n + y.n}
	case y.known:
		return number{reg: x.reg, n: x.n + y.n}
	}
	return number{reg: x.reg.Add(y.reg), n: x.n + y.n}
}

// field is the bits of x from that one on, so many.
func (x number) field(k *ptx.Kernel, from, bits int) number {
	sure := x.mask | (1<<x.low - 1)
	if !x.known && x.n&^sure != 0 {
		x, sure = found(x.value(k)), 0
	}
	all := 1<<bits - 1
	n := x.n >> from & all
	if sure = sure >> from & all; x.known || sure == all {
		return known(n)
	}
	return number{reg: shiftRight(k, x.reg, known(from)).And(all), n: n, mask: sure}
}

// bytes is so far after p.
func (x number) bytes(k *ptx.Kernel, p ptx.Ptr[ptx.Global, uint8]) ptx.Ptr[ptx.Global, uint8] {
	if !x.known {
		p = p.Bytes(x.reg)
	}
	return p.Bytes(x.n)
}

// shiftRight is x >> n.
func shiftRight(k *ptx.Kernel, x ptx.Reg[uint32], n number) ptx.Reg[uint32] {
	if n.known && n.n == 0 {
		return x
	}
	return x.Shr(n.value(k))
}

// shiftLeft is x << n.
func shiftLeft(k *ptx.Kernel, x ptx.Reg[uint32], n number) ptx.Reg[uint32] {
	if n.known && n.n == 0 {
		return x
	}
	return x.Shl(n.value(k))
}

// everyByte is a word of four such bytes.
func everyByte(b int) uint32 { return uint32(b) * 0x01010101 }

// unitOf is the unit, the run and the word of value c of a block, a multiple of four.
func (f *blockFormat) unitOf(k *ptx.Kernel, c ptx.Reg[uint32]) (unit, run, word number) {
	x := found(c)
	run, word = x.field(k, f.run, 1), x.field(k, 2, 2)
	if f.units() == 1 {
		return known(0), run, word
	}
	unit = x.field(k, f.run+1, 7-f.run).times(k, 1<<(f.run-4))
	return unit.plus(k, x.field(k, 4, f.run-4)), run, word
}

// firstOf is the number of the first value of a unit in its block.
func (f *blockFormat) firstOf(k *ptx.Kernel, unit number) number {
	if f.units() == 1 {
		return known(0)
	}
	return unit.field(k, f.run-4, 7-f.run).times(k, 2<<f.run).plus(k, unit.field(k, 0, f.run-4).times(k, 16))
}

// unitReader reads units of packed rows: whole ones, or a word of both runs or of one. What depends on a unit's place in its block
// alone is found once.
type unitReader struct {
	*blockFormat
	k      *ptx.Kernel
	blocks ptx.Reg[uint32] // of a row, for formats of several planes
	unit   number
	runs   []number // to be read
	whole  bool     // all words
	pair   bool     // two words
	bare   bool     // scales are not wanted
	low    number   // where in a block the low bits are
	shift  []number // of the low bits, for each run
	high   number   // likewise of the high bits
	shiftH []number
	pick   []ptx.Reg[uint32] // selectors of prmt for the byte that a run's scale is
	skip   []int             // in bytes, from plane to plane, for each block of a row
}

// readUnits reads both runs of units.
func (f *blockFormat) readUnits(k *ptx.Kernel, blocks ptx.Reg[uint32], unit number) *unitReader {
	return f.reader(k, blocks, unit, []number{known(0), known(1)}, known(0), true, false)
}

// readWords reads a word of each run that is named: of one, or of both.
func (f *blockFormat) readWords(k *ptx.Kernel, blocks ptx.Reg[uint32], unit, word number, runs ...number) *unitReader {
	return f.reader(k, blocks, unit, runs, word, false, false)
}

func (f *blockFormat) reader(k *ptx.Kernel, blocks ptx.Reg[uint32], unit number, runs []number, word number,
	whole, bare bool) *unitReader {
	r := &unitReader{blockFormat: f, k: k, blocks: blocks, unit: unit, runs: runs, whole: whole, bare: bare}
	r.find(word.times(k, 4), true, true)
	return r
}

// find finds where things are, so many bytes into runs; where the low and the high bits are only if that is asked.
func (r *unitReader) find(byWord number, low, high bool) {
	f, k, unit, runs := r.blockFormat, r.k, r.unit, r.runs
	bytes := 0
	for _, p := range quant.Type(f.BlockFormat).Planes() {
		r.skip = append(r.skip, bytes)
		bytes += p.Size
	}
	if low {
		r.low = known(f.low).plus(k, byWord)
		switch {
		case f.bits == 8:
			r.low = r.low.plus(k, runs[0].times(k, 16))
		case f.bits == 2:
			r.low = r.low.plus(k, unit.field(k, 2, 1).times(k, 32)).plus(k, unit.field(k, 0, 1).times(k, 16))
		case f.units() > 1:
			r.low = r.low.plus(k, unit.times(k, 16))
		}
	}
	for _, run := range runs {
		switch f.bits {
		case 2:
			r.shift = append(r.shift, unit.field(k, 1, 1).times(k, 4).plus(k, run.times(k, 2)))
		case 4:
			r.shift = append(r.shift, run.times(k, 4))
		}
		switch {
		case f.highBits == 0:
		case f.units() == 1:
			r.shiftH = append(r.shiftH, run.times(k, 16).plus(k, byWord))
		case f.highBits == 1:
			r.shiftH = append(r.shiftH, unit.field(k, 1, 2).times(k, 2).plus(k, run))
		default:
			r.shiftH = append(r.shiftH, unit.field(k, 1, 1).times(k, 2).plus(k, run.times(k, 4)))
		}
		if !r.bare {
			r.pick = append(r.pick, r.scaleByte(run))
		}
	}
	if high && f.highBits > 0 && f.units() > 1 {
		r.high = known(f.high).plus(k, byWord).plus(k, unit.field(k, 0, 1).times(k, 16))
		if f.highBits == 3 {
			r.high = r.high.plus(k, unit.field(k, 2, 1).times(k, 32))
		}
	}
}

// packedUnit is what a reader has loaded of a unit.
type packedUnit struct {
	low, high []ptx.Reg[uint32]
	scales    []ptx.Reg[uint32] // words with those of runs
	d, m      scalar.Float      // of the block
	hasD      bool              // whether d and m have been loaded
}

// Load reads block of the row that begins at p.
func (r *unitReader) Load(p ptx.Ptr[ptx.Global, uint8], block ptx.Reg[uint32]) packedUnit {
	return r.loadNext(p, block, packedUnit{})
}

// loadNext reads what x has not yet of a unit.
func (r *unitReader) loadNext(p ptx.Ptr[ptx.Global, uint8], block ptx.Reg[uint32], x packedUnit) packedUnit {
	k := r.k
	at := sync.OnceValue(func() ptx.Ptr[ptx.Global, uint8] { return p.Bytes(block.Mul(r.block)) })
	within := func(i number) ptx.Ptr[ptx.Global, uint8] { return i.bytes(k, at()) }
	words := func(p ptx.Ptr[ptx.Global, uint8]) []ptx.Reg[uint32] {
		switch {
		case r.pair:
			two := ptx.Cast[uint32](p).Load2(ptx.ReadOnly)
			return two[:]
		case !r.whole:
			return []ptx.Reg[uint32]{ptx.Cast[uint32](p).Load(ptx.ReadOnly)}
		}
		four := ptx.Cast[uint32](p).Load4(ptx.ReadOnly)
		return four[:]
	}
	if x.low == nil {
		low := within(r.low)
		x.low = words(low)
		if r.bits == 8 && len(r.runs) > 1 {
			x.low = append(x.low, words(low.Bytes(16))...)
		}
	}
	// plane is where the part of the block in a plane begins.
	plane := func(n, size int) ptx.Ptr[ptx.Global, uint8] {
		begin := r.blocks.Mul(r.skip[n])
		return p.Bytes(block.Mad(size, begin))
	}
	switch {
	case r.highBits == 0 || x.high != nil:
	case r.units() == 1:
		x.high = []ptx.Reg[uint32]{ptx.Cast[uint32](plane(1, 4)).Load(ptx.ReadOnly)}
	default:
		x.high = words(within(r.high))
	}
	if !r.bare && x.scales == nil {
		r.loadScales(&x, within, plane)
	}
	return x
}

// quants are the four words of a run, or its only one: bytes from 0 on, or in Q8_0 signed ones.
func (r *unitReader) quants(x packedUnit, run int) (q []ptx.Reg[uint32]) {
	k := r.k
	if r.bits == 8 {
		n := len(x.low) / len(r.runs)
		return x.low[n*run : n*run+n]
	}
	for i, w := range x.low {
		w = shiftRight(k, w, r.shift[run]).And(everyByte(1<<r.bits - 1))
		switch {
		case r.highBits == 0:
		case r.units() == 1: // four bits become the fifth of four bytes
			n := r.shiftH[run]
			if r.whole {
				n = known(n.n + 4*i)
			}
			four := shiftRight(k, x.high[0], n).And(15)
			w = w.Or(four.Mul(0x02040810).And(everyByte(16)))
		default:
			h := shiftRight(k, x.high[i], r.shiftH[run]).And(everyByte(r.highBits))
			w = w.Or(h.Shl(r.highTo))
		}
		q = append(q, w)
	}
	return q
}

// magic is 2²³ as bits: a byte in its place makes it 2²³ + that.
const magic = 0x4b000000

// byteSelector picks byte i of a word into magic.
func byteSelector(i int) uint32 { return 0x7650 + uint32(i) }

// byteFloat is a byte, less zero, exactly.
func byteFloat(k *ptx.Kernel, w, selector ptx.Reg[uint32], zero int) scalar.Float {
	return ptx.Bitcast[float32](w.Prmt(magic, selector)).Sub(float32(1<<23 + zero))
}

// integers are the four values of a word of quants, before they are scaled.
func (f *blockFormat) integers(k *ptx.Kernel, q ptx.Reg[uint32]) (v [4]scalar.Float) {
	zero := f.zero
	if f.bits == 8 {
		q, zero = q.Xor(0x80808080), 128
	}
	for i := range v {
		v[i] = byteFloat(k, q, ptx.Imm(byteSelector(i)), zero)
	}
	return v
}

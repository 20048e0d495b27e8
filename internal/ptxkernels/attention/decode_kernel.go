package attention

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Attention of few queries over long caches, as in Flash-Decoding (Dao and others, 2023): blocks share the keys of a head among
// them, each leaves a maximum, a sum and an accumulator for every query, and a second kernel joins those. All query heads that
// share a head of keys, and all new queries, are rows of one block: the cache is read once.
//
// A key's elements lie over 8, 16 or 32 neighbouring lanes, eight in each. Products of all rows with a few keys are summed over
// these lanes by exchanging halves (Rabenseifner's reduce-scatter), so that each lane ends with the scores of one row, and owns
// the row's maximum and sum. Weights then go round by shuffles.

const (
	decodeThreads = 128
	decodeWarps   = decodeThreads / 32
	decodeSlice   = 8 // elements of a row that a lane has
	decodeWidth   = 32 * decodeSlice
)

// decodeElement is an element type of caches.
type decodeElement struct {
	name  string
	words int // that eight elements take
	widen func(k *ptx.Kernel, w ptx.Reg[uint32]) []scalar.Float
}

var decodeElements = map[compute.DType]decodeElement{
	compute.Float32: {"f32", 8, func(k *ptx.Kernel, w ptx.Reg[uint32]) []scalar.Float {
		return []scalar.Float{ptx.Bitcast[float32](k, w)}
	}},
	compute.Float16: {"f16", 4, func(k *ptx.Kernel, w ptx.Reg[uint32]) []scalar.Float {
		lo, hi := ptx.UnpackF16(k, ptx.Bitcast[ptx.F16x2](k, w))
		return []scalar.Float{ptx.Convert[float32](k, lo), ptx.Convert[float32](k, hi)}
	}},
	compute.BFloat16: {"bf16", 4, func(k *ptx.Kernel, w ptx.Reg[uint32]) []scalar.Float {
		lo, hi := ptx.Shl(k, w, scalar.U32(16)), ptx.And(k, w, ptx.Imm[uint32](0xffff0000))
		return []scalar.Float{ptx.Bitcast[float32](k, lo), ptx.Bitcast[float32](k, hi)}
	}},
}

// decodeShape is what a kernel is made for.
type decodeShape struct {
	decodeElement
	rows int // of queries in a block: 1, 4 or 8
}

// Eight neighbouring lanes hold the scores of all rows: owners of them those of each row, scores each.
func (s decodeShape) owners() int { return 8 / s.rows }
func (s decodeShape) scores() int { return min(2, s.rows) }
func (s decodeShape) keys() int   { return s.owners() * s.scores() } // that a group of lanes takes at a time

// tile is the number of keys that a block takes at a time, where lanes share a row.
func (s decodeShape) tile(lanes int) int { return decodeThreads / lanes * s.keys() }

var decodeRows = []int{1, 4, 8}

var decodeKernels = func() map[compute.DType]map[int]*kit.Kernel {
	all := map[compute.DType]map[int]*kit.Kernel{}
	for t, e := range decodeElements {
		all[t] = map[int]*kit.Kernel{}
		for _, rows := range decodeRows {
			s := decodeShape{e, rows}
			all[t][rows] = kit.Register(kit.Kernel{Family: "attention_decode", Name: "attention_decode_" + e.name + "_" + string(rune('0'+rows)),
				Block: [3]int{decodeThreads, 1, 1},
				Doc: "Partial attention of rows of queries over a part of the keys of one head. Parameters: u32 sizes[] (see " +
					"decodeSizes), f32 scale, f32 cap, q, k, v, i32* lengths, u32* table, f32* y, f32* pairs (maximum and sum of " +
					"each row), f32* partial (accumulators).",
				Build: func(k *ptx.Kernel) { newDecodeBuilder(k, s).Build() }})
		}
	}
	return all
}()

var decodeCombine = kit.Register(kit.Kernel{Family: "attention_decode", Name: "attention_decode_combine", Block: [3]int{decodeThreads, 1, 1},
	Doc: "Joins the parts that attention_decode left: a warp for each row of queries. Parameters: u32 sizes[] (see decodeSizes), " +
		"u32 total (rows), i32* lengths, f32* pairs, f32* partial, y.", Build: buildDecodeCombine})

// Places in the sizes of a launch; divisors take divisorWords each.
const (
	sizeN        = iota
	sizeHeads    // of queries
	sizeWidth    // elements of a head
	sizeCapacity // keys of a sequence at most
	sizeRows     // of queries that share a head of keys
	sizeCausal
	sizeWindow // 0 for none
	sizeLengths
	sizeRing // whether lengths beyond the capacity mean a ring
	sizeVector
	sizeHalf   // what q and y are: 0 f32, 1 f16, 2 bf16
	sizeDirect // whether the result is written at once: one part, f32
	sizeLog    // of the lanes of a row: 3 to 5
	sizeTile
	sizeTable // entries of a sequence; 0 without pages
	sizePages
	sizeTiles   = sizePages + 1
	sizeParts   = sizeTiles + scalar.DivisorWords
	sizeKVHeads = sizeParts + scalar.DivisorWords
	sizeGroup   = sizeKVHeads + scalar.DivisorWords
	sizePage    = sizeGroup + scalar.DivisorWords // keys of a page
	decodeSizes = sizePage + scalar.DivisorWords
)

// decodeFrame is what both kernels know of a sequence.
type decodeFrame struct {
	scalar.Math
	sizes ptx.Array[uint32]
}

func (f decodeFrame) size(i int) ptx.Reg[uint32]               { return f.sizes.At(f.K, i) }
func (f decodeFrame) signed(i int) ptx.Reg[int32]              { return ptx.Bitcast[int32](f.K, f.size(i)) }
func (f decodeFrame) flag(i int) ptx.Reg[bool]                 { return ptx.Ne(f.K, f.size(i), scalar.U32(0)) }
func (f decodeFrame) divisor(i int) scalar.Divisor             { return scalar.DivisorAt(f.K, f.sizes, i) }
func unsigned(k *ptx.Kernel, x ptx.Reg[int32]) ptx.Reg[uint32] { return ptx.Bitcast[uint32](k, x) }

// quotient is x divided by a divisor of which nothing else is needed.
func (f decodeFrame) quotient(x ptx.Reg[uint32], i int) ptx.Reg[uint32] {
	return scalar.QuotientAt(f.K, f.sizes, i, x)
}

// length is the keys of sequence b, also those that have been overwritten; inUse those that are there.
func (f decodeFrame) length(lengths ptx.Ptr[ptx.Global, int32], b ptx.Reg[uint32]) ptx.Reg[int32] {
	k := f.K
	return ptx.Max(k, ptx.LoadIf(k, f.flag(sizeLengths), ptx.At(k, lengths, b), f.signed(sizeCapacity)), scalar.S32(0))
}

func (f decodeFrame) inUse(length ptx.Reg[int32]) ptx.Reg[int32] {
	return ptx.Min(f.K, length, f.signed(sizeCapacity))
}

// oldest is the slot of the oldest key in use.
func (f decodeFrame) oldest(length ptx.Reg[int32]) ptx.Reg[uint32] {
	k, capacity := f.K, f.signed(sizeCapacity)
	start := ptx.VarOf(k, scalar.U32(0))
	k.If(ptx.And(k, f.flag(sizeRing), ptx.Gt(k, length, capacity)), func() {
		start.Set(ptx.Rem(k, unsigned(k, length), unsigned(k, capacity)))
	})
	return start.Get()
}

// position is where query i stands among the keys in use.
func (f decodeFrame) position(i, used ptx.Reg[int32]) ptx.Reg[int32] {
	return ptx.Add(f.K, ptx.Sub(f.K, used, f.signed(sizeN)), i)
}

// seenFrom and seenTo are the keys that the query at position p sees.
func (f decodeFrame) seenFrom(p ptx.Reg[int32]) ptx.Reg[uint32] {
	k := f.K
	oldest := ptx.Add(k, ptx.Sub(k, ptx.Max(k, p, scalar.S32(0)), f.signed(sizeWindow)), scalar.S32(1))
	return unsigned(k, ptx.Select(k, f.flag(sizeWindow), ptx.Max(k, oldest, scalar.S32(0)), scalar.S32(0)))
}

func (f decodeFrame) seenTo(p, used ptx.Reg[int32]) ptx.Reg[uint32] {
	k, window := f.K, f.signed(sizeWindow)
	to := ptx.Select(k, f.flag(sizeCausal), ptx.Min(k, used, ptx.Add(k, p, scalar.S32(1))), used)
	ahead := ptx.Add(k, ptx.Min(k, p, ptx.Sub(k, used, window)), window) // p + window without overflow
	to = ptx.Select(k, f.flag(sizeWindow), ptx.Min(k, to, ahead), to)
	return unsigned(k, ptx.Max(k, to, scalar.S32(0)))
}

// partsOf says how the keys that queries see are cut: count of them, the last ones in use, chunk to a part.
func (f decodeFrame) partsOf(used ptx.Reg[int32]) (count, chunk ptx.Reg[uint32]) {
	k := f.K
	from := f.seenFrom(f.position(scalar.S32(0), used))
	count = ptx.Sub(k, unsigned(k, used), from)
	parts, tile := f.size(sizeParts), f.size(sizeTile)
	each := f.quotient(ptx.Add(k, count, ptx.Sub(k, parts, scalar.U32(1))), sizeParts)
	less := ptx.Sub(k, tile, scalar.U32(1)) // a power of two, less one
	return count, ptx.Max(k, ptx.And(k, ptx.Add(k, each, less), ptx.Not(k, less)), tile)
}

type decodeBuilder struct {
	decodeFrame
	decodeShape
	scale, cap       scalar.Float
	q                ptx.Ptr[ptx.Global, uint32]
	keysAt, valuesAt ptx.Ptr[ptx.Global, uint32] // of this lane in the first row of the head
	lengths          ptx.Ptr[ptx.Global, int32]
	table            ptx.Ptr[ptx.Global, uint32]
	y, pairs, out    ptx.Ptr[ptx.Global, float32]
	shared           ptx.Ptr[ptx.Shared, float32]

	tid, log, slice, team, low ptx.Reg[uint32] // of the thread: where in its row, in its block, in eight lanes
	left                       ptx.Reg[uint32] // elements of its slice, or more
	batch, head, split, block  ptx.Reg[uint32]
	used                       ptx.Reg[int32]
	first                      ptx.Reg[uint32] // slot
	from, to                   ptx.Reg[uint32] // keys of the block
	stride                     ptx.Reg[uint32] // bytes from a key to the next

	slots scalar.Variables[uint32] // rows of keys in the cache
	known *ptx.Var[uint32]         // a bit for each that there is
	acc   []scalar.Variables[float32]
	best  *ptx.Var[float32] // score of the row that this lane has scores of
	total *ptx.Var[float32] // of its weights
}

func newDecodeBuilder(k *ptx.Kernel, s decodeShape) *decodeBuilder {
	b := &decodeBuilder{decodeFrame: decodeFrame{scalar.Math{K: k}, ptx.ParamArray[uint32](k, "sizes", decodeSizes)}, decodeShape: s}
	b.scale, b.cap = ptx.Param[float32](k, "scale"), ptx.Param[float32](k, "cap")
	b.q = ptx.PointerParam[uint32](k, "q")
	b.keysAt = ptx.PointerParam[uint32](k, "k", ptx.Align(16))
	b.valuesAt = ptx.PointerParam[uint32](k, "v", ptx.Align(16))
	b.lengths = ptx.PointerParam[int32](k, "lengths")
	b.table = ptx.PointerParam[uint32](k, "table")
	b.y = ptx.PointerParam[float32](k, "y")
	b.pairs = ptx.PointerParam[float32](k, "pairs")
	b.out = ptx.PointerParam[float32](k, "partial")
	if s.rows == 4 && s.words == 4 {
		k.MinBlocks(3) // else ptxas aims at four, and spills
	}
	return b
}

func (b *decodeBuilder) Build() {
	k := b.K
	b.shared = ptx.SharedArray[float32](k, "rows_of_warps", decodeWarps*b.rows*decodeWidth, ptx.Align(16))
	b.Place()
	b.loadQueries()
	q := b.ownQueries()
	k.Barrier() // before the memory is used again

	b.acc = make([]scalar.Variables[float32], b.rows)
	for m := range b.acc {
		b.acc[m] = scalar.VariablesOf(k, scalar.Constants(make([]float32, decodeSlice)))
	}
	b.best, b.total = ptx.VarOf(k, scalar.Num(math.Inf(-1))), ptx.VarOf(k, scalar.Num(0))
	b.walk(q)
	b.join()
	b.Write()
}

// Place finds out what the block and the thread are to do; blocks behind the last key leave.
func (b *decodeBuilder) Place() {
	k := b.K
	rest, tile := b.divisor(sizeTiles).Split(k, k.Ctaid(ptx.X))
	both, split := b.divisor(sizeParts).Split(k, rest)
	kvheads := b.divisor(sizeKVHeads)
	b.batch, b.head = kvheads.Split(k, both)
	b.block, b.split = tile, split
	length := b.length(b.lengths, b.batch)
	b.used, b.first = b.inUse(length), b.oldest(length)
	count, chunk := b.partsOf(b.used)
	start := ptx.Mul(k, split, chunk)
	k.ReturnIf(ptx.And(k, ptx.Not(k, b.flag(sizeDirect)), ptx.Ge(k, start, count)))
	// What the rows of the block see of it.
	firstRow := ptx.Mul(k, tile, scalar.U32(b.rows))
	lastRow := ptx.Sub(k, ptx.Min(k, ptx.Add(k, firstRow, scalar.U32(b.rows)), b.size(sizeRows)), scalar.U32(1))
	begin := ptx.Add(k, ptx.Sub(k, unsigned(k, b.used), count), start)
	end := ptx.Min(k, ptx.Add(k, begin, chunk), unsigned(k, b.used))
	b.from = ptx.Max(k, begin, b.seenFrom(b.standing(firstRow)))
	b.to = ptx.Min(k, end, b.seenTo(b.standing(lastRow), b.used))

	b.tid, b.log = k.Tid(ptx.X), b.size(sizeLog)
	b.slice = ptx.And(k, b.tid, ptx.Sub(k, ptx.Shl(k, scalar.U32(1), b.log), scalar.U32(1)))
	b.team = ptx.Shr(k, b.tid, b.log)
	b.low = ptx.And(k, b.tid, scalar.U32(7))
	at := ptx.Shl(k, b.slice, scalar.U32(3))
	width := b.size(sizeWidth)
	b.left = ptx.Sub(k, ptx.Max(k, width, at), at)
	size := 4 * b.words / decodeSlice
	within := ptx.Mul(k, ptx.Mad(k, b.head, width, at), scalar.U32(size))
	b.keysAt, b.valuesAt = ptx.AtByte(k, b.keysAt, within), ptx.AtByte(k, b.valuesAt, within)
	b.stride = ptx.Mul(k, ptx.Mul(k, kvheads.D, width), scalar.U32(size))
}

// standing is the position of row r's query.
func (b *decodeBuilder) standing(r ptx.Reg[uint32]) ptx.Reg[int32] {
	return b.position(ptx.Bitcast[int32](b.K, b.quotient(r, sizeGroup)), b.used)
}

// query is where row r of queries begins, in elements of q and of the result.
func (b *decodeBuilder) query(r ptx.Reg[uint32]) ptx.Reg[uint32] {
	k, group := b.K, b.divisor(sizeGroup)
	i, g := group.Split(k, r)
	token := ptx.Mad(k, b.batch, b.size(sizeN), i)
	head := ptx.Mad(k, b.head, group.D, g)
	return ptx.Mul(k, ptx.Mad(k, token, b.size(sizeHeads), head), b.size(sizeWidth))
}

// loadQueries puts the rows, scaled, into shared memory, each followed by zeros.
func (b *decodeBuilder) loadQueries() {
	k := b.K
	rows := b.rows
	const each = decodeWidth / decodeThreads
	values := make(scalar.Variables[float32], rows*each)
	for i := range values {
		values[i] = ptx.NewVar[float32](k)
	}
	at, size := make([]ptx.Reg[uint32], len(values)), make([]ptx.Reg[uint32], rows) // of a row, none behind the last
	for m := range rows {
		r := ptx.Mad(k, b.block, scalar.U32(rows), scalar.U32(m))
		size[m] = ptx.Select(k, ptx.Lt(k, r, b.size(sizeRows)), b.size(sizeWidth), scalar.U32(0))
		start := b.query(r)
		for j := range each {
			at[m*each+j] = ptx.Add(k, start, ptx.Add(k, b.tid, scalar.U32(j*decodeThreads)))
		}
	}
	inside := func(i int) ptx.Reg[bool] {
		return ptx.Lt(k, ptx.Add(k, b.tid, scalar.U32(i%each*decodeThreads)), size[i/each])
	}
	half := b.size(sizeHalf)
	k.If(ptx.Eq(k, half, scalar.U32(0)), func() {
		for i, v := range values {
			v.Set(ptx.LoadIf(k, inside(i), ptx.At(k, ptx.Cast[float32](b.q), at[i]), scalar.Num(0)))
		}
	}, func() {
		for i, v := range values {
			x := ptx.LoadIf(k, inside(i), ptx.At(k, ptx.Cast[uint16](b.q), at[i]), ptx.Imm[uint16](0))
			f16 := ptx.Convert[float32](k, ptx.Bitcast[ptx.F16](k, x))
			bf16 := ptx.Bitcast[float32](k, ptx.Shl(k, ptx.Convert[uint32](k, x), scalar.U32(16)))
			v.Set(b.Where(ptx.Eq(k, half, scalar.U32(1)), f16, bf16))
		}
	})
	for i, v := range values {
		m, j := i/each, i%each
		ptx.Store(k, ptx.At(k, b.shared, b.tid).At(m*decodeWidth+j*decodeThreads), b.Mul(v.Get(), b.scale))
	}
	k.Barrier()
}

// ownQueries is this lane's slice of every row.
func (b *decodeBuilder) ownQueries() [][]scalar.Float {
	k := b.K
	p := ptx.At(k, b.shared, ptx.Shl(k, b.slice, scalar.U32(3)))
	q := make([][]scalar.Float, b.rows)
	for m := range q {
		for j := range decodeSlice / 4 {
			x := ptx.Load4(k, p.At(m*decodeWidth+4*j))
			q[m] = append(q[m], x[:]...)
		}
	}
	return q
}

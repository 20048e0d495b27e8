package attention

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/softmax"
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
	words int                                                   // that eight elements take, and their scale
	widen func(k *ptx.Kernel, w ptx.Reg[uint32]) []scalar.Float // nil for packed ones
}

// packed reports whether elements are bytes with scales.
func (e decodeElement) packed() bool { return e.widen == nil }

var decodeElements = map[compute.DType]decodeElement{
	compute.Float32: {"f32", 8, func(k *ptx.Kernel, w ptx.Reg[uint32]) []scalar.Float {
		return []scalar.Float{ptx.Bitcast[float32](w)}
	}},
	compute.Float16: {"f16", 4, func(k *ptx.Kernel, w ptx.Reg[uint32]) []scalar.Float {
		lo, hi := ptx.UnpackF16(ptx.Bitcast[ptx.F16x2](w))
		return []scalar.Float{ptx.Convert[float32](lo), ptx.Convert[float32](hi)}
	}},
	compute.BFloat16: {"bf16", 4, func(k *ptx.Kernel, w ptx.Reg[uint32]) []scalar.Float {
		lo, hi := w.Shl(16), w.And(0xffff0000)
		return []scalar.Float{ptx.Bitcast[float32](lo), ptx.Bitcast[float32](hi)}
	}},
	compute.Uint32: {"packed", 3, nil},
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

// resident is how many blocks a multiprocessor has registers for, as ptxas assigns them.
func (s decodeShape) resident() int {
	if s.words == 4 && s.rows <= 4 {
		return 3
	}
	return 2
}

var decodeRows = []int{1, 4, 8}

var decodeKernels = func() map[compute.DType]map[int]*kit.Kernel {
	all := map[compute.DType]map[int]*kit.Kernel{}
	for t, e := range decodeElements {
		all[t] = map[int]*kit.Kernel{}
		for _, rows := range decodeRows {
			s, family := decodeShape{e, rows}, "attention_decode"
			if e.packed() {
				family = "attention_packed"
			}
			all[t][rows] = kit.Register(kit.Kernel{Family: family, Name: "attention_decode_" + e.name + "_" + string(rune('0'+rows)),
				Block: [3]int{decodeThreads, 1, 1},
				Doc:   "Partial attention of rows of queries over a part of the keys of one head.", Params: decodeParams{},
				Build: func(k *ptx.Kernel) { newDecodeBuilder(k, s).Build() }})
		}
	}
	return all
}()

var decodeCombine = kit.Define(kit.Kernel{Family: "attention_decode", Name: "attention_decode_combine", Block: [3]int{decodeThreads, 1, 1},
	Doc: "Joins the parts that attention_decode left: a warp for each row of queries."}, buildDecodeCombine)

// decodeParams are those of attention_decode.
type decodeParams struct {
	attentionSizes
	Scale, Cap     float32
	Q, K, V        kit.Buffer `of:"numbers"`
	Lengths        kit.Buffer `of:"s32"`
	Table          kit.Buffer `of:"u32"`
	Y              kit.Buffer
	Pairs, Partial kit.Buffer // maximum and sum of each row, accumulators
}

// combineParams are those of attention_decode_combine.
type combineParams struct {
	attentionSizes
	Total          uint32        // rows
	Heads, N       scalar.Divide `array:"counts"`
	Lengths        kit.Buffer    `of:"s32"`
	Pairs, Partial kit.Buffer
	Y              kit.Buffer `of:"numbers"`
}

type decodeBuilder struct {
	block
	decodeShape
	q                ptx.Ptr[ptx.Global, uint32]
	keysAt, valuesAt ptx.Ptr[ptx.Global, uint32] // of this lane in the first row of the head
	table            ptx.Ptr[ptx.Global, uint32]
	y, pairs, out    ptx.Ptr[ptx.Global, float32]
	shared           ptx.Ptr[ptx.Shared, float32]

	tid, log, slice, group, low ptx.Reg[uint32] // of the thread: where in its row, in its block, in eight lanes
	left                        ptx.Reg[uint32] // elements of its slice, or more
	split, tile                 ptx.Reg[uint32] // the part of the keys, the tile of rows
	stride                      ptx.Reg[uint32] // bytes from a key to the next
	toScale                     ptx.Reg[uint32] // bytes from the slice of a packed row to its scale

	slots scalar.Variables[uint32] // rows of keys in the cache
	known *ptx.Var[uint32]         // a bit for each that there is
	acc   []scalar.Variables[float32]
	seen  softmax.Running // of the row that this lane has scores of
}

func newDecodeBuilder(k *ptx.Kernel, s decodeShape) *decodeBuilder {
	var of decodeParams
	p := kit.NewParams(k, &of)
	b := &decodeBuilder{block: newBlock(p, &of.attentionSizes, &of.Scale, &of.Cap), decodeShape: s}
	b.q = kit.Ptr[uint32](p, &of.Q)
	b.keysAt, b.valuesAt = kit.Ptr[uint32](p, &of.K, ptx.Align(16)), kit.Ptr[uint32](p, &of.V, ptx.Align(16))
	b.lengths, b.table = kit.Ptr[int32](p, &of.Lengths), kit.Ptr[uint32](p, &of.Table)
	b.y, b.pairs, b.out = kit.Ptr[float32](p, &of.Y), kit.Ptr[float32](p, &of.Pairs), kit.Ptr[float32](p, &of.Partial)
	switch { // else ptxas aims at four, and spills
	case s.rows == 4 && s.packed():
		k.MinBlocks(2)
	case s.rows == 4 && s.words == 4:
		k.MinBlocks(3)
	}
	return b
}

// Build writes the kernel.
func (b *decodeBuilder) Build() {
	k := b.K
	b.shared = ptx.SharedArray[float32](k, "rows_of_warps", decodeWarps*b.rows*decodeWidth, ptx.Align(16))
	b.Place()
	b.loadQueries()
	q := b.ownQueries()
	k.Barrier() // before the memory is used again

	b.acc = make([]scalar.Variables[float32], b.rows)
	for m := range b.acc {
		b.acc[m] = scalar.Zeros(k, decodeSlice)
	}
	b.seen = softmax.OfScores(k, b.Exp2).Start()
	b.walk(q)
	b.join()
	b.Write()
}

// Place finds out what the block and the thread are to do; blocks after the last key leave.
func (b *decodeBuilder) Place() {
	k := b.K
	rest, tile := b.Divisor(&b.at.Tiles).Split(k, k.Ctaid(ptx.X))
	both, split := b.Divisor(&b.at.Parts).Split(k, rest)
	kvheads := b.Divisor(&b.at.KVHeads)
	batch, head := kvheads.Split(k, both)
	b.tile, b.split = tile, split
	b.find(batch, head)
	count, chunk := b.partsOf(b.used)
	start := split.Mul(chunk)
	k.ReturnIf(b.flag(&b.at.Direct).Not().And(start.Ge(count)))
	// What the rows of the block see of it.
	b.first = tile.Mul(b.rows)
	last := b.last(b.rows)
	begin := unsigned(k, b.used).Sub(count).Add(start)
	end := begin.Add(chunk).Min(unsigned(k, b.used))
	b.from = begin.Max(b.seenFrom(b.rowPosition(b.first, b.used)))
	b.to = end.Min(b.seenTo(b.rowPosition(last, b.used), b.used))

	b.tid, b.log = k.Tid(ptx.X), b.U32(&b.at.Log)
	b.slice = b.tid.And(ptx.U32(1).Shl(b.log).Sub(1))
	b.group = b.tid.Shr(b.log)
	b.low = b.tid.And(7)
	at := b.slice.Shl(3)
	width := b.U32(&b.at.Width)
	b.left = width.Max(at).Sub(at)
	size := 1
	if !b.packed() {
		size = 4 * b.words / decodeSlice
	}
	within := b.head.Mad(width, at).Mul(size)
	b.keysAt, b.valuesAt = b.keysAt.Bytes(within), b.valuesAt.Bytes(within)
	b.stride = kvheads.D.Mul(width).Mul(size)
	if b.packed() { // the bytes of all heads, and then the scales of 32 each
		b.toScale = b.stride.Add(within.Shr(5).Shl(1)).Sub(within)
		b.stride = b.stride.Add(b.stride.Shr(4)).Add(15).And(^uint32(15))
	}
}

// query is where row r of queries begins, in elements of q and of the result.
func (b *decodeBuilder) query(r ptx.Reg[uint32]) ptx.Reg[uint32] {
	i, head := b.queryOf(r, b.head)
	return b.queryRow(b.batch, i, head).Mul(b.U32(&b.at.Width))
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
	at, size := make([]ptx.Reg[uint32], len(values)), make([]ptx.Reg[uint32], rows) // of a row, none after the last
	for m := range rows {
		r := b.tile.Mad(rows, m)
		size[m] = ptx.Select(r.Lt(b.U32(&b.at.Rows)), b.U32(&b.at.Width), 0)
		start := b.query(r)
		for j := range each {
			at[m*each+j] = start.Add(b.tid.Add(j * decodeThreads))
		}
	}
	inside := func(i int) ptx.Reg[bool] {
		return b.tid.Add(i % each * decodeThreads).Lt(size[i/each])
	}
	half := b.U32(&b.at.Half)
	k.If(half.Eq(0), func() {
		for i, v := range values {
			v.Set(ptx.LoadIf(inside(i), ptx.Cast[float32](b.q).At(at[i]), 0))
		}
	}, func() {
		for i, v := range values {
			x := ptx.LoadIf(inside(i), ptx.Cast[uint16](b.q).At(at[i]), 0)
			f16 := ptx.Convert[float32](ptx.Bitcast[ptx.F16](x))
			bf16 := ptx.Bitcast[float32](ptx.Convert[uint32](x).Shl(16))
			v.Set(b.Where(half.Eq(1), f16, bf16))
		}
	})
	for i, v := range values {
		m, j := i/each, i%each
		b.shared.At(b.tid).At(m*decodeWidth + j*decodeThreads).Store(v.Get().Mul(b.scale))
	}
	k.Barrier()
}

// ownQueries is this lane's slice of every row.
func (b *decodeBuilder) ownQueries() [][]scalar.Float {
	p := b.shared.At(b.slice.Shl(3))
	q := make([][]scalar.Float, b.rows)
	for m := range q {
		for j := range decodeSlice / 4 {
			x := p.At(m*decodeWidth + 4*j).Load4()
			q[m] = append(q[m], x[:]...)
		}
	}
	return q
}

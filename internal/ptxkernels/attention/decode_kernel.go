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
	words int // that eight elements take
	widen func(k *ptx.Kernel, w ptx.Reg[uint32]) []scalar.Float
}

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
				Doc:   "Partial attention of rows of queries over a part of the keys of one head.", Params: decodeParams{},
				Build: func(k *ptx.Kernel) { newDecodeBuilder(k, s).Build() }})
		}
	}
	return all
}()

var decodeCombine = kit.Register(kit.Kernel{Family: "attention_decode", Name: "attention_decode_combine", Block: [3]int{decodeThreads, 1, 1},
	Doc: "Joins the parts that attention_decode left: a warp for each row of queries.", Params: combineParams{}, Build: buildDecodeCombine})

// attentionSizes are the parameters that the kernels of attention have in common.
type attentionSizes struct {
	N, Heads, Width int `array:"sizes"` // Heads of queries, Width elements of a head
	Capacity        int // keys of a sequence at most
	Rows            int // of queries that share a head of keys
	Causal, Window  int // Window is 0 for none
	Lengths         int // 1 if there are some
	Ring            int // whether lengths beyond the capacity mean a ring
	Vector          int // whether rows may be accessed by 16 bytes
	Half            int // what q and y are: 0 f32, 1 f16, 2 bf16
	Direct          int // whether the result is written at once: one part, f32. By tiles: whether lse is wanted
	Log             int // of the lanes of a row: 3 to 5
	Tile            int // of keys. On tensor cores: bytes from a key to the next
	Table, Pages    int // entries of a sequence, 0 without pages. On tensor cores Table is the bits of a last factor of scores
	Tiles, Parts    scalar.Divide
	KVHeads, Group  scalar.Divide
	Page            scalar.Divide // keys of a page
}

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

// decodeFrame is what all kernels know of a sequence.
type decodeFrame struct {
	scalar.Math
	*kit.Params
	at *attentionSizes
}

func (f decodeFrame) signed(field *int) ptx.Reg[int32]         { return ptx.Bitcast[int32](f.U32(field)) }
func (f decodeFrame) flag(field *int) ptx.Reg[bool]            { return f.U32(field).Ne(0) }
func unsigned(k *ptx.Kernel, x ptx.Reg[int32]) ptx.Reg[uint32] { return ptx.Bitcast[uint32](x) }

// length is the keys of sequence b, also those that have been overwritten; inUse those that are there.
func (f decodeFrame) length(lengths ptx.Ptr[ptx.Global, int32], b ptx.Reg[uint32]) ptx.Reg[int32] {
	return ptx.LoadIf(f.flag(&f.at.Lengths), lengths.At(b), f.signed(&f.at.Capacity)).Max(0)
}

func (f decodeFrame) inUse(length ptx.Reg[int32]) ptx.Reg[int32] {
	return length.Min(f.signed(&f.at.Capacity))
}

// oldest is the slot of the oldest key in use.
func (f decodeFrame) oldest(length ptx.Reg[int32]) ptx.Reg[uint32] {
	k, capacity := f.K, f.signed(&f.at.Capacity)
	start := ptx.VarOf(k, ptx.U32(0))
	k.If(f.flag(&f.at.Ring).And(length.Gt(capacity)), func() {
		start.Set(unsigned(k, length).Rem(unsigned(k, capacity)))
	})
	return start.Get()
}

// position is where query i stands among the keys in use.
func (f decodeFrame) position(i, used ptx.Reg[int32]) ptx.Reg[int32] {
	return used.Sub(f.signed(&f.at.N)).Add(i)
}

// rowPosition is the position of the query of row r, of those that share a head of keys.
func (f decodeFrame) rowPosition(r ptx.Reg[uint32], used ptx.Reg[int32]) ptx.Reg[int32] {
	return f.position(ptx.Bitcast[int32](f.Quotient(&f.at.Group, r)), used)
}

// queryOf is the query of row r, of those that share a head of keys, and its head.
func (f decodeFrame) queryOf(r, keyHead ptx.Reg[uint32]) (i, head ptx.Reg[uint32]) {
	group := f.Divisor(&f.at.Group)
	i, g := group.Split(f.K, r)
	return i, keyHead.Mad(group.D, g)
}

// queryRow is where that query's row stands in q and in the result.
func (f decodeFrame) queryRow(batch, i, head ptx.Reg[uint32]) ptx.Reg[uint32] {
	return batch.Mad(f.U32(&f.at.N), i).Mad(f.U32(&f.at.Heads), head)
}

// seenFrom and seenTo are the keys that the query at position p sees.
func (f decodeFrame) seenFrom(p ptx.Reg[int32]) ptx.Reg[uint32] {
	k := f.K
	oldest := p.Max(0).Sub(f.signed(&f.at.Window)).Add(1)
	return unsigned(k, ptx.Select(f.flag(&f.at.Window), oldest.Max(0), 0))
}

func (f decodeFrame) seenTo(p, used ptx.Reg[int32]) ptx.Reg[uint32] {
	k, window := f.K, f.signed(&f.at.Window)
	to := ptx.Select(f.flag(&f.at.Causal), used.Min(p.Add(1)), used)
	ahead := p.Min(used.Sub(window)).Add(window) // p + window without overflow
	to = ptx.Select(f.flag(&f.at.Window), to.Min(ahead), to)
	return unsigned(k, to.Max(0))
}

// partsOf says how the keys that queries see are cut: count of them, the last ones in use, chunk to a part.
func (f decodeFrame) partsOf(used ptx.Reg[int32]) (count, chunk ptx.Reg[uint32]) {
	k := f.K
	from := f.seenFrom(f.position(scalar.S32(0), used))
	count = unsigned(k, used).Sub(from)
	parts, tile := f.Divided(&f.at.Parts), f.U32(&f.at.Tile)
	each := f.Quotient(&f.at.Parts, count.Add(parts.Sub(1)))
	less := tile.Sub(1) // a power of two, less one
	return count, each.Add(less).And(less.Not()).Max(tile)
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
	seen  softmax.Running // of the row that this lane has scores of
}

func newDecodeBuilder(k *ptx.Kernel, s decodeShape) *decodeBuilder {
	var of decodeParams
	p := kit.NewParams(k, &of)
	b := &decodeBuilder{decodeFrame: decodeFrame{scalar.Math{K: k}, p, &of.attentionSizes}, decodeShape: s}
	b.scale, b.cap = kit.Read(p, &of.Scale), kit.Read(p, &of.Cap)
	b.q = kit.Ptr[uint32](p, &of.Q)
	b.keysAt, b.valuesAt = kit.Ptr[uint32](p, &of.K, ptx.Align(16)), kit.Ptr[uint32](p, &of.V, ptx.Align(16))
	b.lengths, b.table = kit.Ptr[int32](p, &of.Lengths), kit.Ptr[uint32](p, &of.Table)
	b.y, b.pairs, b.out = kit.Ptr[float32](p, &of.Y), kit.Ptr[float32](p, &of.Pairs), kit.Ptr[float32](p, &of.Partial)
	if s.rows == 4 && s.words == 4 {
		k.MinBlocks(3) // else ptxas aims at four, and spills
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
	b.batch, b.head = kvheads.Split(k, both)
	b.block, b.split = tile, split
	length := b.length(b.lengths, b.batch)
	b.used, b.first = b.inUse(length), b.oldest(length)
	count, chunk := b.partsOf(b.used)
	start := split.Mul(chunk)
	k.ReturnIf(b.flag(&b.at.Direct).Not().And(start.Ge(count)))
	// What the rows of the block see of it.
	firstRow := tile.Mul(b.rows)
	lastRow := firstRow.Add(b.rows).Min(b.U32(&b.at.Rows)).Sub(1)
	begin := unsigned(k, b.used).Sub(count).Add(start)
	end := begin.Add(chunk).Min(unsigned(k, b.used))
	b.from = begin.Max(b.seenFrom(b.rowPosition(firstRow, b.used)))
	b.to = end.Min(b.seenTo(b.rowPosition(lastRow, b.used), b.used))

	b.tid, b.log = k.Tid(ptx.X), b.U32(&b.at.Log)
	b.slice = b.tid.And(ptx.U32(1).Shl(b.log).Sub(1))
	b.team = b.tid.Shr(b.log)
	b.low = b.tid.And(7)
	at := b.slice.Shl(3)
	width := b.U32(&b.at.Width)
	b.left = width.Max(at).Sub(at)
	size := 4 * b.words / decodeSlice
	within := b.head.Mad(width, at).Mul(size)
	b.keysAt, b.valuesAt = b.keysAt.Bytes(within), b.valuesAt.Bytes(within)
	b.stride = kvheads.D.Mul(width).Mul(size)
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
		r := b.block.Mad(rows, m)
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

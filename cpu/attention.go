package cpu

import (
	"math"
	"runtime"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/blocks"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/gemm"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Attention goes over blocks of queries; for each it walks over tiles of the keys that some query of the block sees, with the
// maximum and the sum of what was seen so far (see shiftedSum). Rows of a block are the queries of all heads that share a head
// of keys, so that few queries of many heads make one product too.
//
// Of 512 tokens of 12 heads on Emerald Rapids with AVX-512, 70 % of the time are tiles of the two products, at the rate of multiply-adds,
// 12 % exponentials and maxima, 5 % queries and results, whose rows lie apart in L3, and 5 % putting keys and values in order. Blocks of
// 256 and 512 queries, and queries that are used as they lie, were not faster.
const (
	attentionRows = 128
	attentionKeys = 256
	aheadRows     = 8 // rows of queries and results, which lie apart, are asked for so many before their use
)

// inPage says whether the code is downloaded with a page. It does without what only makes it faster, which is 3 KB.
const inPage = runtime.GOARCH == "wasm"

// attending is an attention over the call's operands.
type attending struct {
	catalogue.AttentionDims
	lengths int // operand, 0 for none
	table   int // operand, 0 for caches that are not in pages
	catalogue.Paging
	lse    bool           // is wanted too
	packed blocks.Weights // keys or values, if they are packed: rows of all caches

	rows   int // of one head of keys: N·Group
	blocks int // of attentionRows
	parts  int // into which the keys of a block are cut; see attentionParts
}

func attention(c *call) work {
	d, _ := catalogue.AttentionShape(c.in[0].Shape, c.in[1].Shape, c.in[2].Shape, c.attr.Options.(compute.AttentionOptions)) // checked
	x := &attending{AttentionDims: d, lse: len(c.outs) > 1}
	if len(c.in) > 3 {
		x.lengths = 3
	}
	return x.work(c)
}

func (x *attending) work(c *call) work {
	if k := c.in[1]; k.DType == compute.Uint32 {
		x.packed = blocks.NewWeights(catalogue.CacheFormat, program.F32(k.Shape[:len(k.Shape)-1]...).Len(), k.Shape[len(k.Shape)-1])
	}
	x.rows = x.N * x.Group()
	x.blocks = engine.CeilDiv(x.rows, attentionRows)
	units := x.Batch * x.KVHeads * x.blocks
	if x.parts = attentionParts(units, x.NK); x.lse {
		x.parts = 1
	}
	const perProduct = 0.02 // ns
	pairs := float64(min(x.rows, attentionRows)) * float64(x.NK) / float64(x.parts)
	w := one(units*x.parts, 200+pairs*(0.5+2*perProduct*float64(x.D)), func(a *args, lo, hi int) {
		t := attentionTiles.Take()
		defer attentionTiles.Give(t)
		for u := lo; u < hi && !a.stop.Load(); u++ {
			t.start(x, c, a, u/x.parts)
			t.walk(x, c, a, u%x.parts)
			t.Finish(x, c, a, u)
		}
	})
	if x.parts > 1 {
		x.joinParts(c, &w, units)
	}
	return w
}

// attentionTile is the working memory for a block of queries.
type attentionTile struct {
	batch, head int   // of keys
	first, n    int   // rows of the block
	used, slot  int   // keys in use, and where the oldest lies
	at          []int // where rows begin in q
	from, to    []int // keys that rows see
	q, o        []float32
	s           []float32 // scores, then weights: stride attentionKeys
	k, v        []float32 // converted tiles
	rows        []int     // of a tile's keys; negative where a page has none
	missing     bool      // some of them are negative
	max, sum    []float64
	tiles       []orderedTile
}

// orderedTile is a tile of keys and values in the order in which products read them: keys are columns, orderedStride apart, and values
// follow each other. Blocks of queries that share a head of keys and come to the same thread find it there.
type orderedTile struct {
	serial      uint64 // of the execution
	head        int    // of all caches
	first, keys int
	k, v        []float32
}

const (
	orderedStride = attentionKeys + 32 // rows that are a power of two apart would share sets of L1
	orderedMost   = 1 << 17            // elements of keys that stay; the tiles after them share the last place
)

var attentionTiles engine.FreeList[attentionTile]

func (t *attentionTile) start(x *attending, c *call, a *args, unit int) {
	z, block := unit/x.blocks, unit%x.blocks
	t.batch, t.head = z/x.KVHeads, z%x.KVHeads
	t.first = block * attentionRows
	t.n = min(attentionRows, x.rows-t.first)
	length := x.NK
	if x.lengths > 0 {
		length = int(a.in[x.lengths].i32()[t.batch])
	}
	if x.table > 0 {
		length = min(length, x.NK)
	}
	t.used, t.slot = x.InUse(length)
	t.q, t.o = engine.Resized(t.q, t.n*x.D), engine.Resized(t.o, t.n*x.D)
	t.s = engine.Resized(t.s, t.n*attentionKeys)
	t.at, t.from, t.to = engine.Resized(t.at, t.n), engine.Resized(t.from, t.n), engine.Resized(t.to, t.n)
	t.max, t.sum = engine.Resized(t.max, t.n), engine.Resized(t.sum, t.n)
	clear(t.o)
	scale, g := x.Scale, x.Group()
	if x.SoftCap > 0 {
		scale /= x.SoftCap
	}
	for r := range t.n {
		i := (t.first + r) / g
		t.at[r] = ((t.batch*x.N+i)*x.Heads + t.head*g + (t.first+r)%g) * x.D
		t.from[r], t.to[r] = x.Seen(i, t.used)
		t.max[r], t.sum[r] = math.Inf(-1), 0
	}
	for r, at := range t.at {
		q := t.q[r*x.D:][:x.D]
		if inPage || c.in[0].DType != compute.Float32 {
			widen(q, a.in[0], c.in[0].DType, at)
			kernels.Scale(q, q, scale)
			continue
		}
		from := a.in[0].f32()
		if next := r + aheadRows; next < t.n {
			kernels.Prefetch(from[t.at[next]:][:x.D])
		}
		kernels.Scale(q, from[at:][:x.D], scale)
	}
}

// walk goes over the keys of a part. Tiles end where a ring does.
func (t *attentionTile) walk(x *attending, c *call, a *args, part int) {
	lo, hi := t.used, 0
	for r := range t.n {
		if t.from[r] < t.to[r] {
			lo, hi = min(lo, t.from[r]), max(hi, t.to[r])
		}
	}
	if lo < hi {
		chunk := engine.CeilDiv(hi-lo, x.parts)
		lo, hi = lo+part*chunk, min(hi, lo+(part+1)*chunk)
	}
	for keys := 0; lo < hi && !a.stop.Load(); lo += keys {
		keys = t.place(x, a, lo, hi)
		o := t.order(x, c, a, lo, keys)
		t.scores(x, a.in[1], c.in[1].DType, keys, o)
		for r := range t.n {
			t.weigh(x, r, lo, keys)
		}
		t.values(x, a.in[2], c.in[2].DType, keys, o)
	}
}

// order returns the tile in order, or nil if too few blocks share it.
func (t *attentionTile) order(x *attending, c *call, a *args, first, keys int) *orderedTile {
	if inPage || x.blocks == 1 || t.n <= kernels.AttendRows {
		return nil
	}
	i := min(first/attentionKeys, max(1, orderedMost/(attentionKeys*x.D))-1)
	for len(t.tiles) <= i {
		t.tiles = append(t.tiles, orderedTile{})
	}
	o, head := &t.tiles[i], t.batch*x.KVHeads+t.head
	if o.serial == a.serial && o.head == head && o.first == first && o.keys == keys {
		return o
	}
	o.serial, o.head, o.first, o.keys = a.serial, head, first, keys
	tile, stride := t.tileOf(&t.k, x, a.in[1], c.in[1].DType)
	o.k = engine.Resized(o.k, x.D*orderedStride)
	kernels.Transpose(engine.Words(o.k), orderedStride, engine.Words(tile), stride, keys, x.D)
	tile, stride = t.tileOf(&t.v, x, a.in[2], c.in[2].DType)
	o.v = engine.Resized(o.v, keys*x.D)
	for j := range keys {
		if next := j + aheadRows; next < keys {
			kernels.Prefetch(tile[next*stride:][:x.D])
		}
		copy(o.v[j*x.D:][:x.D], tile[j*stride:])
	}
	return o
}

// scores multiplies the rows with the tile's keys.
func (t *attentionTile) scores(x *attending, k view, d compute.DType, keys int, o *orderedTile) {
	p := gemm.Product{M: t.n, N: keys, K: x.D, AM: x.D, AK: 1, BK: orderedStride, BN: 1, LDC: attentionKeys, Batch: 1, Alpha: 1}
	if o != nil {
		gemm.Run(&p, &gemm.Operands{A: t.q, B: o.k, C: t.s}, 1)
		return
	}
	if first, stride, ok := t.few(x, d); ok {
		if d == compute.Float32 {
			ok = kernels.Scores(t.s, t.q, k.f32()[first:], t.n, x.D, keys, stride, attentionKeys)
		} else {
			ok = kernels.Scores(t.s, t.q, k.u16()[first:], t.n, x.D, keys, stride, attentionKeys)
		}
		if ok {
			return
		}
	}
	tile, stride := t.tileOf(&t.k, x, k, d)
	if t.n <= kernels.AttendRows && kernels.Scores(t.s, t.q, tile, t.n, x.D, keys, stride, attentionKeys) {
		return
	}
	p.BK, p.BN = 1, stride
	gemm.Run(&p, &gemm.Operands{A: t.q, B: tile, C: t.s}, 1)
}

// values adds the tile's values times the weights of the rows.
func (t *attentionTile) values(x *attending, v view, d compute.DType, keys int, o *orderedTile) {
	p := gemm.Product{M: t.n, N: x.D, K: keys, AM: attentionKeys, AK: 1, BK: x.D, BN: 1, LDC: x.D, Batch: 1, Alpha: 1, Beta: 1}
	if o != nil {
		gemm.Run(&p, &gemm.Operands{A: t.s, B: o.v, C: t.o}, 1)
		return
	}
	if first, stride, ok := t.few(x, d); ok {
		if d == compute.Float32 {
			ok = kernels.AddValues(t.o, t.s, v.f32()[first:], t.n, x.D, keys, stride, attentionKeys)
		} else {
			ok = kernels.AddValues(t.o, t.s, v.u16()[first:], t.n, x.D, keys, stride, attentionKeys)
		}
		if ok {
			return
		}
	}
	tile, stride := t.tileOf(&t.v, x, v, d)
	if t.n <= kernels.AttendRows && kernels.AddValues(t.o, t.s, tile, t.n, x.D, keys, stride, attentionKeys) {
		return
	}
	p.BK = stride
	gemm.Run(&p, &gemm.Operands{A: t.s, B: tile, C: t.o}, 1)
}

// few says whether there are few rows for keys that lie at one distance from each other, which are used as they lie then: where the
// first begins, and the distance.
func (t *attentionTile) few(x *attending, d compute.DType) (first, stride int, ok bool) {
	if t.n > kernels.AttendRows || x.table > 0 || d == compute.BFloat16 || d == compute.Uint32 {
		return 0, 0, false
	}
	return (t.rows[0]*x.KVHeads + t.head) * x.D, x.KVHeads * x.D, true
}

// weigh makes weights of a row's scores and takes them into its sum.
func (t *attentionTile) weigh(x *attending, r, first, keys int) {
	s := t.s[r*attentionKeys:][:keys]
	from, to := min(max(t.from[r]-first, 0), keys), min(max(t.to[r]-first, 0), keys)
	if from >= to {
		clear(s)
		return
	}
	clear(s[:from])
	clear(s[to:])
	s = s[from:to]
	if x.SoftCap > 0 {
		kernels.Tanh(s, s)
		kernels.Scale(s, s, x.SoftCap)
	}
	if t.missing {
		for j, row := range t.rows[from:to] {
			if row < 0 {
				s[j] = float32(math.Inf(-1))
			}
		}
	}
	m := max(t.max[r], float64(kernels.Max(s)))
	if math.IsInf(m, -1) {
		clear(s)
		return
	}
	if m != t.max[r] && t.sum[r] != 0 {
		f := math.Exp(t.max[r] - m)
		t.sum[r] *= f
		o := t.o[r*x.D:][:x.D]
		kernels.Scale(o, o, float32(f))
	}
	t.max[r] = m
	t.sum[r] += float64(kernels.ExpSub(s, s, float32(m)))
}

// Finish writes the rows, or leaves them to be joined.
func (t *attentionTile) Finish(x *attending, c *call, a *args, unit int) {
	if x.parts > 1 {
		t.leave(x, a, unit)
		return
	}
	for r := range t.n {
		o, f := t.o[r*x.D:][:x.D], float32(1)
		if t.sum[r] != 0 { // zeros otherwise
			f = float32(1 / t.sum[r])
		}
		if !inPage && c.out.DType == compute.Float32 {
			if next := r + aheadRows; next < t.n {
				kernels.PrefetchWrite(a.out.f32()[t.at[next]:][:x.D])
			}
			kernels.Scale(a.out.f32()[t.at[r]:][:x.D], o, f)
		} else {
			kernels.Scale(o, o, f)
			narrow(a.out, c.out.DType, t.at[r], o)
		}
		if x.lse {
			at := t.at[r] / x.D // in [batch, n, heads]
			i, head := at/x.Heads, at%x.Heads
			a.outs[1].f32()[(i/x.N*x.Heads+head)*x.N+i%x.N] = float32(t.max[r] + math.Log(t.sum[r]))
		}
	}
}

// place locates the rows of the next keys and returns how many there are.
func (t *attentionTile) place(x *attending, a *args, lo, hi int) (keys int) {
	keys = min(attentionKeys, hi-lo)
	t.missing = false
	if x.table == 0 {
		slot := (t.slot + lo) % x.NK
		keys = min(keys, x.NK-slot)
		t.rows = engine.Resized(t.rows, keys)
		for j := range t.rows {
			t.rows[j] = t.batch*x.NK + slot + j
		}
		return keys
	}
	t.rows = engine.Resized(t.rows, keys)
	table := a.in[x.table].i32()
	for j := range t.rows {
		t.rows[j] = -1
		if slot, ok := x.Slot(table, t.batch, lo+j); ok {
			t.rows[j] = slot
		} else {
			t.missing = true
		}
	}
	return keys
}

// tileOf returns keys or values of the head in the rows of the tile, and the distance from one to the next.
func (t *attentionTile) tileOf(spare *[]float32, x *attending, kv view, d compute.DType) (tile []float32, stride int) {
	at := func(row int) int { return (row*x.KVHeads + t.head) * x.D }
	if d == compute.Float32 && x.table == 0 {
		return kv.f32()[at(t.rows[0]):], x.KVHeads * x.D
	}
	*spare = engine.Resized(*spare, len(t.rows)*x.D)
	if d == compute.Uint32 {
		w := x.packed.Of(kv.bytes(d))
		w.DequantizeRows(*spare, t.rows, t.head*x.D, x.D)
		return *spare, x.D
	}
	for i, n := 0, 0; i < len(t.rows); i += n {
		row, to := t.rows[i], (*spare)[i*x.D:]
		if n = 1; row < 0 {
			clear(to[:x.D])
			continue
		}
		for i+n < len(t.rows) && t.rows[i+n] == row+n {
			n++
		}
		widenRows(to[:n*x.D], kv, d, at(row), x.D, x.KVHeads*x.D)
	}
	return *spare, x.D
}

package cpu

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/gemm"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Indices of attention_backward's operands.
const (
	backQ = iota
	backK
	backV
	backY
	backLSE
	backDY
	backLengths
)

// attendingBack goes over the weights twice, in tiles of attentionRows rows and attentionKeys keys: for blocks of rows, whose
// gradients it adds up, and for tiles of keys. Rows are the queries of all heads that share a head of keys.
type attendingBack struct {
	catalogue.AttentionDims
	lengths bool
	rows    int // of one head of keys: N·Group, none without heads
	blocks  int // of attentionRows
	tiles   int // of attentionKeys
	scale   float32
}

func attentionBackward(c *call) work {
	d, _ := catalogue.AttentionShape(c.in[0].Shape, c.in[1].Shape, c.in[2].Shape, c.attr.Options.(compute.AttentionOptions)) // checked
	x := &attendingBack{AttentionDims: d, lengths: len(c.in) > backLengths, rows: d.N * d.Heads / max(d.KVHeads, 1), scale: d.Scale}
	if x.SoftCap > 0 {
		x.scale /= x.SoftCap
	}
	x.blocks, x.tiles = engine.CeilDiv(x.rows, attentionRows), engine.CeilDiv(x.NK, attentionKeys)
	const perProduct = 0.02 // ns
	pair := 1.5 + 2*perProduct*float64(x.D)
	block := float64(min(x.rows, attentionRows)) * float64(x.NK) * (pair + perProduct*float64(x.D))
	tile := float64(x.rows) * float64(min(x.NK, attentionKeys)) * (pair + 2*perProduct*float64(x.D))
	heads := x.Batch * x.KVHeads
	return work{phases: []phase{
		{units: heads * x.blocks, ns: 200 + block, do: x.each(x.blocks, (*backwardTile).rowsOf)},
		{units: heads * x.tiles, ns: 200 + tile, do: x.each(x.tiles, (*backwardTile).keysOf)},
	}}
}

// each calls f for units, of which every head of keys has the same number.
func (x *attendingBack) each(units int, f func(t *backwardTile, a *args, unit int)) func(a *args, lo, hi int) {
	return func(a *args, lo, hi int) {
		t := backwardTiles.Take()
		defer backwardTiles.Give(t)
		for u := lo; u < hi && !a.stop.Load(); u++ {
			z := u / units
			t.attendingBack, t.batch, t.head = x, z/x.KVHeads, z%x.KVHeads
			length := x.NK
			if x.lengths {
				length = int(a.in[backLengths].i32()[t.batch])
			}
			t.used, t.slot = x.InUse(length)
			f(t, a, u%units)
		}
	}
}

// backwardTile is the working memory for a block of rows or a tile of keys.
type backwardTile struct {
	*attendingBack
	batch, head int // of keys
	used, slot  int // keys in use, and where the oldest lies

	n          int       // rows of the block
	at         []int     // where they begin in q
	from, to   []int     // keys that they see
	q, dy, dq  []float32 // rows
	lse, means []float32 // of rows: means are Σdy·y
	p, ds      []float32 // weights and gradients of scores: stride attentionKeys
	bend       []float32
}

var backwardTiles engine.FreeList[backwardTile]

// rowsOf computes the gradients of a block of queries.
func (t *backwardTile) rowsOf(a *args, block int) {
	t.load(a, block)
	t.dq = engine.Resized(t.dq, t.n*t.D)
	clear(t.dq)
	lo, hi := t.seen()
	for keys := 0; lo < hi && !a.stop.Load(); lo += keys {
		at := 0
		keys, at = t.place(lo, hi)
		t.weigh(a, lo, keys, at)
		gemm.Run(&gemm.Product{M: t.n, N: t.D, K: keys, AM: attentionKeys, AK: 1, BK: t.KVHeads * t.D, BN: 1, LDC: t.D, Batch: 1,
			Alpha: t.Scale, Beta: 1}, &gemm.Operands{A: t.ds, B: a.in[backK].f32()[at:], C: t.dq}, 1)
	}
	for r, at := range t.at {
		copy(a.out.f32()[at:], t.dq[r*t.D:][:t.D])
	}
}

// keysOf computes the gradients of a tile of keys: those that are not in use come after those that are.
func (t *backwardTile) keysOf(a *args, tile int) {
	end := min((tile+1)*attentionKeys, t.NK)
	for lo, keys := tile*attentionKeys, 0; lo < end; lo += keys {
		limit := end
		if lo < t.used {
			limit = min(end, t.used)
		}
		at := 0
		keys, at = t.place(lo, limit)
		stride := t.KVHeads * t.D
		dk, dv := a.outs[1].f32()[at:], a.outs[2].f32()[at:]
		for j := range keys {
			clear(dk[j*stride:][:t.D])
			clear(dv[j*stride:][:t.D])
		}
		for block := 0; lo < t.used && block < t.blocks && !a.stop.Load(); block++ {
			if !t.reaches(block, lo, keys) {
				continue
			}
			t.load(a, block)
			t.weigh(a, lo, keys, at)
			product := gemm.Product{M: keys, N: t.D, K: t.n, AM: 1, AK: attentionKeys, BK: t.D, BN: 1, LDC: stride, Batch: 1, Alpha: 1, Beta: 1}
			gemm.Run(&product, &gemm.Operands{A: t.p, B: t.dy, C: dv}, 1)
			product.Alpha = t.Scale
			gemm.Run(&product, &gemm.Operands{A: t.ds, B: t.q, C: dk}, 1)
		}
	}
}

// reaches reports whether some row of a block may see one of these keys.
func (t *backwardTile) reaches(block, first, keys int) bool {
	g := t.Group()
	last := min((block+1)*attentionRows, t.rows) - 1
	from, _ := t.Seen(block*attentionRows/g, t.used)
	_, to := t.Seen(last/g, t.used)
	return from < first+keys && first < to
}

// load brings the rows of a block.
func (t *backwardTile) load(a *args, block int) {
	first, g := block*attentionRows, t.Group()
	t.n = min(attentionRows, t.rows-first)
	t.q, t.dy = engine.Resized(t.q, t.n*t.D), engine.Resized(t.dy, t.n*t.D)
	t.at, t.from, t.to = engine.Resized(t.at, t.n), engine.Resized(t.from, t.n), engine.Resized(t.to, t.n)
	t.lse, t.means = engine.Resized(t.lse, t.n), engine.Resized(t.means, t.n)
	for r := range t.n {
		i, h := (first+r)/g, t.head*g+(first+r)%g
		at := ((t.batch*t.N+i)*t.Heads + h) * t.D
		t.at[r] = at
		t.from[r], t.to[r] = t.Seen(i, t.used)
		dy := t.dy[r*t.D:][:t.D]
		copy(t.q[r*t.D:][:t.D], a.in[backQ].f32()[at:])
		copy(dy, a.in[backDY].f32()[at:])
		t.means[r] = kernels.Dot(dy, a.in[backY].f32()[at:][:t.D])
		if t.lse[r] = a.in[backLSE].f32()[(t.batch*t.Heads+h)*t.N+i]; math.IsInf(float64(t.lse[r]), -1) {
			t.to[r] = t.from[r] // nothing has weight
		}
	}
}

// seen returns the range of keys that some row of the block sees.
func (t *backwardTile) seen() (lo, hi int) {
	lo = t.used
	for r := range t.n {
		if t.from[r] < t.to[r] {
			lo, hi = min(lo, t.from[r]), max(hi, t.to[r])
		}
	}
	return lo, hi
}

// place returns how many keys are contiguous from the given one on, and the index of the first. Tiles end where a ring does.
func (t *backwardTile) place(lo, hi int) (keys, at int) {
	slot := (t.slot + lo) % t.NK
	return min(attentionKeys, hi-lo, t.NK-slot), ((t.batch*t.NK+slot)*t.KVHeads + t.head) * t.D
}

// weigh computes weights of the rows' keys and gradients of the scores, as far as scores are scaled.
func (t *backwardTile) weigh(a *args, first, keys, at int) {
	t.p, t.ds = engine.Resized(t.p, t.n*attentionKeys), engine.Resized(t.ds, t.n*attentionKeys)
	product := gemm.Product{M: t.n, N: keys, K: t.D, AM: t.D, AK: 1, BK: 1, BN: t.KVHeads * t.D, LDC: attentionKeys, Batch: 1, Alpha: t.scale}
	gemm.Run(&product, &gemm.Operands{A: t.q, B: a.in[backK].f32()[at:], C: t.p}, 1)
	product.Alpha = 1
	gemm.Run(&product, &gemm.Operands{A: t.dy, B: a.in[backV].f32()[at:], C: t.ds}, 1)
	for r := range t.n {
		p, ds := t.p[r*attentionKeys:][:keys], t.ds[r*attentionKeys:][:keys]
		from, to := min(max(t.from[r]-first, 0), keys), min(max(t.to[r]-first, 0), keys)
		if from >= to {
			from, to = keys, keys
		}
		for _, x := range [][]float32{p, ds} {
			clear(x[:from])
			clear(x[to:])
		}
		if p, ds = p[from:to], ds[from:to]; len(p) == 0 {
			continue
		}
		kernels.AddScalar(ds, ds, -t.means[r])
		if t.SoftCap > 0 { // the slope of c·tanh(s/c) is 1 − tanh²
			kernels.Tanh(p, p)
			t.bend = engine.Resized(t.bend, len(p))
			kernels.Mul(t.bend, ds, p)
			kernels.Mul(t.bend, t.bend, p)
			kernels.Sub(ds, ds, t.bend)
			kernels.Scale(p, p, t.SoftCap)
		}
		kernels.ExpSub(p, p, t.lse[r])
		kernels.Mul(ds, ds, p)
	}
}

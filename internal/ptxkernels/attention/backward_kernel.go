package attention

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Gradients of attention as in FlashAttention-2 (Dao, 2023) without tensor cores, in the tiles of attention_flash.go: a block has
// rows of queries and goes over tiles of keys, for the gradients of queries; or it has keys and goes over tiles of rows.

// backwardShape is what a kernel is made for: heads up to a width, by how many rows or keys.
type backwardShape struct {
	flashShape
	keys bool // whose gradients are computed
}

var (
	backwardQueries = []backwardShape{{flashShape{64, 64}, false}, {flashShape{128, 64}, false}, {flashShape{256, 32}, false}}
	backwardKeys    = []backwardShape{{flashShape{64, 64}, true}, {flashShape{128, 32}, true}, {flashShape{256, 32}, true}}
)

var backwardKernels = func() map[backwardShape]*kit.Kernel {
	all := map[backwardShape]*kit.Kernel{}
	for _, s := range append(append([]backwardShape{}, backwardQueries...), backwardKeys...) {
		name, what := "attention_dq", "rows of queries over all keys of one head"
		if s.keys {
			name, what = "attention_dk_dv", "keys and values of one head over all queries that share it"
		}
		all[s] = kit.Register(kit.Kernel{Family: "attention_backward", Name: fmt.Sprintf("%s_%d", name, s.width), Block: [3]int{flashThreads, 1, 1},
			Doc: "Gradients of " + what + ". Block = (batch · heads of keys + head) · tiles + tile, the longest first.", Params: s.params(),
			Build: func(k *ptx.Kernel) {
				k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
				newBackwardBuilder(k, s).Build()
			}})
	}
	return all
}()

// backwardParams are those of the gradients. Scale and Cap are for powers of two, Gain is the scale of scores.
type backwardParams struct {
	attentionSizes
	Scale, Cap, Gain   float32
	Q, K, V, DY, Stats kit.Buffer   // Stats is from attention_stats
	Lengths            kit.Buffer   `of:"s32"`
	OfQueries          []kit.Buffer `names:"dq"`
	OfKeys             []kit.Buffer `names:"dk,dv"`
}

func (s backwardShape) params() (p backwardParams) {
	if s.keys {
		p.OfKeys = make([]kit.Buffer, 2)
	} else {
		p.OfQueries = make([]kit.Buffer, 1)
	}
	return p
}

type backwardBuilder struct {
	flashBuilder
	backward backwardShape
	gain     scalar.Float
	dy       ptx.Ptr[ptx.Global, float32]
	stats    ptx.Ptr[ptx.Global, float32]
	facts    ptx.Ptr[ptx.Shared, float32]
	results  []ptx.Ptr[ptx.Global, float32] // dq, or dk and dv
	all      [][]scalar.Variables[float32]  // accumulators of each result
}

func newBackwardBuilder(k *ptx.Kernel, s backwardShape) *backwardBuilder {
	b := &backwardBuilder{backward: s}
	b.flashShape = s.flashShape
	of := s.params()
	p := kit.NewParams(k, &of)
	b.block = newBlock(p, &of.attentionSizes, &of.Scale, &of.Cap)
	b.gain = kit.Read(p, &of.Gain)
	pointer := func(field *kit.Buffer) ptx.Ptr[ptx.Global, float32] { return kit.Ptr[float32](p, field, ptx.Align(16)) }
	b.q, b.keys, b.vals, b.dy, b.stats = pointer(&of.Q), pointer(&of.K), pointer(&of.V), pointer(&of.DY), pointer(&of.Stats)
	b.lengths = kit.Ptr[int32](p, &of.Lengths)
	for _, fields := range [][]kit.Buffer{of.OfQueries, of.OfKeys} {
		for i := range fields {
			b.results = append(b.results, pointer(&fields[i]))
		}
	}
	b.stage = ptx.SharedArray[float32](k, "stage", 4096, ptx.Align(16))
	b.weights = ptx.SharedArray[float32](k, "weights", s.rows*flashPitch, ptx.Align(16))
	b.facts = ptx.SharedArray[float32](k, "facts", 4*flashKeys, ptx.Align(16))
	return b
}

// Build writes the kernel.
func (b *backwardBuilder) Build() {
	k := b.K
	b.tid = k.Tid(ptx.X)
	b.tx, b.ty = b.tid.And(15), b.tid.Shr(4)
	if b.backward.keys {
		b.placeKeys()
	} else {
		b.Place(b.rows)
		b.loadFacts(b.first, b.rows)
	}
	for range b.results {
		var acc []scalar.Variables[float32]
		for range b.mine() {
			acc = append(acc, scalar.Zeros(k, b.width/16))
		}
		b.all = append(b.all, acc)
	}
	var mine [][2]ptx.Reg[uint32]
	for i := range b.rows * flashDepth / 4 / flashThreads {
		if r := b.stagedRow(i); b.backward.keys {
			mine = append(mine, b.keyBefore(b.first.Add(r), unsigned(k, b.used)))
		} else {
			mine = append(mine, b.row(b.first.Add(r)))
		}
	}
	ptx.For(k, b.from, b.to, flashKeys, func(tile ptx.Reg[uint32]) {
		p, ds := b.zeros(), b.zeros()
		if b.backward.keys {
			b.loadFacts(tile, flashKeys) // barriers of the tile before lie after the last look at what was there
			theirs := b.rowsOf(tile, b.row)
			b.products(p, b.keys, b.q, mine, theirs)
			b.products(ds, b.vals, b.dy, mine, theirs)
			b.weigh(tile, p, ds)
			b.collect(1, p, b.dy, tile, b.row)
			b.collect(0, ds, b.q, tile, b.row)
		} else {
			theirs := b.rowsOf(tile, b.key)
			b.products(p, b.q, b.keys, mine, theirs)
			b.products(ds, b.dy, b.vals, mine, theirs)
			b.weigh(tile, p, ds)
			b.collect(0, ds, b.keys, tile, b.key)
		}
	}, ptx.NoUnroll())
	b.Write()
}

// placeKeys finds out what a block of keys is to do: from and to are rows.
func (b *backwardBuilder) placeKeys() {
	k := b.K
	rest, tile := b.Divisor(&b.at.Tiles).Split(k, k.Ctaid(ptx.X)) // with causal masks the first are the longest
	b.find(b.Divisor(&b.at.KVHeads).Split(k, rest))
	b.first = tile.Mul(b.rows)
	first := ptx.Bitcast[int32](b.first)
	last := first.Add(b.rows).Min(b.used).Sub(1)
	n, window := b.signed(&b.at.N), b.signed(&b.at.Window)
	query := func(key ptx.Reg[int32]) ptx.Reg[int32] { return key.Sub(b.used.Sub(n)) } // at its position
	from := ptx.Select(b.flag(&b.at.Causal), query(first).Max(0), 0)
	oldest := query(first).Sub(window).Add(1)
	newest := query(last).Min(n.Sub(window)).Add(window) // query + window without overflow
	from = ptx.Select(b.flag(&b.at.Window), from.Max(oldest), from)
	to := from.Max(ptx.Select(b.flag(&b.at.Window), newest, n))
	to = ptx.Select(first.Lt(b.used), to, from)
	group := b.Divided(&b.at.Group)
	b.from, b.to = unsigned(k, from).Mul(group), unsigned(k, to).Mul(group)
}

// row is where row r begins, in elements, and its length: 0 where there is no such row.
func (b *backwardBuilder) row(r ptx.Reg[uint32]) [2]ptx.Reg[uint32] {
	width := b.U32(&b.at.Width)
	i, head := b.queryOf(r, b.head)
	row := b.queryRow(b.batch, i, head)
	return [2]ptx.Reg[uint32]{row.Mul(width), ptx.Select(r.Lt(b.U32(&b.at.Rows)), width, 0)}
}

// loadFacts puts into shared memory what is known of rows from the first on: their stats, and the keys that they see.
func (b *backwardBuilder) loadFacts(first ptx.Reg[uint32], rows int) {
	k := b.K
	k.If(b.tid.Lt(rows), func() {
		r := first.Add(b.tid)
		inside := r.Lt(b.U32(&b.at.Rows))
		i, head := b.queryOf(r, b.head)
		heads := b.batch.Mad(b.U32(&b.at.Heads), head)
		at := b.stats.At(heads.Mad(b.U32(&b.at.N), i).MulWide(2))
		log, mean := ptx.LoadIf(inside, at, 0), ptx.LoadIf(inside, at.At(1), 0)
		p := b.rowPosition(r, b.used)
		from, to := b.seenFrom(p), ptx.Select(inside, b.seenTo(p, b.used), 0)
		place := b.facts.At(b.tid)
		for n, x := range [4]scalar.Float{ptx.Bitcast[float32](from), ptx.Bitcast[float32](to), log, mean} {
			place.At(n * flashKeys).Store(x)
		}
	})
	k.Barrier()
}

// weigh makes weights of products, and gradients of scores, as far as scores are scaled.
func (b *backwardBuilder) weigh(tile ptx.Reg[uint32], p, ds []scalar.Variables[float32]) {
	k := b.K
	b.eachQuery(func(facts ptx.Ptr[ptx.Shared, float32], pairs [][2]int) {
		mean := facts.At(3 * flashKeys).Load()
		for _, at := range pairs {
			x, d := p[at[0]][at[1]], ds[at[0]][at[1]]
			x.Set(x.Get().Mul(b.scale))
			d.Set(d.Get().Sub(mean))
		}
	})
	k.If(b.cap.Ne(0), func() { // the slope of c·tanh(s/c) is 1 − tanh²
		for i := range p {
			for j, x := range p[i] {
				t := b.Tanh(x.Get())
				x.Set(b.cap.Mul(t))
				ds[i][j].Set(ds[i][j].Get().Mul(t.Neg().Fma(t, 1)))
			}
		}
	})
	b.eachQuery(func(facts ptx.Ptr[ptx.Shared, float32], pairs [][2]int) {
		log := facts.At(2 * flashKeys).Load()
		from, to := ptx.Bitcast[uint32](facts.Load()), ptx.Bitcast[uint32](facts.At(flashKeys).Load())
		for _, at := range pairs {
			x, d := p[at[0]][at[1]], ds[at[0]][at[1]]
			var key ptx.Reg[uint32]
			if b.backward.keys {
				key = b.first.Add(b.ty.Add(8 * at[0]))
			} else {
				key = tile.Add(b.tx.Add(16 * at[1]))
			}
			see := key.Ge(from).And(key.Lt(to))
			x.Set(b.Where(see, b.Exp2(x.Get().Sub(log)), ptx.F32(0)))
			d.Set(b.Where(see, x.Get().Mul(d.Get()), ptx.F32(0)))
		}
	})
}

// eachQuery calls f for each of the thread's queries, with what is known of it and the places of its products.
func (b *backwardBuilder) eachQuery(f func(facts ptx.Ptr[ptx.Shared, float32], pairs [][2]int)) {
	if b.backward.keys {
		mine := b.facts.At(b.tx)
		for j := range flashKeys / 16 {
			var pairs [][2]int
			for i := range b.mine() {
				pairs = append(pairs, [2]int{i, j})
			}
			f(mine.At(16*j), pairs)
		}
		return
	}
	mine := b.facts.At(b.ty)
	for i := range b.mine() {
		var pairs [][2]int
		for j := range flashKeys / 16 {
			pairs = append(pairs, [2]int{i, j})
		}
		f(mine.At(8*i), pairs)
	}
}

// collect adds rows of a tile, by weights, to the accumulators of a result.
func (b *backwardBuilder) collect(result int, weights []scalar.Variables[float32], from ptx.Ptr[ptx.Global, float32], tile ptx.Reg[uint32],
	at func(ptx.Reg[uint32]) [2]ptx.Reg[uint32]) {
	k := b.K
	to := b.weights.At(b.ty.Mad(flashPitch, b.tx))
	k.Barrier() // the weights there are no longer needed
	for i, row := range weights {
		for j, w := range row {
			to.At(8*i*flashPitch + 16*j).Store(w.Get())
		}
	}
	b.gather(b.all[result], from, tile, at)
}

// Write scales the gradients of queries and keys, and stores all.
func (b *backwardBuilder) Write() {
	for i := range b.mine() {
		r := b.ty.Add(8 * i)
		var row [2]ptx.Reg[uint32]
		if b.backward.keys {
			row = b.keyBefore(b.first.Add(r), b.U32(&b.at.Capacity))
		} else {
			row = b.row(b.first.Add(r))
		}
		for n, acc := range b.all {
			for j := 0; j < b.width/16; j += 4 {
				x := [4]scalar.Float(acc[i][j : j+4].Get())
				for c := range x {
					if n == 0 {
						x[c] = x[c].Mul(b.gain)
					}
				}
				b.store(b.results[n], row, b.tx.Mad(4, 16*j), x)
			}
		}
	}
}

package attention

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/softmax"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// Attention as in FlashAttention-2 (Dao, 2023) without tensor cores: a block has rows of queries, of all heads that share a head of
// keys, and goes over tiles of keys with the maximum and the sum of what it has seen. 8 × 16 threads have rows/8 rows and four
// keys of a tile each, then width/16 columns of the result.
const (
	flashThreads = 128
	flashKeys    = 64 // of a tile
	flashDepth   = 32 // elements of queries and keys that are multiplied at a time
	flashPitch   = flashKeys + 16
)

// flashShape is what a kernel is made for: heads up to a width, by how many rows.
type flashShape struct{ width, rows int }

var flashShapes = []flashShape{{64, 64}, {128, 64}, {256, 32}}

var flashKernels = func() map[flashShape]*kit.Kernel {
	all := map[flashShape]*kit.Kernel{}
	for _, s := range flashShapes {
		all[s] = kit.Register(kit.Kernel{Family: "attention", Name: fmt.Sprintf("attention_%d", s.width), Block: [3]int{flashThreads, 1, 1},
			Doc: "Attention of rows of queries over all keys of one head. Block = (batch · heads of keys + head) · tiles + tile, the " +
				"last tile first.",
			Params: flashParams{},
			Build:  func(k *ptx.Kernel) { newFlashBuilder(k, s).Build() }})
	}
	return all
}()

// flashParams are those of attention and attention_mma.
type flashParams struct {
	attentionSizes
	Scale, Cap float32
	Q, K, V    kit.Buffer `of:"numbers"`
	Lengths    kit.Buffer `of:"s32"`
	Y          kit.Buffer `of:"numbers"`
	LSE        kit.Buffer // if it is wanted
}

type flashBuilder struct {
	block
	flashShape
	q, keys, vals  ptx.Ptr[ptx.Global, float32]
	y, lse         ptx.Ptr[ptx.Global, float32]
	stage, weights ptx.Ptr[ptx.Shared, float32]

	tid, tx, ty ptx.Reg[uint32]
	seen        []softmax.Running // of the thread's rows
	acc         []scalar.Variables[float32]
}

func newFlashBuilder(k *ptx.Kernel, s flashShape) *flashBuilder {
	var of flashParams
	p := kit.NewParams(k, &of)
	b := &flashBuilder{block: newBlock(p, &of.attentionSizes, &of.Scale, &of.Cap), flashShape: s}
	align := ptx.Align(16)
	b.q, b.keys, b.vals = kit.Ptr[float32](p, &of.Q, align), kit.Ptr[float32](p, &of.K, align), kit.Ptr[float32](p, &of.V, align)
	b.lengths = kit.Ptr[int32](p, &of.Lengths)
	b.y, b.lse = kit.Ptr[float32](p, &of.Y, align), kit.Ptr[float32](p, &of.LSE)
	b.stage = ptx.SharedArray[float32](k, "stage", 4096, ptx.Align(16))
	b.weights = ptx.SharedArray[float32](k, "weights", s.rows*flashPitch, ptx.Align(16))
	return b
}

func (b *flashBuilder) mine() int { return b.rows / 8 } // rows of a thread

// Build writes the kernel.
func (b *flashBuilder) Build() {
	k := b.K
	b.tid = k.Tid(ptx.X)
	b.tx, b.ty = b.tid.And(15), b.tid.Shr(4)
	b.Place(b.rows)
	for range b.mine() {
		b.seen = append(b.seen, softmax.OfScores(k, b.Exp2).Start())
		b.acc = append(b.acc, scalar.Zeros(k, b.width/16))
	}
	var queries [][2]ptx.Reg[uint32]
	for i := range b.rows * flashDepth / 4 / flashThreads {
		queries = append(queries, b.query(b.stagedRow(i)))
	}
	ptx.For(k, b.from, b.to, flashKeys, func(tile ptx.Reg[uint32]) {
		s := b.zeros()
		b.products(s, b.q, b.keys, queries, b.rowsOf(tile, b.key))
		b.mask(tile, s)
		b.weigh(s)
		b.gather(b.acc, b.vals, tile, b.key)
	}, ptx.NoUnroll())
	b.Write()
}

// query is where row r of the block begins, in elements, and its length: 0 where there is no such row.
func (b *flashBuilder) query(r ptx.Reg[uint32]) [2]ptx.Reg[uint32] {
	r, row := b.rowAt(r)
	width := b.U32(&b.at.Width)
	return [2]ptx.Reg[uint32]{row.Mul(width), ptx.Select(r.Lt(b.U32(&b.at.Rows)), width, 0)}
}

// key is that of a key's row: nothing of it is there after the last key.
func (b *flashBuilder) key(t ptx.Reg[uint32]) [2]ptx.Reg[uint32] { return b.keyBefore(t, b.to) }

// keyBefore is that of a key's row, of which nothing is there from key end on.
func (b *flashBuilder) keyBefore(t, end ptx.Reg[uint32]) [2]ptx.Reg[uint32] {
	capacity := b.U32(&b.at.Capacity)
	slot := b.slot(t, capacity)
	width := b.U32(&b.at.Width)
	row := b.batch.Mad(capacity, slot).Mad(b.Divided(&b.at.KVHeads), b.head)
	return [2]ptx.Reg[uint32]{row.Mul(width), ptx.Select(t.Lt(end), width, 0)}
}

// stagedRow is the row of the i-th four elements that a thread loads of a stage of flashDepth columns.
func (b *flashBuilder) stagedRow(i int) ptx.Reg[uint32] {
	return b.tid.Shr(3).Add(i * flashThreads / 8)
}

// piece of four elements of a row, from column c on, that a thread copies to shared memory: zeros after the row's end.
type flashPiece struct {
	to   ptx.Ptr[ptx.Shared, float32]
	from ptx.Ptr[ptx.Global, float32]
	row  [2]ptx.Reg[uint32]
	c    ptx.Reg[uint32]
}

// stagePieces loads all pieces before it stores them: they are under way at once.
func (b *flashBuilder) stagePieces(pieces []flashPiece) {
	k := b.K
	held := make([]scalar.Variables[float32], len(pieces))
	for i := range pieces {
		held[i] = scalar.Zeros(k, 4)
	}
	at := func(p flashPiece) ptx.Ptr[ptx.Global, float32] { return p.from.At(p.row[0].Add(p.c)) }
	k.If(b.flag(&b.at.Vector), func() {
		for i, p := range pieces {
			from := at(p)
			k.When(p.c.Lt(p.row[1]), func() {
				four := from.Load4(ptx.ReadOnly)
				held[i].Set(four[:])
			})
		}
	}, func() {
		for i, p := range pieces {
			from := at(p)
			for j, v := range held[i] {
				v.Set(ptx.LoadIf(p.c.Add(j).Lt(p.row[1]), from.At(j), 0))
			}
		}
	})
	for i, p := range pieces {
		p.to.Store4([4]scalar.Float(held[i].Get()))
	}
}

// rowsOf are the rows of a tile that a thread loads of each stage.
func (b *flashBuilder) rowsOf(tile ptx.Reg[uint32], at func(ptx.Reg[uint32]) [2]ptx.Reg[uint32]) (rows [][2]ptx.Reg[uint32]) {
	for i := range flashKeys * flashDepth / 4 / flashThreads {
		rows = append(rows, at(tile.Add(b.stagedRow(i))))
	}
	return rows
}

// zeros are sums for the thread's rows and their partners in a tile, of which the j-th is 16·j further.
func (b *flashBuilder) zeros() []scalar.Variables[float32] {
	s := make([]scalar.Variables[float32], b.mine())
	for i := range s {
		s[i] = scalar.Zeros(b.K, flashKeys/16)
	}
	return s
}

// products adds those of the thread's rows of x and their partners of y to s; mine and theirs are the rows that it loads.
func (b *flashBuilder) products(s []scalar.Variables[float32], x, y ptx.Ptr[ptx.Global, float32], mine, theirs [][2]ptx.Reg[uint32]) {
	k := b.K
	const chunks = flashDepth / 4
	column := b.tid.And(chunks - 1)
	keysAt := b.stage.At(b.rows * flashDepth)
	ptx.For(k, 0, b.U32(&b.at.Width), flashDepth, func(c ptx.Reg[uint32]) {
		at := column.Mad(4, c)
		var pieces []flashPiece
		for i, row := range mine {
			to := b.stagedRow(i).Mad(flashDepth, column.Shl(2))
			pieces = append(pieces, flashPiece{b.stage.At(to), x, row, at})
		}
		for i, row := range theirs {
			r := b.stagedRow(i)
			place := column.Xor(r.And(chunks - 1)).Shl(2) // so that neighbours among keys meet other banks
			pieces = append(pieces, flashPiece{keysAt.At(r.Mad(flashDepth, place)), y, row, at})
		}
		k.Barrier()
		b.stagePieces(pieces)
		k.Barrier()
		mine := b.stage.At(b.ty.Mul(flashDepth))
		theirs := keysAt.At(b.tx.Mul(flashDepth))
		ptx.For(k, 0, chunks, 1, func(e ptx.Reg[uint32]) {
			place := theirs.At(e.Xor(b.tx.And(chunks - 1)).Shl(2))
			row := mine.At(e.Shl(2))
			var y [flashKeys / 16][4]scalar.Float
			for j := range y {
				y[j] = place.At(16 * j * flashDepth).Load4()
			}
			for i := range s {
				x := row.At(8 * i * flashDepth).Load4()
				for j := range y {
					for n := range x {
						s[i][j].Set(x[n].Fma(y[j][n], s[i][j].Get()))
					}
				}
			}
		}, ptx.NoUnroll())
	}, ptx.NoUnroll())
}

// mask scales and caps scores, and hides what rows do not see.
func (b *flashBuilder) mask(tile ptx.Reg[uint32], s []scalar.Variables[float32]) {
	k := b.K
	for _, row := range s {
		for _, x := range row {
			x.Set(x.Get().Mul(b.scale))
		}
	}
	k.If(b.cap.Ne(0), func() {
		for _, row := range s {
			for _, x := range row {
				x.Set(b.cap.Mul(b.Tanh(x.Get())))
			}
		}
	})
	// All rows see what the first and the last one see.
	end := tile.Add(flashKeys)
	whole := tile.Ge(b.seenFrom(b.rowPosition(b.last(b.rows), b.used))).And(end.Le(b.seenTo(b.rowPosition(b.first, b.used), b.used)))
	k.If(whole.Not(), func() {
		for i, row := range s {
			p := b.rowPosition(b.first.Add(b.ty.Add(8*i)), b.used)
			from, to := b.seenFrom(p), b.seenTo(p, b.used)
			for j, x := range row {
				key := tile.Add(b.tx.Add(16 * j))
				x.Set(b.Where(key.Ge(from).And(key.Lt(to)), x.Get(), ptx.F32(math.Inf(-1))))
			}
		}
	})
}

// weigh makes weights of scores, in shared memory, and rescales what has been summed up before.
func (b *flashBuilder) weigh(s []scalar.Variables[float32]) {
	k := b.K
	at := b.weights.At(b.ty.Mad(flashPitch, b.tx))
	k.Barrier() // the weights of the tile before are no longer needed
	for i, row := range s {
		base, f := b.seen[i].Update(threadgroup.WarpReduce(largest(row.Get()), 16, maximum))
		var w []scalar.Float
		for j, x := range row {
			w = append(w, b.seen[i].Exp(x.Get(), base))
			at.At(8*i*flashPitch + 16*j).Store(w[j])
		}
		b.seen[i].Add(f, w...)
		for _, a := range b.acc[i] {
			a.Set(a.Get().Mul(f))
		}
	}
}

// gather adds a tile's rows of what lies at from to accumulators, by their weights.
func (b *flashBuilder) gather(acc []scalar.Variables[float32], from ptx.Ptr[ptx.Global, float32], tile ptx.Reg[uint32],
	at func(ptx.Reg[uint32]) [2]ptx.Reg[uint32]) {
	k := b.K
	some := 4096 / b.width // values that the stage holds
	columns := b.width / 4
	ptx.For(k, 0, flashKeys, some, func(part ptx.Reg[uint32]) {
		var pieces []flashPiece
		for i := range some * columns / flashThreads {
			e := b.tid.Add(i * flashThreads)
			t := tile.Add(part).Add(e.Shr(scalar.Log2(columns)))
			c := e.And(columns - 1).Shl(2)
			pieces = append(pieces, flashPiece{b.stage.At(e.Shl(2)), from, at(t), c})
		}
		k.Barrier()
		b.stagePieces(pieces)
		k.Barrier()
		weights := b.weights.At(b.ty.Mad(flashPitch, part))
		values := b.stage.At(b.tx.Shl(2))
		ptx.For(k, 0, some, 4, func(e ptx.Reg[uint32]) {
			w := make([][4]scalar.Float, b.mine())
			for i := range w {
				w[i] = weights.At(e).At(8 * i * flashPitch).Load4()
			}
			value := values.At(e.Mul(b.width))
			for n := range 4 {
				for j := 0; j < b.width/16; j += 4 {
					v := value.At(n*b.width + 16*j).Load4()
					for i, sums := range acc {
						for c := range v {
							sums[j+c].Set(w[i][n].Fma(v[c], sums[j+c].Get()))
						}
					}
				}
			}
		}, ptx.NoUnroll())
	}, ptx.NoUnroll())
}

// Write divides by the sums and stores.
func (b *flashBuilder) Write() {
	k := b.K
	for i, acc := range b.acc {
		sum := threadgroup.WarpReduce(b.seen[i].Sum.Get(), 16, threadgroup.Plus)
		scale, none := b.seen[i].Finish(sum)
		r := b.ty.Add(8 * i)
		row := b.query(r)
		for j := 0; j < b.width/16; j += 4 {
			var y [4]scalar.Float
			for c := range y {
				y[c] = acc[j+c].Get().Mul(scale)
			}
			b.store(b.y, row, b.tx.Mad(4, 16*j), y)
		}
		mine := b.tx.Eq(0).And(row[1].Ne(0))
		k.If(mine.And(b.flag(&b.at.Direct)), func() {
			b.storeLSE(b.lse, r, b.seen[i].Max.Get(), sum, none)
		})
	}
}

// store writes four elements of a row.
func (b *flashBuilder) store(to ptx.Ptr[ptx.Global, float32], row [2]ptx.Reg[uint32], c ptx.Reg[uint32], y [4]scalar.Float) {
	k := b.K
	at := row[0].Add(c)
	to = to.At(at)
	k.If(b.flag(&b.at.Vector), func() { k.When(c.Lt(row[1]), func() { to.Store4(y) }) }, func() {
		for i, x := range y {
			ptx.StoreIf(c.Add(i).Lt(row[1]), to.At(i), x)
		}
	})
}

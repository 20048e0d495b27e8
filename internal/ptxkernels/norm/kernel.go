package norm

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// statistic is what a kernel of family rows gathers of a row, and how it changes the row's elements by that.
type statistic struct {
	neutral float64 // what stands where a row has no element
	// take is the partial result of the elements of a rowTile, to which g belong with gradient; merge joins two of them.
	take  func(x, g []scalar.Float, l rowTile) []scalar.Float
	empty []float32 // a partial result of nothing
	merge scalar.Merge[float32]
	// coefficients are what apply needs of the whole row.
	coefficients func(acc []scalar.Float) []scalar.Float
	// apply changes element x, where the vectors have the elements v. With gradient v is g noSecond.
	apply func(x scalar.Float, coefficients, v []scalar.Float) scalar.Float
}

// What a kernel of rows does with its tasks.
const (
	wholeRows uint32 = iota // gathers and writes rows, each of which is one task
	partRows                // leaves the partial results of tasks
	writeRows               // merges the partial results of its row, and writes
)

const (
	KeptUnits = 8 // accesses of four elements that a lane can keep in registers
	// Those that it has under way where it cannot keep them: of neighbours, and of single elements.
	loopVectors, loopSingles = 4, 2
)

// second is what a second matrix m is to rows.
type second uint8

const (
	noSecond second = iota // there is none
	added                  // x + m takes the place of x, and is a result, too
	gated                  // silu(m) multiplies the result
	Gradient               // m·v takes part as g: m is the gradient of a norm's result. Two coefficients of each row are a result
)

// rowsKernel is a kernel over the rows of a matrix: x and y, and vectors as long as a row. x is read once where a lane's share
// of the row fits its registers. y may be x. Its parameters are work.args; u32 stage; u32 units, 1 or keptUnits if these hold a
// row, else 0; what body declares; f32* x, m if there is a second matrix, the vectors, the sum if m is added, y, the coefficients
// if m is a gradient; f32* partial results of tasks, unused with wholeRows.
func rowsKernel(name, doc string, m second, vectors int, body func(t threadgroup.Group) statistic) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "rows", Name: name, Doc: doc, Block: [3]int{threadgroup.Threads, 1, 1}, BuildAround: func(k *ptx.Kernel, h *kit.Prologue, _ *kit.Epilogue) {
		b := rowsBuilder{Group: threadgroup.Of(k), second: m}
		stage, units := ptx.Param[uint32](k, "stage"), ptx.Param[uint32](k, "units")
		b.statistic = body(b.Group)
		b.shared = threadgroup.SharedFor[float32](k, len(b.empty))
		if h != nil {
			b.head = threadgroup.PrologueOf(b.Group, h)
		} else {
			b.x = threadgroup.RowOf(b.Group, ptx.PointerParam[float32](k, "x"))
		}
		if m != noSecond {
			b.m = threadgroup.RowOf(b.Group, ptx.PointerParam[float32](k, "m"))
		}
		for i := range vectors {
			b.vectors = append(b.vectors, ptx.PointerParam[float32](k, string(rune('v'+i))))
		}
		if m == added {
			b.sum = threadgroup.RowOf(b.Group, ptx.PointerParam[float32](k, "sum"))
		}
		b.y = threadgroup.RowOf(b.Group, ptx.PointerParam[float32](k, "y"))
		if m == Gradient {
			b.norms = ptx.PointerParam[float32](k, "norms")
		}
		partial := ptx.PointerParam[float32](k, "partial")
		if h != nil {
			k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
		}
		b.from = b.Start.Add(ptx.Select(b.Vector(), b.Lane.Shl(2), b.Lane))
		b.stride = b.Lanes.MulWide(4)
		k.If(units.Eq(1), func() { b.kept(1) }, func() {
			k.If(units.Ne(0), func() { b.kept(KeptUnits) }, func() { b.long(stage, partial) })
		})
	}})
}

// rowsBuilder writes a kernel of rows. A lane accesses units of four elements: neighbours, if the work is in vectors, else as
// far from each other as the team has lanes.
type rowsBuilder struct {
	threadgroup.Group
	statistic
	second
	shared  ptx.Ptr[ptx.Shared, float32]
	head    *threadgroup.Prologue        // in place of x; nil if there is none
	x, m    ptx.Ptr[ptx.Global, float32] // the task's row
	sum, y  ptx.Ptr[ptx.Global, float32]
	norms   ptx.Ptr[ptx.Global, float32] // of all rows
	vectors []ptx.Ptr[ptx.Global, float32]
	from    ptx.Reg[uint32] // first element of a lane
	stride  ptx.Reg[uint64] // bytes from one element of a unit to the next, if they are no neighbours
}

// rowTile is some units of a lane. What ptxas keeps of it is x, two words, and a pointer that moves on: not every address.
type rowTile struct {
	*rowsBuilder
	at     ptx.Reg[uint32] // first element
	inside ptx.Reg[uint32] // a bit for each element: does the task have it?
	x, g   scalar.Variables[float32]
}

// Has tells whether element i exists.
func (l rowTile) Has(i int) ptx.Reg[bool] {
	return l.inside.And(uint32(1) << i).Ne(0)
}

// tileAt is the units from element at on, neutral as yet.
func (b *rowsBuilder) tileAt(at ptx.Reg[uint32], units int) rowTile {
	k, l := b.K, rowTile{rowsBuilder: b, at: at}
	for range 4 * units {
		l.x = append(l.x, ptx.VarOf(k, ptx.F32(b.neutral)))
		if b.second == Gradient {
			l.g = append(l.g, ptx.VarOf(k, ptx.F32(0)))
		}
	}
	// Accesses of single elements and of four follow each other at distances that are powers of two.
	log := b.Log()
	unit := ptx.Select(b.Vector(), ptx.U32(2), 0)
	log = log.Add(unit)
	left := b.End.Max(at).Sub(at)
	accesses := left.Add(ptx.U32(1).Shl(log).Sub(1)).Shr(log)
	l.inside = ptx.U32(1).Shl(accesses.Shl(unit)).Sub(1) // all ones from 32 elements on
	return l
}

// each walks over the units with pointers to them.
func (l rowTile) each(p []ptx.Ptr[ptx.Global, float32], f func(j int, p []ptx.Ptr[ptx.Global, float32])) {
	var at []*ptx.PtrVar[ptx.Global, float32]
	for _, p := range p {
		at = append(at, ptx.PtrVarOf(p.At(l.at)))
	}
	for j := range len(l.x) / 4 {
		var p []ptx.Ptr[ptx.Global, float32]
		for _, v := range at {
			if j > 0 {
				v.Set(v.Get().Bytes(l.stride.Shl(2)))
			}
			p = append(p, v.Get())
		}
		f(j, p)
	}
}

// sources are the pointers from which a rowTile is loaded.
func (b *rowsBuilder) sources() []ptx.Ptr[ptx.Global, float32] {
	switch b.second {
	case added:
		return []ptx.Ptr[ptx.Global, float32]{b.x, b.m}
	case Gradient:
		return []ptx.Ptr[ptx.Global, float32]{b.x, b.m, b.vectors[0]}
	}
	return []ptx.Ptr[ptx.Global, float32]{b.x}
}

// Set makes element i what its sources have there.
func (l rowTile) Set(i int, from []scalar.Float) {
	switch l.second {
	case added:
		l.x[i].Set(from[0].Add(from[1]))
	case Gradient:
		l.x[i].Set(from[0])
		l.g[i].Set(from[1].Mul(from[2]))
	default:
		l.x[i].Set(from[0])
	}
}

// loadHead reads what the task has of a rowTile with a head, by fours or singly.
func (l rowTile) loadHead(vectors bool) {
	k, h := l.K, l.head
	at := ptx.VarOf(k, l.at) // the first element of a unit
	for j := range len(l.x) / 4 {
		if j > 0 {
			at.Set(l.Lanes.Mad(4, at.Get()))
		}
		first := at.Get()
		if vectors {
			k.If(l.Has(4*j), func() {
				for c, v := range h.Four(first) {
					l.x[4*j+c].Set(v)
				}
			})
			continue
		}
		for c := range 4 {
			k.If(l.Has(4*j+c), func() {
				l.x[4*j+c].Set(h.One(l.Lanes.Mad(c, first)))
			})
		}
	}
}

// loadVectors and loadSingles read what the task has of a rowTile.
func (l rowTile) loadVectors() {
	if l.head != nil {
		l.loadHead(true)
		return
	}
	l.each(l.sources(), func(j int, p []ptx.Ptr[ptx.Global, float32]) {
		l.K.When(l.Has(4*j), func() {
			var from [4][]scalar.Float
			for _, p := range p {
				for c, x := range p.Load4() {
					from[c] = append(from[c], x)
				}
			}
			for c := range from {
				l.Set(4*j+c, from[c])
			}
		})
	})
}

func (l rowTile) loadSingles() {
	if l.head != nil {
		l.loadHead(false)
		return
	}
	l.each(l.sources(), func(j int, p []ptx.Ptr[ptx.Global, float32]) {
		for c := range 4 {
			for i := range p {
				if c > 0 {
					p[i] = p[i].Bytes(l.stride)
				}
			}
			l.K.When(l.Has(4*j+c), func() {
				var from []scalar.Float
				for _, p := range p {
					from = append(from, p.Load())
				}
				l.Set(4*j+c, from)
			})
		}
	})
}

// sinks are the pointers that storing needs: first those that are written, n of them.
func (b *rowsBuilder) sinks() (p []ptx.Ptr[ptx.Global, float32], n int) {
	switch p = append(p, b.y); b.second {
	case added:
		return append(append(p, b.sum), b.vectors...), 2
	case gated:
		return append(append(p, b.vectors...), b.m), 1
	case Gradient:
		return p, 1
	}
	return append(p, b.vectors...), 1
}

// result is what becomes of element i, where the pointers after those that are written have v.
func (l rowTile) result(i int, coefficients, v []scalar.Float) scalar.Float {
	c := scalar.Math{K: l.K}
	switch last := len(v) - 1; l.second {
	case gated:
		return l.apply(l.x[i].Get(), coefficients, v[:last]).Mul(c.PlainSiLU(v[last]))
	case Gradient:
		return l.apply(l.x[i].Get(), coefficients, []scalar.Float{l.g[i].Get()})
	}
	return l.apply(l.x[i].Get(), coefficients, v)
}

// storeVectors and storeSingles write what becomes of a rowTile, unit by unit: branches keep the compiler from having all on
// the way at once.
func (l rowTile) storeVectors(coefficients []scalar.Float) {
	k := l.K
	sinks, written := l.sinks()
	l.each(sinks, func(j int, p []ptx.Ptr[ptx.Global, float32]) {
		k.If(l.Has(4*j), func() {
			var v [4][]scalar.Float
			for _, p := range p[written:] {
				for c, e := range p.Load4() {
					v[c] = append(v[c], e)
				}
			}
			var y [4]scalar.Float
			for c := range y {
				y[c] = l.result(4*j+c, coefficients, v[c])
			}
			p[0].Store4(y)
			if l.second == added {
				p[1].Store4([4]scalar.Float(l.x[4*j : 4*j+4].Get()))
			}
		})
	})
}

func (l rowTile) storeSingles(coefficients []scalar.Float) {
	k := l.K
	sinks, written := l.sinks()
	l.each(sinks, func(j int, p []ptx.Ptr[ptx.Global, float32]) {
		k.If(l.Has(4*j), func() {
			for c := range 4 {
				for i := range p {
					if c > 0 {
						p[i] = p[i].Bytes(l.stride)
					}
				}
				store := func() {
					var v []scalar.Float
					for _, p := range p[written:] {
						v = append(v, p.Load())
					}
					p[0].Store(l.result(4*j+c, coefficients, v))
					if l.second == added {
						p[1].Store(l.x[4*j+c].Get())
					}
				}
				if c == 0 {
					store()
					continue
				}
				k.When(l.Has(4*j+c), store)
			}
		})
	})
}

// keepNorm leaves the first two coefficients of the task's row, which its first task writes.
func (b *rowsBuilder) keepNorm(coefficients []scalar.Float) {
	if b.second != Gradient {
		return
	}
	k := b.K
	first := b.Active.And(b.Lane.Or(b.Start).Eq(0))
	k.If(first, func() {
		at := b.norms.Bytes(b.Row.MulWide(8))
		at.Store2([2]scalar.Float{coefficients[0], coefficients[1]})
	})
}

// total is the team's partial result, the same in all lanes: they must not differ in the last bit either.
func (b *rowsBuilder) total(acc []scalar.Float) []scalar.Float {
	return threadgroup.Broadcast(b.Group, threadgroup.Reduce(b.Group, acc, b.shared, b.merge))
}

// kept changes rows that so many units per lane hold.
func (b *rowsBuilder) kept(units int) {
	l := b.tileAt(b.from, units)
	b.K.If(b.Vector(), l.loadVectors, l.loadSingles)
	coefficients := b.coefficients(b.total(b.take(l.x.Get(), l.g.Get(), l)))
	b.keepNorm(coefficients)
	b.K.If(b.Vector(), func() { l.storeVectors(coefficients) }, func() { l.storeSingles(coefficients) })
}

// Tiles walks over the tiles of a task, loaded; store writes one. A second walk should go backwards: it begins with what caches
// hold of the first.
func (b *rowsBuilder) Tiles(backwards bool, f func(l rowTile, store func(coefficients []scalar.Float))) {
	k := b.K
	walk := func(units int, g func(l rowTile)) func() {
		return func() {
			step := b.Lanes.Mul(4 * units) // a power of two
			place := func(at ptx.Reg[uint32]) ptx.Reg[uint32] { return at }
			if backwards {
				longest := b.End.Sub(1).Sub(b.from)
				last := b.from.Add(longest.And(ptx.U32(0).Sub(step)))
				both := b.from.Add(last)
				place = func(at ptx.Reg[uint32]) ptx.Reg[uint32] { return both.Sub(at) }
			}
			ptx.For(k, b.from, b.End, step, func(at ptx.Reg[uint32]) { g(b.tileAt(place(at), units)) }, ptx.NoUnroll())
		}
	}
	k.If(b.Vector(), walk(loopVectors, func(l rowTile) {
		l.loadVectors()
		f(l, l.storeVectors)
	}), walk(loopSingles, func(l rowTile) {
		l.loadSingles()
		f(l, l.storeSingles)
	}))
}

// long works on tasks of any length.
func (b *rowsBuilder) long(stage ptx.Reg[uint32], partial ptx.Ptr[ptx.Global, float32]) {
	k := b.K
	at := func(task ptx.Reg[uint32]) ptx.Ptr[ptx.Global, float32] {
		return partial.Bytes(task.MulWide(4 * len(b.empty)))
	}
	acc := scalar.VariablesOf(k, scalar.Constants(b.empty))
	k.If(stage.Eq(writeRows), func() {
		first := b.Row.Mul(b.Parts)
		ptx.For(k, b.Lane, b.Parts, b.Lanes, func(i ptx.Reg[uint32]) {
			p := at(first.Add(i))
			var other []scalar.Float
			for r := range b.empty {
				other = append(other, p.At(r).Load())
			}
			acc.Set(b.merge(acc.Get(), other))
		}, ptx.NoUnroll())
	}, func() {
		b.Tiles(false, func(l rowTile, _ func([]scalar.Float)) { acc.Set(b.merge(acc.Get(), b.take(l.x.Get(), l.g.Get(), l))) })
	})
	all := b.total(acc.Get())
	k.If(stage.Eq(partRows), func() {
		k.If(b.Lane.Eq(0), func() {
			for r, x := range all {
				at(b.Task).At(r).Store(x)
			}
		})
	}, func() {
		coefficients := b.coefficients(all)
		b.keepNorm(coefficients)
		b.Tiles(true, func(_ rowTile, store func([]scalar.Float)) { store(coefficients) })
	})
}

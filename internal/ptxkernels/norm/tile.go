package norm

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// rowTile is some units of a lane. What ptxas keeps of it is x, two words, and a pointer that moves on: not every address.
type rowTile struct {
	*rowsBuilder
	at     ptx.Reg[uint32] // first element
	inside ptx.Reg[uint32] // a bit for each element: does the task have it?
	known  int             // first elements that the task has
	whole  bool            // if it has the first, it has all of the first unit
	x, g   scalar.Variables[float32]
}

// tileAt is the units from element at on, neutral as yet but for the first that are known to be there.
func (b *rowsBuilder) tileAt(at ptx.Reg[uint32], units, known int) rowTile {
	k, l := b.K, rowTile{rowsBuilder: b, at: at, known: known}
	begin := func(i int, x float64) *ptx.Var[float32] {
		if i < known {
			return ptx.NewVar[float32](k)
		}
		return ptx.VarOf(k, ptx.F32(x))
	}
	for i := range 4 * units {
		l.x = append(l.x, begin(i, b.neutral))
		if b.second == Gradient {
			l.g = append(l.g, begin(i, 0))
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

// Has tells whether element i exists.
func (l rowTile) Has(i int) ptx.Reg[bool] {
	if l.whole && i < 4 {
		i = 0
	}
	return l.inside.And(uint32(1) << i).Ne(0)
}

// ifHas runs f if element i exists, by a branch or by predicates.
func (l rowTile) ifHas(i int, branch bool, f func()) {
	switch {
	case i < l.known:
		f()
	case branch:
		l.K.If(l.Has(i), f)
	default:
		l.K.When(l.Has(i), f)
	}
}

// partial is that of the tile's elements.
func (l rowTile) partial() []scalar.Float { return l.rowOp.partial(l.x.Get(), l.g.Get(), l) }

// each calls f for the accesses of as many elements as the width says: with the number of the first one, and pointers to it. Branches
// around units keep the compiler from having all under way at once.
func (l rowTile) each(width int, branches bool, p []ptx.Ptr[ptx.Global, float32], f func(i int, p []ptx.Ptr[ptx.Global, float32])) {
	var at []*ptx.PtrVar[ptx.Global, float32]
	for _, p := range p {
		at = append(at, ptx.PtrVarOf(p.At(l.at)))
	}
	for j := 0; j < len(l.x); j += 4 {
		var p []ptx.Ptr[ptx.Global, float32]
		for _, v := range at {
			if j > 0 {
				v.Set(v.Get().Bytes(l.stride.Shl(2)))
			}
			p = append(p, v.Get())
		}
		rest := func() {
			for i := j + width; i < j+4; i += width {
				for n := range p {
					p[n] = p[n].Bytes(l.stride)
				}
				if branches && l.whole && j == 0 {
					f(i, p)
				} else {
					l.ifHas(i, false, func() { f(i, p) })
				}
			}
		}
		l.ifHas(j, branches, func() {
			if f(j, p); branches {
				rest()
			}
		})
		if !branches {
			rest()
		}
	}
}

// elements loads neighbours from each pointer.
func elements(p []ptx.Ptr[ptx.Global, float32], width int) [][]scalar.Float {
	v := make([][]scalar.Float, width)
	for _, p := range p {
		for c, x := range scalar.LoadAll(p, width) {
			v[c] = append(v[c], x)
		}
	}
	return v
}

// load reads what the task has of the tile.
func (l rowTile) load(width int) {
	if l.prologue != nil {
		l.compute(width)
		return
	}
	l.each(width, false, l.loads, func(i int, p []ptx.Ptr[ptx.Global, float32]) {
		for c, v := range elements(p, width) {
			if l.second == added {
				v[0] = v[0].Add(v[1])
			}
			l.x[i+c].Set(v[0])
			if l.second == Gradient {
				l.g[i+c].Set(v[1].Mul(v[2]))
			}
		}
	})
}

// compute makes elements by the prologue.
func (l rowTile) compute(width int) {
	at := ptx.VarOf(l.K, l.at) // the first element of a unit
	for j := 0; j < len(l.x); j += 4 {
		if j > 0 {
			at.Set(l.Lanes.Mad(4, at.Get()))
		}
		first := at.Get()
		for c := 0; c < 4; c += width {
			l.ifHas(j+c, true, func() {
				i := first
				if c > 0 {
					i = l.Lanes.Mad(c, first)
				}
				l.x[j+c : j+c+width].Set(l.prologue.Load(width, i))
			})
		}
	}
}

// store writes what becomes of the tile.
func (l rowTile) store(width int, coefficients []scalar.Float) {
	written := len(l.stores)
	l.each(width, true, append(l.stores[:written:written], l.reads...), func(i int, p []ptx.Ptr[ptx.Global, float32]) {
		var y []scalar.Float
		for c, v := range elements(p[written:], width) {
			y = append(y, l.result(i+c, coefficients, v))
		}
		scalar.StoreAll(p[0], y)
		if l.second == added {
			scalar.StoreAll(p[1], l.x[i:i+width].Get())
		}
	})
}

// result is what becomes of element i, where reads have v.
func (l rowTile) result(i int, coefficients, v []scalar.Float) scalar.Float {
	x := l.x[i].Get()
	switch last := len(v) - 1; l.second {
	case gated:
		return l.apply(x, coefficients, v[:last]).Mul(scalar.Math{K: l.K}.PlainSiLU(v[last]))
	case Gradient:
		return l.apply(x, coefficients, []scalar.Float{l.g[i].Get()})
	}
	return l.apply(x, coefficients, v)
}

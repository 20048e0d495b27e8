package move

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Each thread of a kernel that moves words has several units: so many loads are under way at once. A warp's units are
// neighbours; the next of a thread is as many further as the block has threads.
const (
	moveThreads = 256
	moveUnits   = 4
)

var strided, strided4 = stridedKernel("strided", 1), stridedKernel("strided_4", 4)

// stridedParams are those of strided.
type stridedParams struct {
	Total int // units
	boxParams
	X, Y kit.Buffer `of:"u32"`
}

func stridedKernel(name string, unit int) *kit.Kernel {
	return kit.Define(kit.Kernel{Family: "move", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[Σ index·to] = x[Σ index·from] over a box of units, each of neighbouring words."},
		func(k *ptx.Kernel, p *kit.Params, of *stridedParams) {
			total, axes := p.U32(&of.Total), of.read(p, program.MaxRank)
			x, y := kit.Ptr[uint32](p, &of.X, ptx.Align(4*unit)), kit.Ptr[uint32](p, &of.Y, ptx.Align(4*unit))
			index, inside := unitsOf(k, total)
			from, to := axes.places(k, index)
			var words [moveUnits][]ptx.Reg[uint32]
			for j := range words {
				words[j] = loadUnit(k, unit, inside[j], unitAt(k, x, unit, from[j]), ptx.Imm(uint32(0)))
			}
			for j := range words {
				storeUnit(k, inside[j], unitAt(k, y, unit, to[j]), words[j])
			}
		})
}

// stridedBox moves a box of any strides: by units of 16 bytes where everything is a multiple of that, otherwise by words.
func stridedBox(s *kit.Step, b box) {
	kernel, unit := strided, 1
	if b.inQuads() {
		kernel, unit = strided4, 4
	}
	last := len(b.shape) - 1
	shape, from, to := slices.Clone(b.shape), slices.Clone(b.from), slices.Clone(b.to)
	shape[last] /= unit
	for d := range last {
		from[d], to[d] = from[d]/unit, to[d]/unit
	}
	total := program.Len(shape)
	s.Launch(kernel, moveGrid(total), stridedParams{total, boxParamsOf(program.MaxRank, shape, from, to), b.operand.Plus(4 * b.x0), kit.Out.Plus(4 * b.y0)})
}

// inQuads tells whether a box consists of units of 16 bytes, at multiples of that on both sides.
func (b box) inQuads() bool {
	last := len(b.shape) - 1
	words := []int{b.x0, b.y0, b.shape[last]}
	words = append(append(words, b.from[:last]...), b.to[:last]...)
	return b.rows() > 0 && !slices.ContainsFunc(words, func(n int) bool { return n%4 != 0 })
}

// moveGrid is the grid for n units of kernels that move words.
func moveGrid(n int) [3]int { return [3]int{kit.CeilDiv(n, moveUnits*moveThreads), 1, 1} }

// unitsOf is the indices of the units that a thread has, and which of them are below total.
func unitsOf(k *ptx.Kernel, total ptx.Reg[uint32]) (index []ptx.Reg[uint32], inside []ptx.Reg[bool]) {
	first := k.Ctaid(ptx.X).Mad(moveUnits*moveThreads, k.Tid(ptx.X))
	for j := range moveUnits {
		i := first.Add(uint32(j * moveThreads))
		index, inside = append(index, i), append(inside, i.Lt(total))
	}
	return index, inside
}

// unitAt is the place of unit i, a signed number.
func unitAt(k *ptx.Kernel, p ptx.Ptr[ptx.Global, uint32], unit int, i ptx.Reg[uint32]) ptx.Ptr[ptx.Global, uint32] {
	return p.Bytes(ptx.WideProduct[int64](ptx.Bitcast[int32](i), int32(4*unit)))
}

// loadUnit is the words of a unit, one or four; where not inside nothing is read and they are other.
func loadUnit(k *ptx.Kernel, unit int, inside ptx.Reg[bool], p ptx.Ptr[ptx.Global, uint32],
	other ptx.Reg[uint32]) []ptx.Reg[uint32] {
	if unit == 1 {
		return []ptx.Reg[uint32]{ptx.LoadIf(inside, p, other)}
	}
	var v [4]*ptx.Var[uint32]
	for w := range v {
		v[w] = ptx.VarOf(k, other)
	}
	k.When(inside, func() {
		for w, x := range p.Load4() {
			v[w].Set(x)
		}
	})
	return []ptx.Reg[uint32]{v[0].Get(), v[1].Get(), v[2].Get(), v[3].Get()}
}

// storeUnit writes the words of a unit where inside.
func storeUnit(k *ptx.Kernel, inside ptx.Reg[bool], p ptx.Ptr[ptx.Global, uint32], words []ptx.Reg[uint32]) {
	if len(words) == 1 {
		ptx.StoreIf(inside, p, words[0])
		return
	}
	k.When(inside, func() { p.Store4([4]ptx.Reg[uint32](words)) })
}

// boxParams is the axes of a box.
type boxParams struct {
	Inner int      `array:"-"` // axes but the outermost
	Outer []uint32 // the outermost one's strides in x and y, as int32
	Axes  []uint32 // of each inner axis, the innermost first, the size as a divisor, then the strides as int32
}

// axisWords is the number of arguments for an inner axis.
const axisWords = scalar.DivisorWords + 2

// boxAxes are the parameters in a kernel.
type boxAxes struct {
	inner       ptx.Reg[uint32]
	outer, axes ptx.Array[uint32]
}

// read is the parameters of boxes of at most rank axes.
func (b *boxParams) read(p *kit.Params, rank int) boxAxes {
	return boxAxes{p.U32(&b.Inner), kit.Array[uint32](p, &b.Outer, 2), kit.Array[uint32](p, &b.Axes, (rank-1)*axisWords)}
}

// boxParamsOf is the parameters for a box of at most rank axes. One without axes has one element.
func boxParamsOf(rank int, shape, from, to []int) boxParams {
	b := boxParams{0, make([]uint32, 2), make([]uint32, (rank-1)*axisWords)}
	if len(shape) == 0 {
		return b
	}
	b.Inner, b.Outer[0], b.Outer[1] = len(shape)-1, uint32(from[0]), uint32(to[0])
	at := b.Axes[:0]
	for d := len(shape) - 1; d > 0; d-- {
		at = append(append(at, scalar.DivisorOf(shape[d])...), uint32(from[d]), uint32(to[d]))
	}
	return b
}

// places is where in x and y the elements with these indices lie, counted along the box row by row. Negative ones wrap. Beyond
// the box, places mean nothing.
func (b boxAxes) places(k *ptx.Kernel, index []ptx.Reg[uint32]) (x, y []ptx.Reg[uint32]) {
	type element struct{ rest, x, y *ptx.Var[uint32] } // the index along the axes that are left, and the place so far
	elements := make([]element, len(index))
	for j, i := range index {
		zero := ptx.Imm(uint32(0))
		elements[j] = element{ptx.VarOf(k, i), ptx.VarOf(k, zero), ptx.VarOf(k, zero)}
	}
	walk := func(e element, i, from, to ptx.Reg[uint32]) {
		e.x.Set(i.Mad(from, e.x.Get()))
		e.y.Set(i.Mad(to, e.y.Get()))
	}
	var from func(d int)
	from = func(at int) {
		if at == b.axes.Len() {
			return
		}
		k.If(b.inner.Gt(uint32(at/axisWords)), func() { // all threads or none
			size, fromStride, toStride := scalar.DivisorAt(k, b.axes, at), b.axes.At(at+scalar.DivisorWords), b.axes.At(at+scalar.DivisorWords+1)
			for _, e := range elements {
				quotient, i := size.Split(k, e.rest.Get())
				walk(e, i, fromStride, toStride)
				e.rest.Set(quotient)
			}
			from(at + axisWords)
		})
	}
	from(0)
	outerX, outerY := b.outer.At(0), b.outer.At(1)
	for _, e := range elements {
		walk(e, e.rest.Get(), outerX, outerY)
		x, y = append(x, e.x.Get()), append(y, e.y.Get())
	}
	return x, y
}

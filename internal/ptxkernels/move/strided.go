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

func stridedKernel(name string, unit int) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "move", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[Σ index·to] = x[Σ index·from] over a box of units, each of neighbouring words. Parameters: u32 total (units), " +
			"the axes (see boxParams; strides in units), u32* x, u32* y.",
		Build: func(k *ptx.Kernel) {
			total := ptx.Param[uint32](k, "total")
			axes := boxParamsOf(k, program.MaxRank)
			x := ptx.PointerParam[uint32](k, "x", ptx.Align(4*unit))
			y := ptx.PointerParam[uint32](k, "y", ptx.Align(4*unit))
			index, inside := unitsOf(k, total)
			from, to := axes.places(k, index)
			var words [moveUnits][]ptx.Reg[uint32]
			for j := range words {
				words[j] = loadUnit(k, unit, inside[j], unitAt(k, x, unit, from[j]), ptx.Imm(uint32(0)))
			}
			for j := range words {
				storeUnit(k, inside[j], unitAt(k, y, unit, to[j]), words[j])
			}
		}})
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
	inner, outer, axes := boxArgs(program.MaxRank, shape, from, to)
	s.Launch(kernel, moveGrid(total), total, inner, outer, axes, b.operand.Plus(4*b.x0), kit.Out.Plus(4*b.y0))
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

// boxParams is the axes of a box as parameters of a kernel: u32 inner, the number of axes but the outermost; s32 outer[2], the
// outermost one's strides in x and y; u32 axes[], for each inner axis, the innermost first, the size as a divisor, then the
// strides as s32.
type boxParams struct {
	inner       ptx.Reg[uint32]
	outer, axes ptx.Array[uint32]
}

// axisWords is the number of arguments for an inner axis.
const axisWords = scalar.DivisorWords + 2

// boxParamsOf declares the parameters for boxes of at most rank axes.
func boxParamsOf(k *ptx.Kernel, rank int) boxParams {
	return boxParams{ptx.Param[uint32](k, "inner"), ptx.ParamArray[uint32](k, "outer", 2),
		ptx.ParamArray[uint32](k, "axes", (rank-1)*axisWords)}
}

// boxArgs is the arguments for boxParamsOf(rank). A box without axes has one element.
func boxArgs(rank int, shape, from, to []int) (inner int, outer, axes []uint32) {
	outer, axes = make([]uint32, 2), make([]uint32, (rank-1)*axisWords)
	if len(shape) == 0 {
		return 0, outer, axes
	}
	outer[0], outer[1] = uint32(from[0]), uint32(to[0])
	at := axes[:0]
	for d := len(shape) - 1; d > 0; d-- {
		at = append(append(at, scalar.DivisorOf(shape[d])...), uint32(from[d]), uint32(to[d]))
	}
	return len(shape) - 1, outer, axes
}

// places is where in x and y the elements with these indices lie, counted along the box row by row. Negative ones wrap. Beyond
// the box, places mean nothing.
func (b boxParams) places(k *ptx.Kernel, index []ptx.Reg[uint32]) (x, y []ptx.Reg[uint32]) {
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

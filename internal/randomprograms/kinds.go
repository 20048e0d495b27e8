package randomprograms

import (
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// kinds are what a generator adds next, the frequent ones several times.
var kinds = []func(g *generator){
	(*generator).elementwise, (*generator).elementwise, (*generator).elementwise, (*generator).elementwise, (*generator).elementwise,
	(*generator).elementwise, (*generator).elementwise, (*generator).elementwise, (*generator).again, (*generator).twice,
	(*generator).reduce, (*generator).reduce, (*generator).row, (*generator).row, (*generator).product, (*generator).product,
	(*generator).move, (*generator).move, (*generator).constant, (*generator).update, (*generator).layer, (*generator).layer,
}

// elementwise adds an entry on values that are broadcast to one another.
func (g *generator) elementwise() {
	e := pick(g, "entry", elementwise)
	x, _ := g.value("x", nil)
	in := []program.Slot{x}
	if e == catalogue.ClipByNorm { // its second operand is no number at will
		if squares, ok := g.apply(catalogue.SumSquares, compute.AllAxes, x); ok {
			g.apply(e, nil, x, squares)
		}
		return
	}
	shape := g.p.Values[x].Shape
	for range e.Inputs[1:] {
		y, _ := g.value("y", func(has []int) bool {
			common, err := program.Broadcast(shape, has)
			return err == nil && program.Len(common) <= maxElements
		})
		in = append(in, y)
		shape, _ = program.Broadcast(shape, g.p.Values[y].Shape)
	}
	if len(in) > 1 && g.chance("exchange", 3) {
		slices.Reverse(in)
	}
	g.apply(e, e.Options, in...)
}

// again repeats a step, so that there is something to find out.
func (g *generator) again() {
	if len(g.p.Steps) > 0 {
		s := pick(g, "step", g.p.Steps)
		g.applyScalars(s.Entry, s.Attr, slices.Clone(s.In)...)
	}
}

// twice adds an operation on itself.
func (g *generator) twice() {
	e := pick(g, "entry", []*program.Entry{catalogue.Scale, catalogue.Clip, catalogue.Neg, catalogue.Abs, catalogue.ReLU, catalogue.Sign, catalogue.Copy})
	x, ok := g.value("x", nil)
	for i := 0; i < 2 && ok; i++ {
		x, ok = g.apply(e, e.Options, x)
	}
}

func (g *generator) reduce() {
	e := pick(g, "entry", reductions)
	x, _ := g.value("x", nil)
	in := []program.Slot{x}
	for range e.Inputs[1:] {
		in = append(in, g.of("y", g.p.Values[x].Shape...))
	}
	g.apply(e, pick(g, "axis", []compute.Axis{compute.LastAxis, compute.AllAxes}), in...)
}

// lines is a condition for values that have rows.
func lines(shape []int) bool { return len(shape) > 0 }

func (g *generator) row() {
	e := pick(g, "entry", rows)
	if x, ok := g.value("x", lines); ok {
		g.apply(e, e.Options, append([]program.Slot{x}, g.vectors(x, len(e.Inputs)-1)...)...)
	}
}

// vectors are n vectors as long as the rows of x.
func (g *generator) vectors(x program.Slot, n int) []program.Slot {
	var v []program.Slot
	_, cols := program.RowsCols(g.p.Values[x].Shape)
	for range n {
		v = append(v, g.of("vector", cols))
	}
	return v
}

var acts = []compute.Activation{compute.NoActivation, compute.ReLU, compute.GELU, compute.GELUErf, compute.SiLU, compute.Sigmoid, compute.Tanh}

// product multiplies, or convolves.
func (g *generator) product() {
	x, ok := g.value("x", func(shape []int) bool { return len(shape) > 0 && len(shape) < 3 })
	if !ok {
		return
	}
	rows, k := program.RowsCols(g.p.Values[x].Shape)
	n := pick(g, "n", sizes)
	var y program.Slot
	switch matrix := len(g.p.Values[x].Shape) == 2; g.number("product", 0, 3) {
	case 0:
		if matrix {
			o := compute.MatMulOptions{TransB: g.chance("transposed", 2), Act: pick(g, "act", acts)}
			w := []int{k, n}
			if o.TransB {
				w = []int{n, k}
			}
			in := []program.Slot{x, g.of("w", w...)}
			if g.chance("bias", 3) {
				in = append(in, g.of("bias", n))
			}
			y, ok = g.apply(catalogue.MatMul, o, in...)
		}
	case 1:
		y, ok = g.apply(catalogue.MatVec, nil, g.of("w", n, k), x)
	case 2:
		y, ok = g.apply(catalogue.VecMat, nil, x, g.of("w", k, n))
	case 3:
		if matrix && rows > 2 && k > 2 {
			o := compute.Conv2DOptions{Pad: [2]int{g.number("pad", 0, 1), 1}, Act: pick(g, "act", acts)}
			y, ok = g.apply(catalogue.Conv2D, o, x, g.of("w", 3, 2))
		}
	}
	if ok && g.chance("activation", 3) {
		g.apply(pick(g, "act", activations), nil, y)
	}
}

var activations = []*program.Entry{catalogue.ReLU, catalogue.GELU, catalogue.GELUErf, catalogue.SiLU, catalogue.Sigmoid, catalogue.Tanh}

// constant adds numbers that come of no value: equal ones, or random ones.
func (g *generator) constant() {
	if g.chance("random", 3) {
		seed := g.integers(compute.Uint32, []int32{int32(g.number("seed", -1, 1)), 7}, catalogue.RandomSeed)
		e := pick(g, "entry", []*program.Entry{catalogue.RandomUniform, catalogue.RandomNormal})
		g.apply(e, compute.RandomOptions{Shape: g.shape(), Stream: g.number("stream", 0, 1)}, seed)
		return
	}
	g.apply(catalogue.Fill, compute.FillOptions{Shape: g.shape()})
}

// move adds movement, some of which does nothing.
func (g *generator) move() {
	x, _ := g.value("x", nil)
	shape := g.p.Values[x].Shape
	switch g.number("move", 0, 6) {
	case 0:
		g.apply(catalogue.Copy, nil, x)
	case 1:
		if y, ok := g.apply(catalogue.Reshape, compute.ReshapeOptions{Shape: []int{program.Len(shape)}}, x); ok && g.chance("back", 2) {
			g.apply(catalogue.Reshape, compute.ReshapeOptions{Shape: slices.Clone(shape)}, y)
		}
	case 2:
		g.apply(catalogue.Transpose, compute.TransposeOptions{}, x)
	case 3:
		g.apply(catalogue.Concat, compute.ConcatOptions{}, x, g.of("y", shape...))
	case 4:
		half := pick(g, "type", []compute.DType{compute.Float16, compute.BFloat16, compute.Float32})
		if y, ok := g.apply(catalogue.Cast, compute.CastOptions{To: half}, x); ok && half != compute.Float32 {
			z, _ := g.apply(catalogue.Cast, compute.CastOptions{To: compute.Float32}, y)
			if g.chance("once more", 2) {
				z, _ = g.apply(catalogue.Cast, compute.CastOptions{To: half}, z)
				g.apply(catalogue.Cast, compute.CastOptions{To: compute.Float32}, z)
			}
		}
	case 5:
		g.apply(catalogue.Reshape, compute.ReshapeOptions{Shape: append([]int{1}, shape...)}, x)
	case 6:
		if len(shape) == 2 && shape[0] > 1 && shape[1] > 0 {
			g.apply(catalogue.Slice, compute.SliceOptions{Start: []int{1, 0}, Size: []int{shape[0] - 1, shape[1]}}, x)
		}
	}
}

// update changes values in place, of which some are tensors, and puts what was before beside what is then.
func (g *generator) update() {
	if g.chance("adam", 2) {
		shape := []int{pick(g, "size", sizes)}
		p := g.of("p", shape...)
		before, _ := g.apply(pick(g, "before", readers), nil, p)
		if positive, ok := g.apply(catalogue.Abs, nil, g.of("v", shape...)); ok {
			o := compute.AdamOptions{LR: 0.1, Beta1: 0.9, Beta2: 0.99, Eps: 1e-3, Step: 1}
			if next, ok := g.apply(catalogue.Adam, o, p, g.of("m", shape...), positive, g.of("grad", shape...)); ok {
				g.apply(catalogue.Sub, nil, next, before)
			}
		}
		return
	}
	cache := g.of("cache", 1, 4, 1, 3)
	before, _ := g.apply(pick(g, "before", readers), nil, cache)
	position := g.indices([]int32{int32(g.number("position", 0, 5))}, 1)
	if next, ok := g.apply(catalogue.KVAppend, nil, cache, g.of("rows", 1, 1, 1, 3), position); ok {
		g.apply(catalogue.Sub, nil, next, before)
	}
}

var readers = []*program.Entry{catalogue.Neg, catalogue.Copy, catalogue.Exp}

// layer adds steps that a compiler looks for.
func (g *generator) layer() {
	x, ok := g.value("x", func(shape []int) bool { return len(shape) == 1 || len(shape) == 2 })
	if !ok {
		return
	}
	shape := g.p.Values[x].Shape
	_, k := program.RowsCols(shape)
	n := pick(g, "n", sizes)
	product := func(of program.Slot) program.Slot {
		if len(shape) == 2 && g.chance("matmul", 2) {
			y, _ := g.apply(catalogue.MatMul, compute.MatMulOptions{TransB: true}, of, g.of("w", n, k))
			return y
		}
		y, _ := g.apply(catalogue.MatVec, nil, g.of("w", n, k), of)
		return y
	}
	switch g.number("layer", 0, 3) {
	case 0:
		gate, up := product(x), product(x)
		g.apply(catalogue.SwiGLU, nil, gate, up)
	case 1:
		if y, ok := g.apply(catalogue.RMSNorm, nil, append([]program.Slot{x}, g.vectors(x, 1)...)...); ok {
			product(y)
		}
	case 2:
		if sum, ok := g.apply(catalogue.Add, nil, x, g.of("residual", shape...)); ok {
			norm := pick(g, "norm", []*program.Entry{catalogue.RMSNorm, catalogue.LayerNorm})
			g.apply(norm, nil, append([]program.Slot{sum}, g.vectors(sum, len(norm.Inputs)-1)...)...)
		}
	case 3:
		y := product(x)
		if g.chance("in one", 2) {
			g.apply(catalogue.BiasActivation, compute.BiasActivationOptions{Act: pick(g, "act", acts)}, y, g.of("bias", n))
		} else if z, ok := g.apply(catalogue.Add, nil, y, g.of("bias", n)); ok {
			g.apply(pick(g, "act", activations), nil, z)
		}
	}
}

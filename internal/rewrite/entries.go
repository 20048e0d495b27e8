package rewrite

import (
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// replace joins units a and b, which are one step each, into step s, if that is valid and order permits it.
func (g *graph) replace(a, b int32, s program.Step) bool {
	at, ok := g.order(a, b)
	if !ok || !g.valid(&s) {
		return false
	}
	if !g.changed {
		g.steps, g.changed = slices.Clone(g.steps), true
	}
	g.steps[at] = s
	for _, out := range s.Out {
		g.maker[out] = at
	}
	g.join(a, b, at, unit{core: at})
	return true
}

// plain returns the only step of a unit if it is of one of these entries, else nil.
func (g *graph) plain(at int32, entries ...*program.Entry) *program.Step {
	u := &g.units[at]
	if u.gone || len(u.prologue)+len(u.epilogue) > 1 {
		return nil
	}
	s := &g.steps[at]
	if u.core == none && u.epilogue[0] != at || u.core != none && (u.core != at || len(u.epilogue) > 0 || len(u.prologue) > 0) ||
		!slices.Contains(entries, s.Entry) {
		return nil
	}
	return s
}

// made returns the unit that computes a value, and its step as plain does.
func (g *graph) made(v program.Slot, entries ...*program.Entry) (int32, *program.Step) {
	if g.maker[v] == none {
		return none, nil
	}
	at := g.at(g.maker[v])
	return at, g.plain(at, entries...)
}

// activationOf is the option that means the same as an entry.
var activationOf = map[*program.Entry]compute.Activation{catalogue.ReLU: compute.ReLU, catalogue.GELU: compute.GELU, catalogue.GELUErf: compute.GELUErf,
	catalogue.SiLU: compute.SiLU, catalogue.Sigmoid: compute.Sigmoid, catalogue.Tanh: compute.Tanh}

// activations makes the biases and activations after products and convolutions operands and options of these.
func (g *graph) activations() {
	for i := range g.units {
		b := int32(i)
		s := g.plain(b, catalogue.Add, catalogue.BiasActivation, catalogue.ReLU, catalogue.GELU, catalogue.GELUErf, catalogue.SiLU, catalogue.Sigmoid, catalogue.Tanh)
		if s == nil {
			continue
		}
		for k, in := range s.In {
			a, product := g.made(in, catalogue.MatMul, catalogue.Conv2D, catalogue.Conv1D)
			if product == nil || product.Attr.Activation() != compute.NoActivation || !g.only(in, b) || s.Entry == catalogue.BiasActivation && k > 0 {
				continue
			}
			next := *product
			next.Out = s.Out
			if len(s.In) == 2 {
				if s.In[0] == s.In[1] || product.Entry != catalogue.MatMul || len(product.In) != 2 {
					continue
				}
				next.In = append(slices.Clone(product.In), s.In[1-k])
			}
			act := activationOf[s.Entry]
			if s.Entry == catalogue.BiasActivation {
				act = s.Attr.Activation()
			}
			switch o := product.Attr.Options.(type) {
			case compute.MatMulOptions:
				o.Act = act
				next.Attr.Options = o
			case compute.Conv2DOptions:
				o.Act = act
				next.Attr.Options = o
			case compute.Conv1DOptions:
				o.Act = act
				next.Attr.Options = o
			}
			if g.replace(a, b, next) {
				break
			}
		}
	}
}

// fewRows is the largest number of rows for which the fused entries read each weight once: see [catalogue.GateUpSwiGLU].
const fewRows = 8

// rowsTimes returns x and w if a step is x·wᵀ with few rows and without bias or activation.
func (g *graph) rowsTimes(s *program.Step) (x, w program.Slot, ok bool) {
	if s == nil {
		return 0, 0, false
	}
	if s.Entry == catalogue.MatVec {
		x, w = s.In[1], s.In[0]
	} else {
		if s.Attr.Options != (compute.MatMulOptions{TransB: true}) || len(s.In) != 2 {
			return 0, 0, false
		}
		x, w = s.In[0], s.In[1]
	}
	rows, _ := program.RowsCols(g.p.Values[x].Shape)
	return x, w, rows <= fewRows && len(g.p.Values[w].Shape) == 2
}

// gateUp joins two products of one vector and their swiglu into gate_up_swiglu.
func (g *graph) gateUp() {
	for i := range g.units {
		c := int32(i)
		s := g.plain(c, catalogue.SwiGLU)
		if s == nil {
			continue
		}
		a, gate := g.made(s.In[0], catalogue.MatVec, catalogue.MatMul)
		b, up := g.made(s.In[1], catalogue.MatVec, catalogue.MatMul)
		x, first, ok := g.rowsTimes(gate)
		y, second, too := g.rowsTimes(up)
		if !ok || !too || a == b || x != y || !g.only(s.In[0], c) || !g.only(s.In[1], c) {
			continue
		}
		if at, _ := g.order(b, c); at == c { // then the second product does not keep the first from moving
			fused := program.Step{Entry: catalogue.GateUpSwiGLU, In: []program.Slot{x, first, second}, Out: s.Out}
			if at, _ := g.order(a, c); at == c && g.replace(a, c, fused) {
				g.join(b, c, c, g.units[c])
			}
		}
	}
}

// addNorm joins a sum and its norm into one step that computes both.
func (g *graph) addNorm() {
	entries := map[*program.Entry]*program.Entry{catalogue.RMSNorm: catalogue.AddRMSNorm, catalogue.LayerNorm: catalogue.AddLayerNorm}
	for i := range g.units {
		b := int32(i)
		norm := g.plain(b, catalogue.RMSNorm, catalogue.LayerNorm)
		if norm == nil {
			continue
		}
		a, sum := g.made(norm.In[0], catalogue.Add)
		if sum == nil || slices.Contains(norm.In[1:], norm.In[0]) {
			continue
		}
		g.replace(a, b, program.Step{Entry: entries[norm.Entry], In: slices.Concat(sum.In, norm.In[1:]),
			Out: []program.Slot{sum.Out[0], norm.Out[0]}, Attr: norm.Attr})
	}
}

// normProduct joins a norm and the only product that uses it.
func (g *graph) normProduct() {
	for i := range g.units {
		b := int32(i)
		product := g.plain(b, catalogue.MatVec, catalogue.MatMul)
		x, w, ok := g.rowsTimes(product)
		if !ok || x == w {
			continue
		}
		if a, norm := g.made(x, catalogue.RMSNorm); norm != nil && g.only(x, b) {
			g.replace(a, b, program.Step{Entry: catalogue.RMSNormMatVec, In: []program.Slot{norm.In[0], norm.In[1], w}, Out: product.Out, Attr: norm.Attr})
		}
	}
}

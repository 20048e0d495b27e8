package randomprograms

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// generator builds a program.
type generator struct {
	*rapid.T
	p     *randomProgram
	spent []bool // values that were updated in place
}

// Sizes that tensors are made of: empty, odd, one more than a vector.
var sizes = []int{1, 2, 3, 4, 5, 7, 8, 17, 33, 64, 0}

const (
	maxSteps    = 24
	maxElements = 1 << 13
)

// generate draws a program. Data with NaN and infinities is for comparisons that are exact.
func generate(t *rapid.T, special bool) *randomProgram {
	g := &generator{T: t, p: &randomProgram{integers: map[program.Slot][]int32{}, special: special}}
	g.p.seed = rapid.Uint64().Draw(t, "seed")
	for range g.number("inputs", 1, 3) {
		g.input(g.shape())
	}
	steps := g.number("steps", 1, maxSteps)
	for len(g.p.Steps) < steps {
		before := len(g.p.Values)
		kinds[g.number("kind", 0, len(kinds)-1)](g)
		if len(g.p.Values) == before { // it found no operands
			g.elementwise()
		}
	}
	g.ask()
	return g.p
}

func (g *generator) number(label string, low, high int) int {
	return rapid.IntRange(low, high).Draw(g.T, label)
}

// chance is true about once in n, and false in shrunk programs.
func (g *generator) chance(label string, n int) bool { return g.number(label, 0, n-1) == n-1 && n > 1 }

func pick[E any](g *generator, label string, from []E) E {
	return from[g.number(label, 0, len(from)-1)]
}

func (g *generator) shape() []int {
	shape := []int{}
	for range g.number("rank", 0, 3) {
		shape = append(shape, pick(g, "size", sizes))
	}
	return shape
}

// input adds an input of numbers: a slice, or a tensor.
func (g *generator) input(shape []int) program.Slot {
	from := program.FromHost
	if g.chance("tensor", 4) {
		from = program.FromTensor
	}
	s := g.p.Add(program.F32(shape...), from)
	g.named(s, "input")
	return s
}

// indices adds an input of integers.
func (g *generator) indices(values []int32, shape ...int) program.Slot {
	return g.integers(compute.Int32, values, shape...)
}

func (g *generator) integers(d compute.DType, values []int32, shape ...int) program.Slot {
	s := g.p.Add(program.Type{DType: d, Shape: shape}, program.FromHost)
	g.p.integers[s] = values
	g.named(s, fmt.Sprint(values))
	return s
}

func (g *generator) named(s program.Slot, text string) {
	g.p.text = append(g.p.text, text)
	g.spent = append(g.spent, false)
}

// value draws a value of Float32 that the condition holds for, if there is one. Late ones are what programs go on with.
func (g *generator) value(label string, ok func(shape []int) bool) (program.Slot, bool) {
	var found []program.Slot
	for s := len(g.p.Values) - 1; s >= 0; s-- {
		if v := &g.p.Values[s]; v.DType == compute.Float32 && !g.spent[s] && (ok == nil || ok(v.Shape)) {
			found = append(found, program.Slot(s))
		}
	}
	if len(found) == 0 {
		return 0, false
	}
	if g.number(label+" far", 0, 2) == 0 {
		found = found[:min(3, len(found))]
	}
	return pick(g, label, found), true
}

// of is a value of a shape: one that is there, or an input.
func (g *generator) of(label string, shape ...int) program.Slot {
	if s, ok := g.value(label, func(has []int) bool { return program.EqualShape(has, shape) }); ok && !g.chance(label+" new", 3) {
		return s
	}
	return g.input(shape)
}

// apply adds a step if its operands are right and its results not too large.
func (g *generator) apply(e *program.Entry, options any, in ...program.Slot) (program.Slot, bool) {
	a := program.Attr{Options: options}
	for _, s := range e.Scalars {
		a.Scalars = append(a.Scalars, pick(g, s.Name, s.Test))
	}
	return g.applyScalars(e, a, in...)
}

func (g *generator) applyScalars(e *program.Entry, a program.Attr, in ...program.Slot) (program.Slot, bool) {
	types, err := e.Check(g.p.Types(in), a)
	if err != nil || slices.ContainsFunc(types, func(t program.Type) bool { return t.Len() > maxElements }) {
		return 0, false
	}
	out, err := g.p.ApplyAll(e, a, in...)
	if err != nil { // one of them was updated, or is given twice to what updates it
		return 0, false
	}
	text := e.Name + fmt.Sprint(a.Scalars)
	if a.Options != nil {
		text += fmt.Sprintf("%+v", a.Options)
	}
	for _, s := range in {
		text += fmt.Sprintf(" v%d", s)
	}
	for k, s := range out {
		g.named(s, fmt.Sprintf("%s #%d", text, k))
	}
	for k := range e.Updates {
		g.spent[in[k]] = true
	}
	return out[0], true
}

// ask draws what is read and retained, at least the last value.
func (g *generator) ask() {
	storage := g.p.Storage()
	states := map[program.Slot]program.Slot{} // by tensor: its last state
	for s, at := range storage {
		if g.p.Values[at].Source == program.FromTensor {
			states[at] = program.Slot(s)
		}
	}
	every := g.number("read every", 1, 6)
	for s := len(g.p.Values) - 1; s >= 0; s-- {
		slot := program.Slot(s)
		last, isState := states[storage[s]]
		if isState && last != slot { // an earlier state: it is gone
			continue
		}
		if g.p.Values[s].Source != program.FromStep && !g.chance("input", 8) {
			continue
		}
		if len(g.p.Read) == 0 || g.chance("read", every) || every == 1 {
			g.p.Read = append(g.p.Read, slot)
		} else if g.chance("keep", 8) && !isState {
			g.p.Keep = append(g.p.Keep, slot)
		}
	}
}

// entries of a class that take nothing but numbers.
func entries(class func(program.Class) bool) []*program.Entry {
	var found []*program.Entry
	for _, e := range catalogue.All() {
		plain := class(e.Class) && e.Updates == 0 && len(e.Inputs) > 0
		for _, in := range e.Inputs {
			plain = plain && in.Types == nil && !in.Optional
		}
		if plain {
			found = append(found, e)
		}
	}
	return found
}

var (
	elementwise = entries(program.Class.Elementwise)
	reductions  = entries(func(c program.Class) bool { return c == program.Reduce })
	rows        = entries(func(c program.Class) bool { return c == program.Rows })
)

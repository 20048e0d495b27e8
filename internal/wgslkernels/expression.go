package wgslkernels

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// expression is a fused expression in a step, with its operands.
type expression struct {
	program.Expression
	scalars []float32
	in      []program.Type // operands; that of an epilogue's operand 0 is the type of what it follows
	bind    []Buffer       // where they are, in the same order; an epilogue's operand 0 is nowhere
}

// identity is the prologue or epilogue of an operation that has none.
func identity(t program.Type, b Buffer) *expression {
	return &expression{program.Expression{Inputs: 1, Results: []int{0}}, nil, []program.Type{t}, []Buffer{b}}
}

// call is an expression that applies one entry.
func call(e *program.Entry, scalars []float32, in []program.Type, bind []Buffer) *expression {
	args := make([]int, len(in))
	for i := range args {
		args[i] = i
	}
	x := program.Expression{Inputs: len(in), Nodes: []program.Node{{Entry: e, Args: args}}, Results: []int{len(in)}}
	return &expression{x, scalars, in, bind}
}

// then appends the expression g, whose operand 0 is f's only result.
func (f *expression) then(g *expression) *expression {
	if g.None() {
		return f
	}
	more := g.Inputs - 1
	moved := func(a int) int { // a value of f
		if a < f.Inputs {
			return a
		}
		return a + more
	}
	nodes := make([]program.Node, 0, len(f.Nodes)+len(g.Nodes))
	for _, n := range f.Nodes {
		nodes = append(nodes, program.Node{Entry: n.Entry, Args: mapped(n.Args, moved)})
	}
	of := func(a int) int { // a value of g
		switch {
		case a == 0:
			return moved(f.Results[0])
		case a < g.Inputs:
			return f.Inputs + a - 1
		}
		return f.Inputs + more + len(f.Nodes) + a - g.Inputs
	}
	for _, n := range g.Nodes {
		nodes = append(nodes, program.Node{Entry: n.Entry, Args: mapped(n.Args, of)})
	}
	x := program.Expression{Inputs: f.Inputs + more, Nodes: nodes, Results: mapped(g.Results, of)}
	return &expression{x, slices.Concat(f.scalars, g.scalars), slices.Concat(f.in, g.in[1:]), slices.Concat(f.bind, g.bind[1:])}
}

func mapped(values []int, f func(int) int) []int {
	to := make([]int, len(values))
	for i, v := range values {
		to[i] = f(v)
	}
	return to
}

// distinct takes operands that are one value as one operand, since bindings are few. slots names the values, from operand first on.
func (f *expression) distinct(slots []program.Slot, first int) *expression {
	if len(slots) != len(f.in)-first { // nobody knows
		return f
	}
	to := make([]int, f.Inputs)
	g := &expression{scalars: f.scalars}
	for i := range to {
		to[i] = len(g.in)
		if i >= first {
			if j := slices.Index(slots[:i-first], slots[i-first]); j >= 0 {
				to[i] = to[first+j]
				continue
			}
		}
		g.in, g.bind = append(g.in, f.in[i]), append(g.bind, f.bind[i])
	}
	of := func(a int) int {
		if a < f.Inputs {
			return to[a]
		}
		return a - f.Inputs + len(g.in)
	}
	g.Inputs, g.Results = len(g.in), mapped(f.Results, of)
	for _, n := range f.Nodes {
		g.Nodes = append(g.Nodes, program.Node{Entry: n.Entry, Args: mapped(n.Args, of)})
	}
	return g
}

// nothing reports whether the expression gives its operand as it is.
func (f *expression) nothing() bool {
	return len(f.Nodes) == 0 && len(f.Results) == 1 && f.Results[0] == 0
}

// function writes the expression as a WGSL function of one value of each operand; of several results it returns an array. Its scalars
// are p.s0, p.s1 … of the uniform, counted from first. More parameters may follow the values. What it calls is in the library.
func (f *expression) function(name string, first int, more ...string) string {
	value := func(a int) string {
		if a < f.Inputs {
			return "x" + strconv.Itoa(a)
		}
		return "v" + strconv.Itoa(a-f.Inputs)
	}
	parameters := make([]string, f.Inputs)
	for i := range parameters {
		parameters[i] = value(i) + ": f32"
	}
	parameters = append(parameters, more...)
	body := ""
	for i, n := range f.Nodes {
		args := make([]string, len(n.Args), len(n.Args)+len(n.Entry.Scalars))
		for k, a := range n.Args {
			args[k] = value(a)
			if slices.Contains(n.Args[:k], a) && !comparing[n.Entry] {
				args[k] = "opaque(" + args[k] + ")"
			}
		}
		for range n.Entry.Scalars {
			args = append(args, "p.s"+strconv.Itoa(first))
			first++
		}
		y := "op_" + n.Entry.Name + "(" + strings.Join(args, ", ") + ")"
		if f.calculates(f.Inputs + i) {
			y = "opaque(" + y + ")"
		}
		body += "    let " + value(f.Inputs+i) + " = " + y + ";\n"
	}
	results, kind := make([]string, len(f.Results)), "f32"
	for i, r := range f.Results {
		results[i] = value(r)
	}
	y := results[0]
	if len(results) > 1 {
		kind = "array<f32, " + strconv.Itoa(len(results)) + ">"
		y = kind + "(" + strings.Join(results, ", ") + ")"
	}
	return "fn " + name + "(" + strings.Join(parameters, ", ") + ") -> " + kind + " {\n" + body + "    return " + y + ";\n}\n"
}

// calculates reports whether a node does arithmetic with a value, which a compiler might simplify together with other nodes.
func (f *expression) calculates(value int) bool {
	return slices.ContainsFunc(f.Nodes, func(n program.Node) bool { return slices.Contains(n.Args, value) && !comparing[n.Entry] })
}

// comparing are entries that do no arithmetic with what they are given.
var comparing = map[*program.Entry]bool{
	catalogue.Neg: true, catalogue.Abs: true, catalogue.Sign: true, catalogue.Floor: true, catalogue.Ceil: true, catalogue.Round: true, catalogue.Trunc: true, catalogue.ReLU: true, catalogue.Clip: true,
	catalogue.Maximum: true, catalogue.Minimum: true, catalogue.Less: true, catalogue.LessEqual: true, catalogue.Equal: true, catalogue.Select: true,
}

// definition is the function of that name, where [expression.applied] calls it.
func (f *expression) definition(name string, first int) string {
	if f.nothing() {
		return ""
	}
	return f.function(name, first)
}

// uniforms are the expression's scalars as words of the uniform.
func (f *expression) uniforms() []uint32 {
	words := make([]uint32, len(f.scalars))
	for i, s := range f.scalars {
		words[i] = bits(s)
	}
	return words
}

// activated follows f by an activation, which is one of the catalogue.
func (f *expression) activated(act compute.Activation) *expression {
	e, err := catalogue.ActivationEntry(act)
	if err != nil {
		panic(err) // the catalogue's check has admitted it
	}
	if e == nil {
		return f
	}
	return f.then(call(e, nil, []program.Type{{}}, []Buffer{{}}))
}

// roundUniform is the size of a uniform of a number of words.
func roundUniform(words int) int { return (4*words + 15) &^ 15 }

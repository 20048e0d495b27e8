package program

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// Expression is a function of one element of each operand, made of elementwise entries. Several elementwise steps are fused
// into one; its intermediate values are never in memory. The zero value is no expression.
type Expression struct {
	Inputs  int    // number of operands
	Nodes   []Node // each uses operands and earlier nodes
	Results []int  // which values are results: see Node.Args
}

// Node applies an elementwise entry. Its scalars are the next len(Entry.Scalars) of those of the step.
type Node struct {
	Entry *Entry
	Args  []int // i < Inputs is operand i, any other is node i − Inputs
}

// None reports whether there is no expression.
func (x *Expression) None() bool { return len(x.Results) == 0 }

// Scalars is the number of scalars.
func (x *Expression) Scalars() int {
	n := 0
	for _, node := range x.Nodes {
		n += len(node.Entry.Scalars)
	}
	return n
}

// String writes the expression as calls, "relu(add(x0,x1))"; equal texts mean the same function. Scalars are written in their
// order, without numbers.
func (x *Expression) String() string {
	var b strings.Builder
	for i, node := range x.Nodes {
		fmt.Fprintf(&b, "v%d=%s(", i, node.Entry.Name)
		for k, a := range node.Args {
			if k > 0 {
				b.WriteByte(',')
			}
			x.name(&b, a)
		}
		b.WriteString(");")
	}
	for k, r := range x.Results {
		if k > 0 {
			b.WriteByte(',')
		}
		x.name(&b, r)
	}
	return b.String()
}

func (x *Expression) name(b *strings.Builder, value int) {
	if value < x.Inputs {
		fmt.Fprintf(b, "x%d", value)
	} else {
		fmt.Fprintf(b, "v%d", value-x.Inputs)
	}
}

// check validates the expression on operands and returns the shape of its results, which all have it.
func (x *Expression) check(in []Type) ([]int, error) {
	if len(in) != x.Inputs {
		return nil, fmt.Errorf("expression of %d operands, got %d: %w", x.Inputs, len(in), compute.ErrArgument)
	}
	shapes := make([][]int, len(in))
	for i, t := range in {
		if t.DType != compute.Float32 {
			return nil, fmt.Errorf("operand %d of an expression is %v: %w", i, t, compute.ErrDType)
		}
		shapes[i] = t.Shape
	}
	for i, node := range x.Nodes {
		if node.Entry == nil || !node.Entry.Class.Elementwise() || node.Entry.F == nil || len(node.Args) != len(node.Entry.Inputs) {
			return nil, fmt.Errorf("node %d is no elementwise call: %w", i, compute.ErrArgument)
		}
		for _, a := range node.Args {
			if a < 0 || a >= x.Inputs+i {
				return nil, fmt.Errorf("node %d uses value %d, which is not before it: %w", i, a, compute.ErrArgument)
			}
		}
	}
	for _, r := range x.Results {
		if r < 0 || r >= x.Inputs+len(x.Nodes) {
			return nil, fmt.Errorf("result %d of an expression of %d values: %w", r, x.Inputs+len(x.Nodes), compute.ErrArgument)
		}
	}
	return Broadcast(shapes...)
}

// Evaluate computes the results in float64 for one element of each operand; p holds the scalars, v has room for Inputs +
// len(Nodes) values of which the first Inputs are given.
func (x *Expression) Evaluate(v, p []float64) {
	var args [3]float64
	for i, node := range x.Nodes {
		for k, a := range node.Args {
			args[k] = v[a]
		}
		n := len(node.Entry.Scalars)
		v[x.Inputs+i] = node.Entry.F(args[:len(node.Args)], p[:n])
		p = p[n:]
	}
}

// Fused is the entry of steps that compute an expression, [Attr.Options]; it is not part of the catalogue. The results have the
// operands' common shape.
var Fused = &Entry{Name: "fused", Class: Fusion, Doc: "an expression of elementwise operations",
	Inputs: []Input{{Name: "x", Variadic: true}}, Options: Expression{},
	InferAll: func(in []Type, a Attr) ([]Type, error) {
		x := a.Options.(Expression)
		shape, err := x.check(in)
		if err != nil {
			return nil, err
		}
		if x.None() {
			return nil, fmt.Errorf("expression without results: %w", compute.ErrArgument)
		}
		out := make([]Type, len(x.Results))
		for i := range out {
			out[i] = F32(shape...)
		}
		return out, nil
	}}

// A step of another entry may have a prologue and an epilogue. The prologue computes operand 0; the operands of the prologue
// replace it in the list. The epilogue takes each element of the first result as its operand 0, and further operands, which
// are the step's last and are broadcast to the result's shape. Scalars are in the order prologue, entry, epilogue.

// Parts is a step with expressions, split into its parts.
type Parts struct {
	Prologue, Epilogue               Expression
	PrologueScalars, EpilogueScalars []float32
	PrologueIn                       []Type // operands of the prologue: the step's first
	EpilogueIn                       []Type // operands of the epilogue from its second on: the step's last
	In                               []Type // operands of the entry itself
	Attr                             Attr   // of the entry itself
}

// TakesPrologue reports whether steps of an entry may have one: its first operand is Float32.
func (e *Entry) TakesPrologue() bool {
	return (e.Class == Rows || e.Class == Reduce) && e.Updates == 0 && len(e.Inputs) > 0 && e.Inputs[0].accepts(compute.Float32)
}

// TakesEpilogue reports whether steps of an entry may have one: it has one result, which may be Float32.
func (e *Entry) TakesEpilogue() bool {
	return (e.Class == Matrix || e.Class == Window || e.Class == Rows || e.Class == Reduce) && e.Updates == 0 && e.ResultCount() == 1
}

// Parts splits a step that may have expressions. Without any, In and Attr are what was given.
func (e *Entry) Parts(in []Type, a Attr) (Parts, error) {
	p := Parts{Prologue: a.Prologue, Epilogue: a.Epilogue, In: in, Attr: Attr{Scalars: a.Scalars, Options: a.Options}}
	if a.Prologue.None() && a.Epilogue.None() {
		return p, nil
	}
	prologueIn, epilogueIn := 0, 0 // operands
	first, last := 0, 0            // scalars
	if !a.Prologue.None() {
		prologueIn, first = a.Prologue.Inputs, a.Prologue.Scalars()
		if !e.TakesPrologue() || len(a.Prologue.Results) != 1 {
			return p, fmt.Errorf("prologue %v: %w", &a.Prologue, compute.ErrUnsupported)
		}
	}
	if !a.Epilogue.None() {
		epilogueIn, last = a.Epilogue.Inputs-1, a.Epilogue.Scalars()
		if !e.TakesEpilogue() || len(a.Epilogue.Results) != 1 {
			return p, fmt.Errorf("epilogue %v: %w", &a.Epilogue, compute.ErrUnsupported)
		}
	}
	if len(in) < prologueIn+epilogueIn || epilogueIn < 0 || len(a.Scalars) < first+last {
		return p, fmt.Errorf("%d operands and %d scalars are fewer than its expressions need: %w", len(in), len(a.Scalars), compute.ErrArgument)
	}
	p.PrologueIn, p.EpilogueIn = in[:prologueIn], in[len(in)-epilogueIn:]
	p.PrologueScalars, p.EpilogueScalars = a.Scalars[:first], a.Scalars[len(a.Scalars)-last:]
	p.In, p.Attr.Scalars = in[prologueIn:len(in)-epilogueIn], a.Scalars[first:len(a.Scalars)-last]
	if prologueIn > 0 {
		shape, err := a.Prologue.check(p.PrologueIn)
		if err != nil {
			return p, err
		}
		p.In = append([]Type{F32(shape...)}, p.In...)
	}
	return p, nil
}

// checkEpilogue validates the epilogue of a result of type out.
func (p *Parts) checkEpilogue(out Type) error {
	if p.Epilogue.None() {
		return nil
	}
	shape, err := p.Epilogue.check(append([]Type{out}, p.EpilogueIn...))
	if err == nil && !EqualShape(shape, out.Shape) {
		err = fmt.Errorf("epilogue makes %v of %v: %w", shape, out.Shape, compute.ErrShape)
	}
	return err
}

// Name is the step's name in listings and errors: that of its entry or kernel, and of what was fused into it in the order of
// computation, as "fused(matmul, add, relu)".
func (s *Step) Name() string {
	own := s.Entry.Name
	if s.Kernel != nil {
		own = s.Kernel.Name()
	}
	var names []string
	if x, ok := s.Attr.Options.(Expression); ok {
		names = x.names()
	} else {
		names = append(append(s.Attr.Prologue.names(), own), s.Attr.Epilogue.names()...)
		if len(names) == 1 {
			return own
		}
	}
	return "fused(" + strings.Join(names, ", ") + ")"
}

// names are those of the nodes' entries.
func (x *Expression) names() []string {
	names := make([]string, len(x.Nodes))
	for i, n := range x.Nodes {
		names[i] = n.Entry.Name
	}
	return names
}

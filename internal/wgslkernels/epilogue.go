package wgslkernels

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// epilogue is the expression after an operation whose result is matrices: it is applied to each element before that is
// stored. The zero value leaves it as it is.
type epilogue struct {
	*expression
	reaches []reach // of the operands from the second on
}

// finishing is the epilogue of a step: that of the operation itself, own, then the step's. columns is the number of the
// results' last axes that are columns.
func (s *step) finishing(own *expression, columns int) (epilogue, error) {
	if s.epilogue != nil {
		own = own.then(s.epilogue)
	}
	if own.nothing() {
		return epilogue{}, nil
	}
	row, column := matrixAxes(s.Result.Shape, columns)
	reaches, err := own.reaches(1, s.Result.Shape, row, column)
	return epilogue{own, reaches}, err
}

// biased is act(x + bias) of a step's result; without a bias there is none of its type.
func (s *step) biased(bias ...program.Type) *expression {
	f := identity(s.Result, Buffer{})
	if len(bias) > 0 {
		f = call(catalogue.Add, nil, []program.Type{s.Result, bias[0]}, []Buffer{{}, operand(2)})
	}
	return f.activated(s.Attr.Activation())
}

func (e epilogue) key() string {
	if e.expression == nil {
		return ""
	}
	return fmt.Sprint(&e.Expression, e.reaches)
}

// bindings are the operands from the second on. Those that have an element for each of the result's are bound like it.
func (e epilogue) bindings(y Buffer) (bind []Buffer) {
	for i, r := range e.reaches {
		b := e.bind[1+i]
		if r == each {
			b.Offset, b.Size = y.Offset, y.Size
		}
		bind = append(bind, b)
	}
	return bind
}

// words are the scalars.
func (e epilogue) words() []uint32 {
	if e.expression == nil {
		return nil
	}
	return e.uniforms()
}

// finishText is what the template "finish" sees: function finish of a kernel, over one element or, Vector, four of a row. Params has the
// scalars.
type finishText struct {
	First               int // binding
	Extras              []extra
	Vector              bool
	Scalars             int
	Functions, Function string
	Call                string
}

// extra is an operand of an epilogue from its second on.
type extra struct{ Type, Load string }

// text describes the function finish(x, row, column, at), where at is the element's index in the bound part of the result.
// row and column are the indices, as expressions over row and col, in operands that have one element for each. The scalars
// begin at the uniform's of number scalar.
func (e epilogue) text(first, scalar int, vector bool, row, column string) finishText {
	t := finishText{First: first, Vector: vector, Call: "x"}
	if e.expression == nil {
		return t
	}
	values := []string{"x"}
	for i, r := range e.reaches {
		x := extra{"f32", ""}
		if vector && (r == each || r == perColumn) {
			x.Type = "vec4<f32>"
		}
		at := map[reach]string{each: "at", perColumn: column, perRow: row, allOver: "0u"}[r]
		if x.Type != "f32" {
			at = "(" + at + ") >> 2u"
		}
		x.Load = fmt.Sprintf("extra%d[%s]", i, at)
		if vector && x.Type == "f32" {
			x.Load = "vec4(" + x.Load + ")"
		}
		t.Extras = append(t.Extras, x)
		values = append(values, fmt.Sprint("e", i))
	}
	t.Scalars, t.Function, t.Call = len(e.scalars), e.definition("epilogue", scalar), e.applied("epilogue", vector, values...)
	t.Functions = functionsOf(t.Function)
	return t
}

// applied is the call of the expression's function: of single values, or of each component of vectors.
func (f *expression) applied(name string, vector bool, values ...string) string {
	if f.nothing() {
		return values[0]
	}
	if !vector {
		return name + "(" + strings.Join(values, ", ") + ")"
	}
	var lanes []string
	for _, c := range []string{"x", "y", "z", "w"} {
		lanes = append(lanes, name+"("+strings.Join(values, "."+c+", ")+"."+c+")")
	}
	return "vec4(" + strings.Join(lanes, ", ") + ")"
}

package main

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

const floats = "[]float32"

// deviceMethods returns the methods of one entry on slices of host memory.
func deviceMethods(e *program.Entry) []Method {
	switch e {
	case catalogue.MatMul:
		return matmulMethods(e)
	case catalogue.MatVec:
		return []Method{simple(e.Method, doc(e.Method+"Async", e), []Param{{"y", floats}, {"a", floats}, {"x", floats}, {"m", "int"}, {"k", "int"}},
			`o.start("matvec", []Operand{Of(y, m)}, []Operand{Of(a, m, k), Of(x, k)}, nil, nil)`)}
	case catalogue.VecMat:
		return []Method{simple(e.Method, doc(e.Method+"Async", e), []Param{{"y", floats}, {"x", floats}, {"a", floats}, {"k", "int"}, {"n", "int"}},
			`o.start("vecmat", []Operand{Of(y, n)}, []Operand{Of(x, k), Of(a, k, n)}, nil, nil)`)}
	case catalogue.Reshape: // a slice has no shape to change
		return nil
	case catalogue.Fill:
		return []Method{simple(e.Method, doc(e.Method+"Async", e), []Param{{"y", floats}, {"value", "float32"}},
			`o.start("fill", []Operand{Of(y)}, nil, []float32{value}, FillOptions{Shape: []int{len(y)}})`)}
	case catalogue.RandomUniform, catalogue.RandomNormal:
		return []Method{simple(e.Method, doc(e.Method+"Async", e), []Param{{"y", floats}, {"seed", "[2]uint32"}, {"stream", "int"}},
			fmt.Sprintf(`o.start(%q, []Operand{Of(y)}, []Operand{Of(seed[:])}, nil, RandomOptions{Shape: []int{len(y)}, Stream: stream})`, e.Name))}
	case catalogue.Concat:
		return []Method{simple(e.Method, doc(e.Method+"Async", e), []Param{{"y", "any"}, {"options", "ConcatOptions"}, {"x", "...Operand"}},
			`o.start("concat", destinations(y), x, nil, options)`)}
	}
	if e.Results != nil || e.Updates > 0 || e == catalogue.Inspect {
		return shapedMethods(e)
	}
	switch e.Class {
	case program.Unary, program.Binary, program.Ternary:
		return []Method{elementwiseMethod(e)}
	case program.Reduce:
		return []Method{reduceMethod(e)}
	case program.Rows:
		return []Method{rowsMethod(e)}
	}
	return shapedMethods(e)
}

func elementwiseMethod(e *program.Entry) Method {
	params := []Param{{"y", floats}}
	var in []string
	for _, x := range e.Inputs {
		params = append(params, Param{x.Name, floats})
		in = append(in, "Of("+x.Name+")")
	}
	scalars, scalarArg := scalarParams(e)
	var more []string
	if len(e.Inputs) > 1 {
		more = []string{"Operands of one element are repeated; for other shapes see [Ops.ApplyAsync]."}
	}
	return simple(e.Method, doc(e.Method+"Async", e, more...), append(params, scalars...),
		fmt.Sprintf(`o.start(%q, []Operand{Of(y)}, []Operand{%s}, %s, nil)`, e.Name, strings.Join(in, ", "), scalarArg))
}

func reduceMethod(e *program.Entry) Method {
	out := floats
	if strings.HasPrefix(e.Name, "arg") {
		out = "[]int32"
	}
	params := []Param{{"y", out}}
	var in []string
	for _, x := range e.Inputs {
		params = append(params, Param{x.Name, floats})
		in = append(in, "rowsOf("+x.Name+", len(y))")
	}
	return simple(e.Method, doc(e.Method+"Async", e, "Operands are taken as len(y) rows of equal length, each reduced to one element of y."),
		params, fmt.Sprintf(`o.start(%q, []Operand{Of(y)}, []Operand{%s}, nil, LastAxis)`, e.Name, strings.Join(in, ", ")))
}

func rowsMethod(e *program.Entry) Method {
	params := []Param{{"y", floats}, {"x", floats}}
	in := []string{"Of(x, rows, cols)"}
	for _, v := range e.Inputs[1:] {
		params = append(params, Param{v.Name, floats})
		in = append(in, "Of("+v.Name+", cols)")
	}
	scalars, scalarArg := scalarParams(e)
	params = append(append(params, Param{"rows", "int"}, Param{"cols", "int"}), scalars...)
	return simple(e.Method, doc(e.Method+"Async", e), params,
		fmt.Sprintf(`o.start(%q, []Operand{Of(y, rows, cols)}, []Operand{%s}, %s, nil)`, e.Name, strings.Join(in, ", "), scalarArg))
}

func matmulMethods(e *program.Entry) []Method {
	dims := []Param{{"m", "int"}, {"k", "int"}, {"n", "int"}, {"options", "...MatMulOptions"}}
	operands := []Param{{"c", floats}, {"a", floats}, {"b", floats}}
	return []Method{
		simple("MatMul", doc("MatMulAsync", e, "a is [m, k], b is [k, n] and c is [m, n], unless the options transpose them. There is no bias."),
			append(operands[:3:3], dims...), "o.matmul(c, a, b, nil, nil, m, k, n, options)"),
		simple("MatMulWithBias", comment("MatMulWithBiasAsync is [Ops.MatMulAsync] with bias [n] added to each row before the activation."),
			append(append(operands[:3:3], Param{"bias", floats}), dims...), "o.matmulBias(c, a, b, bias, m, k, n, options)"),
		simple("BatchedMatMul", comment("BatchedMatMulAsync is [Ops.MatMulAsync] on batch matrices one after the other in each operand."),
			append(append(operands[:3:3], Param{"batch", "int"}), dims...), "o.matmul(c, a, b, nil, []int{batch}, m, k, n, options)"),
	}
}

// shapedMethods take operands with shapes, see compute.Of. Operands that are updated in place are their own destinations.
func shapedMethods(e *program.Entry) []Method {
	out := "any"
	if e.Class == program.Window || e == catalogue.Embedding || e == catalogue.Pad {
		out = floats
	}
	options, optionArg := optionParam(e, "")
	scalars, scalarArg := scalarParams(e)
	results := resultNames(e)
	method := func(name, doc string, inputs []program.Input) Method {
		var params []Param
		var in, to []string
		for i, y := range results {
			if i < e.Updates {
				to = append(to, inputs[i].Name+".Data")
				continue
			}
			params = append(params, Param{y, out})
			to = append(to, y)
		}
		for _, x := range inputs {
			params = append(params, Param{x.Name, "Operand"})
			in = append(in, x.Name)
		}
		params = append(append(params, scalars...), options...)
		return Method{Name: name, Doc: doc, Params: params, Body: fmt.Sprintf(`o.start(%q, destinations(%s), []Operand{%s}, %s, %s)`, e.Name,
			strings.Join(to, ", "), strings.Join(in, ", "), scalarArg, optionArg)}
	}
	least, _ := e.Arity()
	ms := []Method{method(e.Method, doc(e.Method+"Async", e, destinationDoc(e)...), e.Inputs[:least])}
	for _, v := range withOptional(e) {
		ms = append(ms, method(v.name, comment(fmt.Sprintf("%sAsync is [Ops.%sAsync] with %s.", v.name, e.Method, v.what)), v.inputs))
	}
	return ms
}

func destinationDoc(e *program.Entry) []string {
	var parts []string
	if names := updated(e); names != "" {
		parts = append(parts, names+" overwritten.")
	}
	switch names := resultNames(e)[e.Updates:]; len(names) {
	case 0:
	case 1:
		parts = append(parts, "The length of "+names[0]+" must be that of the result.")
	default:
		parts = append(parts, "The lengths of "+enumerate(names)+" must be those of the results.")
	}
	return parts
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

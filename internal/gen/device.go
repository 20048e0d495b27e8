package main

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/internal/op"
)

const floats = "[]float32"

// deviceMethods returns the methods of one entry on slices of host memory.
func deviceMethods(e *op.Entry) []Method {
	switch e {
	case op.MatMul:
		return matmulMethods(e)
	case op.MatVec:
		return []Method{{e.Method, doc(e.Method+"Async", e), []Param{{"y", floats}, {"a", floats}, {"x", floats}, {"m", "int"}, {"k", "int"}},
			`o.run.Run("matvec", Of(y, m), []Operand{Of(a, m, k), Of(x, k)}, nil, nil)`}}
	case op.VecMat:
		return []Method{{e.Method, doc(e.Method+"Async", e), []Param{{"y", floats}, {"x", floats}, {"a", floats}, {"k", "int"}, {"n", "int"}},
			`o.run.Run("vecmat", Of(y, n), []Operand{Of(x, k), Of(a, k, n)}, nil, nil)`}}
	case op.Reshape: // a slice has no shape to change
		return nil
	case op.Fill:
		return []Method{{e.Method, doc(e.Method+"Async", e), []Param{{"y", floats}, {"value", "float32"}},
			`o.run.Run("fill", Of(y), nil, []float32{value}, FillOptions{Shape: []int{len(y)}})`}}
	case op.Concat:
		return []Method{{e.Method, doc(e.Method+"Async", e), []Param{{"y", "any"}, {"options", "ConcatOptions"}, {"x", "...Operand"}},
			`o.run.Run("concat", Operand{Data: y}, x, nil, options)`}}
	}
	switch e.Class {
	case op.Unary, op.Binary, op.Ternary:
		return []Method{elementwiseMethod(e)}
	case op.Reduce:
		return []Method{reduceMethod(e)}
	case op.Rows:
		return []Method{rowsMethod(e)}
	}
	return shapedMethods(e)
}

func elementwiseMethod(e *op.Entry) Method {
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
	return Method{e.Method, doc(e.Method+"Async", e, more...), append(params, scalars...),
		fmt.Sprintf(`o.run.Run(%q, Of(y), []Operand{%s}, %s, nil)`, e.Name, strings.Join(in, ", "), scalarArg)}
}

func reduceMethod(e *op.Entry) Method {
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
	return Method{e.Method, doc(e.Method+"Async", e, "The operand is taken as len(y) rows of equal length, each reduced to one element of y."),
		params, fmt.Sprintf(`o.run.Run(%q, Of(y), []Operand{%s}, nil, LastAxis)`, e.Name, strings.Join(in, ", "))}
}

func rowsMethod(e *op.Entry) Method {
	params := []Param{{"y", floats}, {"x", floats}}
	in := []string{"Of(x, rows, cols)"}
	for _, v := range e.Inputs[1:] {
		params = append(params, Param{v.Name, floats})
		in = append(in, "Of("+v.Name+", cols)")
	}
	scalars, scalarArg := scalarParams(e)
	params = append(append(params, Param{"rows", "int"}, Param{"cols", "int"}), scalars...)
	return Method{e.Method, doc(e.Method+"Async", e), params,
		fmt.Sprintf(`o.run.Run(%q, Of(y, rows, cols), []Operand{%s}, %s, nil)`, e.Name, strings.Join(in, ", "), scalarArg)}
}

func matmulMethods(e *op.Entry) []Method {
	dims := []Param{{"m", "int"}, {"k", "int"}, {"n", "int"}, {"options", "...MatMulOptions"}}
	operands := []Param{{"c", floats}, {"a", floats}, {"b", floats}}
	return []Method{
		{"MatMul", doc("MatMulAsync", e, "Here a is [m, k], b is [k, n] and c is [m, n], or as the options transpose them; there is no bias."),
			append(operands[:3:3], dims...), "o.matmul(c, a, b, nil, nil, m, k, n, options)"},
		{"MatMulBias", comment("MatMulBiasAsync is [Ops.MatMulAsync] with bias [n] added to each row before the activation."),
			append(append(operands[:3:3], Param{"bias", floats}), dims...), "o.matmulBias(c, a, b, bias, m, k, n, options)"},
		{"BatchedMatMul", comment("BatchedMatMulAsync is [Ops.MatMulAsync] on batch matrices one after the other in each operand."),
			append(append(operands[:3:3], Param{"batch", "int"}), dims...), "o.matmul(c, a, b, nil, []int{batch}, m, k, n, options)"},
	}
}

// shapedMethods take operands with shapes, see compute.Of.
func shapedMethods(e *op.Entry) []Method {
	out := "any"
	if e.Class == op.Window || e == op.Embedding || e == op.Pad {
		out = floats
	}
	options, optionArg := optionParam(e, "")
	scalars, scalarArg := scalarParams(e)
	method := func(name, doc string, inputs []op.Input) Method {
		params := []Param{{"y", out}}
		var in []string
		for _, x := range inputs {
			params = append(params, Param{x.Name, "Operand"})
			in = append(in, x.Name)
		}
		params = append(append(params, scalars...), options...)
		return Method{name, doc, params, fmt.Sprintf(`o.run.Run(%q, Operand{Data: y}, []Operand{%s}, %s, %s)`, e.Name,
			strings.Join(in, ", "), scalarArg, optionArg)}
	}
	least, most := e.Arity()
	ms := []Method{method(e.Method, doc(e.Method+"Async", e, "The length of y must be that of the result."), e.Inputs[:least])}
	for n := least + 1; n <= most; n++ {
		name := e.Method + title(e.Inputs[n-1].Name)
		ms = append(ms, method(name, comment(fmt.Sprintf("%sAsync is [Ops.%sAsync] with %s.", name, e.Method, e.Inputs[n-1].Name)), e.Inputs[:n]))
	}
	return ms
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

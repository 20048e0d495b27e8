package main

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// batchMethods returns the recording methods of one entry.
func batchMethods(e *program.Entry) []Method {
	entry := "catalogue.Lookup(" + fmt.Sprintf("%q", e.Name) + ")"
	switch e {
	case catalogue.Reshape:
		return []Method{simple(e.Method, returned(e, "One dimension may be -1."), []Param{{"x", "Value"}, {"shape", "...int"}},
			fmt.Sprintf("rec.apply(%s, nil, compute.ReshapeOptions{Shape: shape}, x)", entry))}
	case catalogue.Fill:
		return []Method{simple(e.Method, returned(e), []Param{{"value", "float32"}, {"shape", "...int"}},
			fmt.Sprintf("rec.apply(%s, []float32{value}, compute.FillOptions{Shape: shape})", entry))}
	case catalogue.RandomUniform, catalogue.RandomNormal:
		return []Method{simple(e.Method, returned(e, "The seed is Uint32 [2]."),
			[]Param{{"seed", "Value"}, {"stream", "int"}, {"shape", "...int"}},
			fmt.Sprintf("rec.apply(%s, nil, compute.RandomOptions{Shape: shape, Stream: stream}, seed)", entry))}
	case catalogue.Cast:
		return []Method{simple(e.Method, returned(e), []Param{{"x", "Value"}, {"to", "compute.DType"}},
			fmt.Sprintf("rec.apply(%s, nil, compute.CastOptions{To: to}, x)", entry))}
	case catalogue.Concat:
		return []Method{simple(e.Method, returned(e, "A negative axis counts from the end."), []Param{{"axis", "int"}, {"x", "...Value"}},
			fmt.Sprintf("rec.apply(%s, nil, compute.ConcatOptions{Axis: axis}, x...)", entry))}
	}
	scalars, scalarArg := scalarParams(e)
	options, optionArg := optionParam(e, "compute.")
	method := func(name, doc string, inputs []program.Input) Method {
		var params []Param
		var in []string
		for _, x := range inputs {
			params = append(params, Param{x.Name, "Value"})
			in = append(in, x.Name)
		}
		params = append(append(params, scalars...), options...)
		m := Method{Name: name, Doc: doc, Params: params, Results: resultsOf(e)}
		apply := "rec.apply"
		if m.Results != nil {
			apply = "rec.applyAll"
		}
		m.Body = fmt.Sprintf("%s(%s, %s, %s, %s)", apply, entry, scalarArg, optionArg, strings.Join(in, ", "))
		return m
	}
	var more []string
	if names := updated(e); names != "" {
		more = append(more, names+" updated in place; tensors keep the new values. Later steps must use the results of this one.")
	}
	if e.Class == program.Reduce {
		more = append(more, "Without an axis all elements are reduced, to shape [].")
	}
	least, _ := e.Arity()
	ms := []Method{method(e.Method, returned(e, more...), e.Inputs[:least])}
	for _, v := range withOptional(e) {
		ms = append(ms, method(v.name, comment(fmt.Sprintf("%s is [Batch.%s] with %s.", v.name, e.Method, v.what)), v.inputs))
	}
	return ms
}

// resultsOf names the results of a recording method so that they do not hide its parameters.
func resultsOf(e *program.Entry) []string {
	if e.Results == nil {
		return nil
	}
	names := make([]string, len(e.Results))
	for i, y := range e.Results {
		if names[i] = y; i < e.Updates {
			names[i] = y + "New"
		}
	}
	return names
}

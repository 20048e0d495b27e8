package wgslkernels

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// reduction is the code of an entry: value maps an element a (and b) at index i of its row to an accumulator, merge joins
// accumulators a and b, finish turns the accumulator a of a row into its result.
type reduction struct {
	accumulator
	value, finish, out string
}

// accumulator is the type that is merged, WGSL text all of it; bytes is its size.
type accumulator struct {
	acc, identity, merge string
	bytes                int
}

var (
	sums   = accumulator{"f32", "0.0", "a + b", 4}
	maxima = accumulator{"u32", "0u", "max(a, b)", 4} // of order_key: 0 is below the key of every float
	// pairs of order_key and index; the lower index wins among equals
	places = accumulator{"vec2<u32>", "0u, 0xffffffffu", "select(a, b, b.x > a.x || (b.x == a.x && b.y < a.y))", 8}
	// how many NaN and Inf, and the lowest index of each
	specials = accumulator{"vec4<u32>", "0u, 0u, 0xffffffffu, 0xffffffffu", "vec4(a.xy + b.xy, min(a.zw, b.zw))", 16}
)

var reductions = map[*program.Entry]reduction{
	catalogue.Sum:        {sums, "a", "a", "f32"},
	catalogue.SumSquares: {sums, "a * a", "a", "f32"},
	catalogue.Mean:       {sums, "a", "select(a / p.count, nan(), p.count == 0.0)", "f32"},
	catalogue.NormL1:     {sums, "abs(a)", "a", "f32"},
	catalogue.NormL2:     {sums, "a * a", "ieee_sqrt(a)", "f32"},
	catalogue.DotProduct: {sums, "a * b", "a", "f32"},
	catalogue.Max:        {maxima, "order_key(a)", "order_value(a)", "f32"},
	catalogue.Min:        {maxima, "order_key(-a)", "-order_value(a)", "f32"},
	catalogue.NormLInf:   {maxima, "bitcast<u32>(a) & 0x7fffffffu", "bitcast<f32>(a)", "f32"},
	catalogue.ArgMax:     {places, "vec2(order_key(a), i)", "a.y", "u32"},
	catalogue.ArgMin:     {places, "vec2(order_key(-a), i)", "a.y", "u32"},
	catalogue.Inspect:    {specials, "special_number(a, i)", "a", "vec4<u32>"},
}

// longestRun bounds how many terms a thread adds one after the other; the runs of a thread are as many at most.
const longestRun = 16

// reduceKernel describes one specialisation of reduce.wgsl.
type reduceKernel struct {
	name string // of entry and stage
	reduction
	prologue  *expression // of operand a
	reads     []reach     // of its operands
	in        []binding   // them and, where there is one, operand b
	epilogue  epilogue
	element   string // of the operands: vec4<f32>, or the accumulator in the second stage
	lanes     int    // threads per task, a power of two that divides workgroup
	workgroup int
	subgroups bool // see tree
}

func (r *reduceKernel) width() int {
	if r.element == "vec4<f32>" {
		return 4
	}
	return 1
}

// reduceWords are those of struct Params before the scalars.
const reduceWords = 11

// kernel has as bindings those of in, then the operands of the epilogue, then the result.
func (r *reduceKernel) kernel(bindings []binding) *wgsl.Kernel {
	t := newTree(r.acc, r.merge, r.lanes, r.workgroup, r.subgroups)
	key := fmt.Sprintf("%s/%s/%d/%d/%v%v/%s%s", r.name, r.element, r.lanes, r.workgroup, &r.prologue.Expression, r.reads, r.epilogue.key(), t.key())
	return cached(key, func() *wgsl.Kernel {
		data := struct {
			In                                                   []binding
			Result                                               int // binding
			Other                                                bool
			Reads                                                []string // how the operands of a are read
			One, Four                                            string   // a, of values of its operands
			Element, Scalar, Out, Identity, Value, Merge, Finish string
			Epilogue                                             finishText
			Columns                                              []string
			Width, Run, Scalars                                  int
			tree
		}{In: r.in, Result: len(bindings) - 1, Other: len(r.in) > len(r.reads), Element: r.element, Scalar: r.element, Out: r.out,
			Identity: r.identity, Value: r.value, Merge: r.merge, Finish: r.finish, tree: t,
			Width: r.width(), Run: longestRun, Columns: []string{""},
			Scalars: len(r.prologue.scalars) + len(r.epilogue.words())}
		if r.width() == 4 {
			data.Scalar = "f32"
			data.Columns = []string{".x", ".y", ".z", ".w"}
		}
		var values []string
		for i, reach := range r.reads {
			data.Reads, values = append(data.Reads, string(reach)), append(values, fmt.Sprint("v", i))
		}
		data.One, data.Four = r.prologue.applied("prologue", false, values...), r.prologue.applied("prologue", true, values...)
		before := r.prologue.definition("prologue", 0)
		data.Epilogue = r.epilogue.text(len(r.in), len(r.prologue.scalars), false, "", "")
		data.Epilogue.Functions = functionsOf(r.value, r.finish, before, data.Epilogue.Function) + before
		k := &wgsl.Kernel{Bindings: accesses(bindings), Uniform: roundUniform(reduceWords + data.Scalars),
			Workgroup: [3]uint32{uint32(r.workgroup), 1, 1}}
		if r.lanes > 1 {
			k.Shared = r.bytes * r.workgroup
		}
		k.Source = render("reduce.wgsl", data, t.enable()...)
		return k
	})
}

// of makes x what is reduced, an operand or the values of parts.
func (r *reduceKernel) of(x Buffer) *reduceKernel {
	r.prologue, r.reads, r.in = identity(program.Type{}, x), []reach{each}, []binding{{Name: "x0", Type: r.element, Buffer: x, reach: each}}
	return r
}

// results is the reach of what has an element for each row, as the result has.
const results reach = "result"

func reduce(s *step) error {
	axis := s.Attr.Options.(compute.Axis)
	shape := s.Operands[0].Shape
	rows, cols := program.ReduceRows(shape, axis)
	k := (&reduceKernel{name: s.Entry.Name, reduction: reductions[s.Entry], element: "vec4<f32>", workgroup: s.workgroup()}).of(operand(0))
	if s.prologue != nil {
		column := 0
		if axis == compute.LastAxis {
			_, column = matrixAxes(shape, 1)
		}
		reads, err := s.prologue.reaches(0, shape, 0, column)
		if err != nil {
			return err
		}
		k.prologue, k.reads, k.in = s.prologue, reads, nil
		for i, r := range reads {
			b := binding{Name: fmt.Sprint("x", i), Type: "f32", Buffer: s.prologue.bind[i], reach: r}
			if r == each {
				b.Type = k.element
			}
			k.in = append(k.in, b)
		}
	}
	if len(s.Operands) > 1 {
		k.in = append(k.in, binding{Name: "other", Type: k.element, Buffer: operand(1), reach: each})
	}
	var finish epilogue
	if s.epilogue != nil {
		reaches, err := s.epilogue.reaches(1, s.Result.Shape, len(s.Result.Shape), len(s.Result.Shape))
		if err != nil {
			return err
		}
		finish = epilogue{s.epilogue, reaches}
	}
	w := s.split(rows, cols, longestRun*longestRun*4*k.workgroup)
	size := s.Result.Bytes() / rows // of the result of a row
	if w.parts == 1 {
		k.epilogue = finish
		return s.reduceStage(k, w, 4, size, cols, result)
	}
	first := *k
	first.name += "/part"
	first.finish, first.out = "a", k.acc
	partial := s.NewScratch(w.tasks() * k.bytes)
	if err := s.reduceStage(&first, w, 4, k.bytes, cols, partial); err != nil {
		return err
	}
	k.name += "/join"
	k.epilogue, k.element, k.value = finish, k.acc, "a"
	return s.reduceStage(k.of(partial), work{rows: rows, cols: w.parts, parts: 1, chunk: w.parts}, k.bytes, size, cols, result)
}

// reduceStage reduces every task of w from elements of inBytes to values of outBytes.
func (s *step) reduceStage(k *reduceKernel, w work, inBytes, outBytes, count int, out Buffer) error {
	k.lanes = lanes(w.tasks(), min(w.chunk, w.cols), k.width(), longestRun, k.workgroup)
	k.subgroups = s.inSubgroups("reduce", k.name, w, k.lanes)
	extents := w.extents()
	extents[each], extents[results] = w.extent(inBytes), perTask(outBytes)
	bindings := slices.Clone(k.in)
	for i, r := range k.epilogue.reaches {
		if r == each {
			r = results
		}
		bindings = append(bindings, binding{Buffer: k.epilogue.bind[1+i], reach: r})
	}
	bindings = append(bindings, binding{Write: true, Buffer: out, reach: results})
	return s.reaching(w.tasks(), bindings, extents, func(first, end int, at map[reach]int, bind []Buffer) {
		params := append(w.params(first, end), uint32(at[each]/inBytes), uint32(at[results]/outBytes), infBits, bits(float32(count)),
			uint32(at[perColumn]/4), uint32(at[perRow]/4))
		params = slices.Concat(params, k.prologue.uniforms(), k.epilogue.words())
		s.dispatch(k.kernel(bindings), s.linear(ceilDiv(end-first, k.workgroup/k.lanes)), params, bind...)
	})
}

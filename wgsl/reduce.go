package wgsl

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
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
)

var reductions = map[*op.Entry]reduction{
	op.Sum:        {sums, "a", "a", "f32"},
	op.Mean:       {sums, "a", "select(a / p.count, nan(), p.count == 0.0)", "f32"},
	op.NormL1:     {sums, "abs(a)", "a", "f32"},
	op.NormL2:     {sums, "a * a", "ieee_sqrt(a)", "f32"},
	op.DotProduct: {sums, "a * b", "a", "f32"},
	op.Max:        {maxima, "order_key(a)", "order_value(a)", "f32"},
	op.Min:        {maxima, "order_key(-a)", "-order_value(a)", "f32"},
	op.NormLInf:   {maxima, "bitcast<u32>(a) & 0x7fffffffu", "bitcast<f32>(a)", "f32"},
	op.ArgMax:     {places, "vec2(order_key(a), i)", "a.y", "u32"},
	op.ArgMin:     {places, "vec2(order_key(-a), i)", "a.y", "u32"},
}

func init() {
	for e := range reductions {
		lowerings[e] = reduce
	}
}

// longestRun bounds how many terms a thread adds one after the other; the runs of a thread are as many at most.
const longestRun = 16

// reduceKernel describes one specialisation of reduce.wgsl.
type reduceKernel struct {
	name     string // of entry and stage
	operands int
	reduction
	element   string // of the operands: vec4<f32>, or the accumulator in the second stage
	lanes     int    // threads per task, a power of two that divides workgroup
	workgroup int
	subgroups bool // see tree
}

func (r reduceKernel) width() int {
	if r.element == "vec4<f32>" {
		return 4
	}
	return 1
}

func (r reduceKernel) kernel() *Kernel {
	t := newTree(r.acc, r.merge, r.lanes, r.workgroup, r.subgroups)
	key := fmt.Sprintf("%s/%s/%d/%d%s", r.name, r.element, r.lanes, r.workgroup, t.key())
	return cached(key, func() *Kernel {
		data := struct {
			Operands, Columns                                               []string
			Element, Scalar, Out, Identity, Value, Merge, Finish, Functions string
			Width, Run                                                      int
			tree
		}{Element: r.element, Scalar: r.element, Out: r.out, Identity: r.identity, Value: r.value, Merge: r.merge, Finish: r.finish,
			Functions: functionsOf(r.value, r.finish), Width: r.width(), Run: longestRun, Columns: []string{""}, tree: t}
		if r.width() == 4 {
			data.Scalar = "f32"
			data.Columns = []string{".x", ".y", ".z", ".w"}
		}
		k := &Kernel{Uniform: 48, Workgroup: [3]uint32{uint32(r.workgroup), 1, 1}}
		for i := range r.operands {
			data.Operands = append(data.Operands, string("ab"[i]))
			k.Bindings = append(k.Bindings, Read)
		}
		k.Bindings = append(k.Bindings, ReadWrite)
		if r.lanes > 1 {
			k.Shared = r.bytes * r.workgroup
		}
		k.Source = render("reduce.wgsl", data, t.enable()...)
		return k
	})
}

func reduce(s *step) error {
	r := reductions[s.Entry]
	rows, cols := op.ReduceRows(s.in[0].Shape, s.Attr.Options.(compute.Axis))
	var in []Buffer
	for i := range s.in {
		in = append(in, operand(i))
	}
	k := reduceKernel{name: s.Entry.Name, operands: len(in), reduction: r, element: "vec4<f32>", workgroup: s.workgroup()}
	w := s.split(rows, cols, longestRun*longestRun*4*k.workgroup)
	if w.parts == 1 {
		return s.reduceStage(k, w, 4, 4, cols, in, result)
	}
	first := k
	first.name += "/part"
	first.finish, first.out = "a", r.acc
	partial := s.scratch(w.tasks() * r.bytes)
	if err := s.reduceStage(first, w, 4, r.bytes, cols, in, partial); err != nil {
		return err
	}
	k.name += "/join"
	k.operands, k.element, k.value = 1, r.acc, "a"
	return s.reduceStage(k, work{rows: rows, cols: w.parts, parts: 1, chunk: w.parts}, r.bytes, 4, cols, []Buffer{partial}, result)
}

// reduceStage reduces every task of w from elements of inBytes to values of outBytes.
func (s *step) reduceStage(k reduceKernel, w work, inBytes, outBytes, count int, in []Buffer, out Buffer) error {
	k.lanes = lanes(w.tasks(), min(w.chunk, w.cols), k.width(), longestRun, k.workgroup)
	k.subgroups = s.inSubgroups("reduce", k.name, w, k.lanes)
	emit := func(first, end int, parts []part) {
		var bind []Buffer
		for _, b := range in {
			bind = append(bind, parts[0].of(b))
		}
		params := append(w.params(first, end), uint32(parts[0].base/inBytes), uint32(parts[1].base/outBytes), infBits,
			bits(float32(count)))
		s.dispatch(k.kernel(), s.linear(ceilDiv(end-first, k.workgroup/k.lanes)), params, append(bind, parts[1].of(out))...)
	}
	return s.ranges(w.tasks(), emit, w.extent(inBytes), perTask(outBytes))
}

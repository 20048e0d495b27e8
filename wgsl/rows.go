package wgsl

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/internal/op"
)

// statistic says which file of kernels holds the functions of an entry, and the type that they accumulate.
type statistic struct {
	file    string
	variant string // of the file, or none
	acc     string
	bytes   int // of acc
	second  second
}

// second is what a second matrix is to rows.
type second string

// Kinds of second matrices. Without one the operands are x and vectors.
const (
	added second = "added" // operand 1: x is the sum of both, which is the first result; then come the vectors
	gate  second = "gate"  // operand 1: silu of it multiplies the result; then come the vectors
	// gradient is the last operand, that of a norm's result: times gamma, operand 1, it is what the statistic is taken of together
	// with x. The mean and the factor of each row are left for the gradients of vectors.
	gradient second = "gradient"
)

var statistics = map[*op.Entry]statistic{
	op.Softmax:      {"softmax.wgsl", "", "vec2<f32>", 8, ""},
	op.LogSoftmax:   {"softmax.wgsl", "log", "vec2<f32>", 8, ""},
	op.LayerNorm:    {"layer_norm.wgsl", "", "vec4<f32>", 16, ""},
	op.RMSNorm:      {"rms_norm.wgsl", "", "f32", 4, ""},
	op.L2Norm:       {"rms_norm.wgsl", "l2", "f32", 4, ""},
	op.GatedRMSNorm: {"rms_norm.wgsl", "", "f32", 4, gate},
	op.AddRMSNorm:   {"rms_norm.wgsl", "", "f32", 4, added},
	op.AddLayerNorm: {"layer_norm.wgsl", "", "vec4<f32>", 16, added},

	op.RMSNormBackward:   {"rms_norm_backward.wgsl", "", "vec2<f32>", 8, gradient},
	op.LayerNormBackward: {"layer_norm_backward.wgsl", "", "Moments", 32, gradient},
}

func init() {
	for e, s := range statistics {
		if s.second == "" || s.second == gate {
			lowerings[e] = rowwise
		}
	}
}

const (
	keptBlocks = 4  // blocks of four elements that a thread can keep in registers
	mostBlocks = 64 // that it takes in one after the other, which bounds rounding errors
)

// rowsKernel describes one specialisation of rows.wgsl.
type rowsKernel struct {
	entry     *op.Entry
	stage     string // whole, part or write
	width     int    // elements of a read or write: 4 where rows begin at multiples of 4, else 1
	blocks    int    // of four elements that a thread keeps in registers; 0 where a row does not fit them
	lanes     int    // threads per task, a power of two that divides workgroup
	workgroup int
	subgroups bool // see tree
}

// binding is a storage buffer of a kernel.
type binding struct {
	Name, Type string
	Write      bool
}

// accesses is what a kernel does to its bindings.
func accesses(bindings []binding) (a []Access) {
	for _, b := range bindings {
		if b.Write {
			a = append(a, ReadWrite)
		} else {
			a = append(a, Read)
		}
	}
	return a
}

// vectors is the number of operands as long as a row.
func (s statistic) vectors(e *op.Entry) int {
	if s.second == "" {
		return len(e.Inputs) - 1
	}
	return len(e.Inputs) - 2
}

// bindings are those of a stage, in the order of rowsBuffers.
func (r rowsKernel) bindings(unit string) []binding {
	st := statistics[r.entry]
	all := []binding{{Name: "x", Type: unit}}
	if st.second != "" && (r.stage != "part" || st.second != gate) {
		all = append(all, binding{Name: "m", Type: unit})
	}
	if st.second == gradient {
		all = append(all, binding{Name: "vector0", Type: unit})
	} else if r.stage != "part" {
		for i := range st.vectors(r.entry) {
			all = append(all, binding{Name: fmt.Sprint("vector", i), Type: unit})
		}
	}
	if r.stage == "part" {
		return append(all, binding{"statistics", st.acc, true})
	}
	switch st.second {
	case added:
		all = append(all, binding{"sum", unit, true})
	case gradient:
		all = append(all, binding{"norms", "vec2<f32>", true})
	}
	all = append(all, binding{"y", unit, true})
	if r.stage == "write" {
		all = append(all, binding{Name: "statistics", Type: st.acc})
	}
	return all
}

func (r rowsKernel) kernel() *Kernel {
	t := newTree(statistics[r.entry].acc, mergeOf(statistics[r.entry].acc), r.lanes, r.workgroup, r.subgroups)
	key := fmt.Sprintf("%s/%s/%d/%d/%d/%d%s", r.entry.Name, r.stage, r.width, r.blocks, r.lanes, r.workgroup, t.key())
	return cached(key, func() *Kernel {
		st := statistics[r.entry]
		var text strings.Builder
		if err := sources.ExecuteTemplate(&text, st.file, struct{ Variant string }{st.variant}); err != nil {
			panic(err) // our own text: every kernel is rendered in a test
		}
		functions := functionsOf(text.String())
		if st.second == gate {
			functions = functionsOf(text.String(), "swish")
		}
		unit := "f32"
		if r.width == 4 {
			unit = "vec4<f32>"
		}
		bindings := r.bindings(unit)
		k := &Kernel{Bindings: accesses(bindings), Uniform: 48, Workgroup: [3]uint32{uint32(r.workgroup), 1, 1}}
		if r.lanes > 1 {
			k.Shared = st.bytes * r.workgroup
		}
		k.Source = render("rows.wgsl", struct {
			Bindings                            []binding
			Stage, Functions, Statistic, Second string
			Width, Vectors, Blocks              int
			Components                          []string
			tree
		}{bindings, r.stage, functions, text.String(), string(st.second), r.width, st.vectors(r.entry), r.blocks,
			[]string{"x", "y", "z", "w"}, t}, t.enable()...)
		return k
	})
}

// rowsStep is a step over rows and the buffers of its kernels.
type rowsStep struct {
	*step
	y       Buffer
	partial Buffer // statistics of tasks
	norms   Buffer // of rows, with gradient
}

func rowwise(s *step) error { return (&rowsStep{step: s, y: result}).lower() }

func (s *rowsStep) lower() error {
	rows, cols := op.RowsCols(s.in[0].Shape)
	k := rowsKernel{entry: s.Entry, stage: "whole", width: 1, workgroup: s.workgroup()}
	if rows == 1 || cols%4 == 0 {
		k.width = 4
	}
	w := s.split(rows, cols, 4*mostBlocks*k.workgroup)
	if w.parts == 1 {
		k.lanes = lanes(rows, cols, 4, keptBlocks, k.workgroup)
		for k.blocks = 1; cols > 4*k.blocks*k.lanes; {
			k.blocks *= 2
		}
		if k.blocks > keptBlocks {
			k.blocks = 0
		}
		return s.stage(k, w)
	}
	k.lanes = k.workgroup
	s.partial = s.scratch(w.tasks() * statistics[s.Entry].bytes)
	part := k
	part.stage = "part"
	if err := s.stage(part, w); err != nil {
		return err
	}
	k.stage = "write"
	return s.stage(k, w)
}

// buffer is what a binding of that name is bound to, and which of the parts of a dispatch.
func (s *rowsStep) buffer(name string, x, vector, statistic, norm part) Buffer {
	m, v := 1, 1 // where the second matrix and the vectors begin
	switch statistics[s.Entry].second {
	case added, gate:
		v = 2
	case gradient:
		m = len(s.in) - 1
	}
	switch name {
	case "x":
		return x.of(operand(0))
	case "m":
		return x.of(operand(m))
	case "vector0":
		return vector.of(operand(v))
	case "vector1":
		return vector.of(operand(v + 1))
	case "sum":
		return x.of(result)
	case "y":
		return x.of(s.y)
	case "norms":
		return norm.of(s.norms)
	}
	return statistic.of(s.partial)
}

// stage runs one stage over every task of w.
func (s *rowsStep) stage(k rowsKernel, w work) error {
	st := statistics[s.Entry]
	var epsilon float32
	if len(s.Attr.Scalars) > 0 {
		epsilon = s.Attr.Scalars[0]
	}
	k.subgroups = s.inSubgroups("rows", k.entry.Name+"/"+k.stage, w, k.lanes)
	bindings := k.bindings("")
	none := func(int, int) (from, to int) { return 0, 0 }
	vector, statistic, norm := extent(none), extent(none), extent(none)
	if st.vectors(s.Entry) > 0 && (k.stage != "part" || st.second == gradient) {
		vector = func(first, end int) (from, to int) {
			row := first / w.parts
			if (end-1)/w.parts > row {
				return 0, 4 * w.cols
			}
			return 4 * (w.start(first) - row*w.cols), 4 * (w.start(end) - row*w.cols)
		}
	}
	switch k.stage {
	case "part":
		statistic = perTask(st.bytes)
	case "write": // of whole rows
		statistic = func(first, end int) (from, to int) {
			return st.bytes * (first / w.parts * w.parts), st.bytes * ceilDiv(end, w.parts) * w.parts
		}
	}
	if st.second == gradient && k.stage != "part" {
		norm = func(first, end int) (from, to int) { return 8 * (first / w.parts), 8 * ceilDiv(end, w.parts) }
	}
	emit := func(first, end int, parts []part) {
		x, vector, statistic, norm := parts[0], parts[1], parts[2], parts[3]
		var bind []Buffer
		for _, b := range bindings {
			bind = append(bind, s.buffer(b.Name, x, vector, statistic, norm))
		}
		params := append(w.params(first, end), uint32(x.base/4), uint32(statistic.base/st.bytes), infBits, bits(epsilon),
			uint32(vector.base/4), uint32(norm.base/8))
		s.dispatch(k.kernel(), s.linear(ceilDiv(end-first, k.workgroup/k.lanes)), params, bind...)
	}
	return s.ranges(w.tasks(), emit, w.extent(4), vector, statistic, norm)
}

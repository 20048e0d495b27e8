package wgslkernels

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
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

var gatedBy = program.Expression{Inputs: 2, Nodes: []program.Node{{Entry: catalogue.SiLU, Args: []int{1}}, {Entry: catalogue.Mul, Args: []int{0, 2}}}, Results: []int{3}}

var statistics = map[*program.Entry]statistic{
	catalogue.Softmax:      {"softmax.wgsl", "", "vec2<f32>", 8, ""},
	catalogue.LogSoftmax:   {"softmax.wgsl", "log", "vec2<f32>", 8, ""},
	catalogue.LayerNorm:    {"layer_norm.wgsl", "", "vec4<f32>", 16, ""},
	catalogue.RMSNorm:      {"rms_norm.wgsl", "", "f32", 4, ""},
	catalogue.L2Normalize:  {"rms_norm.wgsl", "l2", "f32", 4, ""},
	catalogue.GatedRMSNorm: {"rms_norm.wgsl", "", "f32", 4, gate},
	catalogue.AddRMSNorm:   {"rms_norm.wgsl", "", "f32", 4, added},
	catalogue.AddLayerNorm: {"layer_norm.wgsl", "", "vec4<f32>", 16, added},

	catalogue.RMSNormBackward:   {"rms_norm_backward.wgsl", "", "vec2<f32>", 8, gradient},
	catalogue.LayerNormBackward: {"layer_norm_backward.wgsl", "", "Moments", 32, gradient},
}

const (
	keptBlocks = 4  // blocks of four elements that a thread can keep in registers
	mostBlocks = 64 // that it takes in one after the other, which bounds rounding errors
)

// rowsKernel describes one specialisation of rows.wgsl.
type rowsKernel struct {
	entry     *program.Entry
	prologue  *expression // of x
	epilogue  *expression // of the result
	reads     []reach     // of the operands of prologue
	extras    []reach     // of the operands of epilogue from the second on
	stage     string      // whole, part or write
	width     int         // elements of a read or write: 4 where rows begin at multiples of 4, else 1
	blocks    int         // of four elements that a thread keeps in registers; 0 where a row does not fit them
	lanes     int         // threads per task, a power of two that divides workgroup
	workgroup int
	subgroups bool // see tree
}

// binding is a storage buffer of a kernel.
type binding struct {
	Name, Type string
	Write      bool
	Buffer     Buffer // that is bound to it
	reach      reach  // how much of the buffer a task needs; "" is that of the statistics
}

// accesses is what a kernel does to its bindings.
func accesses(bindings []binding) (a []wgsl.Access) {
	for _, b := range bindings {
		if b.Write {
			a = append(a, wgsl.ReadWrite)
		} else {
			a = append(a, wgsl.Read)
		}
	}
	return a
}

// vectors is the number of operands as long as a row.
func (s statistic) vectors(e *program.Entry) int {
	if s.second == "" {
		return len(e.Inputs) - 1
	}
	return len(e.Inputs) - 2
}

// fours is what the template "fours" sees: a value of four elements of each operand of an expression.
type fours struct {
	Width, First int // elements of a read or write; number of the first operand
	Name         string
	Reaches      []string
	Call         string // the expression of the values
}

func foursOf(f *expression, name, function string, width, first int, reaches []reach, values ...string) fours {
	t := fours{Width: width, First: first, Name: name}
	for i, r := range reaches {
		t.Reaches = append(t.Reaches, string(r))
		values = append(values, fmt.Sprint("v", first+i))
	}
	t.Call = f.applied(function, true, values...)
	return t
}

func (r *rowsKernel) kernel(bindings []binding) *wgsl.Kernel {
	acc := statistics[r.entry].acc
	t := newTree(acc, mergeOf(acc), r.lanes, r.workgroup, r.subgroups)
	key := fmt.Sprintf("%s/%s/%d/%d/%d/%d/%v%v/%v%v%s", r.entry.Name, r.stage, r.width, r.blocks, r.lanes, r.workgroup,
		&r.prologue.Expression, r.reads, &r.epilogue.Expression, r.extras, t.key())
	return cached(key, func() *wgsl.Kernel {
		st := statistics[r.entry]
		var text strings.Builder
		if err := sources().ExecuteTemplate(&text, st.file, struct{ Variant string }{st.variant}); err != nil {
			panic(err) // our own text: every kernel is rendered in a test
		}
		prologue, epilogue := r.prologue.definition("prologue", 0), r.epilogue.definition("epilogue", len(r.prologue.scalars))
		if r.stage == "part" {
			epilogue = ""
		}
		scalars := len(r.prologue.scalars) + len(r.epilogue.scalars)
		k := &wgsl.Kernel{Bindings: accesses(bindings), Uniform: roundUniform(rowsWords + scalars), Workgroup: [3]uint32{uint32(r.workgroup), 1, 1}}
		if r.lanes > 1 {
			k.Shared = st.bytes * r.workgroup
		}
		k.Source = render("rows.wgsl", struct {
			Bindings                            []binding
			Stage, Functions, Statistic, Second string
			Prologue, Epilogue                  fours
			Scalars, Width, Vectors, Blocks     int
			Components                          []string
			tree
		}{bindings, r.stage, functionsOf(text.String(), prologue, epilogue) + prologue + epilogue, text.String(), string(st.second),
			foursOf(r.prologue, "x", "prologue", r.width, 0, r.reads), foursOf(r.epilogue, "extra", "epilogue", r.width, 1, r.extras, "r"),
			scalars, r.width, st.vectors(r.entry), r.blocks, []string{"x", "y", "z", "w"}, t}, t.enable()...)
		return k
	})
}

// rowsWords are those of struct Params before the scalars.
const rowsWords = 12

// rowsStep is a step over rows and the buffers of its kernels.
type rowsStep struct {
	*step
	y       Buffer
	partial Buffer // statistics of tasks
	norms   Buffer // of rows, with gradient
}

func rowwise(s *step) error { return (&rowsStep{step: s, y: result}).lower() }

func (s *rowsStep) lower() error {
	shape := s.Operands[0].Shape
	rows, cols := program.RowsCols(shape)
	k := &rowsKernel{entry: s.Entry, stage: "whole", width: 1, workgroup: s.workgroup()}
	k.prologue, k.epilogue = s.prologue, s.epilogue
	if k.prologue == nil {
		k.prologue = identity(s.Operands[0], operand(0))
		if statistics[s.Entry].second == added {
			k.prologue = call(catalogue.Add, nil, s.Operands[:2], operands(0, 2))
		}
	}
	if k.epilogue == nil {
		k.epilogue = identity(s.Result, Buffer{})
		if statistics[s.Entry].second == gate {
			k.epilogue = &expression{gatedBy, nil, s.Operands[:2], operands(0, 2)}
		}
	}
	_, column := matrixAxes(shape, 1)
	var err error
	if k.reads, err = k.prologue.reaches(0, shape, 0, column); err != nil {
		return err
	}
	if k.extras, err = k.epilogue.reaches(1, shape, 0, column); err != nil {
		return err
	}
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
	s.partial = s.NewScratch(w.tasks() * statistics[s.Entry].bytes)
	part := *k
	part.stage = "part"
	if err := s.stage(&part, w); err != nil {
		return err
	}
	k.stage = "write"
	return s.stage(k, w)
}

// bindings are those of a stage.
func (s *rowsStep) bindings(k *rowsKernel) (all []binding) {
	st := statistics[s.Entry]
	add := func(name, unit string, r reach, write bool, b Buffer) {
		if unit == "" {
			unit = "f32"
			if k.width == 4 && (r == each || r == perColumn) {
				unit = "vec4<f32>"
			}
		}
		all = append(all, binding{name, unit, write, b, r})
	}
	for i, r := range k.reads {
		add("x"+strconv.Itoa(i), "", r, false, k.prologue.bind[i])
	}
	first := 1 // of the vectors
	switch st.second {
	case added, gate:
		first = 2
	case gradient:
		add("m", "", each, false, operand(len(s.Operands)-1))
	}
	if k.stage != "part" || st.second == gradient {
		for i := range st.vectors(s.Entry) {
			add("vector"+strconv.Itoa(i), "", perColumn, false, operand(first+i))
		}
	}
	if k.stage != "part" {
		for i, r := range k.extras {
			add("extra"+strconv.Itoa(1+i), "", r, false, k.epilogue.bind[1+i])
		}
		switch st.second {
		case added:
			add("sum", "", each, true, result)
		case gradient:
			add("norms", "vec2<f32>", "norm", true, s.norms)
		}
		add("y", "", each, true, s.y)
	}
	if k.stage != "whole" {
		add("statistics", st.acc, "", k.stage == "part", s.partial)
	}
	return all
}

// extents are the parts of buffers that tasks touch, by reach.
func (w work) extents() map[reach]extent {
	return map[reach]extent{
		each:    w.extent(4),
		allOver: func(int, int) (from, to int) { return 0, 4 },
		perRow:  w.perRow(4),
		perColumn: func(first, end int) (from, to int) {
			row := first / w.parts
			if (end-1)/w.parts > row {
				return 0, 4 * w.cols
			}
			return 4 * (w.start(first) - row*w.cols), 4 * (w.start(end) - row*w.cols)
		},
	}
}

// perRow is the extent of a tensor, given its bytes for each row.
func (w work) perRow(bytes int) extent {
	return func(first, end int) (from, to int) { return bytes * (first / w.parts), bytes * ceilDiv(end, w.parts) }
}

// stage runs one stage over every task of w.
func (s *rowsStep) stage(k *rowsKernel, w work) error {
	st := statistics[s.Entry]
	var epsilon float32
	if len(s.Attr.Scalars) > 0 {
		epsilon = s.Attr.Scalars[0]
	}
	k.subgroups = s.inSubgroups("rows", k.entry.Name+"/"+k.stage, w, k.lanes)
	bindings := s.bindings(k)
	extents := w.extents()
	extents["norm"] = w.perRow(8)
	extents[""] = perTask(st.bytes)
	if k.stage == "write" { // of whole rows
		extents[""] = func(first, end int) (from, to int) {
			return st.bytes * (first / w.parts * w.parts), st.bytes * ceilDiv(end, w.parts) * w.parts
		}
	}
	return s.reaching(w.tasks(), bindings, extents, func(first, end int, at map[reach]int, bind []Buffer) {
		params := append(w.params(first, end), uint32(at[each]/4), uint32(at[""]/st.bytes), infBits, bits(epsilon),
			uint32(at[perColumn]/4), uint32(at["norm"]/8), uint32(at[perRow]/4))
		params = slices.Concat(params, k.prologue.uniforms(), k.epilogue.uniforms())
		s.dispatch(k.kernel(bindings), s.linear(ceilDiv(end-first, k.workgroup/k.lanes)), params, bind...)
	})
}

// reaching is ranges for bindings, of which those of one reach begin at the same byte, at.
func (s *step) reaching(n int, bindings []binding, extents map[reach]extent,
	emit func(first, end int, at map[reach]int, bind []Buffer)) error {
	all := make([]extent, len(bindings))
	for i, b := range bindings {
		all[i] = extents[b.reach]
	}
	return s.ranges(n, func(first, end int, parts []part) {
		at, bind := map[reach]int{}, make([]Buffer, len(bindings))
		for i, b := range bindings {
			at[b.reach], bind[i] = parts[i].base, parts[i].of(b.Buffer)
		}
		emit(first, end, at, bind)
	}, all...)
}

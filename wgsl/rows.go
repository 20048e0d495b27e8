package wgsl

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/internal/op"
)

// statistic says which file of kernels holds the functions of an entry, and the type that they accumulate.
type statistic struct {
	file  string
	log   bool // softmax.wgsl: of its logarithm
	acc   string
	bytes int // of acc
}

var statistics = map[*op.Entry]statistic{
	op.Softmax:    {"softmax.wgsl", false, "vec2<f32>", 8},
	op.LogSoftmax: {"softmax.wgsl", true, "vec2<f32>", 8},
	op.LayerNorm:  {"layer_norm.wgsl", false, "vec4<f32>", 16},
	op.RMSNorm:    {"rms_norm.wgsl", false, "f32", 4},
}

func init() {
	for e := range statistics {
		lowerings[e] = rowwise
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
}

func (r rowsKernel) kernel() *Kernel {
	key := fmt.Sprintf("%s/%s/%d/%d/%d/%d", r.entry.Name, r.stage, r.width, r.blocks, r.lanes, r.workgroup)
	return cached(key, func() *Kernel {
		st := statistics[r.entry]
		var text strings.Builder
		if err := sources.ExecuteTemplate(&text, st.file, struct{ Log bool }{st.log}); err != nil {
			panic(err) // our own text: every kernel is rendered in a test
		}
		k := &Kernel{Uniform: 48, Workgroup: [3]uint32{uint32(r.workgroup), 1, 1}}
		vectors := len(r.entry.Inputs) - 1
		switch r.stage {
		case "part":
			k.Bindings = []Access{Read, ReadWrite}
		default:
			k.Bindings = make([]Access, 1+vectors, 3+vectors) // all Read
			k.Bindings = append(k.Bindings, ReadWrite)
			if r.stage == "write" {
				k.Bindings = append(k.Bindings, Read)
			}
		}
		if r.lanes > 1 {
			k.Shared = st.bytes * r.workgroup
		}
		unit := "f32"
		if r.width == 4 {
			unit = "vec4<f32>"
		}
		k.Source = render("rows.wgsl", struct {
			Unit, Acc, Stage, Functions, Statistic                   string
			Width, Lanes, Workgroup, Vectors, Blocks, UniformBinding int
			Components                                               []string
			Strides                                                  []int
		}{unit, st.acc, r.stage, functionsOf(text.String()), text.String(), r.width, r.lanes, r.workgroup, vectors, r.blocks,
			len(k.Bindings), []string{"x", "y", "z", "w"}, strides(r.lanes)})
		return k
	})
}

func rowwise(s *step) error {
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
		return s.rowsStage(k, w, Buffer{})
	}
	k.lanes = k.workgroup
	bytes := statistics[s.Entry].bytes
	partial := s.scratch(w.tasks() * bytes)
	part := k
	part.stage = "part"
	if err := s.rowsStage(part, w, partial); err != nil {
		return err
	}
	k.stage = "write"
	return s.rowsStage(k, w, partial)
}

// rowsStage runs one stage over every task of w.
func (s *step) rowsStage(k rowsKernel, w work, partial Buffer) error {
	bytes := statistics[s.Entry].bytes
	var epsilon float32
	if len(s.Attr.Scalars) > 0 {
		epsilon = s.Attr.Scalars[0]
	}
	emit := func(first, end int, parts []part) {
		x, vector, statistic := parts[0], parts[1], parts[2]
		bind := []Buffer{x.of(operand(0))}
		if k.stage == "part" {
			bind = append(bind, statistic.of(partial))
		} else {
			for i := range s.in[1:] {
				bind = append(bind, vector.of(operand(1+i)))
			}
			bind = append(bind, x.of(result))
		}
		if k.stage == "write" {
			bind = append(bind, statistic.of(partial))
		}
		params := append(w.params(first, end), uint32(x.base/4), uint32(statistic.base/bytes), infBits, bits(epsilon), uint32(vector.base/4))
		s.dispatch(k.kernel(), s.linear(ceilDiv(end-first, k.workgroup/k.lanes)), params, bind...)
	}
	none := func(int, int) (from, to int) { return 0, 0 }
	vector, statistic := extent(none), extent(none)
	if len(s.in) > 1 && k.stage != "part" {
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
		statistic = perTask(bytes)
	case "write": // of whole rows
		statistic = func(first, end int) (from, to int) {
			return bytes * (first / w.parts * w.parts), bytes * ceilDiv(end, w.parts) * w.parts
		}
	}
	return s.ranges(w.tasks(), emit, w.extent(4), vector, statistic)
}

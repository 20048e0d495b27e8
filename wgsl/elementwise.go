package wgsl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func init() {
	for e := range expressions {
		lowerings[e] = elementwise
	}
}

// perThread is how many units of four elements a thread of a flat kernel computes.
const perThread = 2

// elementwiseKernel describes one specialisation of elementwise.wgsl.
type elementwiseKernel struct {
	Entry     *op.Entry
	Reads     string // per operand, how it is read; see below
	Rank      int    // axes of the strided form; 0 is the flat one
	Workgroup int
	Act       compute.Activation
}

// Reads of an operand.
const (
	wide     = 'v' // four elements per unit
	splat    = 's' // one element for the whole unit
	gathered = 'g' // each element of the unit by itself
)

func (e elementwiseKernel) kernel() *Kernel {
	key := fmt.Sprintf("%s/%s/%d/%d/%d", e.Entry.Name, e.Reads, e.Rank, e.Workgroup, e.Act)
	return cached(key, func() *Kernel {
		expr := expressions[e.Entry]
		functions := functionsOf(expr)
		if e.Act != compute.NoActivation {
			act, of, err := activation(e.Act)
			if err != nil {
				panic(err) // checked with the call
			}
			functions += act + "fn act(a: f32) -> f32 {\n    return " + of + ";\n}\n"
			expr = "act(" + expr + ")"
		}
		data := struct {
			Workgroup, PerThread, Rank, Last int
			Axes                             []int // all but the outermost, innermost first
			Expr, Functions                  string
			Operands, Lanes                  []string
			Wide                             []bool
			Gather                           bool
		}{Workgroup: e.Workgroup, PerThread: perThread, Rank: e.Rank, Last: e.Rank - 1, Expr: expr, Functions: functions,
			Lanes: []string{"x", "y", "z", "w"}, Gather: strings.ContainsRune(e.Reads, gathered)}
		k := &Kernel{Uniform: 16, Workgroup: [3]uint32{uint32(e.Workgroup), 1, 1}}
		if e.Rank > 0 {
			data.PerThread = 1
			k.Uniform += 16 + 16*e.Rank
		}
		for d := e.Rank - 1; d > 0; d-- {
			data.Axes = append(data.Axes, d)
		}
		for i, r := range e.Reads {
			data.Operands = append(data.Operands, string("abc"[i]))
			data.Wide = append(data.Wide, r == wide)
			k.Bindings = append(k.Bindings, Read)
		}
		k.Bindings = append(k.Bindings, ReadWrite)
		k.Source = render("elementwise.wgsl", data)
		return k
	})
}

func elementwise(s *step) error {
	if reads, ok := s.flat(); ok {
		return s.elementwiseFlat(reads)
	}
	return s.elementwiseStrided()
}

// flat reports whether every operand is as large as the result or a single element.
func (s *step) flat() (reads string, ok bool) {
	for _, t := range s.in {
		switch t.Len() {
		case s.out.Len():
			reads += string(wide)
		case 1:
			reads += string(splat)
		default:
			return "", false
		}
	}
	return reads, true
}

// scalars returns the uniform's head: how many units, the bits of +Inf, and the entry's scalars.
func (s *step) scalars(units int) []uint32 {
	params := []uint32{uint32(units), infBits, 0, 0}
	for i, v := range s.Attr.Scalars {
		params[2+i] = bits(v)
	}
	return params
}

const infBits = 0x7f800000

func (s *step) elementwiseFlat(reads string) error {
	e := elementwiseKernel{Entry: s.Entry, Reads: reads, Workgroup: s.workgroup(), Act: s.Attr.Activation()}
	size := BufferSize(4 * s.out.Len())
	chunk := min(size, s.caps.MaxBinding/uint64(s.align())*uint64(s.align()))
	if chunk == 0 {
		return fmt.Errorf("a storage binding of %d bytes holds no aligned part: %w", s.caps.MaxBinding, compute.ErrTooLarge)
	}
	for at := uint64(0); at < size; at += chunk {
		piece := part{int(at), min(chunk, size-at)}
		var bind []Buffer
		for i, r := range reads {
			if r == splat {
				bind = append(bind, operand(i))
			} else {
				bind = append(bind, piece.of(operand(i)))
			}
		}
		bind = append(bind, piece.of(result))
		units := int(piece.size / 16)
		s.dispatch(e.kernel(), s.linear(ceilDiv(units, e.Workgroup*perThread)), s.scalars(units), bind...)
	}
	return nil
}

// elementwiseStrided cuts the outermost axis where tensors exceed a binding.
func (s *step) elementwiseStrided() error {
	strides := make([][]int, len(s.in), len(s.in)+1)
	for i, t := range s.in {
		strides[i] = op.BroadcastStrides(t.Shape, s.out.Shape)
	}
	shape, strides := op.Collapse(s.out.Shape, strides...)
	last := len(shape) - 1 // at least 1: what has one axis is flat
	e := elementwiseKernel{Entry: s.Entry, Rank: len(shape), Workgroup: s.workgroup(), Act: s.Attr.Activation()}
	reads, units := byUnits(shape, strides)
	if !units {
		reads = byElements(shape, strides)
	}
	group := 1 // of indices of the outermost axis: dispatches begin at whole units of the result
	for group*s.out.Len()/shape[0]%4 != 0 {
		group *= 2
	}
	e.Reads = reads
	strides, reads = append(strides, op.Strides(shape)), reads+string(wide) // the result's
	step := func(k int) int {                                               // elements per element of the array
		if reads[k] == wide {
			return 4
		}
		return 1
	}
	indices := func(first, end int) (int, int) { return first * group, min(end*group, shape[0]) }
	extents := make([]extent, len(strides))
	for k, st := range strides {
		slice := 1 // elements from the first to the last of one index of the outermost axis
		for d := 1; d < len(shape); d++ {
			slice += (shape[d] - 1) * st[d]
		}
		extents[k] = func(first, end int) (from, to int) {
			first, end = indices(first, end)
			return 4 * first * st[0], 4 * ((end-1)*st[0] + slice)
		}
	}
	return s.ranges(ceilDiv(shape[0], group), func(first, end int, parts []part) {
		first, end = indices(first, end)
		base, axes := make([]uint32, 4), make([]uint32, 4*len(shape))
		bind := make([]Buffer, len(strides))
		for k, st := range strides {
			buffer, at := result, 3
			if k < len(s.in) {
				buffer, at = operand(k), k
			}
			bind[k] = parts[k].of(buffer)
			base[at] = uint32((first*st[0] - parts[k].base/4) / step(k))
		}
		for d, size := range shape {
			axes[4*d] = uint32(size)
			for k := range s.in {
				axes[4*d+1+k] = uint32(strides[k][d] / step(k))
			}
		}
		axes[0] = uint32(end - first)
		if units {
			axes[4*last] /= 4
			for k := range s.in {
				axes[4*last+1+k] = uint32(strides[k][last]) // 1 or 0: by whole units or not at all
			}
		}
		n := ceilDiv((end-first)*(s.out.Len()/shape[0]), 4)
		s.dispatch(e.kernel(), s.linear(ceilDiv(n, e.Workgroup)), slices.Concat(s.scalars(n), base, axes), bind...)
	}, extents...)
}

// byUnits says whether the innermost axis can be walked four elements at a time, and how each operand is then read: wide
// where it runs along that axis in whole, aligned units, one element per unit where it repeats along it.
func byUnits(shape []int, strides [][]int) (reads string, ok bool) {
	last := len(shape) - 1
	if shape[last]%4 != 0 {
		return "", false
	}
	for _, st := range strides {
		if st[last] == 0 {
			reads += string(splat)
			continue
		}
		reads += string(wide)
		for d, n := range st {
			if d == last && n != 1 || d != last && n%4 != 0 {
				return "", false
			}
		}
	}
	return reads, true
}

// byElements says how operands are read otherwise: wide where they lie as the result does.
func byElements(shape []int, strides [][]int) (reads string) {
	for _, st := range strides {
		if slices.Equal(st, op.Strides(shape)) {
			reads += string(wide)
		} else {
			reads += string(gathered)
		}
	}
	return reads
}

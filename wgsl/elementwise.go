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
	Wide      string // per operand: v for one that is read by units, s for one element per unit
	Unit      string // vec4<f32> or f32
	Rank      int    // axes of the strided form; 0 is the flat one
	Workgroup int
}

func (e elementwiseKernel) kernel() *Kernel {
	key := fmt.Sprintf("%s/%s/%s/%d/%d", e.Entry.Name, e.Wide, e.Unit, e.Rank, e.Workgroup)
	return cached(key, func() *Kernel {
		expr := expressions[e.Entry]
		data := struct {
			Workgroup, PerThread, Rank int
			Axes                       []int // all but the outermost, innermost first
			Unit, Expr, Functions      string
			Operands, Lanes            []string
			Wide                       []bool
		}{Workgroup: e.Workgroup, PerThread: perThread, Rank: e.Rank, Unit: e.Unit, Expr: expr, Functions: functionsOf(expr),
			Lanes: []string{"x", "y", "z", "w"}}
		if e.Rank > 0 {
			data.PerThread = 1
		}
		for d := e.Rank - 1; d > 0; d-- {
			data.Axes = append(data.Axes, d)
		}
		k := &Kernel{Uniform: 16, Workgroup: [3]uint32{uint32(e.Workgroup), 1, 1}}
		if e.Rank > 0 {
			k.Uniform += 16 + 16*e.Rank
		}
		for i, w := range e.Wide {
			data.Operands = append(data.Operands, string("abc"[i]))
			data.Wide = append(data.Wide, w == 'v')
			k.Bindings = append(k.Bindings, Read)
		}
		k.Bindings = append(k.Bindings, ReadWrite)
		k.Source = render("elementwise.wgsl", data)
		return k
	})
}

func elementwise(s *step) error {
	if wide, ok := s.flat(); ok {
		return s.elementwiseFlat(wide)
	}
	return s.elementwiseStrided()
}

// flat reports whether every operand is as large as the result or a single element.
func (s *step) flat() (wide string, ok bool) {
	n := s.out.Len()
	var b strings.Builder
	for _, t := range s.in {
		switch t.Len() {
		case n:
			b.WriteByte('v')
		case 1:
			b.WriteByte('s')
		default:
			return "", false
		}
	}
	return b.String(), true
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

func (s *step) elementwiseFlat(wide string) error {
	e := elementwiseKernel{Entry: s.Entry, Wide: wide, Unit: "vec4<f32>", Workgroup: s.workgroup()}
	size := BufferSize(4 * s.out.Len())
	chunk := min(size, s.caps.MaxBinding/uint64(s.align())*uint64(s.align()))
	if chunk == 0 {
		return fmt.Errorf("a storage binding of %d bytes holds no aligned part: %w", s.caps.MaxBinding, compute.ErrTooLarge)
	}
	for at := uint64(0); at < size; at += chunk {
		piece := part{int(at), min(chunk, size-at)}
		var bind []Buffer
		for i, w := range wide {
			if w == 's' {
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
	wide, vector := byUnits(shape, strides)
	e := elementwiseKernel{Entry: s.Entry, Wide: wide, Unit: "f32", Rank: len(shape), Workgroup: s.workgroup()}
	unit := 1
	if vector {
		e.Unit, unit = "vec4<f32>", 4
	}
	strides = append(strides, op.Strides(shape))
	wide += "v" // the result's
	extents := make([]extent, len(strides))
	for k, st := range strides {
		slice := 1 // elements from the first to the last of one index of the outermost axis
		for d := 1; d < len(shape); d++ {
			slice += (shape[d] - 1) * st[d]
		}
		extents[k] = func(first, end int) (from, to int) { return 4 * first * st[0], 4 * ((end-1)*st[0] + slice) }
	}
	read := func(k int) int { // elements per element of the operand's array
		if wide[k] == 'v' {
			return unit
		}
		return 1
	}
	return s.ranges(shape[0], func(first, end int, parts []part) {
		units := (end - first) * (s.out.Len() / shape[0] / unit)
		base, axes := make([]uint32, 4), make([]uint32, 4*len(shape))
		bind := make([]Buffer, len(strides))
		for k, st := range strides {
			buffer, at := result, 3
			if k < len(s.in) {
				buffer, at = operand(k), k
			}
			bind[k] = parts[k].of(buffer)
			base[at] = uint32((first*st[0] - parts[k].base/4) / read(k))
		}
		for d, size := range shape {
			axes[4*d] = uint32(size)
			for k := range s.in {
				axes[4*d+1+k] = uint32(strides[k][d] / read(k))
			}
		}
		if last := len(shape) - 1; vector {
			axes[4*last] /= 4
			for k := range s.in {
				axes[4*last+1+k] = uint32(strides[k][last]) // 1 or 0: by whole units or not at all
			}
		}
		params := slices.Concat(s.scalars(units), base, axes)
		s.dispatch(e.kernel(), s.linear(ceilDiv(units, e.Workgroup)), params, bind...)
	}, extents...)
}

// byUnits says whether the innermost axis can be walked four elements at a time, and how each operand is then read: wide
// where it runs along that axis in whole, aligned units, one element per unit where it repeats along it.
func byUnits(shape []int, strides [][]int) (wide string, ok bool) {
	last := len(shape) - 1
	ok = shape[last]%4 == 0
	var b strings.Builder
	for _, st := range strides {
		if st[last] == 0 {
			b.WriteByte('s')
			continue
		}
		b.WriteByte('v')
		for d, n := range st {
			ok = ok && (d == last && n == 1 || d != last && n%4 == 0)
		}
	}
	if !ok {
		return strings.Repeat("v", len(strides)), false
	}
	return b.String(), true
}

package host

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Index says where the elements of a result come from: its shape, and for each element the one of the operand in row-major order, or −1
// for one that the operand does not have.
type Index struct {
	Shape []int
	From  []int
}

// Pick returns the elements of an index, zeros where it has −1.
func (t *Tensor) Pick(x Index) *Tensor {
	out := New(t.Kind, x.Shape...)
	pickInto(out.Data, t.Data, x.From)
	return out
}

func pick[E any](to, from []E, index []int) {
	for i, at := range index {
		if at >= 0 {
			to[i] = from[at]
		}
	}
}

func pickInto(to, from any, index []int) {
	switch s := from.(type) {
	case []float32:
		pick(to.([]float32), s, index)
	case []float64:
		pick(to.([]float64), s, index)
	case []int8:
		pick(to.([]int8), s, index)
	case []int16:
		pick(to.([]int16), s, index)
	case []int32:
		pick(to.([]int32), s, index)
	case []int64:
		pick(to.([]int64), s, index)
	case []uint8:
		pick(to.([]uint8), s, index)
	case []uint16:
		pick(to.([]uint16), s, index)
	case []uint32:
		pick(to.([]uint32), s, index)
	case []uint64:
		pick(to.([]uint64), s, index)
	case []bool:
		pick(to.([]bool), s, index)
	case []compute.F16:
		pick(to.([]compute.F16), s, index)
	case []compute.BF16:
		pick(to.([]compute.BF16), s, index)
	case []string:
		pick(to.([]string), s, index)
	}
}

// put is the reverse of pick: element i goes to index[i].
func put[E any](to, from []E, index []int) {
	for i, at := range index {
		if at >= 0 {
			to[at] = from[i]
		}
	}
}

func putInto(to, from any, index []int) {
	switch s := from.(type) {
	case []float32:
		put(to.([]float32), s, index)
	case []float64:
		put(to.([]float64), s, index)
	case []int8:
		put(to.([]int8), s, index)
	case []int16:
		put(to.([]int16), s, index)
	case []int32:
		put(to.([]int32), s, index)
	case []int64:
		put(to.([]int64), s, index)
	case []uint8:
		put(to.([]uint8), s, index)
	case []uint16:
		put(to.([]uint16), s, index)
	case []uint32:
		put(to.([]uint32), s, index)
	case []uint64:
		put(to.([]uint64), s, index)
	case []bool:
		put(to.([]bool), s, index)
	case []compute.F16:
		put(to.([]compute.F16), s, index)
	case []compute.BF16:
		put(to.([]compute.BF16), s, index)
	case []string:
		put(to.([]string), s, index)
	}
}

// Clone returns a copy with memory of its own.
func (t *Tensor) Clone() *Tensor {
	out := New(t.Kind, slices.Clone(t.Shape)...)
	from := make([]int, t.Len())
	for i := range from {
		from[i] = i
	}
	pickInto(out.Data, t.Data, from)
	return out
}

// Strides returns the row-major strides of a shape.
func Strides(shape []int) []int {
	st := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		st[i] = n
		n *= shape[i]
	}
	return st
}

// Walk calls visit with each position of a shape in row-major order; at is the offset under strides.
func Walk(shape, strides []int, offset int, visit func(i, at int)) {
	n := Len(shape)
	pos := make([]int, len(shape))
	at := offset
	for i := range n {
		visit(i, at)
		for d := len(shape) - 1; d >= 0; d-- {
			pos[d]++
			at += strides[d]
			if pos[d] < shape[d] {
				break
			}
			at -= pos[d] * strides[d]
			pos[d] = 0
		}
	}
}

// Positions calls visit with each position of a shape; the slice is used again.
func Positions(shape []int, visit func(i int, pos []int)) {
	n := Len(shape)
	pos := make([]int, len(shape))
	for i := range n {
		visit(i, pos)
		for d := len(shape) - 1; d >= 0; d-- {
			if pos[d]++; pos[d] < shape[d] {
				break
			}
			pos[d] = 0
		}
	}
}

func strided(shape, strides []int, offset int) Index {
	x := Index{shape, make([]int, Len(shape))}
	Walk(shape, strides, offset, func(i, at int) { x.From[i] = at })
	return x
}

// Axis counts an axis from the front.
func Axis(axis int64, rank int) (int, error) {
	a := int(axis)
	if a < 0 {
		a += rank
	}
	if a < 0 || a >= max(rank, 1) {
		return 0, fmt.Errorf("axis %d of %d: %w", axis, rank, compute.ErrArgument)
	}
	return a, nil
}

// Axes counts axes from the front and sorts them; each may be there once.
func Axes(axes []int64, rank int) ([]int, error) {
	out := make([]int, len(axes))
	for i, a := range axes {
		var err error
		if out[i], err = Axis(a, rank); err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	if len(slices.Compact(slices.Clone(out))) != len(out) {
		return nil, fmt.Errorf("axes %v: one twice: %w", axes, compute.ErrArgument)
	}
	return out, nil
}

// TransposeIndex orders axes.
func TransposeIndex(shape, perm []int) Index {
	st := Strides(shape)
	to, strides := make([]int, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		to[i], strides[i] = shape[p], st[p]
	}
	return strided(to, strides, 0)
}

// SliceIndex takes size elements from start on, step apart.
func SliceIndex(shape, start, size, step []int) Index {
	st := Strides(shape)
	offset := 0
	for i := range st {
		if size[i] > 0 {
			offset += start[i] * st[i]
		}
		st[i] *= step[i]
	}
	return strided(slices.Clone(size), st, offset)
}

// Broadcast is the common shape by NumPy's rule.
func Broadcast(shapes ...[]int) ([]int, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make([]int, rank)
	for i := range out {
		out[i] = 1
		for _, s := range shapes {
			j := i - rank + len(s)
			if j < 0 || s[j] == 1 || s[j] == out[i] {
				continue
			}
			if out[i] != 1 {
				return nil, fmt.Errorf("shapes %v do not broadcast: %w", shapes, compute.ErrShape)
			}
			out[i] = s[j]
		}
	}
	return out, CheckShape(out)
}

// BroadcastStrides are the strides of a shape under another that it is broadcast to.
func BroadcastStrides(shape, out []int) []int {
	st, own := make([]int, len(out)), Strides(shape)
	for i := range out {
		if j := i - len(out) + len(shape); j >= 0 && shape[j] != 1 {
			st[i] = own[j]
		}
	}
	return st
}

// ExpandIndex repeats along axes of 1.
func ExpandIndex(shape, to []int) Index { return strided(to, BroadcastStrides(shape, to), 0) }

// TileIndex repeats whole axes.
func TileIndex(shape, repeats []int) Index {
	to := make([]int, len(shape))
	for i := range to {
		to[i] = shape[i] * repeats[i]
	}
	st := Strides(shape)
	x := Index{to, make([]int, Len(to))}
	Positions(to, func(i int, pos []int) {
		at := 0
		for d, p := range pos {
			at += p % shape[d] * st[d]
		}
		x.From[i] = at
	})
	return x
}

// PadIndex puts elements around: what they are depends on the mode, −1 for constant.
func PadIndex(shape, before, after []int, mode string) (Index, error) {
	to := make([]int, len(shape))
	for i := range to {
		to[i] = shape[i] + before[i] + after[i]
	}
	if err := CheckShape(to); err != nil {
		return Index{}, err
	}
	st := Strides(shape)
	x := Index{to, make([]int, Len(to))}
	maps := make([][]int, len(shape))
	for d := range shape {
		maps[d] = make([]int, to[d])
		for p := range maps[d] {
			q := p - before[d]
			n := shape[d]
			if q < 0 || q >= n {
				if n == 0 && mode != "constant" {
					return x, fmt.Errorf("%s padding of an empty axis: %w", mode, compute.ErrShape)
				}
				switch mode {
				case "constant":
					q = -1
				case "edge":
					q = min(max(q, 0), n-1)
				case "reflect":
					for n > 1 && (q < 0 || q >= n) {
						if q < 0 {
							q = -q
						} else {
							q = 2*(n-1) - q
						}
					}
					q = min(max(q, 0), n-1)
				case "wrap":
					q = ((q % n) + n) % n
				default:
					return x, fmt.Errorf("padding mode %q: %w", mode, compute.ErrUnsupported)
				}
			}
			maps[d][p] = q
		}
	}
	Positions(to, func(i int, pos []int) {
		at := 0
		for d, p := range pos {
			q := maps[d][p]
			if q < 0 {
				at = -1
				break
			}
			at += q * st[d]
		}
		x.From[i] = at
	})
	return x, nil
}

// Filled is Pick with a value where the index has −1; the value has one element.
func (t *Tensor) Filled(x Index, value *Tensor) *Tensor {
	if value == nil {
		return t.Pick(x)
	}
	both := Concat(0, t.Reshaped(t.Len()), value.Reshaped(1))
	from := make([]int, len(x.From))
	for i, at := range x.From {
		if from[i] = at; at < 0 {
			from[i] = t.Len()
		}
	}
	return both.Pick(Index{x.Shape, from})
}

// Concat joins tensors of one type whose other axes are equal.
func Concat(axis int, in ...*Tensor) *Tensor {
	shape := slices.Clone(in[0].Shape)
	shape[axis] = 0
	for _, t := range in {
		shape[axis] += t.Shape[axis]
	}
	out := New(in[0].Kind, shape...)
	inner := Len(shape[axis+1:])
	row := shape[axis] * inner
	offset := 0
	for _, t := range in {
		part := t.Shape[axis] * inner
		if part == 0 {
			continue
		}
		index := make([]int, t.Len())
		for i := range index {
			index[i] = i/part*row + offset + i%part
		}
		putInto(out.Data, t.Data, index)
		offset += part
	}
	return out
}

// at is an index that may count from the end.
func at(i int64, n int) (int, error) {
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return 0, fmt.Errorf("index %d of %d: %w", i, n, compute.ErrArgument)
	}
	return int(i), nil
}

// GatherIndex is NumPy's take.
func GatherIndex(shape []int, axis int, indices *Tensor) (Index, error) {
	to := slices.Concat(shape[:axis], indices.Shape, shape[axis+1:])
	if err := CheckShape(to); err != nil {
		return Index{}, err
	}
	ids, inner, n := indices.Ints(), Len(shape[axis+1:]), shape[axis]
	x := Index{to, make([]int, 0, Len(to))}
	for o := range Len(shape[:axis]) {
		for _, id := range ids {
			i, err := at(id, n)
			if err != nil {
				return x, err
			}
			for k := range inner {
				x.From = append(x.From, (o*n+i)*inner+k)
			}
		}
	}
	return x, nil
}

// ElementsIndex says for each element of indices which element of a tensor it names along an axis.
func ElementsIndex(shape []int, axis int, indices *Tensor) (Index, error) {
	if len(indices.Shape) != len(shape) {
		return Index{}, fmt.Errorf("indices of shape %v for %v: %w", indices.Shape, shape, compute.ErrShape)
	}
	for d := range shape {
		if d != axis && indices.Shape[d] > shape[d] {
			return Index{}, fmt.Errorf("indices of shape %v for %v: %w", indices.Shape, shape, compute.ErrShape)
		}
	}
	st := Strides(shape)
	ids := indices.Ints()
	x := Index{slices.Clone(indices.Shape), make([]int, len(ids))}
	var err error
	Positions(indices.Shape, func(i int, pos []int) {
		j, e := at(ids[i], shape[axis])
		if e != nil {
			err = e
			return
		}
		n := 0
		for d, p := range pos {
			if d == axis {
				p = j
			}
			n += p * st[d]
		}
		x.From[i] = n
	})
	return x, err
}

// NDIndex is GatherND's: the last axis of indices holds positions in the axes after the batch.
func NDIndex(shape []int, batch int, indices *Tensor) (Index, error) {
	r := len(indices.Shape)
	if r == 0 || batch < 0 || batch >= r || batch >= max(len(shape), 1) {
		return Index{}, fmt.Errorf("%d leading axes of indices of shape %v for %v: %w", batch, indices.Shape, shape, compute.ErrShape)
	}
	k := indices.Shape[r-1]
	if batch+k > len(shape) || !slices.Equal(shape[:batch], indices.Shape[:batch]) {
		return Index{}, fmt.Errorf("indices of shape %v for %v: %w", indices.Shape, shape, compute.ErrShape)
	}
	to := slices.Concat(indices.Shape[:r-1], shape[batch+k:])
	if err := CheckShape(to); err != nil {
		return Index{}, err
	}
	inner := Len(shape[batch+k:])
	outer, perBatch := Len(shape[:batch]), Len(indices.Shape[batch:r-1])
	ids := indices.Ints()
	x := Index{to, make([]int, 0, Len(to))}
	for b := range outer {
		for j := range perBatch {
			n := b
			for d := range k {
				i, err := at(ids[(b*perBatch+j)*k+d], shape[batch+d])
				if err != nil {
					return x, err
				}
				n = n*shape[batch+d] + i
			}
			for e := range inner {
				x.From = append(x.From, n*inner+e)
			}
		}
	}
	return x, nil
}

// Put returns t with the elements of updates at the places of an index, combined by a reduction: "none", "add", "mul", "max", "min".
func (t *Tensor) Put(x Index, updates *Tensor, reduction string) (*Tensor, error) {
	if len(x.From) != updates.Len() || t.Kind != updates.Kind {
		return nil, fmt.Errorf("updates %v%v for %d places of %v: %w", updates.Kind, updates.Shape, len(x.From), t.Kind, compute.ErrShape)
	}
	out := t.Clone()
	if reduction == "none" || reduction == "" {
		putInto(out.Data, updates.Data, x.From)
		return out, nil
	}
	op := map[string]string{"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}[reduction]
	if op == "" {
		return nil, fmt.Errorf("reduction %q: %w", reduction, compute.ErrUnsupported)
	}
	if t.Kind.IsFloat() {
		a, b := out.Floats(), updates.Floats()
		for i, at := range x.From {
			a[at] = floatBinary[op](a[at], b[i])
		}
		return FromFloats(t.Kind, a, t.Shape...), nil
	}
	a, b := out.Ints(), updates.Ints()
	f := intBinary(op, t.Kind)
	for i, at := range x.From {
		a[at] = f(a[at], b[i])
	}
	return FromInts(t.Kind, a, t.Shape...), nil
}

// compareAt orders two elements of a tensor; NaN is above all numbers.
func (t *Tensor) order() func(i, j int) int {
	switch s := t.Data.(type) {
	case []string:
		return func(i, j int) int { return cmp.Compare(s[i], s[j]) }
	case []uint64:
		return func(i, j int) int { return cmp.Compare(s[i], s[j]) }
	case []int64:
		return func(i, j int) int { return cmp.Compare(s[i], s[j]) }
	}
	f := t.Floats()
	return func(i, j int) int {
		a, b := f[i], f[j]
		switch {
		case a != a && b != b:
			return 0
		case a != a:
			return 1
		case b != b:
			return -1
		}
		return cmp.Compare(a, b)
	}
}

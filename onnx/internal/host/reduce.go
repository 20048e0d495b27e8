package host

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Reduced is the shape of a reduction over sorted axes.
func Reduced(shape, axes []int, keep bool) []int {
	out := []int{}
	for d, n := range shape {
		switch {
		case !slices.Contains(axes, d):
			out = append(out, n)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// rows lists for each element of a reduction's result the elements that it is made of.
func rows(shape, axes []int) [][]int {
	var outer, inner, so, si []int
	st := Strides(shape)
	for d, n := range shape {
		if slices.Contains(axes, d) {
			inner, si = append(inner, n), append(si, st[d])
		} else {
			outer, so = append(outer, n), append(so, st[d])
		}
	}
	out := make([][]int, Len(outer))
	Walk(outer, so, 0, func(i, offset int) {
		out[i] = make([]int, Len(inner))
		Walk(inner, si, offset, func(j, at int) { out[i][j] = at })
	})
	return out
}

// Reduce reduces axes: "Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare".
func Reduce(op string, t *Tensor, axes []int, keep bool) (*Tensor, error) {
	groups := rows(t.Shape, axes)
	shape := Reduced(t.Shape, axes, keep)
	if t.Kind == Bool && (op == "Max" || op == "Min") || t.Kind.IsInteger() {
		if z, ok, err := reduceInts(op, t, groups); ok || err != nil {
			if err != nil {
				return nil, err
			}
			return FromInts(t.Kind, z, shape...), nil
		}
	}
	if t.Kind == String || t.Kind == Bool {
		return nil, kindError("Reduce"+op, t)
	}
	x, z := t.Floats(), make([]float64, len(groups))
	for g, row := range groups {
		v, err := reduceFloats(op, x, row)
		if err != nil {
			return nil, err
		}
		z[g] = v
	}
	return FromFloats(t.Kind, z, shape...), nil
}

func reduceFloats(op string, x []float64, row []int) (float64, error) {
	var sum float64
	switch op {
	case "Sum", "Mean", "LogSum":
		for _, i := range row {
			sum += x[i]
		}
		switch op {
		case "Mean":
			sum /= float64(len(row))
		case "LogSum":
			sum = math.Log(sum)
		}
		return sum, nil
	case "L1":
		for _, i := range row {
			sum += math.Abs(x[i])
		}
		return sum, nil
	case "L2", "SumSquare":
		for _, i := range row {
			sum += x[i] * x[i]
		}
		if op == "L2" {
			sum = math.Sqrt(sum)
		}
		return sum, nil
	case "Prod":
		sum = 1
		for _, i := range row {
			sum *= x[i]
		}
		return sum, nil
	case "Max", "Min":
		sum = math.Inf(1)
		if op == "Max" {
			sum = math.Inf(-1)
		}
		for _, i := range row {
			sum = floatBinary[op](sum, x[i])
		}
		return sum, nil
	case "LogSumExp":
		top := math.Inf(-1)
		for _, i := range row {
			top = math.Max(top, x[i])
		}
		if math.IsInf(top, 0) {
			return top, nil
		}
		for _, i := range row {
			sum += math.Exp(x[i] - top)
		}
		return top + math.Log(sum), nil
	}
	return 0, fmt.Errorf("Reduce%s: %w", op, compute.ErrUnsupported)
}

func reduceInts(op string, t *Tensor, groups [][]int) (z []int64, ok bool, err error) {
	x := t.Ints()
	z = make([]int64, len(groups))
	for g, row := range groups {
		switch op {
		case "Sum", "Mean":
			for _, i := range row {
				z[g] += x[i]
			}
			if op == "Mean" && len(row) > 0 {
				z[g] /= int64(len(row))
			}
		case "L1":
			for _, i := range row {
				z[g] += max(x[i], -x[i])
			}
		case "SumSquare":
			for _, i := range row {
				z[g] += x[i] * x[i]
			}
		case "Prod":
			z[g] = 1
			for _, i := range row {
				z[g] *= x[i]
			}
		case "Max", "Min":
			if len(row) == 0 {
				low, high := int64(0), int64(1)
				if t.Kind != Bool {
					low, high = t.Kind.Range()
				}
				if z[g] = high; op == "Max" {
					z[g] = low
				}
				continue
			}
			f := intBinary(op, t.Kind)
			z[g] = x[row[0]]
			for _, i := range row[1:] {
				z[g] = f(z[g], x[i])
			}
		default:
			return nil, false, nil
		}
	}
	return z, true, nil
}

// ArgMax returns the index of the largest or the smallest element along an axis, the first or the last of equal ones.
func ArgMax(t *Tensor, axis int, keep, least, last bool) *Tensor {
	compare := t.order()
	groups := rows(t.Shape, []int{axis})
	out := New(Int64, Reduced(t.Shape, []int{axis}, keep)...)
	for g, row := range groups {
		best := 0
		for k, i := range row {
			c := compare(i, row[best])
			if least {
				c = -c
			}
			if c > 0 || c == 0 && last {
				best = k
			}
		}
		out.Data.([]int64)[g] = int64(best)
	}
	return out
}

// TopK returns the k largest or smallest elements along an axis and their indices; of equal ones the lower index is first.
func TopK(t *Tensor, axis, k int, largest bool) (values, indices *Tensor) {
	compare := t.order()
	shape := slices.Clone(t.Shape)
	shape[axis] = k
	values, indices = New(t.Kind, shape...), New(Int64, shape...)
	st := Strides(shape)
	from := Index{shape, make([]int, Len(shape))}
	groups := rows(t.Shape, []int{axis})
	outs := rows(shape, []int{axis})
	_ = st
	for g, row := range groups {
		order := make([]int, len(row))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			c := compare(row[a], row[b])
			if largest {
				c = -c
			}
			return c
		})
		for j, to := range outs[g] {
			from.From[to] = row[order[j]]
			indices.Data.([]int64)[to] = int64(order[j])
		}
	}
	return t.Pick(from), indices
}

// Scan are cumulative sums or products along an axis.
func Scan(op string, t *Tensor, axis int, exclusive, reverse bool) *Tensor {
	groups := rows(t.Shape, []int{axis})
	start := 0.0
	if op == "Mul" {
		start = 1
	}
	if t.Kind.IsFloat() {
		x, z := t.Floats(), make([]float64, t.Len())
		scan(groups, x, z, start, floatBinary[op], exclusive, reverse)
		return FromFloats(t.Kind, z, t.Shape...)
	}
	x, z := t.Ints(), make([]int64, t.Len())
	scan(groups, x, z, int64(start), intBinary(op, t.Kind), exclusive, reverse)
	return FromInts(t.Kind, z, t.Shape...)
}

func scan[E any](groups [][]int, x, z []E, start E, f func(a, b E) E, exclusive, reverse bool) {
	for _, row := range groups {
		if reverse {
			slices.Reverse(row)
		}
		acc := start
		for _, i := range row {
			next := f(acc, x[i])
			if z[i] = next; exclusive {
				z[i] = acc
			}
			acc = next
		}
	}
}

// NonZero returns the positions of elements that are not zero, [rank, count].
func NonZero(t *Tensor) *Tensor {
	var found [][]int
	isZero := t.zero()
	Positions(t.Shape, func(i int, pos []int) {
		if !isZero(i) {
			found = append(found, slices.Clone(pos))
		}
	})
	rank := max(len(t.Shape), 1)
	out := New(Int64, rank, len(found))
	for j, pos := range found {
		for d, p := range pos {
			out.Data.([]int64)[d*len(found)+j] = int64(p)
		}
	}
	return out
}

func (t *Tensor) zero() func(i int) bool {
	switch s := t.Data.(type) {
	case []string:
		return func(i int) bool { return s[i] == "" }
	case []int64:
		return func(i int) bool { return s[i] == 0 }
	case []uint64:
		return func(i int) bool { return s[i] == 0 }
	}
	f := t.Floats()
	return func(i int) bool { return f[i] == 0 }
}

// MatMul multiplies matrices over the last two axes as NumPy does, integers with 64 bits.
func MatMul(a, b *Tensor, result Kind) (*Tensor, error) {
	sa, sb := a.Shape, b.Shape
	if len(sa) == 0 || len(sb) == 0 {
		return nil, fmt.Errorf("product of %v and %v: %w", sa, sb, compute.ErrShape)
	}
	left, right := len(sa) == 1, len(sb) == 1
	if left {
		sa = []int{1, sa[0]}
	}
	if right {
		sb = []int{sb[0], 1}
	}
	m, k, n := sa[len(sa)-2], sa[len(sa)-1], sb[len(sb)-1]
	lead, err := Broadcast(sa[:len(sa)-2], sb[:len(sb)-2])
	if err != nil || sb[len(sb)-2] != k {
		return nil, fmt.Errorf("product of %v and %v: %w", a.Shape, b.Shape, compute.ErrShape)
	}
	shape := slices.Clone(lead)
	if !left {
		shape = append(shape, m)
	}
	if !right {
		shape = append(shape, n)
	}
	if err := CheckShape(shape); err != nil {
		return nil, err
	}
	var at, bt []int
	Walk(lead, BroadcastStrides(sa[:len(sa)-2], lead), 0, func(_, o int) { at = append(at, o) })
	Walk(lead, BroadcastStrides(sb[:len(sb)-2], lead), 0, func(_, o int) { bt = append(bt, o) })
	if a.Kind.IsFloat() {
		return FromFloats(result, multiply(a.Floats(), b.Floats(), at, bt, m, k, n), shape...), nil
	}
	return FromInts(result, multiply(a.Ints(), b.Ints(), at, bt, m, k, n), shape...), nil
}

func multiply[E float64 | int64](a, b []E, at, bt []int, m, k, n int) []E {
	z := make([]E, len(at)*m*n)
	for g := range at {
		x, y := a[at[g]*m*k:], b[bt[g]*k*n:]
		for i := range m {
			row := z[(g*m+i)*n:][:n]
			for l := range k {
				v := x[i*k+l]
				for j, w := range y[l*n:][:n] {
					row[j] += v * w
				}
			}
		}
	}
	return z
}

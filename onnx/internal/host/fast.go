package host

// Broadcasting row by row, for what models do with many integers: expanding them, comparing them, and making floats of the outcome.

// rowPairs calls visit for each row of the last axis of a shape: its first element, the first elements of both operands, and how far apart
// their elements are, 0 or 1.
func rowPairs(shape []int, a, b []int, visit func(i, n, x, y, dx, dy int)) {
	if len(shape) == 0 {
		visit(0, 1, 0, 0, 0, 0)
		return
	}
	last := len(shape) - 1
	sa, sb := BroadcastStrides(a, shape), BroadcastStrides(b, shape)
	n := shape[last]
	outer := shape[:last]
	xs := make([]int, 0, Len(outer))
	Walk(outer, sa[:last], 0, func(_, at int) { xs = append(xs, at) })
	Walk(outer, sb[:last], 0, func(i, at int) { visit(i*n, n, xs[i], at, sa[last], sb[last]) })
}

// compareInts compares integers of one type.
func compareInts[E int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](op string, shape []int, a, b *Tensor, x, y []E, z []bool) {
	rowPairs(shape, a.Shape, b.Shape, func(i, n, p, q, dx, dy int) {
		row := z[i:][:n]
		switch op {
		case "Equal":
			for k := range row {
				row[k] = x[p+k*dx] == y[q+k*dy]
			}
		case "Less":
			for k := range row {
				row[k] = x[p+k*dx] < y[q+k*dy]
			}
		case "LessOrEqual":
			for k := range row {
				row[k] = x[p+k*dx] <= y[q+k*dy]
			}
		case "Greater":
			for k := range row {
				row[k] = x[p+k*dx] > y[q+k*dy]
			}
		default:
			for k := range row {
				row[k] = x[p+k*dx] >= y[q+k*dy]
			}
		}
	})
}

func expandRows[E any](shape, from []int, to, x []E) {
	rowPairs(shape, from, nil, func(i, n, p, _, dx, _ int) {
		row := to[i:][:n]
		if dx == 1 {
			copy(row, x[p:])
			return
		}
		for k := range row {
			row[k] = x[p]
		}
	})
}

// Expand repeats along axes of 1.
func (t *Tensor) Expand(shape []int) *Tensor {
	out := New(t.Kind, shape...)
	if out.Len() == 0 {
		return out
	}
	switch x := t.Data.(type) {
	case []float32:
		expandRows(shape, t.Shape, out.Data.([]float32), x)
	case []int32:
		expandRows(shape, t.Shape, out.Data.([]int32), x)
	case []int64:
		expandRows(shape, t.Shape, out.Data.([]int64), x)
	case []bool:
		expandRows(shape, t.Shape, out.Data.([]bool), x)
	default:
		return t.Pick(ExpandIndex(t.Shape, shape))
	}
	return out
}

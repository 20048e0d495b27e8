package kernels

// Products of attention with few rows of queries, of keys and values that lie stride elements apart: a cache has those of other heads
// between them. Elements of keys and values are Float32, or halves as in [WidenF16].

// AttendRows is the most rows that these functions take.
const AttendRows = 4

// Scores sets scores, of rows lds apart, to the products of rows of d elements, q, with keys, and reports whether there are
// instructions for it. If not, nothing is done.
//
//	s[r·lds + j] = Σ q[r·d + i] · k[j·stride + i]
func Scores[T float32 | uint16](s, q []float32, k []T, rows, d, keys, stride, lds int) bool {
	if !attends(rows, d, keys) {
		return false
	}
	_, _, _ = s[(rows-1)*lds+keys-1], q[rows*d-1], k[(keys-1)*stride+d-1]
	scores(s, q, k, rows, d, keys, stride, lds)
	return true
}

// AddValues adds to rows o, of d elements, values times weights, of rows lds apart, likewise.
//
//	o[r·d + i] += Σ s[r·lds + j] · v[j·stride + i]
func AddValues[T float32 | uint16](o, s []float32, v []T, rows, d, keys, stride, lds int) bool {
	if !attends(rows, d, keys) {
		return false
	}
	_, _, _ = s[(rows-1)*lds+keys-1], o[rows*d-1], v[(keys-1)*stride+d-1]
	addValues(o, s, v, rows, d, keys, stride, lds)
	return true
}

package simd

// Matrix products run over packed panels, as in BLIS: the left operand in panels of mr rows, the right one in panels of nr
// columns, both with the inner dimension outermost and in blocks of kc. The micro-kernel then reads memory in order and
// keeps an mr×nr tile of the result in registers. See Van Zee and van de Geijn, "BLIS: A Framework for Rapidly
// Instantiating BLAS Functionality", 2015.

const (
	mr = 2 // 2×4 accumulators and their operands fit the 16 registers that scalar code has on amd64
	nr = 4
	kc = 256
)

// micro computes the product of a panel of a and a panel of b.
//
//	for p := range steps { for i := range mr { for j := range nr { acc[i*nr+j] += a[p*mr+i] * b[p*nr+j] } } }
func micro(acc *[mr * nr]float32, a, b []float32) {
	var c00, c01, c02, c03, c10, c11, c12, c13 float32
	for len(a) >= 4 && len(b) >= 8 {
		a0, a1 := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		c00 += a0 * b0
		c01 += a0 * b1
		c02 += a0 * b2
		c03 += a0 * b3
		c10 += a1 * b0
		c11 += a1 * b1
		c12 += a1 * b2
		c13 += a1 * b3
		a0, a1 = a[2], a[3]
		b0, b1, b2, b3 = b[4], b[5], b[6], b[7]
		c00 += a0 * b0
		c01 += a0 * b1
		c02 += a0 * b2
		c03 += a0 * b3
		c10 += a1 * b0
		c11 += a1 * b1
		c12 += a1 * b2
		c13 += a1 * b3
		a, b = a[4:], b[8:]
	}
	if len(a) >= 2 && len(b) >= 4 {
		a0, a1 := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		c00 += a0 * b0
		c01 += a0 * b1
		c02 += a0 * b2
		c03 += a0 * b3
		c10 += a1 * b0
		c11 += a1 * b1
		c12 += a1 * b2
		c13 += a1 * b3
	}
	*acc = [mr * nr]float32{c00, c01, c02, c03, c10, c11, c12, c13}
}

// gemmTile computes c = a·b, or c += a·b, for m×n elements of c, whose rows are ldc apart, from packed panels of the given
// number of steps.
func gemmTile(c []float32, ldc, m, n, steps int, a, b []float32, accumulate bool) {
	var acc [mr * nr]float32
	for j := 0; j < n; j += nr {
		panel := b[j*steps : (j+nr)*steps]
		width := min(nr, n-j)
		for i := 0; i < m; i += mr {
			micro(&acc, a[i*steps:(i+mr)*steps], panel)
			for r := range min(mr, m-i) {
				row := c[(i+r)*ldc+j:][:width]
				from := acc[r*nr:][:width]
				if accumulate {
					for x, v := range from {
						row[x] += v
					}
				} else {
					copy(row, from)
				}
			}
		}
	}
}

// pack copies lanes×steps elements, lane l and step p at x[l*lane+p*step], to panels of width lanes; what is missing of the
// last panel becomes 0.
func pack(dst, x []float32, lane, step, lanes, steps, width int) {
	for l := 0; l < lanes; l += width {
		panel := dst[l*steps : (l+width)*steps]
		if n := min(width, lanes-l); n < width {
			clear(panel)
			for i := range n {
				for p := range steps {
					panel[p*width+i] = x[(l+i)*lane+p*step]
				}
			}
			continue
		}
		if lane == 1 {
			for p := range steps {
				copy(panel[p*width:(p+1)*width], x[l+p*step:])
			}
			continue
		}
		for i := range width {
			from := x[(l+i)*lane:]
			for p, at := 0, i; at < len(panel); p, at = p+step, at+width {
				panel[at] = from[p]
			}
		}
	}
}

// padded rounds a number of lanes up to whole panels.
func padded(lanes, width int) int { return (lanes + width - 1) / width * width }

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// epilogue is what happens to a result before it is stored for good: bias and activation.
type epilogue struct {
	act   span
	actNS float64
}

// apply finishes a run of the result; bias is one value per element, one for all, or none.
func (e *epilogue) apply(y, bias []float32) {
	switch len(bias) {
	case 0:
	case 1:
		v := bias[0]
		for i := range y {
			y[i] += v
		}
	default:
		bias = bias[:len(y)]
		for i, v := range bias {
			y[i] += v
		}
	}
	if e.act != nil {
		e.act(y, y, nil, nil, numbers{})
	}
}

package wasm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBlock multiplies blocks whose operands end where the memory ends, in turns.
func TestBlock(t *testing.T) {
	code, err := build(nil)
	require.NoError(t, err)
	m := newMachine(t, code, 1)
	r := random(t)
	values := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	for range 400 {
		rows, cols, steps := 1+r.IntN(14), 1+r.IntN(21), 1+r.IntN(20)
		ldc := cols + r.IntN(5)
		padded := (cols + lanes - 1) / lanes * lanes
		alpha, beta := float32(r.NormFloat64()), float32(r.NormFloat64())*float32(r.IntN(2))
		a, b, c := values(rows*steps), values(steps*padded), values((rows-1)*ldc+cols)
		if beta == 0 {
			for i := range c {
				c[i] = float32(math.NaN()) // which is not read
			}
		}
		const block = 1024
		for last := range 3 {
			m.fill()
			operands := [][]float32{a, b, c}
			at := int(m.mem.Size())
			for i := range operands {
				which := (last + 3 - i) % 3
				at -= 4 * len(operands[which])
				m.write(at, operands[which])
				m.put(block+8*which, uint32(at))
				at -= 4 * r.IntN(3)
			}
			for i, v := range []int{rows, cols, steps, ldc} {
				m.put(block+blockM+8*i, uint32(v))
			}
			m.put(block+blockAlpha, math.Float32bits(alpha))
			m.put(block+blockBeta, math.Float32bits(beta))
			before := append([]byte(nil), m.slice(0, int(m.mem.Size()))...)
			m.call(0, 0, []int{block}, nil)

			cAt := int(m.word(block + blockC))
			got := m.read(cAt, len(c))
			want := append([]float32(nil), c...)
			for i := range rows {
				for j := range cols {
					want[i*ldc+j] = product(a, b, i, j, rows, padded, steps, alpha, beta, c[i*ldc+j])
				}
			}
			requireSame(t, want, got, "%d×%d×%d, alpha %v, beta %v", rows, steps, cols, alpha, beta)
			copy(before[cAt:], m.slice(cAt, 4*len(c)))
			const box = boxAt + boxResults
			require.Equal(t, before[box:], m.slice(box, len(before)-box), "%d×%d×%d writes elsewhere", rows, steps, cols)
		}
	}
}

// product is element (i, j) of a product of packed operands.
func product(a, b []float32, i, j, rows, padded, steps int, alpha, beta, c float32) float32 {
	// Panels of a, as gemm.panels cuts them.
	count := (rows + tileRows - 1) / tileRows
	start, height := 0, 0
	for q := range count {
		height = rows / count
		if q < rows%count {
			height++
		}
		if i < start+height {
			break
		}
		start += height
	}
	from := j / tileCols * tileCols
	width := min(tileCols, padded-from)
	var sum float32
	for p := range steps {
		sum += float32(a[start*steps+p*height+i-start] * b[from*steps+p*width+j-from])
	}
	if beta == 0 {
		return alpha * sum
	}
	return float32(alpha*sum) + float32(beta*c)
}

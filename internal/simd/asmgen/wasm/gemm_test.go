package wasm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// matrices puts operands A, B and C in turns at the end of the memory, runs an operation, and checks all of C and that nothing
// else was written.
func matrices(t *testing.T, m *machine, r *rand.Rand, op int, a, b, c, want []float32, params []float32, words ...int) {
	for last := range 3 {
		m.fill()
		operands := [][]float32{a, b, c}
		var pointers [3]int
		at := int(m.mem.Size())
		for i := range operands {
			which := (last + 3 - i) % 3
			at -= 4 * len(operands[which])
			m.write(at, operands[which])
			pointers[which] = at
			at -= 4 * r.IntN(3)
		}
		before := append([]byte(nil), m.slice(0, int(m.mem.Size()))...)
		m.call(op, 0, pointers[:], params, words...)
		requireSame(t, want, m.read(pointers[2], len(c)), "words %v, parameters %v, last operand %d", words, params, last)
		copy(before[pointers[2]:], m.slice(pointers[2], 4*len(c)))
		const box = boxAt + boxSize
		require.Equal(t, before[box:], m.slice(box, len(before)-box), "words %v: writes elsewhere", words)
	}
}

func values(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// result is m×n elements of C as gemm.Tile says, for a function that returns the sum of an element.
func result(r *rand.Rand, m, n, ldc int, alpha, beta float32, sum func(i, j int) float32) (c, want []float32) {
	c = values(r, (m-1)*ldc+n)
	if beta == 0 {
		for i := range c {
			c[i] = float32(math.NaN()) // which is not read
		}
	}
	want = append(want, c...)
	for i := range m {
		for j := range n {
			y := &want[i*ldc+j]
			if beta == 0 {
				*y = alpha * sum(i, j)
			} else {
				*y = float32(alpha*sum(i, j)) + float32(beta**y)
			}
		}
	}
	return c, want
}

// factors returns alpha and beta, which is often 0.
func factors(r *rand.Rand) (alpha, beta float32) {
	return float32(r.NormFloat64()), float32(r.NormFloat64()) * float32(r.IntN(2))
}

func TestBlock(t *testing.T) {
	code, _, err := build(nil)
	require.NoError(t, err)
	m := newMachine(t, code, 1)
	r := random(t)
	for range 300 {
		rows, cols, steps := 1+r.IntN(3*tileRows+2), 1+r.IntN(3*tileCols+2), 1+r.IntN(20)
		ldc := cols + r.IntN(5)
		padded := (cols + lanes - 1) / lanes * lanes
		alpha, beta := factors(r)
		a, b := values(r, rows*steps), values(r, steps*padded)
		c, want := result(r, rows, cols, ldc, alpha, beta, func(i, j int) float32 {
			return packedSum(a, b, i, j, rows, padded, steps)
		})
		matrices(t, m, r, runBlock, a, b, c, want, []float32{alpha, beta}, rows, cols, steps, ldc)
	}
}

func TestTile(t *testing.T) {
	code, _, err := build(nil)
	require.NoError(t, err)
	m := newMachine(t, code, 1)
	r := random(t)
	for rows := 1; rows <= tileRows; rows++ {
		for cols := 1; cols <= tileCols; cols++ {
			for range 3 {
				k := 1 + r.IntN(20)
				ai, ak, bk, ldc := 1, rows+r.IntN(3), (cols+lanes-1)/lanes*lanes+r.IntN(3), cols+r.IntN(3)
				if r.IntN(2) == 0 {
					ai, ak = k+r.IntN(3), 1
				}
				alpha, beta := factors(r)
				a, b := values(r, (rows-1)*ai+(k-1)*ak+1), values(r, (k-1)*bk+(cols+lanes-1)/lanes*lanes)
				c, want := result(r, rows, cols, ldc, alpha, beta, func(i, j int) (sum float32) {
					for p := range k {
						sum += float32(a[i*ai+p*ak] * b[p*bk+j])
					}
					return sum
				})
				matrices(t, m, r, runTile, a, b, c, want, []float32{alpha, beta}, k, ai, ak, bk, ldc, rows, cols)
			}
		}
	}
}

func TestPack(t *testing.T) {
	code, _, err := build(nil)
	require.NoError(t, err)
	m := newMachine(t, code, 1)
	r := random(t)
	for k := 1; k < 20; k++ {
		width := lanes + r.IntN(9)
		m.fill()
		x := values(r, lanes*k)
		dst := int(m.mem.Size()) - 4*((k-1)*width+lanes)
		pointers := []int{dst}
		for i := range lanes {
			pointers = append(pointers, 4096+4*i*k)
		}
		if r.IntN(2) == 0 { // the rows end where the memory ends
			dst = 4096
			for i := range lanes {
				pointers[1+i] = int(m.mem.Size()) - 4*(i+1)*k
			}
			pointers[0] = dst
		}
		for i := range lanes {
			m.write(pointers[1+i], x[i*k:(i+1)*k])
		}
		before := append([]byte(nil), m.slice(0, int(m.mem.Size()))...)
		m.call(runPack, 0, pointers, nil, width, k)
		for p := range k {
			for i := range lanes {
				at := dst + 4*(p*width+i)
				require.Equal(t, x[i*k+p], m.float(at))
				copy(before[at:at+4], m.slice(at, 4))
			}
		}
		const box = boxAt + boxSize
		require.Equal(t, before[box:], m.slice(box, len(before)-box), "writes elsewhere")
	}
}

func TestTranspose(t *testing.T) {
	code, _, err := build(nil)
	require.NoError(t, err)
	m := newMachine(t, code, 1)
	r := random(t)
	for n := 1; n < 9; n++ {
		for _, last := range []int{0, 1} { // the operand that ends where the memory ends
			ldd, lds := lanes*n+r.IntN(3), lanes+r.IntN(5)
			sizes := []int{4 * (3*ldd + lanes*n), 4 * ((lanes*n-1)*lds + lanes)}
			pointers := []int{4096, 4096}
			pointers[last] = int(m.mem.Size()) - sizes[last]
			m.fill()
			for at := 0; at < sizes[1]; at += 4 {
				m.put(pointers[1]+at, r.Uint32()) // signalling NaN among them
			}
			before := append([]byte(nil), m.slice(0, int(m.mem.Size()))...)
			m.call(runTranspose, 0, pointers, nil, ldd, lds, n)
			for i := range lanes * n {
				for j := range lanes {
					from, to := pointers[1]+4*(i*lds+j), pointers[0]+4*(j*ldd+i)
					require.Equal(t, m.word(from), m.word(to))
					copy(before[to:to+4], m.slice(to, 4))
				}
			}
			const box = boxAt + boxSize
			require.Equal(t, before[box:], m.slice(box, len(before)-box), "writes elsewhere")
		}
	}
}

// packedSum is the sum of element (i, j) of a product of packed operands.
func packedSum(a, b []float32, i, j, rows, padded, steps int) float32 {
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
	return sum
}

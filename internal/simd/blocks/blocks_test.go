package blocks

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/quant"
)

func source(t *testing.T) *rand.Rand {
	return testseed.Rand(t)
}

// everyTier runs a test on every tier, and without products of bytes where it has them.
func everyTier(t *testing.T, f func(t *testing.T)) {
	was := kernels.Active()
	defer func() { require.NoError(t, kernels.SetTier(was)) }()
	for _, tier := range kernels.Available() {
		require.NoError(t, kernels.SetTier(tier))
		t.Run(tier.String(), f)
		if bytewise() {
			withoutBytewise(func() { t.Run(tier.String()+" without products of bytes", f) })
		}
	}
}

// random weights have any bits, so that some scales are subnormal, Inf or NaN.
func random(t *testing.T, r *rand.Rand, f *format, rows, cols int) (*quant.Matrix, Weights) {
	m := &quant.Matrix{Type: f.Type, Rows: rows, Cols: cols, Data: make([]byte, rows*cols/f.BlockLen()*f.BlockSize())}
	for i := range m.Data {
		m.Data[i] = byte(r.Uint32())
	}
	p, err := quant.Pack(m)
	require.NoError(t, err)
	w := NewWeights(compute.BlockFormat(f.Type), rows, p.Shape()[1])
	require.Equal(t, cols, w.Cols)
	return m, w.Of(bytesOf(p.Words))
}

func bytesOf(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}

// Values are those of package quant, bit for bit, whatever the bits of the blocks are and wherever reading begins.
func TestDequantize(t *testing.T) {
	r := source(t)
	everyTier(t, func(t *testing.T) {
		for _, f := range formats {
			for _, blocks := range []int{1, 2, 3, 5, 11, 17, 70} {
				cols := blocks * f.BlockLen()
				m, w := random(t, r, f, 3, cols)
				want := make([]float32, 3*cols)
				require.NoError(t, m.Dequantize(want))
				for row := range 3 {
					lo := r.IntN(blocks) * f.BlockLen()
					got := make([]float32, cols-lo)
					w.Dequantize(got, row, lo)
					for i, v := range got {
						if x := want[row*cols+lo+i]; math.Float32bits(v) != math.Float32bits(x) && (v == v || x == x) {
							require.Equal(t, x, v, "%v: value %d of row %d of %d blocks", f.Type, lo+i, row, blocks)
						}
					}
				}
			}
		}
	})
}

// Products of integers are exact at the ends of their ranges, where sums of 16 bits would overflow. Scales are one, so that
// sums below 2²⁴ are not rounded.
func TestProductsAreExact(t *testing.T) {
	r := source(t)
	everyTier(t, func(t *testing.T) {
		for _, f := range formats {
			for _, groups := range []int{1, 2, 3, 7, 8, 9, 12} {
				cols := max(groups*32, f.BlockLen()) / f.BlockLen() * f.BlockLen()
				for _, extreme := range []bool{false, true} {
					m, w := random(t, r, f, 1, cols)
					for i := range m.Data {
						if extreme {
							m.Data[i] = []byte{0x80, 0xff, 0x7f}[r.IntN(3)]
						}
					}
					p, err := quant.Pack(m)
					require.NoError(t, err)
					w = w.Of(bytesOf(p.Words))
					memory := make([]float32, RoundedWords(cols))
					x := roundedIn(memory, cols, 1)
					for i := range x.Q {
						x.Q[i] = int8(r.IntN(255) - 127)
						if extreme {
							x.Q[i] = []int8{127, -127, 127}[r.IntN(3)]
						}
					}
					var own room
					own.enter(&w, 0)
					for i := range own.s {
						own.s[i] = 1
					}
					integers := make([]int8, cols)
					if f.quants == nil {
						copy(integers, int8s(own.planes[0]))
					} else {
						f.quants(integers, &own.row, 0)
					}
					raise := 0
					if f.quants == nil {
						raise = int(raised(f))
					}
					want, raised := 0, 0
					for i, q := range integers {
						want += int(q) * int(x.Q[i])
						raised += (int(q) + raise) * int(x.Q[i])
					}
					note := fmt.Sprintf("%v, %d values", f.Type, cols)
					require.Equal(t, float32(want), own.product(x.Q, 0, cols), note)
					require.Equal(t, integers, own.integers(0, cols), note)
					require.Equal(t, float32(want), own.dot(integers, x.Q), note)

					own.exactSeveral(t, x.Q, float32(raised), note)
				}
			}
		}
	})
}

// exactSeveral checks products of the room's row with rows of x whose scales are one and whose sums are zero.
func (m *room) exactSeveral(t *testing.T, q []int8, want float32, note string) {
	const rows = Most - 1
	size := RoundedWords(len(q))
	x := RoundedRows{make([]float32, rows*size), rows, len(q)}
	for i := range rows {
		row := x.Row(i)
		for b := range len(row.scale) {
			var block [32]int8
			copy(block[:], q[min(32*b, len(q)):])
			row.put(b, &block, 1, [2]float32{})
		}
	}
	var u [2]unpacked
	for j := range u {
		for i := range len(q) / m.width {
			u[j].a[i] = 1
		}
		m.prepare(&u[j], 0, len(q))
	}
	m.products(u[:], x, 0, 0, len(q))
	for j := range u {
		for _, sum := range m.sums[j][:rows] {
			require.Equal(t, want, sum, note)
		}
	}
}

// One row of x and several give the sums of float64, in 8 bits and as floats, whatever the bits of blocks are, where scales are finite.
func TestMultiply(t *testing.T) {
	r := source(t)
	lengths := []int{1, 2, 7, 8, 9, 17, 70}
	everyTier(t, func(t *testing.T) {
		for _, f := range formats {
			for _, blocks := range lengths {
				if testing.Short() && r.IntN(len(lengths)) > 1 {
					continue // emulated
				}
				cols, rows, m := blocks*f.BlockLen(), 1+r.IntN(heldFew+4), []int{1, 2 + r.IntN(3*Most)}[r.IntN(2)]
				_, w := random(t, r, f, rows, cols)
				mask := ^uint16(1 << (10 + r.IntN(5))) // not all bits of an exponent
				for i := 0; i < len(w.data); i += 2 {
					binary.LittleEndian.PutUint16(w.data[i:], binary.LittleEndian.Uint16(w.data[i:])&mask)
				}
				x := RoundedRows{make([]float32, m*RoundedWords(cols)), m, cols}
				values, total := make([]float32, m*cols), make([]float64, m)
				for i := range x.Memory {
					x.Memory[i] = float32(math.NaN()) // nothing is read that was not written
				}
				for i := range m {
					row, rounded := values[i*cols:][:cols], x.Row(i)
					for j := range row {
						row[j] = float32(r.NormFloat64())
					}
					part := r.IntN(cols/32 + 1)
					rounded.Round(row, part, cols/32)
					rounded.Round(row, 0, part)
					for b := range cols / 32 {
						most := float32(0)
						for _, v := range row[32*b:][:32] {
							most = max(most, float32(math.Abs(float64(v))))
						}
						for j, v := range row[32*b:][:32] {
							q := math.RoundToEven(float64(v) * (127 / float64(most)))
							row[32*b+j] = most / 127 * float32(q)
							total[i] += math.Abs(float64(row[32*b+j]))
						}
					}
				}
				y, weights := make([]float32, m*rows), make([]float32, cols)
				w.Multiply8(y, rows, x, 0, rows)
				floats := make([]float32, min(m, Most)*rows)
				w.Multiply(floats, rows, values, min(m, Most), 0, rows)
				for row := range rows {
					w.Dequantize(weights, row, 0)
					most := float32(0)
					for _, v := range weights {
						most = max(most, float32(math.Abs(float64(v))))
					}
					for i := range m {
						want := 0.0
						for j, v := range weights {
							want += float64(v) * float64(values[i*cols+j])
						}
						note := fmt.Sprintf("%v, %d values, row %d of %d times %d of %d", f.Type, cols, row, rows, i, m)
						require.InDelta(t, want, y[i*rows+row], 1e-5*float64(most)*total[i], note)
						if i < Most {
							require.InDelta(t, want, floats[i*rows+row], 1e-5*float64(most)*total[i], note)
						}
					}
				}
			}
		}
	})
}

// Each value is rounded to the nearest step, from values of any size.
func TestRound(t *testing.T) {
	r := source(t)
	const k = 32 * 5
	for _, size := range []float64{1, 1e-30, 1e-38, 1e-44, 3e38} {
		x := make([]float32, k)
		for i := range x {
			x[i] = float32(size * (r.Float64()*2 - 1))
		}
		clear(x[32:64])
		memory := make([]float32, RoundedWords(k))
		rounded := roundedIn(memory, k, 1)
		rounded.Round(x, 0, k/32)
		y := make([]float32, k)
		rounded.Values(y, 0, k/32)
		for b := range k / 32 {
			most, sums := 0.0, [2]float64{}
			for _, v := range x[32*b : 32*b+32] {
				most = max(most, math.Abs(float64(v)))
			}
			for i, v := range x[32*b : 32*b+32] {
				require.InDelta(t, v, y[32*b+i], most/127*0.501+127e-45, "%g", size)
				sums[i/16] += float64(rounded.Q[32*b+i])
			}
			scale, sum := rounded.groups(32, b, 1)
			scale16, sum16 := rounded.groups(16, 2*b, 2)
			require.Equal(t, []float32{scale[0], scale[0]}, scale16)
			require.Equal(t, scale[0]*float32(sums[0]+sums[1]), sum[0])
			require.Equal(t, []float32{scale[0] * float32(sums[0]), scale[0] * float32(sums[1])}, sum16)
		}
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
		x := make([]float32, k)
		x[40] = bad
		rounded := roundedIn(make([]float32, RoundedWords(k)), k, 1)
		rounded.Round(x, 0, k/32)
		scale, _ := rounded.groups(32, 0, k/32)
		for b, s := range scale {
			require.Equal(t, b == 1, s != s)
		}
	}
}

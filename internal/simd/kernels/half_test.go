package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
)

// Every number of 16 bits is widened, and comes back.
func TestWidenAll(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	wide, back := make([]float32, len(all)), make([]uint16, len(all))
	onTiers(t, func(t *testing.T) {
		WidenF16(wide, all)
		NarrowF16(back, wide)
		for i, v := range wide {
			h := float16.Frombits(uint16(i))
			if got, want := math.Float32bits(v), math.Float32bits(h.Float32()); got != want {
				t.Fatalf("half %#04x is %#08x, not %#08x", i, got, want)
			}
			if h.IsNaN() {
				h |= 0x200
			}
			require.Equal(t, h.Bits(), back[i])
		}
		WidenBF16(wide, all)
		NarrowBF16(back, wide)
		for i, v := range wide {
			require.Equal(t, uint32(i)<<16, math.Float32bits(v))
			h := compute.BF16(i)
			if v != v {
				h |= 0x40
			}
			require.Equal(t, uint16(h), back[i])
		}
	})
}

// Rows that lie apart are widened as each by itself, and nothing is read or written beyond them.
func TestWidenRows(t *testing.T) {
	r := random(t)
	onTiers(t, func(t *testing.T) {
		for range 50 {
			rows, n := 1+r.IntN(20), 1+r.IntN(40)
			if r.IntN(2) == 0 {
				n = 8 * (1 + r.IntN(9))
			}
			stride := n + r.IntN(50)
			x, y, want := make([]uint16, (rows-1)*stride+n), make([]float32, rows*n+1), make([]float32, rows*n)
			for i := range x {
				x[i] = uint16(r.Uint32()) &^ 0x400 // no NaN
			}
			for i := range rows {
				WidenF16(want[i*n:][:n], x[i*stride:])
			}
			y[rows*n] = 7
			WidenF16Rows(y[:rows*n], x, n, stride)
			require.Equal(t, append(want, 7), y)
		}
	})
}

// Narrowing is right beside and between all numbers of 16 bits, and for any bits.
func TestNarrow(t *testing.T) {
	r := random(t)
	var x []float32
	for i := range 1 << 16 {
		f := math.Float32bits(float16.Frombits(uint16(i)).Float32())
		middle := math.Float32bits(float32((float64(float16.Frombits(uint16(i)).Float32()) +
			float64(float16.Frombits(uint16(i+1)).Float32())) / 2))
		for _, b := range []uint32{f, middle, uint32(i) << 16, uint32(i)<<16 + 0x8000} {
			x = append(x, math.Float32frombits(b-1), math.Float32frombits(b), math.Float32frombits(b+1))
		}
		x = append(x, math.Float32frombits(r.Uint32()))
	}
	f16, bf16 := make([]uint16, len(x)), make([]uint16, len(x))
	onTiers(t, func(t *testing.T) {
		NarrowF16(f16, x)
		NarrowBF16(bf16, x)
		for i, v := range x {
			if want := float16.Fromfloat32(v).Bits(); f16[i] != want {
				t.Fatalf("%#08x is %#04x, not %#04x", math.Float32bits(v), f16[i], want)
			}
			if want := uint16(compute.BF16Of(v)); bf16[i] != want {
				t.Fatalf("%#08x is %#04x, not %#04x", math.Float32bits(v), bf16[i], want)
			}
		}
	})
}

// halves are all conversions with their portable fallbacks.
var halves = []struct {
	name            string
	widen, portable func(y []float32, x []uint16)
	narrow, back    func(y []uint16, x []float32)
}{
	{"f16", WidenF16, widenF16Go, NarrowF16, narrowF16Go},
	{"bf16", WidenBF16, widenBF16Go, NarrowBF16, narrowBF16Go},
}

// Every length at every alignment does as the portable fallbacks, and writes nothing beside.
func TestHalfLengths(t *testing.T) {
	r := random(t)
	onTiers(t, func(t *testing.T) {
		for _, h := range halves {
			for n := range 140 {
				at, from := r.IntN(9), r.IntN(9)
				x, y := make([]uint16, from+n), make([]float32, at+n+9)
				for i := range x {
					x[i] = uint16(r.Uint32()) &^ 0x4000 // no NaN, which is not equal
				}
				want := make([]float32, len(y))
				h.widen(y[at:][:n], x[from:])
				h.portable(want[at:][:n], x[from:])
				require.Equal(t, want, y, "%s: %d", h.name, n)
				short, wide := make([]uint16, at+n+9), y[at:]
				wanted := make([]uint16, len(short))
				h.narrow(short[at:][:n], wide)
				h.back(wanted[at:][:n], wide)
				require.Equal(t, wanted, short, "%s: %d", h.name, n)
			}
		}
	})
}

func BenchmarkHalf(b *testing.B) {
	for _, n := range []int{64, 4096} {
		x, y := make([]uint16, n), make([]float32, n)
		for i := range x {
			x[i] = uint16(0x3c00 + i%1000)
		}
		for _, h := range halves {
			for _, f := range []struct {
				name string
				run  func()
			}{
				{"widen", func() { h.widen(y, x) }}, {"widen-portable", func() { h.portable(y, x) }},
				{"narrow", func() { h.narrow(x, y) }}, {"narrow-portable", func() { h.back(x, y) }},
			} {
				b.Run(f.name+"/"+h.name+"/n="+map[int]string{64: "64", 4096: "4096"}[n], func(b *testing.B) {
					for b.Loop() {
						f.run()
					}
					b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelement/s")
				})
			}
		}
	}
}

// Bytes are widened, and what lies at, between and beyond them is rounded to them.
func TestBytes(t *testing.T) {
	r := random(t)
	all := make([]uint8, 259) // some more than whole vectors
	for i := range all {
		all[i] = uint8(i)
	}
	x := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32, 0x1p-149, -0x1p-149}
	for i := range 260 {
		for _, v := range []float32{float32(i) - 0.5, float32(i), float32(i) + r.Float32()} {
			x = append(x, math.Nextafter32(v, -1), v, math.Nextafter32(v, 1000))
		}
	}
	onTiers(t, func(t *testing.T) {
		wide, back := make([]float32, len(all)), make([]uint8, len(x))
		WidenU8(wide, all)
		for i, v := range wide {
			require.Equal(t, float32(all[i]), v)
		}
		for offset := range 9 { // so that each number comes to vectors and to the rest
			NarrowU8(back[:len(x)-offset], x[offset:])
			for i, v := range x[offset:] {
				want := uint8(0)
				if v == v {
					want = uint8(math.RoundToEven(float64(min(max(v, 0), 255))))
				}
				require.Equal(t, want, back[i], v)
			}
		}
	})
}

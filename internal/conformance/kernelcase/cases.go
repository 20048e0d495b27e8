package kernelcase

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/kernels"
)

const ulp = 0x1p-23

// each computes want and its tolerance element by element.
func each(n int, f func(i int) (want, within float64)) (want, within []float64) {
	want, within = make([]float64, n), make([]float64, n)
	for i := range want {
		want[i], within[i] = f(i)
	}
	return want, within
}

func vectorAdd(m *rig, _ kernels.Kernel, sizes []int) Job {
	n := sizes[0]
	x, y, out := m.normals(n), m.normals(n), m.Empty(4*n)
	return Job{Args: []any{uint32(n), m.floats(x), m.floats(y), out}, Check: func() error {
		want, within := each(n, func(i int) (float64, float64) { return float64(x[i] + y[i]), 0 })
		return m.compare(out, want, within)
	}}
}

func saxpy(m *rig, _ kernels.Kernel, sizes []int) Job {
	n, a := sizes[0], float32(m.rng.NormFloat64())
	x, y := m.normals(n), m.normals(n)
	out := m.floats(y)
	return Job{Args: []any{uint32(n), a, m.floats(x), out}, Check: func() error {
		want, within := each(n, func(i int) (float64, float64) {
			w := float64(a)*float64(x[i]) + float64(y[i])
			return w, math.Abs(w) * ulp
		})
		return m.compare(out, want, within)
	}}
}

// sum is Σx and what a sum in float32 may differ by, given the longest chain of additions.
func sum(x []float32, chain int) (want, within float64) {
	for _, v := range x {
		want += float64(v)
		within += math.Abs(float64(v))
	}
	return want, within * float64(chain) * ulp
}

func blockSum(m *rig, k kernels.Kernel, sizes []int) Job {
	n, blocks := sizes[0], k.Grid(sizes...)[0]
	x, out := m.normals(n), m.Empty(4*blocks)
	return Job{Args: []any{uint32(n), m.floats(x), out}, Check: func() error {
		threads := k.Block[0]
		want, within := each(blocks, func(b int) (float64, float64) {
			var own []float32
			for i := range x {
				if i/threads%blocks == b {
					own = append(own, x[i])
				}
			}
			return sum(own, 16)
		})
		return m.compare(out, want, within)
	}}
}

func gridSum(m *rig, k kernels.Kernel, sizes []int) Job {
	n, blocks := sizes[0], k.Grid(sizes...)[0]
	x, out, done := m.normals(n), m.Empty(4), m.words([]uint32{0})
	return Job{Args: []any{uint32(n), m.floats(x), m.Empty(4 * blocks), done, out}, Check: func() error {
		want, within := each(1, func(int) (float64, float64) { return sum(x, 32) })
		if err := m.compare(out, want, within); err != nil {
			return err
		}
		if left, err := m.read(done, 1); err != nil || left[0] != 0 {
			return fmt.Errorf("done is %v, not 0 (%w)", left, err)
		}
		return nil
	}}
}

func softmax(m *rig, _ kernels.Kernel, sizes []int) Job {
	rows, cols := sizes[0], sizes[1]
	x, out := m.normals(rows*cols), m.Empty(4*rows*cols)
	for i := range x {
		x[i] *= 10
	}
	if m.rng.IntN(2) == 0 { // special values in the last row
		last := x[(rows-1)*cols:]
		special := []float32{float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN()), 88, -1e30}
		last[m.rng.IntN(cols)] = special[m.rng.IntN(len(special))]
	}
	return Job{Args: []any{uint32(cols), m.floats(x), out}, Check: func() error {
		var want, within []float64
		for r := range rows {
			in := x[r*cols:][:cols]
			top, total := math.Inf(-1), 0.0
			for _, v := range in {
				top = math.Max(top, float64(v))
			}
			for _, v := range in {
				total += math.Exp(float64(v) - top)
			}
			w, t := each(cols, func(i int) (float64, float64) {
				p := math.Exp(float64(in[i])-top) / total
				// The argument of the power, |x − top|·log₂e rounded in single precision, weighs most.
				return p, p*(2e-6+math.Abs(float64(in[i])-top)*2*ulp) + 1e-37
			})
			want, within = append(want, w...), append(within, t...)
		}
		return m.compare(out, want, within)
	}}
}

func scan(m *rig, _ kernels.Kernel, sizes []int) Job {
	n := sizes[0]
	x, out := m.normals(n), m.Empty(4*n)
	state := m.Upload(make([]byte, 8*(1+(n+1023)/1024)))
	return Job{Args: []any{uint32(n), m.floats(x), out, state}, Check: func() error {
		total, size := 0.0, 0.0
		want, within := each(n, func(i int) (float64, float64) {
			total += float64(x[i])
			size += math.Abs(float64(x[i]))
			return total, size * 24 * ulp
		})
		return m.compare(out, want, within)
	}}
}

func histogram(m *rig, _ kernels.Kernel, sizes []int) Job {
	n, bins := sizes[0], 1+m.rng.IntN(300)
	x, want := make([]uint32, n), make([]uint32, bins)
	for i := range want {
		want[i] = uint32(m.rng.IntN(9)) // what was there is kept
	}
	out := m.words(want)
	for i := range x {
		x[i] = uint32(m.rng.IntN(bins + 2)) // some are outside
		if int(x[i]) < bins {
			want[x[i]]++
		}
	}
	return Job{Args: []any{uint32(n), uint32(bins), m.words(x), out}, Shared: 4 * bins, Check: func() error {
		got, err := m.read(out, bins)
		if err != nil {
			return err
		}
		for b := range got {
			if got[b] != want[b] {
				return fmt.Errorf("bin %d of %d is %d, not %d", b, bins, got[b], want[b])
			}
		}
		return nil
	}}
}

func transpose(m *rig, _ kernels.Kernel, sizes []int) Job {
	rows, cols := sizes[0], sizes[1]
	x, out := m.normals(rows*cols), m.Empty(4*rows*cols)
	return Job{Args: []any{uint32(rows), uint32(cols), m.floats(x), out}, Check: func() error {
		want, within := each(rows*cols, func(i int) (float64, float64) { return float64(x[i%rows*cols+i/rows]), 0 })
		return m.compare(out, want, within)
	}}
}

// product is a·b and what float32 sums in any order may differ by.
func product(a, b []float64, rows, cols, inner int) (want, within []float64) {
	return each(rows*cols, func(i int) (float64, float64) {
		sum, size := 0.0, 0.0
		for j := range inner {
			p := a[i/cols*inner+j] * b[j*cols+i%cols]
			sum += p
			size += math.Abs(p)
		}
		return sum, size * float64(inner) * ulp
	})
}

func widened(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func sgemm(mc *rig, _ kernels.Kernel, sizes []int) Job {
	m, n, k := sizes[0], sizes[1], sizes[2]
	a, b, out := mc.normals(m*k), mc.normals(k*n), mc.Empty(4*m*n)
	return Job{Args: []any{uint32(m), uint32(n), uint32(k), mc.floats(a), mc.floats(b), out}, Check: func() error {
		want, within := product(widened(a), widened(b), m, n, k)
		return mc.compare(out, want, within)
	}}
}

// halves are n numbers in half precision, with their bytes.
func (m *rig) halves(n int) (x []float64, bytes []byte) {
	for _, v := range m.normals(n) {
		h := eval.F32ToF16(v)
		x = append(x, float64(eval.F16ToF32(h)))
		bytes = append(bytes, byte(h), byte(h>>8))
	}
	return x, bytes
}

func hgemm(mc *rig, _ kernels.Kernel, sizes []int) Job {
	m, n, k := sizes[0], sizes[1], sizes[2]
	a, aBytes := mc.halves(m * k)
	b, bBytes := mc.halves(k * n)
	out := mc.Empty(4 * m * n)
	return Job{Args: []any{uint32(m), uint32(n), uint32(k), mc.Upload(aBytes), mc.Upload(bBytes), out}, Check: func() error {
		want, within := product(a, b, m, n, k)
		return mc.compare(out, want, within)
	}}
}

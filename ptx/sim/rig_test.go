package sim_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// rig is a GPU with a kernel k and the buffers that it is launched with.
type rig struct {
	t    testing.TB
	gpu  *sim.GPU
	k    *sim.Kernel
	args []any
	bufs []uint64
	size []int
}

// newRig loads a module of several functions for sm_90a.
func newRig(t testing.TB, cfg sim.Config, src string) *rig {
	r := &rig{t: t, gpu: sim.New(cfg)}
	m, err := r.gpu.Load(module(t, ".version 8.6\n.target sm_90a\n.address_size 64\n"+src))
	require.NoError(t, err)
	r.k, err = m.Kernel("k")
	require.NoError(t, err)
	return r
}

// bytes adds a buffer with contents as argument.
func (r *rig) bytes(b []byte) *rig {
	a, err := r.gpu.Alloc(len(b))
	require.NoError(r.t, err)
	require.NoError(r.t, r.gpu.Write(a, b))
	r.bufs, r.size, r.args = append(r.bufs, a), append(r.size, len(b)), append(r.args, a)
	return r
}

// out adds a buffer of n bytes in which nothing has been written.
func (r *rig) out(n int) *rig {
	a, err := r.gpu.Alloc(n)
	require.NoError(r.t, err)
	r.bufs, r.size, r.args = append(r.bufs, a), append(r.size, n), append(r.args, a)
	return r
}

func (r *rig) launch(l sim.Launch) error {
	var err error
	l.Params, err = r.k.Pack(r.args...)
	require.NoError(r.t, err)
	_, err = r.gpu.Run(context.Background(), r.k, l)
	return err
}

// read returns buffer i.
func (r *rig) read(i int) []byte {
	b := make([]byte, r.size[i])
	require.NoError(r.t, r.gpu.Read(b, r.bufs[i]))
	return b
}

// faults requires a fault of the kind.
func faults(t testing.TB, err error, kind sim.FaultKind) *sim.Fault {
	var f *sim.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, kind, f.Kind, "%v", err)
	return f
}

// checkedSeeds are configurations with all checks: the fixed schedule and n seeds.
func checkedSeeds(n int) []sim.Config {
	list := []sim.Config{{Checks: sim.AllChecks}, {}}
	for i := range n {
		list = append(list, sim.Config{Checks: sim.AllChecks, Seed: uint64(i + 1)})
	}
	return list
}

// element is a number that the type holds exactly, as bits and as float64.
func element(rng *rand.Rand, t ir.Type) (uint64, float64) {
	switch t {
	case ir.F16:
		b := eval.F32ToF16(float32(rng.NormFloat64()))
		return uint64(b), float64(eval.F16ToF32(b))
	case ir.BF16:
		b := eval.F32ToBF16(float32(rng.NormFloat64()))
		return uint64(b), float64(eval.BF16ToF32(b))
	case ir.TF32:
		v := eval.F32ToTF32(float32(rng.NormFloat64()))
		return uint64(math.Float32bits(v)), float64(v)
	case ir.F32:
		v := float32(rng.NormFloat64())
		return uint64(math.Float32bits(v)), float64(v)
	case ir.F64:
		v := rng.NormFloat64()
		return math.Float64bits(v), v
	case ir.E4M3:
		b := eval.F32ToE4M3(float32(rng.NormFloat64()))
		return uint64(b), float64(eval.E4M3ToF32(b))
	case ir.E5M2:
		b := eval.F32ToE5M2(float32(rng.NormFloat64()))
		return uint64(b), float64(eval.E5M2ToF32(b))
	}
	b := rng.Uint64() >> (64 - t.Bits())
	if t.IsSigned() {
		return b, float64(int64(b<<(64-t.Bits())) >> (64 - t.Bits()))
	}
	return b, float64(b)
}

// matrix is random elements, as packed bytes and as numbers.
func matrix(rng *rand.Rand, t ir.Type, n int) (packed []byte, v []float64) {
	packed, v = make([]byte, n*t.Bits()/8), make([]float64, n)
	for i := range v {
		var b uint64
		b, v[i] = element(rng, t)
		put(packed, t, i, b)
	}
	return packed, v
}

func put(p []byte, t ir.Type, i int, b uint64) {
	if n := t.Bits(); n < 8 {
		p[i*n/8] |= byte(b << (i * n % 8))
		return
	}
	for j := range t.Bits() / 8 {
		p[i*t.Bits()/8+j] = byte(b >> (8 * j))
	}
}

// number is element i of packed bytes.
func number(p []byte, t ir.Type, i int) float64 {
	var b uint64
	for j := range t.Bits() / 8 {
		b |= uint64(p[i*t.Bits()/8+j]) << (8 * j)
	}
	switch t {
	case ir.F16:
		return float64(eval.F16ToF32(uint16(b)))
	case ir.F32:
		return float64(math.Float32frombits(uint32(b)))
	case ir.F64:
		return math.Float64frombits(b)
	}
	return float64(int32(b))
}

// gemm is C + A·B with the sum of the absolute values of all terms, which bounds the rounding error. a is m×k by rows, b is
// k×n by rows.
func gemm(m, n, k int, a, b, c []float64) (d, size []float64) {
	d, size = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			s, abs := 0.0, 0.0
			if c != nil {
				s, abs = c[i*n+j], math.Abs(c[i*n+j])
			}
			for l := range k {
				p := float64(a[i*k+l] * b[l*n+j])
				s += p
				abs += math.Abs(p)
			}
			d[i*n+j], size[i*n+j] = s, abs
		}
	}
	return d, size
}

// precision is the relative error of one rounding to the type, of the sums that the reference itself makes where there is none.
func precision(t ir.Type) float64 {
	switch t {
	case ir.F16:
		return 1.0 / (1 << 10)
	case ir.F32:
		return 1.0 / (1 << 22)
	case ir.F64:
		return 1.0 / (1 << 49)
	}
	return 0
}

// wrong compares a matrix with its reference by an error bound.
func wrong(got []byte, typ ir.Type, want, size []float64) error {
	for i := range want {
		if g := number(got, typ, i); !(math.Abs(g-want[i]) <= precision(typ)*size[i]) {
			return fmt.Errorf("element %d is %v, want %v", i, g, want[i])
		}
	}
	return nil
}

func near(t testing.TB, got []byte, typ ir.Type, want, size []float64, what string) {
	require.NoError(t, wrong(got, typ, want, size), what)
}

func list(prefix string, from, n int) string {
	s := "{"
	for i := range n {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s%d", prefix, from+i)
	}
	return s + "}"
}

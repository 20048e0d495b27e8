//go:build !js

package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Gradients of products on every kind of device, against sums in float64: each product of an element of a with one of b gives
// both gradients a summand.
func TestMatMulBackward(t *testing.T) {
	_, cpu := openCPU(t)
	_, web := openSoftware(t, "")
	_, nvidia := openCUDA(t)
	devices := map[string]batch.Device{"cpu": cpu, "webgpu": web, "cuda": nvidia}
	t.Logf("seed %d", Seed())
	lead := [][2][]int{{nil, nil}, {{3}, {3}}, {{3}, nil}, {nil, {2}}}
	for i, o := range []compute.MatMulOptions{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}} {
		for j, l := range lead {
			d := []compute.DType{compute.Float32, compute.Float16, compute.BFloat16}[(i+j)%3]
			r := newSource(Seed(), "backward", 4*i+j)
			shapes := matmulShapes([3]int{5, 9, 7}, o, l[0], l[1])
			a, b := r.floats(-1, 1, shapes[0]...).as(d), r.floats(-1, 1, shapes[1]...).as(d)
			out, err := catalogue.MatMul.Check(types([]operand{a, b}), program.Attr{Options: o})
			require.NoError(t, err)
			dy := r.floats(-1, 1, out[0].Shape...)
			if j%2 == 0 {
				dy = dy.as(d)
			}
			wantA, wantB := slopes(a, b, dy, o)
			for name, dev := range devices {
				rec := batch.New(dev)
				upload := func(x operand) batch.Value { return rec.Upload(x.data, x.Shape...) }
				da, db := rec.MatMulBackward(upload(a), upload(b), upload(dy), o)
				gotA, gotB := rec.Read(da), rec.Read(db)
				require.NoError(t, rec.Run(t.Context()))
				for k, got := range []*batch.Result{gotA, gotB} {
					want, like := [][]float64{wantA, wantB}[k], []operand{a, b}[k]
					require.Equal(t, like.DType, got.DType())
					require.Equal(t, like.Shape, got.Shape())
					data, err := got.Data()
					require.NoError(t, err)
					for n, w := range want {
						require.InDelta(t, w, element(data, n), 2e-5+map[compute.DType]float64{compute.Float16: 0x1p-8, compute.BFloat16: 0x1p-5}[d],
							"%s %+v %v %v: element %d of operand %d", name, o, a.Type, b.Type, n, k)
					}
				}
			}
		}
	}
}

// slopes are the gradients of Σ dy·(a·b).
func slopes(a, b, dy operand, o compute.MatMulOptions) (da, db []float64) {
	d, _ := catalogue.MatMulShape(a.Shape, b.Shape, o)
	in := arrays([]operand{a, b, dy})
	da, db = make([]float64, len(in[0].Data)), make([]float64, len(in[1].Data))
	at := func(transposed bool, rows, cols, i, j int) int {
		size := []int{rows, cols}
		if transposed {
			slices.Reverse(size)
			i, j = j, i
		}
		return i*size[1] + j
	}
	for z := range d.Batch {
		for i := range d.M {
			for k := range d.K {
				for j := range d.N {
					x, y := z*d.StrideA+at(o.TransA, d.M, d.K, i, k), z*d.StrideB+at(o.TransB, d.K, d.N, k, j)
					g := in[2].Data[(z*d.M+i)*d.N+j]
					da[x] += g * in[1].Data[y]
					db[y] += g * in[0].Data[x]
				}
			}
		}
	}
	return da, db
}

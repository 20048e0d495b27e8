package conformance

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

func TestQuantAccuracyCPU(t *testing.T) {
	name, d := openCPU(t)
	testQuantAccuracy(t, name, program.ExecutorOf(d))
}

// testQuantAccuracy compares products with what float64 gives for the same weights and activations that are not rounded: ordinary
// ones in the first row, ones with outliers in the second. The cosine is that of the results of all formats, each of which counts the
// same: with outliers it is not far from its bound, and that of few results varies.
func testQuantAccuracy(t *testing.T, name string, dev program.Executor) {
	const n, k = 64, 4096
	d := newDevice(name, dev)
	t.Logf("%s: seed %d", name, Seed())
	cosines := map[string]float64{}
	for i, f := range blockFormats {
		r := newSource(Seed(), "accuracy", i)
		x := r.floats(0, 0, 2, k)
		values := x.data.([]float32)
		for j := range values {
			values[j] = float32(r.NormFloat64())
		}
		for range 3 {
			values[k+r.IntN(k)] = float32(math.Copysign(50, r.Float64()-0.5))
		}
		in := []operand{x, r.normal(t, f.BlockFormat, n, k)}
		exact := reference.Of(catalogue.QuantMatMulRowMajor, arrays(in), program.Attr{Options: q8(f.BlockFormat, false)},
			[]program.Type{program.F32(2, n)})[0].Data
		for _, o := range []compute.QuantOptions{q8(f.BlockFormat, false), q8(f.BlockFormat, true)} {
			most := 1e-6
			if o.Q8 {
				most = 5e-4
			}
			got := d.apply(t, catalogue.QuantMatMulRowMajor, program.Attr{Options: o}, in)[0].data.([]float32)
			for row, kind := range []string{"ordinary activations", "activations with outliers"} {
				var wrong, norm, own, both float64
				for j, want := range exact[row*n : row*n+n] {
					v := float64(got[row*n+j])
					wrong += (v - want) * (v - want)
					norm += want * want
					own += v * v
					both += v * want
				}
				require.LessOrEqual(t, wrong/norm, most, "squared error of %+v, %s", o, kind)
				cosines[fmt.Sprintf("%s, Q8: %v", kind, o.Q8)] += both / math.Sqrt(norm*own) / float64(len(blockFormats))
			}
		}
	}
	for kind, cosine := range cosines {
		require.GreaterOrEqual(t, cosine, 0.9999, kind)
	}
	testQuantOrders(t, d)
}

// normal returns quantised weights that are normally distributed.
func (r *source) normal(t *testing.T, f compute.BlockFormat, rows, cols int) operand {
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = float32(r.NormFloat64())
	}
	m := &quant.Matrix{Type: quant.Type(f), Rows: rows, Cols: cols}
	size, err := m.Type.RowSize(len(values))
	require.NoError(t, err)
	m.Data = make([]byte, size)
	require.NoError(t, quant.Quantize(m.Data, m.Type, values))
	p, err := quant.Pack(m)
	require.NoError(t, err)
	return operand{program.Type{DType: compute.Uint32, Shape: p.Shape()}, p.Words}
}

// testQuantOrders shows that weights as rows and as columns are two operations: on the same square of blocks each gives what its own
// reference says, as apply asserts, and these are far apart.
func testQuantOrders(t *testing.T, d *testDevice) {
	const n = 256
	for i, f := range blockFormats {
		r := newSource(Seed(), "orders", i)
		in := []operand{r.floats(-1, 1, n), r.packed(f.BlockFormat, n, n)}
		a := program.Attr{Options: q8(f.BlockFormat, false)}
		rows := d.apply(t, catalogue.QuantMatMulRowMajor, a, in)[0].data.([]float32)
		cols := d.apply(t, catalogue.QuantMatMulColMajor, a, in)[0].data.([]float32)
		size := float64(slices.Max(rows))
		apart := 0
		for k, v := range rows {
			if math.Abs(float64(v-cols[k])) > 1e-2*size {
				apart++
			}
		}
		require.Greater(t, apart, n/2, "%s: %v as rows and as columns; repeat with WAVELANE_SEED=%d", d.name, f.BlockFormat, Seed())
	}
}

package conformance

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

func TestGuardsCPU(t *testing.T) {
	_, d := openCPU(t)
	testGuards(t, d, 1)
}

// guardedChain is a batch of 30 steps on a 12×20 matrix, each with an operand of its own, which is harmless as it stands.
type guardedChain struct {
	*batch.Batch
	operands []batch.Value
	harmless [][]float32
	out      *batch.Result
}

const chainSteps, chainRows, chainCols = 30, 12, 20

func newGuardedChain(dev batch.Device, options ...batch.Option) *guardedChain {
	b := &guardedChain{Batch: batch.New(dev, options...)}
	x := b.Upload(filled(chainRows*chainCols, 0.5), chainRows, chainCols)
	for k := range chainSteps {
		if k%5 == 4 {
			identity := make([]float32, chainCols*chainCols)
			for i := range chainCols {
				identity[i*chainCols+i] = 1
			}
			w := b.operand(identity, chainCols, chainCols)
			x = b.MatMul(x, w)
			continue
		}
		y := b.operand(filled(chainRows*chainCols, 0.5), chainRows, chainCols)
		x = []func() batch.Value{
			func() batch.Value { return b.Add(x, y) },
			func() batch.Value { return b.Sub(x, y) },
			func() batch.Value { return b.Maximum(x, y) },
			func() batch.Value { return b.Lerp(x, y, y) },
		}[k%5]()
	}
	b.out = b.Read(x)
	return b
}

func (b *guardedChain) operand(data []float32, shape ...int) batch.Value {
	v := b.Upload(data, shape...)
	b.operands, b.harmless = append(b.operands, v), append(b.harmless, data)
	return v
}

func filled(n int, v float32) []float32 { return slices.Repeat([]float32{v}, n) }

// testGuards plants a NaN in every step of a chain, or in one of each stride.
func testGuards(t *testing.T, dev batch.Device, stride int) {
	r := rand.New(rand.NewPCG(Seed(), 9))
	t.Logf("WAVELANE_SEED=%d", Seed())
	for _, options := range guardVariants {
		b := newGuardedChain(dev, append(options.with, batch.WithGuard(batch.NaN, options.action))...)
		plan, err := b.Compile(context.Background())
		require.NoError(t, err)
		require.NoError(t, plan.Start().Await(context.Background()), "nothing is wrong")
		for k := r.IntN(stride); k < chainSteps; k += stride {
			bad := slices.Clone(b.harmless[k])
			at := r.IntN(len(bad))
			bad[at] = float32(math.NaN())
			require.NoError(t, plan.SetInput(b.operands[k], bad))
			err := plan.Start().Await(context.Background())
			require.ErrorIs(t, err, compute.ErrNotFinite, "step %d, %s", k, options.name)
			var e *batch.GuardError
			require.ErrorAs(t, err, &e)
			count, position := 1, []int{at / chainCols, at % chainCols}
			if k%5 == 4 { // a row of the weights poisons a column
				count, position = chainRows, []int{0, at % chainCols}
			}
			require.Equal(t, k, e.Step, "%s: %v", options.name, e)
			require.Equal(t, position, e.Position, e)
			require.Equal(t, position[0]*chainCols+position[1], e.Index, e)
			require.Equal(t, count, e.Count, e)
			require.Equal(t, batch.NaN, e.Check)
			require.Equal(t, []string{"add", "sub", "maximum", "lerp", "matmul"}[k%5], e.Operation)
			require.Equal(t, []int{chainRows, chainCols}, e.Shape)
			require.Contains(t, e.Site, "guard_test.go:")
			require.Equal(t, options.action == batch.Report, e.Delivered)
			require.Equal(t, e.Delivered, b.out.Float32s() != nil)
			if e.Delivered {
				require.True(t, slices.ContainsFunc(b.out.Float32s(), func(v float32) bool { return v != v }))
			}
			require.NoError(t, plan.SetInput(b.operands[k], b.harmless[k]))
		}
		require.NoError(t, plan.Start().Await(context.Background()), "nothing is wrong any more")
		require.Len(t, b.out.Float32s(), chainRows*chainCols)
		require.NoError(t, plan.Close())
	}
	t.Run("overflow", func(t *testing.T) { testOverflow(t, dev) })
	t.Run("update", func(t *testing.T) { testGuardedUpdate(t, dev) })
}

var guardVariants = []struct {
	name   string
	with   []batch.Option
	action batch.Action
}{
	{"stop", nil, batch.Stop},
	{"report", nil, batch.Report},
	{"unfused", []batch.Option{batch.WithoutFusion()}, batch.Stop},
}

// An infinity counts as an overflow where it comes up, not where it comes in.
func testOverflow(t *testing.T, dev batch.Device) {
	record := func(checks batch.Check) error {
		b := batch.New(dev, batch.WithGuard(checks, batch.Stop))
		mask := b.Upload([]float32{0, 0, float32(math.Inf(-1))})
		x := b.Add(b.Upload([]float32{3e38, 1, 2}), mask)     // −Inf, but of −Inf
		y := b.Softmax(b.Minimum(x, b.Upload(filled(3, 10)))) // finite
		b.Read(b.Cast(b.Scale(b.Add(y, y), 7e4), compute.Float16))
		return b.Start().Await(context.Background())
	}
	for checks, want := range map[batch.Check]struct {
		step  int
		check batch.Check
	}{batch.Overflow: {5, batch.Overflow}, batch.Inf: {0, batch.Inf}, batch.Overflow | batch.NaN: {5, batch.Overflow}} {
		var e *batch.GuardError
		require.ErrorAs(t, record(checks), &e, checks)
		require.Equal(t, want.step, e.Step, "%v: %v", checks, e)
		require.Equal(t, want.check, e.Check)
	}
	require.NoError(t, record(batch.NaN))
}

// A program that updates a tensor must not run twice.
func testGuardedUpdate(t *testing.T, dev batch.Device) {
	cache, err := upload(dev, filled(4*3, 1), 1, 4, 1, 3)
	require.NoError(t, err)
	defer cache.Close()
	b := batch.New(dev, batch.WithGuard(batch.NaN, batch.Stop))
	rows := b.Scale(b.Sqrt(b.Upload([]float32{4, -4, 9}, 1, 1, 1, 3)), 2) // NaN in step 0
	b.KVAppend(b.Import(cache), rows, b.Upload([]int32{2}))
	var e *batch.GuardError
	require.ErrorAs(t, b.Start().Await(context.Background()), &e)
	require.Equal(t, 0, e.Step, e)
	require.Equal(t, 1, e.Index)
}

// upload is the device's own, waiting for it.
func upload(dev batch.Device, data []float32, shape ...int) (compute.Tensor, error) {
	b := batch.New(dev)
	k := b.Keep(b.Copy(b.Upload(data, shape...)))
	err := b.Start().Await(context.Background())
	return k.Tensor(), err
}

// A guard of a single value looks at nothing else.
func TestGuardOfAValue(t *testing.T) {
	_, dev := openCPU(t)
	record := func(guarded int, checks batch.Check) error {
		b := batch.New(dev)
		values := []batch.Value{b.Upload([]float32{-1, 4, 0})}
		values = append(values, b.Sqrt(values[0]))               // NaN, 2, 0
		values = append(values, b.Recip(values[1]))              // NaN, 0.5, Inf
		values = append(values, b.Maximum(values[0], values[0])) // −1, 4, 0
		b.Read(b.Add(values[3], values[2]))
		b.Guard(values[guarded], checks, batch.Stop)
		return b.Start().Await(context.Background())
	}
	var e *batch.GuardError
	require.NoError(t, record(0, batch.NaN|batch.Inf|batch.Overflow))
	require.NoError(t, record(3, batch.NaN|batch.Inf))
	require.NoError(t, record(1, batch.Inf))
	require.ErrorAs(t, record(2, batch.Inf), &e)
	require.Equal(t, [3]int{1, 2, 1}, [3]int{e.Step, e.Index, e.Count}, e)
	require.NoError(t, record(2, batch.Overflow), "its operand is NaN at another place already")
	require.ErrorAs(t, record(2, batch.NaN|batch.Inf), &e)
	require.Equal(t, [3]int{1, 0, 1}, [3]int{e.Step, e.Index, e.Count}, e)
	require.Contains(t, e.Site, "guard_test.go:")
	require.ErrorIs(t, record(1, 0), compute.ErrArgument)
	require.ErrorIs(t, record(1, 8), compute.ErrArgument)
	b := batch.New(dev, batch.WithGuard(0, batch.Stop))
	b.Read(b.Upload([]float32{1}))
	require.ErrorIs(t, b.Start().Await(context.Background()), compute.ErrArgument)
	b = batch.New(dev)
	b.Read(b.Guard(b.Upload([]float32{1, float32(math.NaN())}), batch.NaN, batch.Stop))
	require.ErrorAs(t, b.Start().Await(context.Background()), &e)
	require.Equal(t, -1, e.Step)
	require.Equal(t, "input", e.Operation)
}

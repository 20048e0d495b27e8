package cuda

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// powers is a program of steps, each an expression of its own: x·p, x·p·p …, of which number first has first factors.
func powers(t *testing.T, first, steps int) *program.Program {
	p := &program.Program{}
	x := p.Add(program.F32(4), program.FromHost)
	for i := range steps {
		e := program.Expression{Inputs: 1, Results: []int{first + i + 1}}
		var scalars []float32
		for n := range first + i + 1 {
			e.Nodes = append(e.Nodes, program.Node{Entry: catalogue.Scale, Args: []int{n}})
			scalars = append(scalars, 1.5)
		}
		y, err := p.Apply(program.Fused, program.Attr{Options: e, Scalars: scalars}, x)
		require.NoError(t, err)
		p.Read = append(p.Read, y)
	}
	return p
}

// checkPowers runs a compiled program.
func checkPowers(t *testing.T, x program.Executable, first, steps int) {
	t.Helper()
	io := &program.IO{Host: []any{[]float32{1, 2, 3, 4}}}
	for range steps {
		io.Read = append(io.Read, make([]float32, 4))
	}
	require.NoError(t, x.Start(io).Await(t.Context()))
	factor := float32(1)
	for range first {
		factor *= 1.5
	}
	for _, y := range io.Read {
		factor *= 1.5
		require.Equal(t, []float32{factor, 2 * factor, 3 * factor, 4 * factor}, y)
	}
}

// Kernels of expressions are loaded when a program needs them: those of one program as one module, and each once.
func TestMadeKernels(t *testing.T) {
	d, g := openSoft(t, softgpu.Config{})
	before := g.Live().Modules
	x, err := program.ExecutorOf(d).Compile(t.Context(), powers(t, 0, 3))
	require.NoError(t, err)
	require.Equal(t, before+1, g.Live().Modules)
	checkPowers(t, x, 0, 3)
	y, err := program.ExecutorOf(d).Compile(t.Context(), powers(t, 1, 4))
	require.NoError(t, err)
	require.Equal(t, before+2, g.Live().Modules, "two of them are new")
	require.NoError(t, x.Close())
	checkPowers(t, y, 1, 4)
	_, err = program.ExecutorOf(d).Compile(t.Context(), powers(t, 0, 5))
	require.NoError(t, err)
	require.Equal(t, before+2, g.Live().Modules)

	long := powers(t, 0, 1)
	for n := range 200 {
		e := long.Steps[0].Attr.Options.(program.Expression)
		e.Nodes = append(e.Nodes, program.Node{Entry: catalogue.Scale, Args: []int{n + 1}})
		e.Results = []int{n + 2}
		long.Steps[0].Attr.Options = e
	}
	_, err = program.ExecutorOf(d).Compile(t.Context(), long)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.False(t, program.ExecutorOf(d).Fuses(&long.Steps[0], long.Types(long.Steps[0].In), long.Types(long.Steps[0].Out)))
}

// However many expressions there are, few stay loaded: those that programs have, and the last of the others.
func TestMadeKernelsAreBounded(t *testing.T) {
	d, g := openSoft(t, softgpu.Config{})
	d.loader.made = newMade(3)
	before := g.Live().Modules
	kept, err := program.ExecutorOf(d).Compile(t.Context(), powers(t, 0, 2))
	require.NoError(t, err)
	for i := range 30 {
		x, err := program.ExecutorOf(d).Compile(t.Context(), powers(t, 2+i, 1))
		require.NoError(t, err)
		checkPowers(t, x, 2+i, 1)
		require.NoError(t, x.Close())
		// Loading unloads what was let go of before.
		require.LessOrEqual(t, g.Live().Modules-before, 6+2)
	}
	require.LessOrEqual(t, d.loader.made.kernels.Len(), 6)
	checkPowers(t, kept, 0, 2) // whose module is no longer among them
	require.NoError(t, kept.Close())
	again, err := program.ExecutorOf(d).Compile(t.Context(), powers(t, 0, 2))
	require.NoError(t, err)
	checkPowers(t, again, 0, 2)
}

// Programs may be compiled at once, while others are closed.
func TestMadeKernelsAtOnce(t *testing.T) {
	d, _ := openSoft(t, softgpu.Config{})
	d.loader.made = newMade(2)
	var wg sync.WaitGroup
	errs := make(chan error, 4)
	for i := range 4 {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		wg.Go(func() {
			for range 12 {
				first := rng.IntN(6)
				x, err := program.ExecutorOf(d).Compile(t.Context(), powers(t, first, 2))
				if err != nil {
					errs <- err
					return
				}
				io := &program.IO{Host: []any{[]float32{2, 2, 2, 2}}, Read: []any{make([]float32, 4), make([]float32, 4)}}
				if err = x.Start(io).Await(t.Context()); err == nil {
					err = x.Close()
				}
				if a, b := io.Read[0].([]float32)[0], io.Read[1].([]float32)[3]; err == nil && b != a*1.5 {
					err = fmt.Errorf("%v after %v", b, a)
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

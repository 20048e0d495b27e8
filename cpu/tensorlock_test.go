package cpu_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Runs that change one tensor and read another, and the reverse, started by many goroutines at once: none waits for ever, and no
// update is lost or torn.
func TestTurns(t *testing.T) {
	d := open(t)
	const slots, width = 8, 700
	shape := []int{1, slots, 1, width}
	upload := func() compute.Tensor {
		x, err := d.Upload(t.Context(), make([]float32, slots*width), shape...)
		require.NoError(t, err)
		return x
	}
	a, b := upload(), upload()
	p := &program.Program{}
	changed, other := p.Add(program.F32(shape...), program.FromTensor), p.Add(program.F32(shape...), program.FromTensor)
	one := program.Attr{Options: compute.SliceOptions{Start: []int{0, 0, 0, 0}, Size: []int{1, 1, 1, width}}}
	old, err := p.Apply(catalogue.Slice, one, changed)
	require.NoError(t, err)
	read, err := p.Apply(catalogue.Slice, one, other)
	require.NoError(t, err)
	zero, err := p.Apply(catalogue.Sub, program.Attr{}, read, read)
	require.NoError(t, err)
	ones, err := p.Apply(catalogue.Fill, program.Attr{Scalars: []float32{1}, Options: compute.FillOptions{Shape: []int{1, 1, 1, width}}})
	require.NoError(t, err)
	row, err := p.Apply(catalogue.FMA, program.Attr{}, ones, old, ones)
	require.NoError(t, err)
	row, err = p.Apply(catalogue.Add, program.Attr{}, row, zero)
	require.NoError(t, err)
	position := p.Add(program.Type{DType: compute.Int32, Shape: []int{1}}, program.FromHost)
	_, err = p.Apply(catalogue.KVAppend, program.Attr{}, changed, row, position)
	require.NoError(t, err)
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)

	const starters, each = 6, 50
	var wg sync.WaitGroup
	for i := range starters {
		tensors := []compute.Tensor{a, b}
		if i%2 == 1 {
			tensors = []compute.Tensor{b, a}
		}
		wg.Go(func() {
			var futures []*compute.Future
			for range each {
				futures = append(futures, x.Start(&program.IO{Host: []any{[]int32{0}}, Tensors: tensors}))
			}
			for _, f := range futures {
				if err := wait(f); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, y := range []compute.Tensor{a, b} {
		got := make([]float32, slots*width)
		require.NoError(t, wait(y.ReadAsync(got)))
		for i, v := range got {
			want := float32(0)
			if i < width {
				want = starters / 2 * each
			}
			require.Equal(t, want, v, "element %d", i)
		}
		require.NoError(t, y.Close())
	}
	require.NoError(t, x.Close())
}

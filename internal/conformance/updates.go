package conformance

import (
	"context"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// updatesInOrder starts runs that change a tensor, and runs that only read it, without waiting for any: each sees what those
// started before it have done, and nothing of those after it.
func updatesInOrder(g *graph) {
	const slots, width, runs = 4, 3000, 24
	shape := []int{1, slots, 1, width}
	first := g.floats(-1, 1, shape...)
	cache := g.resident(first)

	in := g.Add(program.F32(shape...), program.FromTensor)
	rows := g.Add(program.F32(1, 1, 1, width), program.FromHost)
	position := g.Add(program.Type{DType: compute.Int32, Shape: []int{1}}, program.FromHost)
	g.read(g.apply(catalogue.KVAppend, program.Attr{}, in, rows, position))
	update := g.compile()
	look := g.d.graph(g, "look")
	look.read(look.apply(catalogue.Copy, program.Attr{}, look.Add(program.F32(shape...), program.FromTensor)))
	read := look.compile()

	var futures []*compute.Future
	var seen [][2]any // of each pair of runs
	for i := range runs {
		row := fillWith(g.floats(0, 0, width), float32(i)+2)
		changed, _ := destination(program.F32(shape...))
		looked, _ := destination(program.F32(shape...))
		futures = append(futures,
			update.Start(&program.IO{Host: []any{row.data, []int32{int32(i)}}, Tensors: []compute.Tensor{cache}, Read: []any{changed}}),
			read.Start(&program.IO{Tensors: []compute.Tensor{cache}, Read: []any{looked}}))
		seen = append(seen, [2]any{changed, looked})
	}
	want := slices.Clone(first.data.([]float32))
	for i := range runs {
		require.NoError(g, await(futures[2*i]))
		require.NoError(g, await(futures[2*i+1]))
		at := i % slots * width
		copy(want[at:at+width], slices.Repeat([]float32{float32(i) + 2}, width))
		for k, got := range seen[i] {
			require.True(g, sameBits(want, got), "%s: after %d updates, seen by the %s", g.d.name, i+1, []string{"update", "next run"}[k])
		}
	}
	require.True(g, sameBits(want, g.contents(cache)), "%s: the tensor at the end", g.d.name)

	// The tensor cannot be another operand, or become another tensor, of the run that changes it.
	twice := g.d.graph(g, "twice")
	a, b := twice.Add(program.F32(shape...), program.FromTensor), twice.Add(program.F32(1, 1, 1, width), program.FromTensor)
	out := twice.apply(catalogue.KVAppend, program.Attr{}, a, b, twice.upload(operand{program.Type{DType: compute.Int32, Shape: []int{1}}, []int32{0}}))
	twice.Keep = []program.Slot{out}
	_, err := g.d.Compile(context.Background(), &twice.Program)
	require.ErrorIs(g, err, compute.ErrArgument)

	require.NoError(g, cache.Close())
	require.NoError(g, update.Close())
	require.NoError(g, read.Close())
}

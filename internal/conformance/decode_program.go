package conformance

import (
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	programs = append(programs, testProgram{"decoding with a ring", func(g *graph) { decode(g, false) }},
		testProgram{"decoding with pages", func(g *graph) { decode(g, true) }},
		testProgram{"appending in one program", appendInside})
}

// decode appends a token at a time to resident caches, in as many runs of one program as make a ring wrap, and compares what
// each sees with attention over the whole history.
func decode(g *graph, paged bool) {
	const batch, heads, kv, d, capacity = 2, 4, 2, 20, 6
	const pageSize, entries = 4, 3 // room for more than the runs
	causal := program.Attr{Options: compute.AttentionOptions{Causal: true}}
	runs, shape := 10, []int{batch, capacity, kv, d}
	if paged {
		shape = []int{batch*entries + 1, pageSize, kv, d}
	}
	half := program.Type{DType: compute.Float16, Shape: shape}
	keys, values := g.Add(half, program.FromTensor), g.Add(half, program.FromTensor)
	q := g.upload(g.floats(-2, 2, batch, 1, heads, d))
	k, v := g.upload(g.floats(-2, 2, batch, 1, kv, d)), g.upload(g.floats(-2, 2, batch, 1, kv, d))
	positions, lengths := g.upload(lengthsOf(make([]int32, batch))), g.upload(lengthsOf(make([]int32, batch)))
	var y program.Slot
	if paged {
		table := g.upload(g.table(shape[0], batch, entries))
		keys = g.apply(catalogue.KVAppendPaged, program.Attr{}, keys, k, positions, table)
		values = g.apply(catalogue.KVAppendPaged, program.Attr{}, values, v, positions, table)
		y = g.apply(catalogue.PagedAttention, causal, q, keys, values, table, lengths)
	} else {
		keys, values = g.apply(catalogue.KVAppend, program.Attr{}, keys, k, positions), g.apply(catalogue.KVAppend, program.Attr{}, values, v, positions)
		y = g.apply(catalogue.Attention, causal, q, keys, values, lengths)
	}
	g.read(y)
	ex := g.compile()
	tensors := []compute.Tensor{g.resident(g.words(compute.Float16, shape...)), g.resident(g.words(compute.Float16, shape...))}

	type token struct{ k, v []float64 }
	history := make([][]token, batch) // one sequence begins two tokens earlier
	width := kv * d
	for step := range runs {
		g.data[q] = g.floats(-2, 2, batch, 1, heads, d)
		newK, newV := g.floats(-2, 2, batch, 1, kv, d).as(compute.Float16), g.floats(-2, 2, batch, 1, kv, d).as(compute.Float16)
		wideK, wideV := array(newK.data, newK.Shape), array(newV.data, newV.Shape)
		g.data[k], g.data[v] = floatsOf(wideK), floatsOf(wideV)
		at, n := make([]int32, batch), make([]int32, batch)
		for b := range batch {
			if at[b] = int32(step - 2*b); at[b] < 0 { // not yet: its row is not written
				continue
			}
			n[b] = at[b] + 1
			history[b] = append(history[b], token{wideK.Data[b*width:][:width], wideV.Data[b*width:][:width]})
		}
		g.data[positions], g.data[lengths] = lengthsOf(at), lengthsOf(n)
		io := g.io(tensors...)
		require.NoError(g, await(ex.Start(io)))
		g.d.count.Add(1)
		got := io.Read[0].([]float32)
		queries := array(g.data[q].data, []int{batch, 1, heads, d})
		for b := range batch {
			seen := history[b]
			if !paged {
				seen = seen[max(0, len(seen)-capacity):]
			}
			in := []reference.Array{{Shape: []int{1, heads, d}, Data: queries.Data[b*heads*d:][:heads*d]}, {Shape: []int{len(seen), kv, d}}, {Shape: []int{len(seen), kv, d}}}
			for _, t := range seen {
				in[1].Data, in[2].Data = append(in[1].Data, t.k...), append(in[2].Data, t.v...)
			}
			want := reference.Of(catalogue.Attention, in, causal, []program.Type{program.F32(1, heads, d)})[0]
			for i, w := range want.Data {
				require.InDelta(g, w, got[b*heads*d+i], 1e-4, "%s: run %d, sequence %d, element %d, seed %d", g.d.name, step, b, i, Seed())
			}
		}
	}
	require.NoError(g, ex.Close())
	for _, t := range tensors {
		require.NoError(g, t.Close())
	}
}

func floatsOf(a reference.Array) operand {
	x := make([]float32, len(a.Data))
	for i, v := range a.Data {
		x[i] = float32(v)
	}
	return f32s(a.Shape, x...)
}

// appendInside appends several times in one program to caches that are uploaded, which stay as they are, and attends in between.
func appendInside(g *graph) {
	const batch, kv, d, capacity = 2, 1, 9, 5
	causal := program.Attr{Options: compute.AttentionOptions{Causal: true}}
	start := g.upload(g.floats(-2, 2, batch, capacity, kv, d).as(compute.BFloat16))
	keys, values := start, g.upload(g.floats(-2, 2, batch, capacity, kv, d).as(compute.BFloat16))
	for i := range 3 {
		positions := g.upload(lengthsOf([]int32{int32(3 + 2*i), int32(2 * i)}))
		lengths := g.upload(lengthsOf([]int32{int32(5 + 2*i), int32(2*i + 2)}))
		keys = g.apply(catalogue.KVAppend, program.Attr{}, keys, g.upload(g.floats(-2, 2, batch, 2, kv, d)), positions)
		values = g.apply(catalogue.KVAppend, program.Attr{}, values, g.upload(g.floats(-2, 2, batch, 2, kv, d)), positions)
		g.read(g.apply(catalogue.Attention, causal, g.upload(g.floats(-2, 2, batch, 2, 2*kv, d)), keys, values, lengths))
	}
	g.read(keys, values)
	g.run()
	_, err := g.ApplyAll(catalogue.Copy, program.Attr{}, start)
	require.ErrorIs(g, err, compute.ErrArgument, "what has changed in place is no operand any more")
}

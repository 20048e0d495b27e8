package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// Blocks of queries find the tiles that another block of their head has put in order, never those of another head, of another step, or of
// a run before.
func TestAttentionOrdersTilesAnew(t *testing.T) {
	d := open(t)
	type sizes struct {
		q, k   []int
		causal bool
	}
	all := []sizes{
		{[]int{1, 300, 1, 8}, []int{1, 300, 1, 8}, false}, // tiles of 128 and of 256 keys
		{[]int{2, 300, 3, 8}, []int{2, 300, 3, 8}, true},
		{[]int{1, 160, 1, 256}, []int{1, 768, 1, 256}, false}, // two tiles share a place
	}
	if testing.Short() { // in emulation, and for the race detector
		all = all[:1]
	}
	for _, x := range all {
		queries, keys := program.F32(x.q...), program.F32(x.k...)
		p, a := &program.Program{}, program.Attr{Options: compute.AttentionOptions{Causal: x.causal}}
		q, k, v := p.Add(queries, program.FromHost), p.Add(keys, program.FromHost), p.Add(keys, program.FromHost)
		for _, kv := range [][2]program.Slot{{k, v}, {v, k}} {
			y, err := p.Apply(catalogue.Attention, a, q, kv[0], kv[1])
			require.NoError(t, err)
			p.Read = append(p.Read, y)
		}
		e, err := program.ExecutorOf(d).Compile(t.Context(), p)
		require.NoError(t, err)
		n := keys.Len()
		numbers := random(t, queries.Len()+3*n)
		in := []any{numbers[3*n:], numbers[:n], numbers[n : 2*n]}
		got := []any{make([]float32, queries.Len()), make([]float32, queries.Len())}
		for range 2 {
			require.NoError(t, wait(e.Start(&program.IO{Host: in, Read: got})))
			k, v := array(keys, numbers[:n]), array(keys, numbers[n:2*n])
			for i, kv := range [][2]reference.Array{{k, v}, {v, k}} {
				of := []reference.Array{array(queries, numbers[3*n:]), kv[0], kv[1]}
				require.InDeltaSlice(t, reference.Of(catalogue.Attention, of, a, []program.Type{queries})[0].Data, got[i], 1e-4)
			}
			copy(numbers, numbers[2*n:3*n]) // where the keys were
		}
		require.NoError(t, e.Close())
	}
}

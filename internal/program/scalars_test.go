package program_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func TestVaryingScalars(t *testing.T) {
	a := program.Attr{Scalars: []float32{1, 2}, Vary: []int{0, 2}}
	require.True(t, a.Varies())
	require.Equal(t, []float32{1, 9}, a.At([]float32{8, 9}).Scalars)
	require.Equal(t, a, a.At(nil))
	b := program.Attr{Scalars: []float32{3}}
	require.False(t, b.Varies())
	require.Equal(t, b, b.At([]float32{8, 9}))

	joined := b
	joined.AppendScalars(program.Attr{Scalars: []float32{4}})
	require.Equal(t, program.Attr{Scalars: []float32{3, 4}}, joined)
	joined.AppendScalars(a)
	joined.AppendScalars(b)
	require.Equal(t, program.Attr{Scalars: []float32{3, 4, 1, 2, 3}, Vary: []int{0, 0, 0, 2, 0}}, joined)
	require.Equal(t, []float32{3}, b.Scalars)

	p := &program.Program{Variables: 2}
	x := p.Add(program.F32(3), program.FromHost)
	_, err := p.Apply(catalogue.Clip, a, x)
	require.NoError(t, err)
	require.NoError(t, p.Check())
	require.Equal(t, []float32{0, 2}, p.Recorded())
	for _, vary := range [][]int{{1}, {0, 3}, {-1, 0}} {
		p.Steps[0].Attr.Vary = vary
		require.ErrorIs(t, p.Check(), compute.ErrArgument)
	}
	for n, err := range map[int]error{0: compute.ErrArgument, 1: compute.ErrArgument, 2: nil, 3: compute.ErrArgument} {
		require.ErrorIs(t, p.CheckIO(&program.IO{Host: []any{make([]float32, 3)}, Scalars: make([]float32, n)}, nil), err)
	}
	require.NoError(t, p.CheckIO(&program.IO{Host: []any{make([]float32, 3)}}, nil))
}

// A probe has other scalars where they vary, whatever the step has, and words tell which.
func TestProbe(t *testing.T) {
	s := &program.Step{Entry: catalogue.Clip, Attr: program.Attr{Scalars: []float32{1.25, 1.5, 1.75}, Vary: []int{2, 0, 1}}}
	probe, marks := s.Probe()
	require.Equal(t, []float32{1.25, 1.5, 1.75}, s.Attr.Scalars)
	require.Len(t, marks, 2)
	require.Equal(t, float32(1.5), probe.Attr.Scalars[1])
	words := func(x []float32, rest ...uint32) (w []uint32) {
		for _, v := range x {
			w = append(w, math.Float32bits(v))
		}
		return append(w, rest...)
	}
	found := map[int]int{}
	note := func(at, variable int) { found[at] = variable }
	require.True(t, program.MatchScalars(words(s.Attr.Scalars, 7), words(probe.Attr.Scalars, 7), marks, note))
	require.Equal(t, map[int]int{0: 1, 2: 0}, found)
	require.False(t, program.MatchScalars(words(s.Attr.Scalars, 7), words(probe.Attr.Scalars, 8), marks, note), "a word made of a scalar")
	require.False(t, program.MatchScalars(words(s.Attr.Scalars), words(probe.Attr.Scalars, 8), marks, note))
}

package catalogue_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// shapes draws shapes of up to eight axes and about a thousand elements.
func shapes(t *rapid.T, label string) []int {
	rank := rapid.IntRange(0, program.MaxRank).Draw(t, label+" rank")
	s := make([]int, rank)
	n := 1
	for i := range s {
		s[i] = rapid.SampledFrom([]int{1, 2, 3, 1, 5, 0, 7, 4}).Draw(t, label)
		if s[i] > 0 && n*s[i] > 1000 {
			s[i] = 1
		}
		n *= max(s[i], 1)
	}
	return s
}

// counted is a tensor whose elements are their indices.
func counted(shape []int) reference.Array {
	a := reference.Array{Shape: shape, Data: make([]float64, program.Len(shape))}
	for i := range a.Data {
		a.Data[i] = float64(i)
	}
	return a
}

func apply(t *rapid.T, e *program.Entry, options any, in ...reference.Array) reference.Array {
	types := make([]program.Type, len(in))
	for i, x := range in {
		types[i] = program.F32(x.Shape...)
	}
	out, err := e.Check(types, program.Attr{Options: options})
	require.NoError(t, err)
	return reference.Of(e, in, program.Attr{Options: options}, out)[0]
}

// Broadcasting by the definition: shapes are padded with ones in front, and axes of size 1 repeat.
func TestBroadcast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := shapes(t, "out")
		operand := func(label string) []int {
			s := slices.Clone(out[rapid.IntRange(0, len(out)).Draw(t, label+" dropped axes"):])
			for i := range s {
				if rapid.Bool().Draw(t, label+" repeats") {
					s[i] = 1
				}
			}
			return s
		}
		a, b := operand("a"), operand("b")
		ab, err := program.Broadcast(a, b)
		require.NoError(t, err)
		ba, err := program.Broadcast(b, a)
		require.NoError(t, err)
		require.Equal(t, ab, ba)
		whole, err := program.Broadcast(ab, out)
		require.NoError(t, err)
		require.Equal(t, slices.Clone(out), append([]int{}, whole...), "a result broadcasts like its operands")

		strides := program.BroadcastStrides(a, out)
		own := program.Strides(a)
		program.Walk(out, func(_ int, index []int) {
			at := 0
			for i := range a {
				at += index[len(out)-len(a)+i] % a[i] * own[i]
			}
			require.Equal(t, at, program.Dot(index, strides))
		})
	})
	for _, c := range [][][]int{{{2}, {3}}, {{0}, {2}}, {{2, 1}, {3, 1}}, {{4, 2, 3}, {4, 1, 2}}} {
		_, err := program.Broadcast(c...)
		require.ErrorIs(t, err, compute.ErrShape)
	}
	empty, err := program.Broadcast()
	require.NoError(t, err)
	require.Empty(t, empty)
}

// Collapse walks the same offsets in the same order over fewer axes.
func TestCollapse(t *testing.T) {
	offsets := func(shape, strides []int) (all []int) {
		program.Walk(shape, func(_ int, index []int) { all = append(all, program.Dot(index, strides)) })
		return all
	}
	rapid.Check(t, func(t *rapid.T) {
		shape := shapes(t, "shape")
		strides := make([][]int, rapid.IntRange(1, 3).Draw(t, "operands"))
		for k := range strides {
			s := slices.Clone(shape)
			for i := range s {
				if rapid.IntRange(0, 3).Draw(t, "repeats") == 0 {
					s[i] = 1
				}
			}
			strides[k] = program.BroadcastStrides(s, shape)
			if rapid.Bool().Draw(t, "negative") && len(shape) > 0 {
				i := rapid.IntRange(0, len(shape)-1).Draw(t, "axis")
				strides[k][i] *= -1
			}
		}
		small, smallStrides := program.Collapse(shape, strides...)
		require.Equal(t, program.Len(shape), program.Len(small))
		require.NotContains(t, small, 1)
		require.LessOrEqual(t, len(small), len(shape))
		for k := range strides {
			require.Equal(t, offsets(shape, strides[k]), offsets(small, smallStrides[k]))
		}
	})
	s, st := program.Collapse([]int{2, 3, 4}, program.Strides([]int{2, 3, 4}), program.Strides([]int{2, 3, 4}))
	require.Equal(t, []int{24}, s, "contiguous operands are one axis")
	require.Equal(t, [][]int{{1}, {1}}, st)
	s, st = program.Collapse([]int{2, 3, 4}, program.Strides([]int{2, 3, 4}), program.BroadcastStrides([]int{4}, []int{2, 3, 4}))
	require.Equal(t, []int{6, 4}, s, "a row repeated is two axes")
	require.Equal(t, [][]int{{4, 1}, {0, 1}}, st)
}

// A slice holds x[start + i·step] along each axis.
func TestSliceView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := shapes(t, "shape")
		o := compute.SliceOptions{Start: make([]int, len(shape)), Size: make([]int, len(shape)), Step: make([]int, len(shape))}
		for i, d := range shape {
			o.Start[i] = rapid.IntRange(0, max(d-1, 0)).Draw(t, "start")
			o.Step[i] = rapid.SampledFrom([]int{1, -1, 2, -2, 3}).Draw(t, "step")
			if d == 0 {
				o.Step[i] = 1
				continue
			}
			if o.Step[i] > d || o.Step[i] < -d {
				o.Step[i] = 1
			}
			room := d - 1 - o.Start[i]
			if o.Step[i] < 0 {
				room = o.Start[i]
			}
			o.Size[i] = rapid.IntRange(0, room/max(o.Step[i], -o.Step[i])+1).Draw(t, "size")
		}
		x := counted(shape)
		got := apply(t, catalogue.Slice, o, x)
		require.Equal(t, append([]int{}, o.Size...), append([]int{}, got.Shape...))
		strides := program.Strides(shape)
		program.Walk(o.Size, func(i int, index []int) {
			at := 0
			for a := range index {
				at += (o.Start[a] + index[a]*o.Step[a]) * strides[a]
			}
			require.Equal(t, float64(at), got.Data[i])
		})
	})
}

// A slice that leaves the tensor is an error, whatever its numbers, and one that is accepted stays inside.
func TestSliceBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(0, 6).Draw(t, "d")
		number := rapid.OneOf(rapid.IntRange(-8, 8), rapid.Int())
		start, size, step := number.Draw(t, "start"), number.Draw(t, "size"), number.Draw(t, "step")
		v, err := catalogue.SliceView([]int{d}, compute.SliceOptions{Start: []int{start}, Size: []int{size}, Step: []int{step}})
		if err != nil {
			require.ErrorIs(t, err, compute.ErrArgument)
			return
		}
		require.LessOrEqual(t, size, d)
		for i := range size {
			at := v.Offset + i*v.Strides[0]
			require.True(t, at >= 0 && at < d, "element %d at %d of %d", i, at, d)
		}
	})
}

// Transposing by a permutation and then by its inverse changes nothing.
func TestTransposeInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := shapes(t, "shape")
		perm := make([]int, len(shape))
		for i := range perm {
			perm[i] = i
		}
		perm = rapid.Permutation(perm).Draw(t, "perm")
		if len(perm) == 0 {
			perm = []int{} // nil stands for the default
		}
		inverse := make([]int, len(perm))
		for i, p := range perm {
			inverse[p] = i
		}
		x := counted(shape)
		y := apply(t, catalogue.Transpose, compute.TransposeOptions{Perm: perm}, x)
		for i, p := range perm {
			require.Equal(t, shape[p], y.Shape[i])
		}
		back := apply(t, catalogue.Transpose, compute.TransposeOptions{Perm: inverse}, y)
		require.Equal(t, x.Data, back.Data)
		require.True(t, program.EqualShape(x.Shape, back.Shape))
	})
}

// Slicing undoes padding and concatenation.
func TestSliceUndoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := shapes(t, "shape")
		before, after := make([]int, len(shape)), make([]int, len(shape))
		n := 1
		for i, d := range shape {
			before[i], after[i] = rapid.IntRange(0, 1).Draw(t, "before"), rapid.IntRange(0, 1).Draw(t, "after")
			n *= d + before[i] + after[i]
		}
		x := counted(shape)
		padded := apply(t, catalogue.Pad, compute.PadOptions{Before: before, After: after, Value: -1}, x)
		back := apply(t, catalogue.Slice, compute.SliceOptions{Start: before, Size: shape}, padded)
		require.Equal(t, x.Data, back.Data)
		added := 0
		for _, v := range padded.Data {
			if v == -1 {
				added++
			}
		}
		require.Equal(t, n-program.Len(shape), added)

		if len(shape) == 0 {
			return
		}
		axis := rapid.IntRange(0, len(shape)-1).Draw(t, "axis")
		joined := apply(t, catalogue.Concat, compute.ConcatOptions{Axis: axis - len(shape)}, x, x, x)
		start := make([]int, len(shape))
		start[axis] = 2 * shape[axis]
		back = apply(t, catalogue.Slice, compute.SliceOptions{Start: start, Size: shape}, joined)
		require.Equal(t, x.Data, back.Data)
	})
}

func TestRowsCols(t *testing.T) {
	for _, c := range []struct {
		shape      []int
		rows, cols int
	}{{nil, 1, 1}, {[]int{5}, 1, 5}, {[]int{2, 3, 4}, 6, 4}, {[]int{0, 4}, 0, 4}, {[]int{4, 0}, 4, 0}} {
		rows, cols := program.RowsCols(c.shape)
		require.Equal(t, []int{c.rows, c.cols}, []int{rows, cols})
		rows, cols = program.ReduceRows(c.shape, compute.AllAxes)
		require.Equal(t, []int{1, program.Len(c.shape)}, []int{rows, cols})
		rows, cols = program.ReduceRows(c.shape, compute.LastAxis)
		require.Equal(t, []int{c.rows, c.cols}, []int{rows, cols})
	}
}

// Every window's taps are inside the input, and each input element is met as often as a count of windows says.
func TestTaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(1, 3)
		pair := func(label string, g *rapid.Generator[int]) [2]int { return [2]int{g.Draw(t, label), g.Draw(t, label)} }
		o := compute.Conv2DOptions{Stride: pair("stride", small), Pad: pair("pad", rapid.IntRange(0, 3)), Dilation: pair("dilation", small)}
		size, window := pair("size", rapid.IntRange(1, 9)), pair("window", small)
		d, err := catalogue.ConvShape(size[:], window[:], o)
		if err != nil {
			require.ErrorIs(t, err, compute.ErrShape)
			return
		}
		met := make([]int, size[0]*size[1])
		for oy := range d.OutH {
			for ox := range d.OutW {
				d.Taps(oy, ox, func(ky, kx, y, x int) { met[y*size[1]+x]++ })
			}
		}
		along := func(axis, at, out int) (n int) {
			for o1 := range out {
				for k := range window[axis] {
					if o1*o.Stride[axis]-o.Pad[axis]+k*o.Dilation[axis] == at {
						n++
					}
				}
			}
			return n
		}
		for i, n := range met {
			require.Equal(t, along(0, i/size[1], d.OutH)*along(1, i%size[1], d.OutW), n)
		}
	})
}

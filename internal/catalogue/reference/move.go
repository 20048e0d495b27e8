package reference

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func moveTable() table {
	return table{
		catalogue.Transpose: {values: one(viewed(func(x []int, a program.Attr) (catalogue.View, error) {
			return catalogue.TransposeView(x, a.Options.(compute.TransposeOptions))
		}))},
		catalogue.Slice: {values: one(viewed(func(x []int, a program.Attr) (catalogue.View, error) {
			return catalogue.SliceView(x, a.Options.(compute.SliceOptions))
		}))},
		catalogue.Pad: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			o := a.Options.(compute.PadOptions)
			y := slices.Repeat([]float64{float64(o.Value)}, out.Len())
			st := program.Strides(out.Shape)
			program.Walk(in[0].Shape, func(i int, index []int) { y[program.Dot(o.Before, st)+program.Dot(index, st)] = in[0].Data[i] })
			return y
		})},
		catalogue.Concat: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			axis, _ := catalogue.ConcatAxis(len(out.Shape), a.Options.(compute.ConcatOptions))
			y := make([]float64, out.Len())
			st := program.Strides(out.Shape)
			at := 0
			for _, x := range in {
				program.Walk(x.Shape, func(i int, index []int) { y[at*st[axis]+program.Dot(index, st)] = x.Data[i] })
				at += x.Shape[axis]
			}
			return y
		})},
		catalogue.Embedding: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			vocabulary, width := in[0].Shape[0], in[0].Shape[1]
			y := make([]float64, 0, out.Len())
			for _, id := range in[1].Data {
				if id < 0 || int(id) >= vocabulary {
					y = append(y, slices.Repeat([]float64{math.NaN()}, width)...)
					continue
				}
				y = append(y, in[0].Data[int(id)*width:(int(id)+1)*width]...)
			}
			return y
		})},
		catalogue.Copy:    {values: one(func(in []Array, _ program.Attr, _ program.Type) []float64 { return slices.Clone(in[0].Data) })},
		catalogue.Reshape: {values: one(func(in []Array, _ program.Attr, _ program.Type) []float64 { return slices.Clone(in[0].Data) })},
		catalogue.Fill: {values: one(func(_ []Array, a program.Attr, out program.Type) []float64 {
			return slices.Repeat([]float64{float64(a.Scalars[0])}, out.Len())
		})},
		catalogue.Cast: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			y := slices.Clone(in[0].Data)
			if out.DType == compute.Uint8 { // not only rounding: NaN is none
				for i, v := range y {
					y[i] = Rounded(v, out.DType)
				}
			}
			return y
		})},
	}
}

// viewed reads x as a view says.
func viewed(view func(x []int, a program.Attr) (catalogue.View, error)) single {
	return func(in []Array, a program.Attr, out program.Type) []float64 {
		v, _ := view(in[0].Shape, a)
		y := make([]float64, out.Len())
		program.Walk(v.Shape, func(i int, index []int) { y[i] = in[0].Data[v.Offset+program.Dot(index, v.Strides)] })
		return y
	}
}

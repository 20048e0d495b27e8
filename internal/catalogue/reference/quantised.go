package reference

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

func quantisedTable() table {
	return table{
		catalogue.Dequantize: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			w := dequantized(in[0], a.Options.(compute.DequantizeOptions).Format)
			if len(in) == 1 {
				return w.Data
			}
			k := w.Shape[1]
			y := make([]float64, 0, out.Len())
			for _, r := range in[1].Data {
				if r >= 0 && int(r) < w.Shape[0] {
					y = append(y, w.Data[int(r)*k:][:k]...)
				} else {
					y = append(y, slices.Repeat([]float64{math.NaN()}, k)...)
				}
			}
			return y
		})},
		catalogue.QuantMatMulRowMajor: {values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
			o := a.Options.(compute.QuantOptions)
			return rowsTimes(activations8(in[0], o.Q8), dequantized(in[1], o.Format))
		}),
			magnitudes: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
				o := a.Options.(compute.QuantOptions)
				return rowsTimes(yardstick8(in[0], o.Q8), weightYardstick(in[1], o.Format))
			})},
		catalogue.QuantMatMulColMajor: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			w := dequantized(in[1], a.Options.(compute.QuantOptions).Format)
			return matmulReference([]Array{asRows(in[0]), w}, compute.MatMulOptions{}, out)
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				w := weightYardstick(in[1], a.Options.(compute.QuantOptions).Format)
				return matmulReference([]Array{asRows(yardstick8(in[0], false)), w}, compute.MatMulOptions{}, out)
			})},
		catalogue.QuantRMSNormMatVec: {values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
			o := a.Options.(compute.QuantOptions)
			x := Array{Shape: in[0].Shape, Data: rmsNorm(in[:2], a, program.Type{})}
			return rowsTimes(activations8(x, o.Q8), dequantized(in[2], o.Format))
		}),
			magnitudes: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
				o := a.Options.(compute.QuantOptions)
				x := Array{Shape: in[0].Shape, Data: rmsNorm(Absolute(in[:2]), a, program.Type{})}
				return rowsTimes(yardstick8(x, o.Q8), weightYardstick(in[2], o.Format))
			})},
		catalogue.QuantQKV: {values: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
			in = slices.Clone(in)
			in[0] = activations8(in[0], a.Options.(compute.QuantQKVOptions).Q8)
			for i, f := range catalogue.QKVFormats(a) {
				in[1+i] = dequantized(in[1+i], f)
			}
			return threeProducts(in)
		},
			magnitudes: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
				in = slices.Clone(in)
				in[0] = yardstick8(in[0], a.Options.(compute.QuantQKVOptions).Q8)
				for i, f := range catalogue.QKVFormats(a) {
					in[1+i] = weightYardstick(in[1+i], f)
				}
				copy(in[4:], Absolute(in[4:]))
				return threeProducts(in)
			}},
		catalogue.QuantGateUpSwiGLU: {values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
			o := a.Options.(compute.QuantOptions)
			x := activations8(in[0], o.Q8)
			y := rowsTimes(x, dequantized(in[1], o.Format))
			for i, up := range rowsTimes(x, dequantized(in[2], o.Format)) {
				y[i] = silu(y[i]) * up
			}
			return y
		}),

			// With g and u off by eg and eu, silu(g)·u is off by at most 1.1·eg·|u| + (|g| + eg)·eu.
			magnitudes: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
				o := a.Options.(compute.QuantOptions)
				x := yardstick8(in[0], o.Q8)
				gate, up := weightYardstick(in[1], o.Format), weightYardstick(in[2], o.Format)
				eg, eu := rowsTimes(x, gate), rowsTimes(x, up)
				plain := yardstick8(in[0], false)
				g, u := rowsTimes(plain, gate), rowsTimes(plain, up)
				for i := range eg {
					eg[i] = 1.1*eg[i]*u[i] + (g[i]+catalogue.QuantMatMulRowMajor.Tol.Mag*eg[i])*eu[i]
				}
				return eg
			})},
	}
}

// dequantized are the values of packed weights.
func dequantized(w Array, f compute.BlockFormat) Array {
	rows, cols, _ := catalogue.PackedShape(program.Type{DType: compute.Uint32, Shape: w.Shape}, f)
	p := &quant.Packed{Type: quant.Type(f), Rows: rows, Cols: cols, Words: make([]uint32, len(w.Data))}
	for i, v := range w.Data {
		p.Words[i] = uint32(v)
	}
	values := make([]float32, rows*cols)
	if m, err := p.Unpack(); err == nil { // checked with the call
		_ = m.Dequantize(values)
	}
	y := Array{Shape: []int{rows, cols}, Data: make([]float64, len(values))}
	for i, v := range values {
		y.Data[i] = float64(v)
	}
	return y
}

// weightYardstick is how large what a kernel sums up for a weight may be: d·q and the minimum may each be larger than their
// difference, up to the largest weights that share their scales.
func weightYardstick(w Array, f compute.BlockFormat) Array {
	y := dequantized(w, f)
	for at := 0; at < len(y.Data); at += 32 {
		group, most := y.Data[at:at+32], 0.0
		for _, v := range group {
			most = max(most, math.Abs(v))
		}
		for i := range group {
			group[i] = 2 * most
		}
	}
	return y
}

// activations8 is x; with Q8, rows with Inf or NaN are NaN.
func activations8(x Array, q8 bool) Array {
	if !q8 {
		return x
	}
	x.Data = slices.Clone(x.Data)
	_, k := program.RowsCols(x.Shape)
	for at := 0; at < len(x.Data); at += k {
		row := x.Data[at : at+k]
		if slices.ContainsFunc(row, func(v float64) bool { return v-v != 0 }) {
			for i := range row {
				row[i] = math.NaN()
			}
		}
	}
	return x
}

// yardstick8 is |x| and, in units of the tolerance, what rounding to 8 bits changes: half a step of the block's scale, which may be
// a half and so be off by itself.
func yardstick8(x Array, q8 bool) Array {
	x = Absolute([]Array{x})[0]
	if !q8 {
		return x
	}
	_, k := program.RowsCols(x.Shape)
	for at := 0; at < len(x.Data); at += k {
		for row := x.Data[at : at+k]; len(row) > 0; {
			block := row[:min(256, len(row))]
			half := slices.Max(block) * 1.02 / 254
			for i := range block {
				block[i] += (half + 5e-4*block[i]) / catalogue.QuantMatMulRowMajor.Tol.Mag
			}
			row = row[len(block):]
		}
	}
	return x
}

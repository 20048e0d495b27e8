package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

const quantSpecial = "Weights are packed by quant.Pack: Uint32, a row of words for each row of values. " +
	"K = 0 gives zeros. Subnormal scales are exact; scales of Inf or NaN propagate as in quant.Dequantize. Up to 8 " +
	"rows of x read the weights once. With Q8, a row of x that holds Inf or NaN gives NaN."

var packed = []compute.DType{compute.Uint32}

// Products with weights in GGML's block formats. As rows of w, weights are what model files have; as columns they are another
// operation, since a shape alone does not tell.
var (
	Dequantize = &program.Entry{Name: "dequantize", Method: "Dequantize", Class: program.Layer,
		Doc: "the values of quantised weights w [n, words]",
		Special: "The result is [n, k] in Float32 or Float16. With rows, Int32 of any shape, it is only " +
			"those rows, […rows, k]: the embedding of quantised tables. Float32 values are those of quant.Dequantize, " +
			"bit for bit. Float16 values are the nearest to them; subnormal ones may be 0. A row number that is " +
			"negative or outside the table gives NaN.",
		Inputs:  []program.Input{{Name: "w", Types: packed}, {Name: "rows", Types: indexType, Optional: true}},
		Options: compute.DequantizeOptions{},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			o := a.Options.(compute.DequantizeOptions)
			n, k, err := PackedShape(in[0], o.Format)
			if err != nil {
				return program.Type{}, err
			}
			if o.Result != compute.Float32 && o.Result != compute.Float16 {
				return program.Type{}, fmt.Errorf("result cannot be %v: %w", o.Result, compute.ErrDType)
			}
			lead := []int{n}
			if len(in) == 2 {
				lead = in[1].Shape
			}
			return program.Type{DType: o.Result, Shape: append(slices.Clone(lead), k)}, nil
		}}

	QuantMatMulRowMajor = &program.Entry{Name: "quant_matmul_row_major", Method: "QuantMatMulRowMajor", Class: program.Layer, Dots: quantFlops,
		Doc: "x·wᵀ with quantised weights w [n, words] whose blocks lie along k, as in model files", Special: "x is […, k], the result is […, n]. " + quantSpecial,
		Inputs:  []program.Input{{Name: "x"}, {Name: "w", Types: packed}},
		Options: compute.QuantOptions{}, Tol: quantTol, Domain: [2]float64{-1, 1},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			return quantProduct(in[0], in[1], a.Options.(compute.QuantOptions).Format)
		}}

	QuantMatMulColMajor = &program.Entry{Name: "quant_matmul_col_major", Method: "QuantMatMulColMajor", Class: program.Layer, Dots: quantFlops,
		Doc: "x·w with quantised weights w [k, words] whose blocks lie along n", Special: "x is […, k], the result is […, n]. Q8 is not possible, because the values of one sum " +
			"have different scales. " + quantSpecial,
		Inputs:  []program.Input{{Name: "x"}, {Name: "w", Types: packed}},
		Options: compute.QuantOptions{}, Tol: quantTol, Domain: [2]float64{-1, 1},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			o := a.Options.(compute.QuantOptions)
			k, n, err := PackedShape(in[1], o.Format)
			if err != nil {
				return program.Type{}, err
			}
			if o.Q8 {
				return program.Type{}, fmt.Errorf("Q8 needs weights with blocks along k: %w", compute.ErrUnsupported)
			}
			if len(in[0].Shape) == 0 || in[0].Shape[len(in[0].Shape)-1] != k {
				return program.Type{}, fmt.Errorf("needs x [… k] and weights of %d rows: %w", k, compute.ErrShape)
			}
			return program.F32(append(slices.Clone(in[0].Shape[:len(in[0].Shape)-1]), n)...), nil
		}}

	QuantRMSNormMatVec = &program.Entry{Name: "quant_rms_norm_matvec", Method: "QuantRMSNormMatVec", Class: program.Layer, Dots: quantFlops,
		Doc: "rms_norm(x)·wᵀ with quantised weights w [n, words]", Special: "The norm is that of the last axis, with gamma [k]. " + quantSpecial,
		Inputs:  []program.Input{{Name: "x"}, {Name: "gamma"}, {Name: "w", Types: packed}},
		Options: compute.QuantOptions{}, Scalars: RMSNorm.Scalars, Tol: program.Tolerance{Abs: 1e-6, Rel: 1e-5, Mag: quantTol.Mag},
		Domain: [2]float64{-1, 1},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			if _, err := inferNorm(1, 1)(in[:2], program.Attr{Scalars: a.Scalars}); err != nil {
				return program.Type{}, err
			}
			return quantProduct(in[0], in[2], a.Options.(compute.QuantOptions).Format)
		}}

	QuantQKV = &program.Entry{Name: "quant_qkv", Method: "QuantQKV", Class: program.Layer, Dots: quantFlops,
		Doc: "the products of x with three quantised weights: x·wqᵀ + bq, x·wkᵀ + bk and x·wvᵀ + bv", Special: "Weights are [n, words]; their formats may differ. Biases are [n], all or none. " + quantSpecial,
		Inputs: []program.Input{{Name: "x"}, {Name: "wq", Types: packed}, {Name: "wk", Types: packed}, {Name: "wv", Types: packed},
			{Name: "bq", Optional: true}, {Name: "bk", Optional: true}, {Name: "bv", Optional: true}},
		Together: true, Options: compute.QuantQKVOptions{}, Results: []string{"q", "k", "v"}, Tol: quantTol, Domain: [2]float64{-1, 1},
		InferAll: func(in []program.Type, a program.Attr) ([]program.Type, error) {
			var out []program.Type
			for i, f := range QKVFormats(a) {
				t, err := quantProduct(in[0], in[1+i], f)
				if err != nil {
					return nil, err
				}
				if n := in[1+i].Shape[:1]; len(in) == 7 && !program.EqualShape(in[4+i].Shape, n) {
					return nil, fmt.Errorf("bias must have shape %v: %w", n, compute.ErrShape)
				}
				out = append(out, t)
			}
			return out, nil
		}}

	QuantGateUpSwiGLU = &program.Entry{Name: "quant_gate_up_swiglu", Method: "QuantGateUpSwiGLU", Class: program.Layer, Dots: quantGateUpFlops,
		Doc: "silu(x·gateᵀ)·(x·upᵀ) with quantised weights, the first half of a gated feed-forward layer", Special: "Weights are [n, words], of one format. " + quantSpecial,
		Inputs:  []program.Input{{Name: "x"}, {Name: "gate", Types: packed}, {Name: "up", Types: packed}},
		Options: compute.QuantOptions{}, Tol: program.Tolerance{Abs: 2e-6, Rel: 1e-5, Mag: 2 * quantTol.Mag}, Domain: [2]float64{-1, 1},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			if !program.EqualShape(in[1].Shape, in[2].Shape) {
				return program.Type{}, fmt.Errorf("weights %v and %v differ: %w", in[1].Shape, in[2].Shape, compute.ErrShape)
			}
			return quantProduct(in[0], in[1], a.Options.(compute.QuantOptions).Format)
		}}
)

// quantTol bounds rounding in units of Σ|w·x|, with what Q8 adds in the yardstick of x. So without Q8 activations need 18 bits or
// more: a half (11 bits, a squared error of 4e-8 of the result's) is for Q8 only, and the sum of two halves (22 bits) is exact enough.
var quantTol = program.Tolerance{Mag: 4e-6}

// QKVFormats are the formats of the three weights of a quant_qkv.
func QKVFormats(a program.Attr) [3]compute.BlockFormat {
	o := a.Options.(compute.QuantQKVOptions)
	return [3]compute.BlockFormat{o.Q, o.K, o.V}
}

// PackedShape is the number of rows and of values in each row of packed weights.
func PackedShape(w program.Type, f compute.BlockFormat) (rows, cols int, err error) {
	if len(w.Shape) != 2 {
		return 0, 0, fmt.Errorf("weights must be [rows words]: %w", compute.ErrShape)
	}
	cols, err = quant.PackedCols(quant.Type(f), w.Shape[1])
	return w.Shape[0], cols, err
}

// quantProduct is the type of x·wᵀ.
func quantProduct(x, w program.Type, f compute.BlockFormat) (program.Type, error) {
	n, k, err := PackedShape(w, f)
	if err != nil {
		return program.Type{}, err
	}
	return inferProduct(x, program.F32(n, k))
}

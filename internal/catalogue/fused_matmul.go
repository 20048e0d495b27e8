package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

const fusedSpecial = "x is […, k], weights are [n, k] in Float32, Float16 or BFloat16, all of one type; " +
	"sums are Float32. K = 0 gives sums of 0. Up to 8 rows of x take one kernel that reads each weight once; more " +
	"rows take matmuls."

// Products of rows with weights, and what a transformer computes before or after them.
var (
	RMSNormMatVec = &program.Entry{Name: "rms_norm_matvec", Method: "RMSNormMatVec", Class: program.Layer, Dots: matrixFlops(2),
		Doc: "rms_norm(x)·wᵀ", Special: "The norm is that of the last axis, with gamma [k]. " + fusedSpecial,
		Inputs:  []program.Input{{Name: "x"}, {Name: "gamma"}, {Name: "w", Types: floats}},
		Scalars: RMSNorm.Scalars, Tol: program.Tolerance{Abs: 1e-6, Rel: 1e-5, Mag: 4e-6}, Domain: [2]float64{-1, 1}, Decompose: decomposeRMSNormMatVec,
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			if _, err := inferNorm(1, 1)(in[:2], a); err != nil {
				return program.Type{}, err
			}
			return inferProduct(in[0], in[2])
		}}
	QKV = &program.Entry{Name: "qkv", Method: "QKV", Class: program.Layer, Dots: qkvFlops,
		Doc: "the products of x with three weights: x·wqᵀ + bq, x·wkᵀ + bk and x·wvᵀ + bv", Special: "Biases are [n], all or none. " + fusedSpecial,
		Inputs: []program.Input{{Name: "x"}, {Name: "wq", Types: floats}, {Name: "wk", Types: floats}, {Name: "wv", Types: floats},
			{Name: "bq", Optional: true}, {Name: "bk", Optional: true}, {Name: "bv", Optional: true}},
		Together: true, Results: []string{"q", "k", "v"}, Tol: sumTol, Domain: [2]float64{-1, 1}, Decompose: decomposeQKV,
		InferAll: func(in []program.Type, _ program.Attr) ([]program.Type, error) {
			var out []program.Type
			for i, w := range in[1:4] {
				t, err := inferProduct(in[0], w)
				if err != nil {
					return nil, err
				}
				if w.DType != in[1].DType {
					return nil, fmt.Errorf("weights are %v and %v: %w", in[1].DType, w.DType, compute.ErrDType)
				}
				if len(in) == 7 && !program.EqualShape(in[4+i].Shape, w.Shape[:1]) {
					return nil, fmt.Errorf("bias must have shape %v: %w", w.Shape[:1], compute.ErrShape)
				}
				out = append(out, t)
			}
			return out, nil
		}}
	GateUpSwiGLU = &program.Entry{Name: "gate_up_swiglu", Method: "GateUpSwiGLU", Class: program.Layer, Dots: gateUpFlops,
		Doc: "silu(x·gateᵀ)·(x·upᵀ), the first half of a gated feed-forward layer", Special: fusedSpecial,
		Inputs: []program.Input{{Name: "x"}, {Name: "gate", Types: floats}, {Name: "up", Types: floats}},
		Tol:    program.Tolerance{Abs: 2e-6, Rel: 1e-5, Mag: 8e-6}, Domain: [2]float64{-1, 1}, Decompose: decomposeGateUpSwiGLU,
		Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
			if in[1].DType != in[2].DType {
				return program.Type{}, fmt.Errorf("weights are %v and %v: %w", in[1].DType, in[2].DType, compute.ErrDType)
			}
			if !program.EqualShape(in[1].Shape, in[2].Shape) {
				return program.Type{}, fmt.Errorf("weights %v and %v differ: %w", in[1].Shape, in[2].Shape, compute.ErrShape)
			}
			return inferProduct(in[0], in[1])
		}}
)

// inferProduct is the type of x·wᵀ.
func inferProduct(x, w program.Type) (program.Type, error) {
	if len(x.Shape) == 0 || len(w.Shape) != 2 || w.Shape[1] != x.Shape[len(x.Shape)-1] {
		return program.Type{}, fmt.Errorf("needs x [… k] and weights [n k]: %w", compute.ErrShape)
	}
	return program.F32(append(slices.Clone(x.Shape[:len(x.Shape)-1]), w.Shape[0])...), nil
}

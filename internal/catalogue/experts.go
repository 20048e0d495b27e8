package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

// MatMulExperts is the products of a mixture of experts.
var MatMulExperts = &program.Entry{Name: "matmul_experts", Method: "MatMulExperts", Class: program.Layer, Dots: expertFlops,
	Doc: "the products of rows with matrices that they choose among several, those of a mixture of experts: y[…, i, :] = x·w[experts[…, i]]ᵀ",
	Special: "w is [e, n, k] in Float32, or [e, n, words] packed by quant.Pack in the format of the options. experts is […, used]; x is […, k], a row " +
		"that meets all that it chooses, or […, used, k], a row for each. The result is […, used, n]. Weights that nothing chooses are not read. " +
		"K = 0 gives zeros. A row whose index is negative or outside gives NaN, or zeros where weights are packed. With Q8, what is not finite in a row of " +
		"x may make NaN of the whole row.",
	Inputs:  []program.Input{{Name: "x"}, {Name: "w", Types: []compute.DType{compute.Float32, compute.Uint32}}, {Name: "experts", Types: indexType}},
	Options: compute.ExpertOptions{}, Tol: program.Tolerance{Mag: max(quantTol.Mag, sumTol.Mag)}, Domain: [2]float64{-1, 1},
	Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
		d, err := ExpertShape(in, a.Options.(compute.ExpertOptions))
		if err != nil {
			return program.Type{}, err
		}
		return program.F32(append(slices.Clone(in[2].Shape), d.N)...), nil
	}}

// ExpertDims are the sizes of a matmul_experts.
type ExpertDims struct {
	Experts, N, K int
	Pairs         int  // of a row and a matrix: the rows of the result
	Used          int  // matrices that a row of x meets
	Packed        bool // weights are
}

// Rows is the number of rows of x.
func (d ExpertDims) Rows() int { return d.Pairs / max(d.Used, 1) }

// ExpertShape derives the sizes of a matmul_experts. Where x has a row for each matrix that is chosen, Used is 1.
func ExpertShape(in []program.Type, o compute.ExpertOptions) (ExpertDims, error) {
	x, w, chosen := in[0].Shape, in[1], in[2].Shape
	if len(w.Shape) != 3 || len(x) == 0 || len(chosen) == 0 {
		return ExpertDims{}, fmt.Errorf("needs x [… k], weights of three axes and experts [… used]: %w", compute.ErrShape)
	}
	d := ExpertDims{Experts: w.Shape[0], N: w.Shape[1], K: w.Shape[2], Pairs: program.Len(chosen), Used: chosen[len(chosen)-1], Packed: w.DType == compute.Uint32}
	if d.Packed != (o.Format != 0) {
		return d, fmt.Errorf("weights of %v in the format %v: %w", w.DType, o.Format, compute.ErrArgument)
	}
	if d.Packed {
		var err error
		if d.K, err = quant.PackedCols(quant.Type(o.Format), w.Shape[2]); err != nil {
			return d, err
		}
	}
	lead := x[:len(x)-1]
	switch {
	case x[len(x)-1] != d.K:
		return d, fmt.Errorf("rows of %d elements, weights have %d: %w", x[len(x)-1], d.K, compute.ErrShape)
	case slices.Equal(lead, chosen):
		d.Used = 1
	case !slices.Equal(lead, chosen[:len(chosen)-1]):
		return d, fmt.Errorf("x %v does not go with experts %v: %w", x, chosen, compute.ErrShape)
	}
	return d, nil
}

func expertFlops(in, out []program.Type, _ program.Attr) float64 {
	_, k := program.RowsCols(in[0].Shape)
	return 2 * float64(out[0].Len()) * float64(k)
}

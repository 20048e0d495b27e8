package catalogue

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// sumTol bounds the error of a running float32 sum of products of a few thousand terms, in blocks or with FMA.
var sumTol = program.Tolerance{Mag: 3e-6}

// precisions are what products of float32 may be off by.
var precisions = map[compute.Precision]program.Tolerance{compute.FullPrecision: sumTol, compute.TF32: {Mag: 1e-3}, compute.FP32Tensor: {Mag: 2e-5}}

// ToleranceOf returns the tolerance of a call: that of the entry, widened by what its options permit: a precision or an activation.
func ToleranceOf(e *program.Entry, a program.Attr) program.Tolerance {
	tol := e.Tol
	if o, ok := a.Options.(compute.MatMulOptions); ok {
		tol = precisions[o.Precision]
	}
	if f, err := ActivationEntry(a.Activation()); err == nil && f != nil {
		// The steepest activation has slope 1.13: the sum's error grows by as much.
		tol.Abs, tol.Rel, tol.Mag = tol.Abs+f.Tol.Abs, tol.Rel+f.Tol.Rel, 1.13*tol.Mag
	}
	return tol
}

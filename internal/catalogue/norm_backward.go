package catalogue

import (
	"github.com/wavelane/wavelane/internal/program"
)

// Gradients of norms. With x̂ = (x − mean)·r, where r is 1/√(variance + eps) and the mean of rms_norm is 0, and g = gamma·dy:
// dx = r·(g − mean(g) − x̂·mean(g·x̂)), where rms_norm lacks mean(g), and dgamma = Σdy·x̂ over all rows.
var (
	RMSNormBackward = &program.Entry{Name: "rms_norm_backward", Method: "RMSNormBackward", Class: program.Layer,
		Doc:     "the gradients of rms_norm for x and gamma",
		Special: "dy is the gradient of the result. Sums over rows always have the same order.",
		Inputs:  []program.Input{{Name: "x"}, {Name: "gamma"}, {Name: "dy"}}, Results: []string{"dx", "dgamma"}, Scalars: RMSNorm.Scalars,
		Tol: program.Tolerance{Abs: 1e-6, Rel: 1e-5, Mag: 3e-6}, InferAll: inferNormBackward(1)}
	LayerNormBackward = &program.Entry{Name: "layer_norm_backward", Method: "LayerNormBackward", Class: program.Layer,
		Doc: "the gradients of layer_norm for x, gamma and beta",
		Special: "dy is the gradient of the result. Sums over rows always have the same order. A row of " +
			"dy that holds infinities makes each element of its dx infinite or NaN.",
		Inputs:  []program.Input{{Name: "x"}, {Name: "gamma"}, {Name: "beta"}, {Name: "dy"}},
		Results: []string{"dx", "dgamma", "dbeta"}, Scalars: LayerNorm.Scalars,
		Tol: program.Tolerance{Abs: 1e-6, Rel: 1e-5, Mag: 3e-6}, InferAll: inferNormBackward(2)}
)

func inferNormBackward(vectors int) func(in []program.Type, a program.Attr) ([]program.Type, error) {
	infer := inferNorm(1, vectors)
	return func(in []program.Type, a program.Attr) ([]program.Type, error) {
		dx, err := infer(in, a)
		return append([]program.Type{dx}, in[1:1+vectors]...), err
	}
}

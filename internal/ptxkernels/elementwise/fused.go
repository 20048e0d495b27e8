package elementwise

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
)

// Fused lowers an expression of elementwise entries as one kernel, compiled on demand.
func Fused(s *kit.Step) error {
	x := s.Attr.Options.(program.Expression)
	w, err := FusedOf(&x)
	if err != nil {
		return err
	}
	text := x.String()
	return w.Lower(s, func(v way) *kit.Kernel {
		return s.JIT(w.name+[Ways]string{"_flat", "_quads", "_elements"}[v], text, w.Kernel(v))
	})
}

// FusedOf is the kernels of an expression.
func FusedOf(x *program.Expression) (*Kernels, error) {
	f, err := scalar.BodyOf(x)
	if err != nil {
		return nil, err
	}
	w := &Kernels{Body: f, name: "fused", doc: fmt.Sprintf("Results of %v.", x), Ahead: 1}
	// A quad's operands are all there before its first result is, and its results before they are stored.
	between := scalar.Pressure(x) + 3*len(x.Results)
	if 4*x.Inputs+between > scalar.ExpressionRegisters {
		return nil, fmt.Errorf("expression %v takes %d registers, at most %d are possible: %w", x, 4*x.Inputs+between,
			scalar.ExpressionRegisters, compute.ErrUnsupported)
	}
	if 4*x.Inputs*QuadsPerThread+between <= scalar.BusyRegisters && len(x.Nodes) <= scalar.BriefNodes {
		w.Ahead = QuadsPerThread
	}
	switch {
	case 4*x.Inputs+between > scalar.BusyRegisters:
		w.blocks = 1
	case 4*x.Inputs+between > scalar.BusyRegisters/2:
		w.blocks = 2
	}
	// Strided ones have addresses and places besides.
	w.elements = max(1, min(elementsPerThread, elementsPerThread*4/max(1, x.Inputs)))
	return w, nil
}

package lower

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func fusedStep(s *step) error {
	x := s.Attr.Options.(program.Expression)
	w, err := fusedOf(&x)
	if err != nil {
		return err
	}
	text := x.String()
	return w.lower(s, func(v way) *Kernel {
		return s.made(w.name+[ways]string{"_flat", "_quads", "_elements"}[v], text, w.kernel(v))
	})
}

// fusedOf is the kernels of an expression.
func fusedOf(x *program.Expression) (*elementwise, error) {
	f, err := formulaOf(x)
	if err != nil {
		return nil, err
	}
	w := &elementwise{formula: f, name: "fused", doc: fmt.Sprintf("Results of %v.", x), ahead: 1}
	// A quad's operands are all there before its first result is, and its results before they are stored.
	between := pressure(x) + 3*len(x.Results)
	if 4*x.Inputs+between > expressionRegisters {
		return nil, fmt.Errorf("expression %v takes %d registers, at most %d are possible: %w", x, 4*x.Inputs+between,
			expressionRegisters, compute.ErrUnsupported)
	}
	if 4*x.Inputs*quadsPerThread+between <= busyRegisters && len(x.Nodes) <= briefNodes {
		w.ahead = quadsPerThread
	}
	switch {
	case 4*x.Inputs+between > busyRegisters:
		w.blocks = 1
	case 4*x.Inputs+between > busyRegisters/2:
		w.blocks = 2
	}
	// Strided ones have addresses and places besides.
	w.elements = max(1, min(elementsPerThread, elementsPerThread*4/max(1, x.Inputs)))
	return w, nil
}

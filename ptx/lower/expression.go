package lower

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Expressions become kernels when they are first asked for: their number has no bound. What is baked into such a kernel is the
// text of the expression; scalars are parameters.

func init() {
	lowerings[program.Fused] = func(s *step) error {
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
}

const (
	// Registers for elements of operands and for values between them that an expression may take: half of what a thread can have,
	// for addresses are to come, and the functions' own values. The less, the more threads keep the memory busy.
	expressionRegisters = 128
	busyRegisters       = 64  // up to which flat kernels have quadsPerThread
	expressionOperands  = 12  // also of an epilogue or prologue, with its entry's own
	expressionNodes     = 128 // so that the driver compiles it in a moment
	briefNodes          = 8   // up to which more than one quad at a time makes a difference
)

// formulaOf is an expression as a formula.
func formulaOf(x *program.Expression) (formula, error) {
	var f formula
	if x.Inputs > expressionOperands || len(x.Nodes) > expressionNodes || len(x.Results) > expressionOperands {
		return f, fmt.Errorf("expression of %d operands, %d nodes and %d results, at most %d, %d and %d are possible: %w", x.Inputs,
			len(x.Nodes), len(x.Results), expressionOperands, expressionNodes, expressionOperands, compute.ErrUnsupported)
	}
	last := lastReaders(x)
	for i, n := range last {
		if n < 0 {
			return f, fmt.Errorf("expression %v does not use value %d: %w", x, i, compute.ErrUnsupported)
		}
	}
	for i := range x.Inputs {
		f.operands = append(f.operands, fmt.Sprint("x", i))
	}
	for i := range x.Scalars() {
		f.scalars = append(f.scalars, fmt.Sprint("p", i))
	}
	for i := range x.Results {
		f.results = append(f.results, fmt.Sprint("y", i))
	}
	for _, n := range x.Nodes {
		if functions[n.Entry] == nil {
			return f, fmt.Errorf("%s is no function of elements: %w", n.Entry.Name, compute.ErrUnsupported)
		}
	}
	f.f = func(c calc, v, p []float) (y []float) {
		v = slices.Clone(v)
		for _, n := range x.Nodes {
			args := make([]float, len(n.Args))
			for i, a := range n.Args {
				args[i] = v[a]
			}
			of := len(n.Entry.Scalars)
			v = append(v, functions[n.Entry](c, args, p[:of]))
			p = p[of:]
		}
		for _, r := range x.Results {
			y = append(y, v[r])
		}
		return y
	}
	return f, nil
}

// lastReaders is, by value, the last node that uses it: their number for results, −1 for what nobody uses.
func lastReaders(x *program.Expression) []int {
	last := make([]int, x.Inputs+len(x.Nodes))
	for i := range last {
		last[i] = -1
	}
	for i, n := range x.Nodes {
		for _, a := range n.Args {
			last[a] = i
		}
	}
	for _, r := range x.Results {
		last[r] = len(x.Nodes)
	}
	return last
}

// pressure is how many values an expression has at a time: those between operands and results, the latter included.
func pressure(x *program.Expression) int {
	last := lastReaders(x)
	live, most := 0, 0
	for i, n := range x.Nodes {
		live++
		most = max(most, live)
		for k, a := range n.Args {
			if a >= x.Inputs && last[a] == i && !slices.Contains(n.Args[:k], a) {
				live--
			}
		}
	}
	return most
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

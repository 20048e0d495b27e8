package scalar

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Expressions become kernels when they are first asked for: their number has no bound. What is baked into such a kernel is the
// text of the expression; scalars are parameters.

const (
	// Registers for elements of operands and for values between them that an expression may take: half of what a thread can have,
	// for addresses are to come, and the functions' own values. The less, the more threads keep the memory busy.
	ExpressionRegisters = 128
	BusyRegisters       = 64  // up to which flat kernels have quadsPerThread
	ExpressionOperands  = 12  // also of an epilogue or prologue, with its entry's own
	ExpressionNodes     = 128 // so that the driver compiles it in a moment
	BriefNodes          = 8   // up to which more than one quad at a time makes a difference
)

// BodyOf is the body of an expression.
func BodyOf(x *program.Expression) (Body, error) {
	var f Body
	if x.Inputs > ExpressionOperands || len(x.Nodes) > ExpressionNodes || len(x.Results) > ExpressionOperands {
		return f, fmt.Errorf("expression of %d operands, %d nodes and %d results, at most %d, %d and %d are possible: %w", x.Inputs,
			len(x.Nodes), len(x.Results), ExpressionOperands, ExpressionNodes, ExpressionOperands, compute.ErrUnsupported)
	}
	last := lastReaders(x)
	for i, n := range last {
		if n < 0 {
			return f, fmt.Errorf("expression %v does not use value %d: %w", x, i, compute.ErrUnsupported)
		}
	}
	for i := range x.Inputs {
		f.Operands = append(f.Operands, fmt.Sprint("x", i))
	}
	for i := range x.Scalars() {
		f.Scalars = append(f.Scalars, fmt.Sprint("p", i))
	}
	for i := range x.Results {
		f.Results = append(f.Results, fmt.Sprint("y", i))
	}
	for _, n := range x.Nodes {
		if Functions[n.Entry] == nil {
			return f, fmt.Errorf("%s is no function of elements: %w", n.Entry.Name, compute.ErrUnsupported)
		}
	}
	f.F = func(c Math, v, p []Float) (y []Float) {
		v = slices.Clone(v)
		for _, n := range x.Nodes {
			args := make([]Float, len(n.Args))
			for i, a := range n.Args {
				args[i] = v[a]
			}
			of := len(n.Entry.Scalars)
			v = append(v, Functions[n.Entry](c, args, p[:of]))
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

// Pressure is how many values an expression has at a time: those between operands and results, the latter included.
func Pressure(x *program.Expression) int {
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

// Body is what a kernel computes for one element of each operand, with the names that its parameters have.
type Body struct {
	Operands, Scalars, Results []string
	F                          func(c Math, x, p []Float) []Float
}

package catalogue

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// decomposition is a program that is recorded until the first error.
type decomposition struct {
	program.Program
	err error
}

func (d *decomposition) operand(t program.Type) program.Slot { return d.Add(t, program.FromHost) }

func (d *decomposition) apply(e *program.Entry, a program.Attr, in ...program.Slot) program.Slot {
	if d.err != nil {
		return 0
	}
	var y program.Slot
	y, d.err = d.Apply(e, a, in...)
	return y
}

// linear is x·wᵀ in Float32, plus a bias if there is one.
func (d *decomposition) linear(x, w program.Slot, bias ...program.Slot) program.Slot {
	if d.Values[w].DType != compute.Float32 {
		w = d.apply(Cast, program.Attr{Options: compute.CastOptions{To: compute.Float32}}, w)
	}
	return d.apply(MatMul, program.Attr{Options: compute.MatMulOptions{TransB: true}}, append([]program.Slot{x, w}, bias...)...)
}

// done is the program with its results.
func (d *decomposition) done(results ...program.Slot) (*program.Program, error) {
	d.Read = results
	return &d.Program, d.err
}

// rowsOf is x as one matrix.
func rowsOf(x program.Type) program.Type { return program.F32(program.RowsCols(x.Shape)) }

func decomposeRMSNormMatVec(in []program.Type, a program.Attr) (*program.Program, error) {
	var d decomposition
	x, gamma, w := d.operand(rowsOf(in[0])), d.operand(in[1]), d.operand(in[2])
	return d.done(d.linear(d.apply(RMSNorm, a, x, gamma), w))
}

func decomposeQKV(in []program.Type, _ program.Attr) (*program.Program, error) {
	var d decomposition
	operands := []program.Slot{d.operand(rowsOf(in[0]))}
	for _, t := range in[1:] {
		operands = append(operands, d.operand(t))
	}
	var results []program.Slot
	for i := range 3 {
		var bias []program.Slot
		if len(in) == 7 {
			bias = operands[4+i : 5+i]
		}
		results = append(results, d.linear(operands[0], operands[1+i], bias...))
	}
	return d.done(results...)
}

func decomposeGateUpSwiGLU(in []program.Type, _ program.Attr) (*program.Program, error) {
	var d decomposition
	x, gate, up := d.operand(rowsOf(in[0])), d.operand(in[1]), d.operand(in[2])
	return d.done(d.apply(SwiGLU, program.Attr{}, d.linear(x, gate), d.linear(x, up)))
}

package lower

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// fusedMatmul is one kernel for few rows of x, and composed of others for many.
func fusedMatmul(s *step) error {
	m, k := program.RowsCols(s.in[0].Shape)
	if m == 0 {
		return nil
	}
	if m > fusedRows || k == 0 {
		return composedMatmul(s, m, k)
	}
	f := fusedKernels[s.Entry]
	first := f.first
	w := s.in[first]
	kernel := f.kernel[w.DType][0]
	if m > 1 {
		kernel = f.kernel[w.DType][1]
	}
	var rows [3]int // of each weight
	for i := range f.weights {
		rows[i] = s.in[first+i].Shape[0]
	}
	total := rows[0]
	if f.form == fusedThree {
		total += rows[1] + rows[2]
	}
	if total == 0 {
		return nil
	}
	unit := 1
	if k%fusedUnit(w.DType) == 0 {
		unit = fusedUnit(w.DType)
	}
	team := work{rows: total, cols: k, parts: 1, chunk: ceilDiv(k, 4) * 4, vector: unit > 1}
	team.lanes = teamLanes(s, team, 8, unit, 16)
	sizes := []uint32{uint32(m), uint32(rows[0]), uint32(rows[1]), uint32(rows[2]), flagIf(1, len(s.in) == 7)}
	arguments := []any{team.args(), sizes}
	for _, v := range s.Attr.Scalars {
		arguments = append(arguments, v)
	}
	arguments = append(arguments, operand(0))
	if f.form == fusedNorm {
		arguments = append(arguments, operand(1))
	}
	for i := range f.weights {
		arguments = append(arguments, operand(first+i))
	}
	if f.form == fusedThree {
		for i := range 3 {
			bias := operand(0) // unused
			if len(s.in) == 7 {
				bias = operand(4 + i)
			}
			arguments = append(arguments, bias)
		}
	}
	for i := range s.outs {
		arguments = append(arguments, resultAt(i))
	}
	s.launch(kernel, team.grid(), arguments...)
	return nil
}

// composedMatmul is matmul for each of the weights, in float32.
func composedMatmul(s *step, m, k int) error {
	x := tensor{operand(0), program.F32(m, k)}
	product := func(x tensor, i int, y Buffer, bias ...tensor) error {
		w := tensor{s.inFloat32(operand(i)), program.F32(s.in[i].Shape...)}
		return s.call(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{TransB: true}}, []Buffer{y}, append([]tensor{x, w}, bias...)...)
	}
	switch s.Entry {
	case catalogue.RMSNormMatVec:
		normed := s.temporary(x.Type)
		if err := s.call(catalogue.RMSNorm, s.Attr, []Buffer{normed.Buffer}, x, s.operandTensor(1)); err != nil {
			return err
		}
		return product(normed, 2, result)
	case catalogue.GateUpSwiGLU:
		gate, up := s.temporary(program.F32(s.out.Len())), s.temporary(program.F32(s.out.Len()))
		if err := product(x, 1, gate.Buffer); err != nil {
			return err
		}
		if err := product(x, 2, up.Buffer); err != nil {
			return err
		}
		return s.call(catalogue.SwiGLU, program.Attr{}, []Buffer{result}, gate, up)
	}
	for i := range 3 {
		var bias []tensor
		if len(s.in) == 7 {
			bias = append(bias, s.operandTensor(4+i))
		}
		if err := product(x, 1+i, resultAt(i), bias...); err != nil {
			return err
		}
	}
	return nil
}

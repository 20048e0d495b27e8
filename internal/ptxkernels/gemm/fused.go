package gemm

import (
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
)

// Fused is one kernel for few rows of x, and composed of others for many.
func Fused(s *kit.Step) error {
	m, k := program.RowsCols(s.Operands[0].Shape)
	if m == 0 {
		return nil
	}
	if m > fusedRows || k == 0 {
		return s.Decompose()
	}
	f := fusedKernels[s.Entry]
	first := f.first
	w := s.Operands[first]
	kernel := f.kernel[w.DType][0]
	if m > 1 {
		kernel = f.kernel[w.DType][1]
	}
	var rows [3]int // of each weight
	for i := range f.weights {
		rows[i] = s.Operands[first+i].Shape[0]
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
	team := threadgroup.Partition{Rows: total, Cols: k, Parts: 1, Chunk: kit.CeilDiv(k, 4) * 4, Vector: unit > 1}
	team.Lanes = threadgroup.Lanes(s, team, 8, unit, 16)
	sizes := []uint32{uint32(m), uint32(rows[0]), uint32(rows[1]), uint32(rows[2]), kit.FlagIf(1, len(s.Operands) == 7)}
	arguments := []any{team.Args(), sizes}
	for _, v := range s.Attr.Scalars {
		arguments = append(arguments, v)
	}
	arguments = append(arguments, kit.In(0))
	if f.form == fusedNorm {
		arguments = append(arguments, kit.In(1))
	}
	for i := range f.weights {
		arguments = append(arguments, kit.In(first+i))
	}
	if f.form == fusedThree {
		for i := range 3 {
			bias := kit.In(0) // unused
			if len(s.Operands) == 7 {
				bias = kit.In(4 + i)
			}
			arguments = append(arguments, bias)
		}
	}
	for i := range s.Results {
		arguments = append(arguments, kit.OutAt(i))
	}
	s.Launch(kernel, team.Grid(), arguments...)
	return nil
}

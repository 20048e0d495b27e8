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
	partition := threadgroup.Partition{Rows: total, Cols: k, Parts: 1, Chunk: kit.CeilDiv(k, 4) * 4, Vector: unit > 1}
	partition.Lanes = threadgroup.Lanes(s, partition, 8, unit, 16)
	p := fusedParams{Work: partition.Work(), M: m, N0: rows[0], N1: rows[1], N2: rows[2], Biased: index(len(s.Operands) == 7), Eps: s.Attr.Scalars, X: kit.In(0)}
	if f.form == fusedNorm {
		p.Gamma = []kit.Buffer{kit.In(1)}
	}
	for i := range f.weights {
		p.W = append(p.W, kit.In(first+i))
	}
	for i := range s.Results {
		p.Y = append(p.Y, kit.OutAt(i))
		if f.form == fusedThree {
			p.B = append(p.B, kit.In((4+i)*p.Biased)) // unused if there are none
		}
	}
	s.Launch(kernel, partition.Grid(), p)
	return nil
}

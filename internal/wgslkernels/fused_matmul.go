package wgslkernels

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

const (
	fusedRows  = 8  // of x that the fused kernel has room for
	fusedLanes = 64 // threads of a row of the weights
)

// fusedMatmul is one kernel for few rows of x, and composed of others for many, and where the kernel's units of four or one
// binding do not suffice.
func fusedMatmul(s *step) error {
	m, k := program.RowsCols(s.Operands[0].Shape)
	fits := func(t program.Type) bool { return wgsl.BufferSize(t.Bytes()) <= s.caps.MaxBinding }
	whole := !slices.ContainsFunc(slices.Concat(s.Operands, s.Results), func(t program.Type) bool { return !fits(t) || t.Len() == 0 })
	if m > fusedRows || k%4 != 0 || k/4/fusedLanes > loopBudget || !whole || s.workgroup() < fusedLanes {
		return s.Decompose()
	}
	return s.fusedMatmul(m, k)
}

// fusedMatmul is one dispatch. Biases, of which there is no binding for each, come in one buffer.
func (s *step) fusedMatmul(m, k int) error {
	first, weights, form := 1, len(s.Results), "three"
	switch s.Entry {
	case catalogue.RMSNormMatVec:
		first, form = 2, "norm"
	case catalogue.GateUpSwiGLU:
		weights, form = 2, "gate"
	}
	kind, room, biases := s.Operands[first].DType, 1, len(s.Operands) == 7
	if m > 1 {
		room = fusedRows
	}
	var bind []Buffer
	for i := range first + weights {
		bind = append(bind, operand(i))
	}
	rows := [3]int{}
	for i := range min(weights, len(s.Results)) {
		rows[i] = s.Operands[first+i].Shape[0]
	}
	total := rows[0] + rows[1] + rows[2]
	if biases {
		all := s.NewScratch(4 * total)
		at := 0
		for i, n := range rows {
			from, to := operand(4+i), all
			from.Size, to.Size, to.Offset = 4*n, 4*n, at
			s.Add(Action{Copy: &lowering.Copy{From: from, To: to}})
			at += 4 * n
		}
		bind = append(bind, all)
	}
	for i := range s.Results {
		bind = append(bind, resultAt(i))
	}
	k4 := cached(fmt.Sprintf("fused/%s/%v/%d/%v", form, kind, room, biases), func() *wgsl.Kernel {
		reads := len(bind) - len(s.Results)
		kernel := &wgsl.Kernel{Bindings: make([]wgsl.Access, len(bind)), Uniform: 32, Workgroup: [3]uint32{fusedLanes, 1, 1}}
		for i := reads; i < len(bind); i++ {
			kernel.Bindings[i] = wgsl.ReadWrite
		}
		sums := room
		if form != "three" {
			sums = 2 * room
		}
		kernel.Shared = 4 * sums * fusedLanes
		kernel.Source = render("fused_matmul.wgsl", struct {
			Form, Kind, Functions                                   string
			Room, Sums, Lanes, Weights, FirstWeight, Reads, Results int
			Biases                                                  bool
		}{form, kind.String(), functionsOf("silu"), room, sums, fusedLanes, weights, first, reads, len(s.Results), biases})
		return kernel
	})
	params := words(m, k/4, total, rows[0], rows[0]+rows[1], rows[1], rows[2])
	if len(s.Attr.Scalars) > 0 {
		params = append(params, bits(s.Attr.Scalars[0]))
	}
	s.dispatch(k4, s.linear(total), params, bind...)
	return nil
}

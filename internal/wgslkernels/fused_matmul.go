package wgslkernels

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

func init() {
	lowerings[catalogue.RMSNormMatVec], lowerings[catalogue.QKV], lowerings[catalogue.GateUpSwiGLU] = fusedMatmul, fusedMatmul, fusedMatmul
}

const (
	fusedRows  = 8  // of x that the fused kernel has room for
	fusedLanes = 64 // threads of a row of the weights
)

// fusedMatmul is one kernel for few rows of x, and composed of others for many, and where the kernel's units of four or one
// binding do not suffice.
func fusedMatmul(s *step) error {
	m, k := program.RowsCols(s.in[0].Shape)
	fits := func(t program.Type) bool { return wgsl.BufferSize(t.Bytes()) <= s.caps.MaxBinding }
	whole := !slices.ContainsFunc(slices.Concat(s.in, s.outs), func(t program.Type) bool { return !fits(t) || t.Len() == 0 })
	if m > fusedRows || k%4 != 0 || k/4/fusedLanes > loopBudget || !whole || s.workgroup() < fusedLanes {
		return s.composedMatmul(m, k)
	}
	return s.fusedMatmul(m, k)
}

// fusedMatmul is one dispatch. Biases, of which there is no binding for each, come in one buffer.
func (s *step) fusedMatmul(m, k int) error {
	first, weights, form := 1, len(s.outs), "three"
	switch s.Entry {
	case catalogue.RMSNormMatVec:
		first, form = 2, "norm"
	case catalogue.GateUpSwiGLU:
		weights, form = 2, "gate"
	}
	kind, room, biases := s.in[first].DType, 1, len(s.in) == 7
	if m > 1 {
		room = fusedRows
	}
	var bind []Buffer
	for i := range first + weights {
		bind = append(bind, operand(i))
	}
	rows := [3]int{}
	for i := range min(weights, len(s.outs)) {
		rows[i] = s.in[first+i].Shape[0]
	}
	total := rows[0] + rows[1] + rows[2]
	if biases {
		all := s.scratch(4 * total)
		at := 0
		for i, n := range rows {
			from, to := operand(4+i), all
			from.Size, to.Size, to.Offset = uint64(4*n), uint64(4*n), uint64(at)
			s.Actions = append(s.Actions, Action{Copy: &Copy{from, to}})
			at += 4 * n
		}
		bind = append(bind, all)
	}
	for i := range s.outs {
		bind = append(bind, resultAt(i))
	}
	k4 := cached(fmt.Sprintf("fused/%s/%v/%d/%v", form, kind, room, biases), func() *wgsl.Kernel {
		reads := len(bind) - len(s.outs)
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
		}{form, kind.String(), functionsOf("silu"), room, sums, fusedLanes, weights, first, reads, len(s.outs), biases})
		return kernel
	})
	params := words(m, k/4, total, rows[0], rows[0]+rows[1], rows[1], rows[2])
	if len(s.Attr.Scalars) > 0 {
		params = append(params, bits(s.Attr.Scalars[0]))
	}
	s.dispatch(k4, s.linear(total), params, bind...)
	return nil
}

// composedMatmul is matmul for each of the weights, in float32.
func (s *step) composedMatmul(m, k int) error {
	x := tensor{operand(0), program.F32(m, k)}
	product := func(x tensor, i int, y Buffer, bias ...tensor) error {
		w := s.operandTensor(i)
		if w.DType != compute.Float32 {
			wide := s.temporary(program.F32(w.Shape...))
			if err := s.call(catalogue.Cast, program.Attr{Options: compute.CastOptions{To: compute.Float32}}, []Buffer{wide.Buffer}, w); err != nil {
				return err
			}
			w = wide
		}
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

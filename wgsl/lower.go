package wgsl

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// step is what a lowering works on: a checked call with all shapes known.
type step struct {
	*op.Step
	in     []op.Type
	outs   []op.Type
	out    op.Type // the first of outs
	caps   *Caps
	choose Chooser
	Lowering
}

// lowerings holds the code of each catalogue entry; files register their own in init.
var lowerings = map[*op.Entry]func(s *step) error{}

// Lower returns the code of one step. The operands have the types in, the results have the types out, as the catalogue's check
// gave them. A nil choose takes every default. Where no result has elements there is no code. A result that is an operand
// changed in place (see op.Entry) has to hold that operand's elements before.
// Errors wrap [compute.ErrUnsupported] or [compute.ErrTooLarge].
func Lower(s *op.Step, in, out []op.Type, caps *Caps, choose Chooser) (Lowering, error) {
	lower, ok := lowerings[s.Entry]
	if !ok {
		return Lowering{}, fmt.Errorf("%s has no WGSL kernel: %w", s.Entry.Name, compute.ErrUnsupported)
	}
	if !slices.ContainsFunc(out, func(t op.Type) bool { return t.Len() > 0 }) {
		return Lowering{}, nil
	}
	if choose == nil {
		choose = func(string, string, []string) int { return 0 }
	}
	st := &step{Step: s, in: in, outs: out, out: out[0], caps: caps, choose: choose}
	if err := lower(st); err != nil {
		return Lowering{}, fmt.Errorf("%s %v: %w", s.Entry.Name, in, err)
	}
	return st.Lowering, nil
}

// dispatch appends a run of k over a number of workgroups along x, y and z.
func (s *step) dispatch(k *Kernel, grid [3]uint32, params []uint32, bind ...Buffer) {
	s.Actions = append(s.Actions, Action{Dispatch: &Dispatch{Kernel: k, Bind: bind, Params: params, Grid: grid}})
}

// scratch reserves n bytes and returns them as a binding.
func (s *step) scratch(n int) Buffer {
	s.Scratch = append(s.Scratch, BufferSize(n))
	return Buffer{Role: Scratch, Index: len(s.Scratch) - 1}
}

func operand(i int) Buffer { return Buffer{Role: Operand, Index: i} }

// result is the first result.
var result = resultAt(0)

func resultAt(i int) Buffer { return Buffer{Role: Result, Index: i} }

// linear spreads n workgroups over as many grid dimensions as hold them. Kernels number themselves with linear_id (see
// common.wgsl) and guard the overshoot.
func (s *step) linear(n int) [3]uint32 {
	limit := int(s.caps.MaxWorkgroups)
	x := max(1, min(n, limit))
	y := min(ceilDiv(n, x), limit)
	z := ceilDiv(n, x*y)
	if z == 1 && y > 1 {
		x = ceilDiv(n, y)
	}
	return [3]uint32{uint32(x), uint32(y), uint32(z)}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func bits(f float32) uint32 { return math.Float32bits(f) }

package wgslkernels

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// step is what a lowering works on: a checked call with all shapes known.
type step struct {
	*program.Step
	in     []program.Type
	outs   []program.Type
	out    program.Type // the first of outs
	caps   *wgsl.Caps
	choose Chooser
	Lowering

	prologue, epilogue *expression // of the step's operand 0 and of its first result; nil for none
	shift              int         // how far the prologue shifts the operands after operand 0
}

// lowerings holds the code of each catalogue entry; files register their own in init.
var lowerings = map[*program.Entry]func(s *step) error{}

// Lower returns the code of one step. The operands have the types in, the results have the types out, as the catalogue's
// check gave them. A nil choose takes every default. If no result has elements there is no code. A result that is an operand
// changed in place (see program.Entry) has to hold that operand's elements before. Errors wrap [compute.ErrUnsupported] or
// [compute.ErrTooLarge].
func Lower(s *program.Step, in, out []program.Type, caps *wgsl.Caps, choose Chooser) (Lowering, error) {
	lower, ok := lowerings[s.Entry]
	if !ok {
		return Lowering{}, fmt.Errorf("%s has no WGSL kernel: %w", s.Entry.Name, compute.ErrUnsupported)
	}
	if !slices.ContainsFunc(out, func(t program.Type) bool { return t.Len() > 0 }) {
		return Lowering{}, nil
	}
	if choose == nil {
		choose = func(string, string, []string) int { return 0 }
	}
	st := &step{Step: s, in: in, outs: out, out: out[0], caps: caps, choose: choose}
	err := st.separate()
	if err == nil {
		err = lower(st)
	}
	if err != nil {
		return Lowering{}, fmt.Errorf("%s %v: %w", s.Entry.Name, in, err)
	}
	return st.Lowering, nil
}

// Entries whose lowerings take a prologue or an epilogue.
var takesPrologue, takesEpilogue = map[*program.Entry]bool{}, map[*program.Entry]bool{}

// separate leaves of a step with a prologue or an epilogue the operation itself, with the two beside it.
func (s *step) separate() error {
	a := &s.Attr
	if a.Prologue.None() && a.Epilogue.None() {
		return nil
	}
	p, err := s.Entry.Parts(s.in, *a)
	switch {
	case err != nil:
		return err
	case !p.Prologue.None() && !takesPrologue[s.Entry]:
		return fmt.Errorf("prologue %v: %w", &p.Prologue, compute.ErrUnsupported)
	case !p.Epilogue.None() && !takesEpilogue[s.Entry]:
		return fmt.Errorf("epilogue %v: %w", &p.Epilogue, compute.ErrUnsupported)
	}
	slots := s.Step.In
	if len(slots) != len(s.in) {
		slots = nil // nobody knows them
	}
	if n := len(p.PrologueIn); n > 0 {
		f := &expression{p.Prologue, p.PrologueScalars, p.PrologueIn, operands(0, n)}
		s.prologue, s.shift = f.distinct(slots[:min(n, len(slots))], 0), n-1
	}
	if !p.Epilogue.None() {
		first := len(s.in) - len(p.EpilogueIn)
		f := &expression{p.Epilogue, p.EpilogueScalars, append([]program.Type{s.out}, p.EpilogueIn...),
			append([]Buffer{{}}, operands(first, len(p.EpilogueIn))...)}
		s.epilogue = f.distinct(slots[min(first, len(slots)):], 1)
	}
	own := *s.Step
	own.Attr = p.Attr
	s.Step, s.in = &own, p.In
	return nil
}

// own is operand i > 0 of the operation itself.
func (s *step) own(i int) Buffer { return operand(i + s.shift) }

// Fuses reports whether [Lower] has code for a step that computes an expression, or has one as prologue or epilogue, within
// the limits of a device. Such code accesses less memory than separate steps.
func Fuses(s *program.Step, in, out []program.Type, caps *wgsl.Caps) bool {
	l, err := Lower(s, in, out, caps, nil)
	if err != nil {
		return false
	}
	for _, a := range l.Actions {
		if a.Dispatch == nil {
			continue
		}
		k := a.Dispatch.Kernel
		if len(k.Bindings) > int(caps.MaxStorageBuffers) || k.Uniform > maxUniform {
			return false
		}
		for _, b := range a.Dispatch.Bind {
			size := b.Size
			switch {
			case size > 0:
			case b.Role == Operand:
				size = wgsl.BufferSize(in[b.Index].Bytes()) - b.Offset
			case b.Role == Result:
				size = wgsl.BufferSize(out[b.Index].Bytes()) - b.Offset
			default:
				size = uint64(l.Scratch[b.Index]) - b.Offset
			}
			if size > caps.MaxBinding {
				return false
			}
		}
	}
	return true
}

// maxUniform is the most bytes that a Kernel.Uniform may be.
const maxUniform = 256

// dispatch appends a run of k over a number of workgroups along x, y and z.
func (s *step) dispatch(k *wgsl.Kernel, grid [3]uint32, params []uint32, bind ...Buffer) {
	s.Actions = append(s.Actions, Action{Dispatch: &Dispatch{Kernel: k, Bind: bind, Params: params, Grid: grid}})
}

// scratch reserves n bytes and returns them as a binding.
func (s *step) scratch(n int) Buffer {
	s.Scratch = append(s.Scratch, int(wgsl.BufferSize(n)))
	return Buffer{Role: Scratch, Index: len(s.Scratch) - 1}
}

func operand(i int) Buffer { return Buffer{Role: Operand, Index: i} }

// operands are n of them, from the first on.
func operands(first, n int) []Buffer {
	b := make([]Buffer, n)
	for i := range b {
		b[i] = operand(first + i)
	}
	return b
}

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

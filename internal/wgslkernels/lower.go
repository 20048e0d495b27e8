package wgslkernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// step is what a lowering works on.
type step struct {
	*lowering.Step[*Dispatch]
	caps *wgsl.Caps

	prologue, epilogue *expression // of the step's operand 0 and of its first result; nil for none
}

var language = lowering.Language[*step, *Dispatch]{Name: "WGSL", Entries: table}

// Lower returns the code of one step; see [lowering.Language.Lower].
func Lower(s *program.Step, in, out []program.Type, caps *wgsl.Caps, choose lowering.Chooser) (Lowering, error) {
	return language.Lower(s, in, out, choose, func(of *lowering.Step[*Dispatch]) *step {
		st := &step{Step: of, caps: caps}
		st.separate(len(in))
		return st
	})
}

// separate makes expressions of the step's prologue and epilogue. The step had count operands with theirs.
func (s *step) separate(count int) {
	slots, p := s.In, &s.Parts
	if len(slots) != count {
		slots = nil // nobody knows them
	}
	if n := len(p.PrologueIn); n > 0 {
		f := &expression{p.Prologue, p.PrologueScalars, p.PrologueIn, buffers(lowering.OfPrologue, n)}
		s.prologue = f.distinct(slots[:min(n, len(slots))], 0)
	}
	if !p.Epilogue.None() {
		first := count - len(p.EpilogueIn)
		f := &expression{p.Epilogue, p.EpilogueScalars, append([]program.Type{s.Result}, p.EpilogueIn...),
			append([]Buffer{{}}, buffers(lowering.OfEpilogue, len(p.EpilogueIn))...)}
		s.epilogue = f.distinct(slots[min(first, len(slots)):], 1)
	}
}

// Fuses reports whether [Lower] has code for a step that computes an expression, or has one as prologue or epilogue, within
// the limits of a device, with the variants that choose takes. Such code accesses less memory than separate steps.
func Fuses(s *program.Step, in, out []program.Type, caps *wgsl.Caps, choose lowering.Chooser) bool {
	l, err := Lower(s, in, out, caps, choose)
	if err != nil {
		return false
	}
	for _, a := range l.Actions {
		if a.Launch == nil {
			continue
		}
		k := a.Launch.Kernel
		if len(k.Bindings) > int(caps.MaxStorageBuffers) || k.Uniform > maxUniform {
			return false
		}
		for _, b := range a.Launch.Bind {
			size := b.Size
			switch {
			case size > 0:
			case b.Role == lowering.Operand:
				size = int(wgsl.BufferSize(in[b.Index].Bytes())) - b.Offset
			case b.Role == lowering.Result:
				size = int(wgsl.BufferSize(out[b.Index].Bytes())) - b.Offset
			default:
				size = l.Scratch[b.Index] - b.Offset
			}
			if uint64(size) > caps.MaxBinding {
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
	s.Add(Action{Launch: &Dispatch{Kernel: k, Bind: bind, Params: params, Grid: grid}})
}

func operand(i int) Buffer { return Buffer{Role: lowering.Operand, Index: i} }

// operands are n of them, from the first on.
func operands(first, n int) []Buffer { return buffers(lowering.Operand, first+n)[first:] }

// buffers are the first n of a role.
func buffers(r lowering.Role, n int) []Buffer {
	b := make([]Buffer, n)
	for i := range b {
		b[i] = Buffer{Role: r, Index: i}
	}
	return b
}

// result is the first result.
var result = resultAt(0)

func resultAt(i int) Buffer { return Buffer{Role: lowering.Result, Index: i} }

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

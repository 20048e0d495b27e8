package ptxkernels

import (
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

var language = lowering.Language[*kit.Step, *kit.Launch]{Name: "PTX", Entries: table}

// Lower returns the code of one step; see [lowering.Language.Lower].
func Lower(s *program.Step, in, out []program.Type, caps *kit.Caps, choose lowering.Chooser) (kit.Lowering, error) {
	return lower(s, in, out, caps, choose, false)
}

// Fuses reports whether there is code for a step with expressions: those of the classes unary, binary and ternary alone, before
// reductions, and after products and convolutions, with the variants that choose takes. See [program.Executor].
func Fuses(s *program.Step, in, out []program.Type, caps *kit.Caps, choose lowering.Chooser) bool {
	_, err := lower(s, in, out, caps, choose, true)
	return err == nil
}

func lower(s *program.Step, in, out []program.Type, caps *kit.Caps, choose lowering.Chooser, dry bool) (kit.Lowering, error) {
	return language.Lower(s, in, out, choose, func(of *lowering.Step[*kit.Launch]) *kit.Step {
		return &kit.Step{Step: of, Caps: caps, Dry: dry}
	})
}

// InPlace lists the operands of a step, by number, in whose memory results may lie that have their type and more than one element:
// each thread reads nothing of them that another writes, and reads all before it writes.
func InPlace(s *program.Step) (operands []int) {
	switch table()[s.Entry].InPlace {
	case lowering.FirstOperand:
		if s.Attr.Prologue.None() && s.Attr.Epilogue.None() {
			operands = []int{0}
		}
	case lowering.EveryOperand:
		for i := range s.In {
			operands = append(operands, i)
		}
	}
	return operands
}

package lowering

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// ScalarWord is a word of an action that is a run-time scalar: of a launch's parameters, or that of a fill.
type ScalarWord struct {
	At    int // among the words
	Index int // of program.IO.Scalars
}

// FindScalars returns the words of each action of a step that are run-time scalars; nil if the step has none. It compares the step's
// code with that for other scalars, which lower returns. The error wraps compute.ErrUnsupported if more than words depends on them.
func FindScalars[L Launch[L]](s *program.Step, code Code[L], lower func(s *program.Step) (Code[L], error)) ([][]ScalarWord, error) {
	if !s.Attr.Varies() {
		return nil, nil
	}
	found := make([][]ScalarWord, len(code.Actions))
	probe, marks := s.Probe()
	other, err := lower(&probe)
	if err != nil {
		return nil, err
	}
	same := len(code.Actions) == len(other.Actions)
	for i := 0; same && i < len(code.Actions); i++ {
		kernel, grid, words := parameters(code.Actions[i])
		otherKernel, otherGrid, otherWords := parameters(other.Actions[i])
		same = kernel == otherKernel && grid == otherGrid && program.MatchScalars(words, otherWords, marks, func(at, index int) {
			found[i] = append(found[i], ScalarWord{at, index})
		})
	}
	if !same {
		return nil, fmt.Errorf("its scalars cannot vary on this device, its code depends on them: %w", compute.ErrUnsupported)
	}
	return found, nil
}

func parameters[L Launch[L]](a Action[L]) (kernel string, grid [3]uint32, words []uint32) {
	switch {
	case a.Copy != nil:
	case a.Fill != nil:
		words = []uint32{a.Fill.Word}
	default:
		return a.Launch.Code()
	}
	return kernel, grid, words
}

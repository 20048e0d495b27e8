package device

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Code is what decides about an action of a step: the kernel, its grid and its parameters as words of 32 bits.
type Code struct {
	Kernel string
	Grid   [3]uint32
	Words  []uint32
}

// ScalarWord is a word of an action's parameters that is a run-time scalar.
type ScalarWord struct {
	At    int // among Code.Words
	Index int // of program.IO.Scalars
}

// FindScalars returns the words of each action of a step that are run-time scalars. It compares the step's code with that for other
// scalars, which lower returns. The error wraps compute.ErrUnsupported if more than words depends on them.
func FindScalars(s *program.Step, code []Code, lower func(s *program.Step) ([]Code, error)) ([][]ScalarWord, error) {
	found := make([][]ScalarWord, len(code))
	probe, marks := s.Probe()
	other, err := lower(&probe)
	if err != nil {
		return nil, err
	}
	same := len(code) == len(other)
	for i := 0; same && i < len(code); i++ {
		x, y := &code[i], &other[i]
		same = x.Kernel == y.Kernel && x.Grid == y.Grid && program.MatchScalars(x.Words, y.Words, marks, func(at, index int) {
			found[i] = append(found[i], ScalarWord{at, index})
		})
	}
	if !same {
		return nil, fmt.Errorf("its scalars cannot vary on this device, its code depends on them: %w", compute.ErrUnsupported)
	}
	return found, nil
}

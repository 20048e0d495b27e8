package wgsl

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/program"
)

// LowerProgram returns the code of each step of a program, such as batch.Batch.Program gives, in order: to read what would
// run on a device with those limits. Steps that run a user's kernel have none. See [Lower] for choose and errors.
func LowerProgram(p *program.Program, caps *Caps, choose Chooser) ([]Lowering, error) {
	code := make([]Lowering, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kernel != nil {
			continue
		}
		l, err := Lower(s, p.Types(s.In), p.Types(s.Out), caps, choose)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		code[i] = l
	}
	return code, nil
}

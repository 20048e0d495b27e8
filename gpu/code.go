package gpu

import (
	"fmt"
	"io"

	"github.com/wavelane/wavelane/internal/program"
)

// Code writes the WGSL of the kernels that each step of a program runs on this device, in the variants that it would take now.
func (d executor) Code(w io.Writer, p *program.Program) error {
	shown := map[string]bool{}
	choices := d.tuner.Compilation()
	for i := range p.Steps {
		s := &p.Steps[i]
		l, err := d.lower(p, s, choices.Choose)
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if _, err := fmt.Fprintf(w, "// step %d: %s %v\n", i, s.Name(), p.Types(s.In)); err != nil {
			return err
		}
		for _, a := range l.Actions {
			text := "// copy\n"
			if a.Launch != nil {
				k := a.Launch.Kernel
				if text = fmt.Sprintf("// kernel %s on %v workgroups\n", k.Key, a.Launch.Grid); !shown[k.Key] {
					shown[k.Key] = true
					text += k.Source + "\n"
				}
			}
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
		}
	}
	return choices.Err()
}

package batch

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Memory is the memory that one run of a plan needs, in bytes, without imported tensors.
type Memory struct {
	Peak    int    `json:"peak"`    // device memory for values and scratch memory, which share it when they are not needed at the same time
	Inputs  int    `json:"inputs"`  // uploaded slices
	Results int    `json:"results"` // slices that are read into, and retained tensors
	Step    int    `json:"step"`    // which needs the most of Peak; −1 if Peak is 0
	At      string `json:"at"`      // that step's operation and shapes
}

// WithMemoryLimit bounds the device memory that one run may take for values between steps, [Memory.Peak]: Compile and Run
// fail with an error that names the peak and its step and wraps compute.ErrOutOfMemory. 0 means no limit. Devices also have
// limits of their own, for all their memory.
func WithMemoryLimit(bytes uint64) Option { return func(o *options) { o.memoryLimit = bytes } }

// WithoutMemoryPlanning gives every value memory of its own. Results are the same; it is meant for tests and for finding
// errors.
func WithoutMemoryPlanning() Option { return func(o *options) { o.apart = true } }

// Memory returns the memory that one run needs.
func (p *Plan) Memory() Memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.compiled() != nil {
		return Memory{Step: -1}
	}
	return memoryOf(p.exec.Executable, p.program)
}

func memoryOf(x program.Executable, p *program.Program) Memory {
	m := x.Memory()
	all := Memory{Peak: m.Peak, Inputs: m.Inputs, Results: m.Results, Step: m.Step}
	if m.Step >= 0 && m.Step < len(p.Steps) {
		all.At = describe(p, m.Step)
	}
	return all
}

// describe names a step and its shapes.
func describe(p *program.Program, step int) string {
	s := &p.Steps[step]
	return fmt.Sprintf("%s %v to %v", s.Name(), p.Types(s.In), p.Types(s.Out))
}

// checkMemory holds a compiled program against the limit. The error names the step of the peak, and where it was recorded.
func (rec *Batch) checkMemory(x program.Executable, p, recorded *program.Program) error {
	o := &rec.options
	if o.memoryLimit == 0 {
		return nil
	}
	if m := memoryOf(x, p); uint64(m.Peak) > o.memoryLimit {
		at := m.At
		if m.Step >= 0 {
			for i := range recorded.Steps {
				if site := rec.sites[i]; site != "" && slices.Contains(recorded.Steps[i].Out, p.Steps[m.Step].Out[0]) {
					at += " (recorded at " + site + ")"
				}
			}
		}
		return fmt.Errorf("%d bytes of memory are needed, most in step %d, %s; the limit is %d: %w", m.Peak, m.Step, at, o.memoryLimit,
			compute.ErrOutOfMemory)
	}
	return nil
}

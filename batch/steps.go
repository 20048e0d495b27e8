package batch

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// Step is a step of a compiled plan.
type Step struct {
	Operation string           `json:"operation"`
	Operands  []string         `json:"operands"` // their types
	Results   []string         `json:"results"`
	Tensors   []compute.Tensor `json:"-"` // imported ones among the operands, as they were recorded
	// Recorded are the numbers of the steps as recorded whose results this one computes; none for checks of guards.
	Recorded []int `json:"recorded"`
	// Sources are file:line of each of these, and of its callers in the same package, the innermost first; see [WithSources].
	Sources  [][]string `json:"sources"`
	Launches []Launch   `json:"launches"` // what the device does for the step, in order
}

// Launch is a kernel on a grid of blocks of threads, or "copy" or "fill" for memory without a kernel.
type Launch struct {
	Kernel string    `json:"kernel"`
	Grid   [3]uint32 `json:"grid"`
	Block  [3]uint32 `json:"block"`
}

// Work is what runs take of a device.
type Work struct {
	Steps int
	Flops float64 // floating-point operations; functions such as exp count 10
	Bytes float64 // of operands and results of all steps
}

// Work counts what a run of the plan does, by the shapes of its steps; nothing for a plan that no batch was compiled to.
func (p *Plan) Work() Work {
	if p.compiled() != nil {
		return Work{}
	}
	w := Work{Steps: len(p.program.Steps)}
	for i := range p.program.Steps {
		s := stepProfile(p.program, i, 0, Peaks{})
		w.Flops, w.Bytes = w.Flops+s.Flops, w.Bytes+s.Bytes
	}
	return w
}

// Steps lists what a run of the plan does: the steps that are left after all rewrites, and the launches of each. The CPU device
// launches nothing, which is [compute.ErrUnsupported].
func (p *Plan) Steps() ([]Step, error) {
	if err := p.compiled(); err != nil {
		return nil, err
	}
	launches := p.exec.Launches()
	if launches == nil {
		return nil, fmt.Errorf("steps of a plan: the device does not tell what it launches: %w", compute.ErrUnsupported)
	}
	steps := make([]Step, len(p.program.Steps))
	for i := range steps {
		s := &p.program.Steps[i]
		steps[i] = Step{Operation: s.Name(), Operands: names(p.program.Types(s.In)), Results: names(p.program.Types(s.Out)),
			Recorded: p.recordedAs(s), Sources: [][]string{}, Launches: make([]Launch, len(launches[i]))}
		for k, l := range launches[i] {
			steps[i].Launches[k] = Launch(l)
		}
		for _, in := range s.In {
			if at := slices.Index(p.recorded.Tensor, in); at >= 0 {
				steps[i].Tensors = append(steps[i].Tensors, p.batch.tensors[at])
			}
		}
		for _, n := range steps[i].Recorded {
			if n < len(p.batch.sources) {
				steps[i].Sources = append(steps[i].Sources, p.batch.sources[n])
			}
		}
	}
	return steps, nil
}

// callers returns file:line of the frames from the innermost one outside this package outward, while they are in one package.
func callers() (sites []string) {
	pkg := ""
	outside(func(f *runtime.Frame) bool {
		slash := strings.LastIndexByte(f.Function, '/') + 1
		name, _, _ := strings.Cut(f.Function[slash:], ".")
		if name = f.Function[:slash] + name; pkg == "" {
			pkg = name
		}
		if name != pkg {
			return false
		}
		sites = append(sites, fmt.Sprintf("%s:%d", f.File, f.Line))
		return true
	})
	return sites
}

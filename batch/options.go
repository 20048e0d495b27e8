package batch

import "github.com/wavelane/wavelane/internal/program"

// Option changes how a batch is compiled; see [New].
type Option func(*options)

type options struct {
	unfused     bool
	memoryLimit uint64
	apart       bool
	guard       *guard // of everything
	peaks       *Peaks // nil for what the device knows

	// Hooks of options that need much code, so that programs without these options do not link it.
	sources  func() []string
	guarded  func(*Batch, program.Executor, *program.Program) (*program.Program, wrap, error)
	repeated func(*Batch, *program.Program) (*program.Program, wrap, error)
	profiled func(o *options, x program.Executable, p *program.Program, d, batches program.Executor) program.Executable
}

// WithoutFusion runs the steps of a batch one by one as they were recorded, each with memory of its own. Results may differ
// within the tolerances of the operations. Use it to compare, or to find the step that is at fault.
func WithoutFusion() Option { return func(o *options) { o.unfused = true } }

// WithSources records the file and line of each step, for [Plan.Steps].
func WithSources() Option { return func(o *options) { o.sources = callers } }

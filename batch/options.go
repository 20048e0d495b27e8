package batch

// Option changes how a batch is compiled; see [New].
type Option func(*options)

type options struct {
	unfused     bool
	memoryLimit uint64
	apart       bool
}

// WithoutFusion keeps the steps of a batch apart, each in memory of its own, as they were recorded. Results may differ within the
// tolerances of the operations: it is for comparing, and for finding out which step is at fault.
func WithoutFusion() Option { return func(o *options) { o.unfused = true } }

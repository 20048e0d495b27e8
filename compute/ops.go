package compute

// Operand is a slice in host memory under a shape: []float32, []int32, []uint32, or []uint16 for Float16 bits.
type Operand struct {
	Data  any
	Shape []int
}

// Runner executes single operations of the catalogue; devices implement it for [Ops].
type Runner interface {
	// Run applies the named entry. The shape of out may be nil: then only its length is checked.
	Run(entry string, out Operand, in []Operand, scalars []float32, options any) *Future
}

// Ops carries one asynchronous method per operation of the catalogue, on slices of host memory, and natively a blocking
// method beside each. Every device embeds it. Each call is a program of one step: upload, run, read back. To keep data on
// the device between operations, record a batch.
//
// The destination comes first. Destination and operands may overlap or be the same slice: results are as if the operands
// had been copied. Slices belong to the call until its future is done; a blocking call that its context ended returns them.
type Ops struct{ run Runner }

// NewOps is for devices.
func NewOps(r Runner) Ops { return Ops{r} }

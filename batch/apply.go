package batch

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

// Apply records the operation of that name in the catalogue, as the method that is written for it does: for programs that learn
// the name when they run. Scalars and options are those of the method; nil options are the zero value. It returns as many values as
// the operation has results.
func (b *Batch) Apply(entry string, in []Value, scalars []float32, options any) []Value {
	e := catalogue.Lookup(entry)
	if e == nil {
		b.fail(fmt.Errorf("no operation is named %q: %w", entry, compute.ErrArgument))
		return []Value{{}}
	}
	if options == nil {
		options = e.Options
	}
	return b.applyAll(e, scalars, options, in...)
}

// DType returns the element type of a value; Float32 for what an error has prevented from being one.
func (b *Batch) DType(v Value) compute.DType {
	if v.batch != b {
		return compute.Float32
	}
	return b.program.Values[v.slot].DType
}

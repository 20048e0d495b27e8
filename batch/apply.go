package batch

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

// Apply records the operation of that name in the catalogue, for programs that know the name only at run time. Scalars and
// options are those of the method; nil options are the zero value. It returns as many values as the operation has results.
func (rec *Batch) Apply(entry string, in []Value, scalars []float32, options any) []Value {
	e := catalogue.Lookup(entry)
	if e == nil {
		rec.fail(fmt.Errorf("no operation is named %q: %w", entry, compute.ErrArgument))
		return []Value{{}}
	}
	if options == nil {
		options = e.Options
	}
	return rec.applyAll(e, scalars, options, in...)
}

// DType returns the element type of a value, or Float32 if an error prevented the value from being recorded.
func (rec *Batch) DType(v Value) compute.DType {
	if v.batch != rec {
		return compute.Float32
	}
	return rec.program.Values[v.slot].DType
}

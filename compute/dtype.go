package compute

import "fmt"

// DType is the element type of a tensor.
type DType uint8

// Element types. Arithmetic is done in Float32; Float16 is a storage format (see the cast operation), the integers hold
// indices.
const (
	Float32 DType = iota
	Int32
	Uint32
	Float16
)

var dtypes = [...]struct {
	name string
	size int
}{
	Float32: {"f32", 4},
	Int32:   {"i32", 4},
	Uint32:  {"u32", 4},
	Float16: {"f16", 2},
}

// Size returns the number of bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

func (d DType) String() string {
	if int(d) < len(dtypes) {
		return dtypes[d].name
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

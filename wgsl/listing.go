package wgsl

import (
	_ "embed"
	"encoding/json"
	"sync"
)

//go:generate go test -count=1 -run ^TestListing$ . -update

// Listed is a shader as it is compiled for a device with [DefaultCaps]: one entry stands for all specialisations that agree
// in these fields.
type Listed struct {
	Name      string    `json:"name"`    // what the keys of its kernels begin with
	Kernels   int       `json:"kernels"` // specialisations, by element types, layouts, activations and the like
	Workgroup [3]uint32 `json:"workgroup"`
	Bindings  []string  `json:"bindings"` // "read" or "read_write", in order
	Uniform   int       `json:"uniform"`  // bytes
	Shared    int       `json:"shared"`   // bytes of workgroup memory
	Entries   []string  `json:"entries"`  // of the catalogue whose code dispatches it
}

//go:embed testdata/kernels.json
var listing []byte

// List returns the shaders that the catalogue's conformance cases are compiled to, in all variants, by their names. The list
// must not be changed.
func List() ([]Listed, error) {
	// Not a variable: programs that do not call List have neither the listing nor what reads it in them.
	listed.once.Do(func() { listed.err = json.Unmarshal(listing, &listed.list) })
	return listed.list, listed.err
}

var listed struct {
	once sync.Once
	list []Listed
	err  error
}

package wgsl

import (
	_ "embed"
	"encoding/json"
	"sync"
)

//go:generate go test -count=1 -run ^TestListing$ . -update

// Listed is a shader as it is compiled for a device with [DefaultCaps]: all specialisations alike in what stands here.
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

var listed = sync.OnceValues(func() (list []Listed, err error) {
	err = json.Unmarshal(listing, &list)
	return list, err
})

// List returns the shaders that the catalogue's conformance cases are compiled to, in all variants, by their names. The list
// must not be changed.
func List() ([]Listed, error) { return listed() }

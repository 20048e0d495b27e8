package rewrite

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// TestEqual compares options of every type in use as reflect.DeepEqual does.
func TestEqual(t *testing.T) {
	x := program.Expression{Inputs: 1, Nodes: []program.Node{{Entry: catalogue.ReLU, Args: []int{0}}}, Results: []int{1}}
	y, z := x, x
	y.Nodes = []program.Node{{Entry: catalogue.GELU, Args: []int{0}}}
	z.Nodes = []program.Node{{Entry: catalogue.ReLU, Args: []int{0, 0}}}
	values := []any{x, y, z, compute.TransposeOptions{Perm: []int{}}, compute.TransposeOptions{Perm: []int{1, 0}},
		compute.SliceOptions{Start: []int{1}}, compute.SliceOptions{Size: []int{1}}, compute.ConcatOptions{Axis: 1}}
	for _, e := range catalogue.All() {
		if e.Options != nil {
			values = append(values, e.Options)
		}
	}
	for _, a := range values {
		for _, b := range values {
			if reflect.TypeOf(a) == reflect.TypeOf(b) {
				require.Equal(t, reflect.DeepEqual(a, b), equal(reflect.ValueOf(a), reflect.ValueOf(b)), "%+v, %+v", a, b)
			}
		}
	}
}

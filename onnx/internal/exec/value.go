package exec

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Value is what a name of the graph stands for during a walk: a tensor on the host or on the device, a sequence, or an absent optional.
type Value struct {
	kind  host.Kind
	shape []int

	t     *host.Tensor // on the host: the data of this call
	known bool         // it depends on the model and the inputs' shapes only
	model bool         // it depends on the model only
	slot  int          // of t among the run's host values, if it is not known

	kept int // on the device: number of the tensor that it is between stages, or −1

	conv *pendingConv // it is the result of, if that is not recorded yet

	sequence bool
	items    []*Value
	absent   bool // an optional without a value
}

func (v *Value) onHost() bool { return v.t != nil }

func (v *Value) String() string {
	switch {
	case v.sequence:
		return fmt.Sprintf("sequence of %d", len(v.items))
	case v.absent:
		return "absent optional"
	}
	return fmt.Sprintf("%v%v", v.kind, v.shape)
}

// constant makes a value that is known.
func constant(t *host.Tensor) *Value {
	return &Value{kind: t.Kind, shape: t.Shape, t: t, known: true, kept: -1, slot: -1}
}

// representation is the element type by which devices hold a kind: floats and booleans as Float32, integers as Int32.
func representation(k host.Kind) (compute.DType, bool) {
	switch k {
	case host.Float, host.Float16, host.BFloat16, host.Bool:
		return compute.Float32, true
	case host.Int64, host.Int32, host.Int16, host.Int8, host.Uint8, host.Uint16, host.Uint32, host.Uint64:
		return compute.Int32, true
	}
	return 0, false
}

// deviceFloat reports whether devices compute with the kind, in float32.
func deviceFloat(k host.Kind) bool {
	return k == host.Float || k == host.Float16 || k == host.BFloat16
}

// toDevice converts the elements of a tensor to those of its representation.
func toDevice(t *host.Tensor) (any, error) {
	rep, ok := representation(t.Kind)
	switch {
	case !ok:
		return nil, fmt.Errorf("devices have no elements of type %v: %w", t.Kind, compute.ErrDType)
	case rep == compute.Float32:
		return t.F32s(), nil
	}
	if s, ok := t.Data.([]int32); ok {
		return s, nil
	}
	n := t.Ints()
	out := make([]int32, len(n))
	for i, x := range n {
		if out[i] = int32(x); int64(out[i]) != x {
			return nil, fmt.Errorf("element %d of a tensor of %v is %d, devices take integers of 32 bits: %w", i, t.Kind, x, compute.ErrTooLarge)
		}
	}
	return out, nil
}

// fromDevice is the reverse of toDevice; it copies.
func fromDevice(k host.Kind, shape []int, data any) *host.Tensor {
	switch s := data.(type) {
	case []float32:
		return host.FromF32s(k, append(make([]float32, 0, len(s)), s...), shape...)
	case []int32:
		n := make([]int64, len(s))
		for i, x := range s {
			n[i] = int64(x)
		}
		if k == host.Uint32 {
			for i := range n {
				n[i] = int64(uint32(n[i]))
			}
		}
		return host.FromInts(k, n, shape...)
	}
	return nil
}

package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Operators that depend on shapes only, and those that give elements another shape.

// reshaped gives a value another shape of as many elements.
func (c *call) reshaped(x *Value, shape []int) (*Value, error) {
	if host.CheckShape(shape) != nil || host.Len(shape) != host.Len(x.shape) {
		return nil, fmt.Errorf("%v cannot become %v: %w", x, shape, compute.ErrShape)
	}
	if x.t == nil {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		return c.device(x.kind, c.rec().Reshape(d, shape...)), nil
	}
	out, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return in[0].Reshaped(shape...), nil }, x)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func reshape(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	dims, err := c.intsArg(1, "shape")
	if err != nil {
		return nil, err
	}
	zero := c.int("allowzero", 0) != 0
	shape, free, known := make([]int, len(dims)), -1, 1
	for i, d := range dims {
		switch {
		case d == 0 && !zero:
			if i >= len(x.shape) {
				return nil, fmt.Errorf("%v to %v: %w", x, dims, compute.ErrShape)
			}
			shape[i] = x.shape[i]
		case d == -1 && free < 0:
			free = i
			continue
		case d < 0 || d > host.Most:
			return nil, fmt.Errorf("%v to %v: %w", x, dims, compute.ErrShape)
		default:
			shape[i] = int(d)
		}
		if shape[i] > 0 && known > host.Most/shape[i] {
			return nil, fmt.Errorf("%v to %v: %w", x, dims, compute.ErrTooLarge)
		}
		known *= shape[i]
	}
	if free >= 0 {
		if known == 0 || host.Len(x.shape)%known != 0 {
			return nil, fmt.Errorf("%v to %v: %w", x, dims, compute.ErrShape)
		}
		shape[free] = host.Len(x.shape) / known
	}
	return one(c.reshaped(x, shape))
}

func flatten(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis := int(c.int("axis", 1))
	if axis < 0 {
		axis += len(x.shape)
	}
	if axis < 0 || axis > len(x.shape) {
		return nil, fmt.Errorf("axis %d of %v: %w", axis, x, compute.ErrArgument)
	}
	return one(c.reshaped(x, []int{host.Len(x.shape[:axis]), host.Len(x.shape[axis:])}))
}

func squeeze(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	given, err := c.intsArg(1, "axes")
	if err != nil {
		return nil, err
	}
	axes, err := host.Axes(given, len(x.shape))
	if err != nil {
		return nil, err
	}
	shape := []int{}
	for d, n := range x.shape {
		drop := slices.Contains(axes, d) || given == nil && n == 1
		if drop && n != 1 {
			return nil, fmt.Errorf("axis %d of %v is not 1: %w", d, x, compute.ErrShape)
		}
		if !drop {
			shape = append(shape, n)
		}
	}
	return one(c.reshaped(x, shape))
}

func unsqueeze(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	given, err := c.intsArg(1, "axes")
	if err != nil {
		return nil, err
	}
	axes, err := host.Axes(given, len(x.shape)+len(given))
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(x.shape)
	for _, a := range axes {
		shape = slices.Insert(shape, min(a, len(shape)), 1)
	}
	return one(c.reshaped(x, shape))
}

func shapeOf(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	if c.in[0].sequence || c.in[0].absent {
		return nil, fmt.Errorf("shape of %v: %w", c.in[0], compute.ErrDType)
	}
	n := len(c.in[0].shape)
	bound := func(i int64) int {
		if i < 0 {
			i += int64(n)
		}
		return int(min(max(i, 0), int64(n)))
	}
	start, end := bound(c.int("start", 0)), bound(c.int("end", int64(n)))
	if end < start {
		end = start
	}
	return knownResult(host.Dims(c.in[0].shape[start:end]))
}

func sizeOf(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	return knownResult(host.FromInts(host.Int64, []int64{int64(host.Len(c.in[0].shape))}, []int{}...))
}

// identity returns its operands.
func identity(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	return c.in[:1:1], nil
}

func constantNode(c *call) ([]*Value, error) {
	if v := c.tensors["value"]; v != nil {
		return []*Value{v}, nil
	}
	var t *host.Tensor
	for name, a := range c.Attributes {
		switch name {
		case "value_float":
			t = &host.Tensor{Kind: host.Float, Shape: []int{}, Data: []float32{a.F}}
		case "value_floats":
			t = &host.Tensor{Kind: host.Float, Shape: []int{len(a.Floats)}, Data: orEmpty(a.Floats)}
		case "value_int":
			t = host.FromInts(host.Int64, []int64{a.I})
		case "value_ints":
			t = host.OfInts(orEmpty(a.Ints), len(a.Ints))
		case "value_string":
			t = &host.Tensor{Kind: host.String, Shape: []int{}, Data: []string{string(a.S)}}
		case "value_strings":
			t = &host.Tensor{Kind: host.String, Shape: []int{len(a.Texts)}, Data: orEmpty(c.texts(name))}
		case "sparse_value":
			var err error
			if t, err = c.sparse(a.Sparse); err != nil {
				return nil, err
			}
		}
	}
	if t == nil {
		return nil, fmt.Errorf("no value: %w", format.ErrFormat)
	}
	v := constant(t)
	v.model = true
	return []*Value{v}, nil
}

func (c *call) sparse(s *format.Sparse) (*host.Tensor, error) {
	values, err := Load(s.Values, c.s.program.files)
	if err != nil {
		return nil, err
	}
	indices, err := Load(s.Indices, c.s.program.files)
	if err != nil {
		return nil, err
	}
	shape := toInts(s.Dims)
	if err := host.CheckShape(shape); err != nil {
		return nil, err
	}
	n := values.Len()
	at := indices.Ints()
	strides := []int{1}
	if len(indices.Shape) == 2 {
		strides = host.Strides(shape)
	}
	if len(at) != n*len(strides) {
		return nil, fmt.Errorf("%d indices of %d values: %w", len(at), n, format.ErrFormat)
	}
	index := make([]int, n)
	for i := range index {
		for d, st := range strides {
			index[i] += int(at[i*len(strides)+d]) * st
		}
		if index[i] < 0 || index[i] >= host.Len(shape) {
			return nil, fmt.Errorf("index %d of a sparse tensor: %w", index[i], format.ErrFormat)
		}
	}
	return host.New(values.Kind, shape...).Put(host.Index{Shape: []int{n}, From: index}, values, "none")
}

func constantOfShape(c *call) ([]*Value, error) {
	dims, err := c.intsArg(0, "")
	if err != nil {
		return nil, err
	}
	value := host.FromFloats(host.Float, []float64{0})
	if v := c.tensors["value"]; v != nil {
		value = v.t
	}
	return c.filled(dims, value)
}

// filled is a tensor of one value; it is known as far as the shape is.
func (c *call) filled(dims []int64, value *host.Tensor) ([]*Value, error) {
	shape := toInts(dims)
	if err := host.CheckShape(shape); err != nil {
		return nil, err
	}
	if value.Len() != 1 {
		return nil, fmt.Errorf("value of shape %v: %w", value.Shape, compute.ErrShape)
	}
	return knownResult(value.Pick(host.Index{Shape: shape, From: make([]int, host.Len(shape))}))
}

func rangeOf(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		if in[0].Len() != 1 || in[1].Len() != 1 || in[2].Len() != 1 {
			return nil, fmt.Errorf("bounds of shapes %v %v %v: %w", in[0].Shape, in[1].Shape, in[2].Shape, compute.ErrShape)
		}
		k := in[0].Kind
		if k.IsFloat() {
			start, limit, delta := in[0].Floats()[0], in[1].Floats()[0], in[2].Floats()[0]
			n := math.Ceil((limit - start) / delta)
			if !(n <= host.Most) {
				return nil, fmt.Errorf("range of %v elements: %w", n, compute.ErrTooLarge)
			}
			x := make([]float64, max(int(n), 0))
			for i := range x {
				x[i] = start + float64(i)*delta
			}
			return host.FromFloats(k, x, len(x)), nil
		}
		start, limit, delta := in[0].Ints()[0], in[1].Ints()[0], in[2].Ints()[0]
		if delta == 0 {
			return nil, fmt.Errorf("range with steps of 0: %w", compute.ErrArgument)
		}
		n := math.Ceil((float64(limit) - float64(start)) / float64(delta))
		if n > host.Most {
			return nil, fmt.Errorf("range of %v elements: %w", n, compute.ErrTooLarge)
		}
		x := make([]int64, max(int(n), 0))
		for i := range x {
			x[i] = start + int64(i)*delta
		}
		return host.FromInts(k, x, len(x)), nil
	}, c.in[:3]...)
}

func eyeLike(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	if len(x.shape) != 2 {
		return nil, fmt.Errorf("%v is no matrix: %w", x, compute.ErrShape)
	}
	k := host.Kind(c.int("dtype", int64(x.kind)))
	if !k.Known() {
		return nil, fmt.Errorf("elements of type %v: %w", k, compute.ErrUnsupported)
	}
	v := make([]float64, host.Len(x.shape))
	for i := range x.shape[0] {
		if j := i + int(c.int("k", 0)); j >= 0 && j < x.shape[1] {
			v[i*x.shape[1]+j] = 1
		}
	}
	return knownResult(host.FromFloats(k, v, x.shape...))
}

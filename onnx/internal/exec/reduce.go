package exec

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// rowReduce reduces the last axis.
type rowReduce func(b *batch.Batch, x batch.Value) batch.Value

var deviceReduce = map[string]rowReduce{
	"Sum":  func(b *batch.Batch, x batch.Value) batch.Value { return b.Sum(x, compute.LastAxis) },
	"Mean": func(b *batch.Batch, x batch.Value) batch.Value { return b.Mean(x, compute.LastAxis) },
	"Max":  func(b *batch.Batch, x batch.Value) batch.Value { return b.Max(x, compute.LastAxis) },
	"Min":  func(b *batch.Batch, x batch.Value) batch.Value { return b.Min(x, compute.LastAxis) },
	"L1":   func(b *batch.Batch, x batch.Value) batch.Value { return b.NormL1(x, compute.LastAxis) },
	"L2":   func(b *batch.Batch, x batch.Value) batch.Value { return b.NormL2(x, compute.LastAxis) },
	"SumSquare": func(b *batch.Batch, x batch.Value) batch.Value {
		return b.SumSquares(x, compute.LastAxis)
	},
	"LogSum": func(b *batch.Batch, x batch.Value) batch.Value { return b.Log(b.Sum(x, compute.LastAxis)) },
	"LogSumExp": func(b *batch.Batch, x batch.Value) batch.Value {
		top := b.Max(x, compute.LastAxis)
		column := b.Reshape(top, append(b.Shape(top), 1)...)
		return b.Add(top, b.Log(b.Sum(b.Exp(b.Sub(x, column)), compute.LastAxis)))
	},
	"Prod": product,
}

// product multiplies halves of the rows until one element is left.
func product(b *batch.Batch, x batch.Value) batch.Value {
	shape := b.Shape(x)
	if len(shape) == 0 {
		return x
	}
	last := len(shape) - 1
	part := func(x batch.Value, from, n int) batch.Value {
		start, size := make([]int, len(shape)), slices.Clone(shape)
		start[last], size[last] = from, n
		return b.Slice(x, compute.SliceOptions{Start: start, Size: size})
	}
	n := shape[last]
	for n > 1 {
		half := n / 2
		y := b.Mul(part(x, 0, half), part(x, half, half))
		if n%2 == 1 {
			y = b.Concat(last, y, part(x, n-1, 1))
			half++
		}
		x, n = y, half
	}
	return b.Reshape(x, shape[:last]...)
}

// reducedOnDevice reduces axes with a function of rows.
func (c *call) reducedOnDevice(x *Value, axes []int, keep bool, f rowReduce) (*Value, error) {
	d, err := c.dev(x)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	var perm []int
	outer, inner := []int{}, 1
	for i, n := range x.shape {
		if slices.Contains(axes, i) {
			inner *= n
		} else {
			perm, outer = append(perm, i), append(outer, n)
		}
	}
	perm = append(perm, axes...)
	d = transposed(b, d, perm)
	d = f(b, b.Reshape(d, append(outer, inner)...))
	return c.device(x.kind, b.Reshape(d, host.Reduced(x.shape, axes, keep)...)), nil
}

// reduce is the family of ReduceX; those without a name in the map of the device run on the host.
func reduce(op string) func(c *call) ([]*Value, error) {
	return func(c *call) ([]*Value, error) {
		if err := c.need(1); err != nil {
			return nil, err
		}
		x := c.in[0]
		given, err := c.intsArg(1, "axes")
		if err != nil {
			return nil, err
		}
		if len(given) == 0 && c.int("noop_with_empty_axes", 0) != 0 {
			return c.reduceNothing(op, x)
		}
		axes, err := host.Axes(given, len(x.shape))
		if err != nil {
			return nil, err
		}
		if len(given) == 0 {
			axes = axes[:0]
			for d := range x.shape {
				axes = append(axes, d)
			}
		}
		return c.reduced(op, x, axes, c.flag("keepdims", true))
	}
}

// reduceNothing reduces no axis: each element is a row of its own.
func (c *call) reduceNothing(op string, x *Value) ([]*Value, error) {
	switch op {
	case "L1", "L2":
		if onDevice(x) {
			return c.onFloat(x, (*batch.Batch).Abs)
		}
		return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Unary("Abs", in[0]) }, x)
	case "SumSquare":
		return c.binaryAs("Mul", x, x)
	case "LogSum":
		if onDevice(x) {
			return c.onFloat(x, (*batch.Batch).Log)
		}
		return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Unary("Log", in[0]) }, x)
	}
	return []*Value{x}, nil
}

func (c *call) reduced(op string, x *Value, axes []int, keep bool) ([]*Value, error) {
	empty := host.Len(x.shape) == 0
	if f := deviceReduce[op]; f != nil && onDevice(x) && !empty {
		return one(c.reducedOnDevice(x, axes, keep, f))
	}
	if x.kind == host.Bool && x.t == nil && (op == "Max" || op == "Min") && !empty {
		return one(c.reducedOnDevice(x, axes, keep, deviceReduce[op]))
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Reduce(op, in[0], axes, keep) }, x)
}

func argReduce(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis, err := c.axis("axis", 0, len(x.shape))
	if err != nil || len(x.shape) == 0 {
		return nil, fmt.Errorf("axis of %v: %w", x, compute.ErrArgument)
	}
	keep, last, least := c.flag("keepdims", true), c.int("select_last_index", 0) != 0, c.Op == "ArgMin"
	if onDevice(x) && !last && host.Len(x.shape) > 0 {
		f := func(b *batch.Batch, x batch.Value) batch.Value { return b.ArgMax(x, compute.LastAxis) }
		if least {
			f = func(b *batch.Batch, x batch.Value) batch.Value { return b.ArgMin(x, compute.LastAxis) }
		}
		y, err := c.reducedOnDevice(x, []int{axis}, keep, f)
		if err != nil {
			return nil, err
		}
		y.kind = host.Int64
		return []*Value{y}, nil
	}
	if x.shape[axis] == 0 {
		return nil, fmt.Errorf("nothing to choose from along axis %d of %v: %w", axis, x, compute.ErrShape)
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.ArgMax(in[0], axis, keep, least, last), nil }, x)
}

func topK(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis, err := c.axis("axis", -1, len(x.shape))
	if err != nil || len(x.shape) == 0 {
		return nil, fmt.Errorf("axis of %v: %w", x, compute.ErrArgument)
	}
	k := c.int("k", 0)
	if c.arg(1) != nil {
		n, err := c.intsArg(1, "")
		if err != nil {
			return nil, err
		}
		if len(n) != 1 {
			return nil, fmt.Errorf("k is %v: %w", n, compute.ErrShape)
		}
		k = n[0]
	}
	if k < 0 || k > int64(x.shape[axis]) {
		return nil, fmt.Errorf("the first %d of %d: %w", k, x.shape[axis], compute.ErrShape)
	}
	largest := c.flag("largest", true)
	const most = 1024
	if onDevice(x) && k > 0 && k <= most && host.Len(x.shape) > 0 {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		b := c.rec()
		d, back := axisLast(b, d, axis, len(x.shape))
		if !largest {
			d = b.Neg(d)
		}
		values, indices := b.TopK(d, compute.TopKOptions{K: int(k)})
		if !largest {
			values = b.Neg(values)
		}
		return []*Value{c.device(x.kind, back(values)), c.device(host.Int64, back(indices))}, nil
	}
	return c.onHost(c.Node.String(), 2, true, func(in []*host.Tensor) ([]*host.Tensor, error) {
		v, i := host.TopK(in[0], axis, int(k), largest)
		return []*host.Tensor{v, i}, nil
	}, x)
}

func cumulative(op string) func(c *call) ([]*Value, error) {
	return func(c *call) ([]*Value, error) {
		if err := c.need(2); err != nil {
			return nil, err
		}
		x := c.in[0]
		a, err := c.intsArg(1, "")
		if err != nil {
			return nil, err
		}
		if len(a) != 1 || len(x.shape) == 0 {
			return nil, fmt.Errorf("axis %v of %v: %w", a, x, compute.ErrArgument)
		}
		axis, err := host.Axis(a[0], len(x.shape))
		if err != nil {
			return nil, err
		}
		exclusive, reverse := c.flag("exclusive", false), c.flag("reverse", false)
		if onDevice(x) && op == "Add" {
			d, err := c.dev(x)
			if err != nil {
				return nil, err
			}
			b := c.rec()
			d, back := axisLast(b, d, axis, len(x.shape))
			return c.made(x.kind, back(b.CumSum(d, compute.CumSumOptions{Exclusive: exclusive, Reverse: reverse})))
		}
		if !x.kind.IsFloat() && !x.kind.IsInteger() {
			return nil, fmt.Errorf("sums of %v: %w", x.kind, compute.ErrDType)
		}
		return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
			return host.Scan(op, in[0], axis, exclusive, reverse), nil
		}, x)
	}
}

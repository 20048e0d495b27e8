package exec

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

func matmul(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	return c.multiplied(c.in[0], c.in[1])
}

// multiplied is NumPy's matmul.
func (c *call) multiplied(x, y *Value) ([]*Value, error) {
	if deviceFloat(x.kind) && x.kind == y.kind && !(x.known && y.known && host.Len(x.shape) < 1<<12) {
		d, err := c.devAll(x, y)
		if err != nil {
			return nil, err
		}
		z, err := product2(c.rec(), d[0], d[1])
		if err != nil {
			return nil, err
		}
		return c.made(x.kind, z)
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		if in[0].Kind != in[1].Kind {
			return nil, fmt.Errorf("product of %v and %v: %w", in[0].Kind, in[1].Kind, compute.ErrDType)
		}
		return host.MatMul(in[0], in[1], in[0].Kind)
	}, x, y)
}

// product2 multiplies matrices as NumPy does.
func product2(b *batch.Batch, x, y batch.Value) (batch.Value, error) {
	sx, sy := b.Shape(x), b.Shape(y)
	if len(sx) == 0 || len(sy) == 0 {
		return x, fmt.Errorf("product of %v and %v: %w", sx, sy, compute.ErrShape)
	}
	left, right := len(sx) == 1, len(sy) == 1
	if left {
		sx = []int{1, sx[0]}
		x = b.Reshape(x, sx...)
	}
	if right {
		sy = []int{sy[0], 1}
		y = b.Reshape(y, sy...)
	}
	m, k, n := sx[len(sx)-2], sx[len(sx)-1], sy[len(sy)-1]
	lx, ly := sx[:len(sx)-2], sy[:len(sy)-2]
	lead, err := host.Broadcast(lx, ly)
	if err != nil || sy[len(sy)-2] != k {
		return x, fmt.Errorf("product of %v and %v: %w", b.Shape(x), b.Shape(y), compute.ErrShape)
	}
	shape := slices.Clone(lead)
	if !left {
		shape = append(shape, m)
	}
	if !right {
		shape = append(shape, n)
	}
	var z batch.Value
	switch {
	case host.Len(ly) == 1: // one matrix for all rows
		z = b.MatMul(b.Reshape(x, host.Len(lx)*m, k), b.Reshape(y, k, n))
	case host.Len(lx) == 1:
		z = b.MatMul(b.Reshape(x, m, k), b.Reshape(y, host.Len(ly), k, n))
	default:
		x, y = expanded(b, x, slices.Concat(lead, []int{m, k})), expanded(b, y, slices.Concat(lead, []int{k, n}))
		z = b.MatMul(b.Reshape(x, host.Len(lead), m, k), b.Reshape(y, host.Len(lead), k, n))
	}
	return b.Reshape(z, shape...), nil
}

func gemm(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, y, z := c.in[0], c.in[1], c.arg(2)
	alpha, beta := c.float("alpha", 1), c.float("beta", 1)
	tx, ty := c.int("transA", 0) != 0, c.int("transB", 0) != 0
	if len(x.shape) != 2 || len(y.shape) != 2 {
		return nil, fmt.Errorf("%v times %v: %w", x, y, compute.ErrShape)
	}
	if !deviceFloat(x.kind) {
		return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
			p, q := in[0], in[1]
			if tx {
				p = p.Pick(host.TransposeIndex(p.Shape, []int{1, 0}))
			}
			if ty {
				q = q.Pick(host.TransposeIndex(q.Shape, []int{1, 0}))
			}
			out, err := host.MatMul(p, q, p.Kind)
			if err == nil && alpha != 1 {
				out, err = host.Binary("Mul", out, host.Scalar(out.Kind, float64(alpha)))
			}
			if err == nil && len(in) > 2 && in[2] != nil {
				var r *host.Tensor
				if r, err = host.Binary("Mul", in[2], host.Scalar(out.Kind, float64(beta))); err == nil {
					out, err = host.Binary("Add", out, r)
				}
			}
			return out, err
		}, c.in...)
	}
	d, err := c.devAll(x, y)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	o := compute.MatMulOptions{TransA: tx, TransB: ty}
	n := y.shape[1]
	if ty {
		n = y.shape[0]
	}
	if z != nil && alpha == 1 && beta == 1 && host.Len(z.shape) == n && z.shape[len(z.shape)-1] == n {
		bias, err := c.dev(z)
		if err != nil {
			return nil, err
		}
		return c.made(x.kind, b.MatMulWithBias(d[0], d[1], b.Reshape(bias, n), o))
	}
	p := b.MatMul(d[0], d[1], o)
	if alpha != 1 {
		p = b.Scale(p, alpha)
	}
	if z != nil {
		e, err := c.dev(z)
		if err != nil {
			return nil, err
		}
		if beta != 1 {
			e = b.Scale(e, beta)
		}
		p = b.Add(p, e)
	}
	return c.made(x.kind, p)
}

// rowsOp applies an operation on rows along one axis.
func (c *call) rowsOp(x *Value, axis int, f func(b *batch.Batch, x batch.Value) batch.Value) ([]*Value, error) {
	return c.onFloat(x, func(b *batch.Batch, x batch.Value) batch.Value {
		shape := b.Shape(x)
		if host.Len(shape) == 0 {
			return x
		}
		y, back := axisLast(b, x, axis, len(shape))
		return back(f(b, y))
	})
}

func softmax(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	var f func(b *batch.Batch, x batch.Value) batch.Value
	switch c.Op {
	case "Softmax":
		f = (*batch.Batch).Softmax
	case "LogSoftmax":
		f = (*batch.Batch).LogSoftmax
	default:
		f = hardmaxRows
	}
	if !deviceFloat(x.kind) {
		axis, err := c.axis("axis", -1, len(x.shape))
		if err != nil || c.Version < 13 || c.Op != "Softmax" {
			return nil, fmt.Errorf("%s of %v: %w", c.Op, x, compute.ErrUnsupported)
		}
		return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return hostSoftmax(in[0], axis) }, x)
	}
	if c.Version < 13 { // the axes from this one on are one row
		axis := int(c.int("axis", 1))
		if axis < 0 {
			axis += len(x.shape)
		}
		if axis < 0 || axis > len(x.shape) {
			return nil, fmt.Errorf("axis %d of %v: %w", axis, x, compute.ErrArgument)
		}
		return c.onFloat(x, func(b *batch.Batch, d batch.Value) batch.Value {
			return b.Reshape(f(b, b.Reshape(d, host.Len(x.shape[:axis]), host.Len(x.shape[axis:]))), x.shape...)
		})
	}
	axis, err := c.axis("axis", -1, len(x.shape))
	if err != nil {
		return nil, err
	}
	if len(x.shape) == 0 {
		return c.onFloat(x, func(b *batch.Batch, d batch.Value) batch.Value { return b.Reshape(f(b, b.Reshape(d, 1)), []int{}...) })
	}
	return c.rowsOp(x, axis, f)
}

func hostSoftmax(t *host.Tensor, axis int) (*host.Tensor, error) {
	top, err := host.Reduce("Max", t, []int{axis}, true)
	if err != nil {
		return nil, err
	}
	x, err := host.Binary("Sub", t, top)
	if err == nil {
		x, err = host.Unary("Exp", x)
	}
	if err != nil {
		return nil, err
	}
	sum, err := host.Reduce("Sum", x, []int{axis}, true)
	if err != nil {
		return nil, err
	}
	return host.Binary("Div", x, sum)
}

// hardmaxRows is 1 at the first largest element of a row. The table of unit vectors is a product of comparisons.
func hardmaxRows(b *batch.Batch, x batch.Value) batch.Value {
	shape := b.Shape(x)
	n := shape[len(shape)-1]
	index := b.ArgMax(x, compute.LastAxis)
	unit := make([]float32, n*n)
	for i := range n {
		unit[i*n+i] = 1
	}
	return b.Gather(b.Upload(unit, n, n), index, compute.GatherOptions{Axis: 0})
}

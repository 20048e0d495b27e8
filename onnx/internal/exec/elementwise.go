package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// unary is an operator of one float on the device, else of anything on the host.
func unary(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	f := deviceUnary[c.Op]
	if f != nil && onDevice(x) {
		return c.onFloat(x, f)
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Unary(c.Op, in[0]) }, x)
}

// onFloat records a function of one float. Known operands that only devices compute with are uploaded.
func (c *call) onFloat(x *Value, f unaryFunc) ([]*Value, error) {
	if !deviceFloat(x.kind) {
		return nil, fmt.Errorf("%s of %v: %w", c.Op, x.kind, compute.ErrDType)
	}
	d, err := c.dev(x)
	if err != nil {
		return nil, err
	}
	return c.made(x.kind, f(c.rec(), d))
}

// float is an operator that only devices have: a function of one float with attributes.
func float(f func(c *call, b *batch.Batch, x batch.Value) batch.Value) func(c *call) ([]*Value, error) {
	return func(c *call) ([]*Value, error) {
		if err := c.need(1); err != nil {
			return nil, err
		}
		return c.onFloat(c.in[0], func(b *batch.Batch, x batch.Value) batch.Value { return f(c, b, x) })
	}
}

// binaryAs computes a binary operator by name.
func (c *call) binaryAs(op string, x, y *Value) ([]*Value, error) {
	if c.Op == op && (x.conv != nil || y.conv != nil) && len(c.in) == 2 {
		if v := c.absorb(op, x, y); v != nil {
			return []*Value{v}, nil
		}
	}
	if f := deviceBinary[op]; f != nil && x.kind == y.kind && onDevice(x, y) {
		d, err := c.devAll(x, y)
		if err != nil {
			return nil, err
		}
		return c.made(x.kind, f(c.rec(), d[0], d[1]))
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Binary(op, in[0], in[1]) }, x, y)
}

func binaryOp(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, y := c.in[0], c.in[1]
	if c.Version < 7 && c.int("broadcast", 0) != 0 && c.has("axis") { // the second operand's axes begin there
		axis, err := c.axis("axis", 0, len(x.shape))
		if err != nil {
			return nil, err
		}
		shape := append([]int{}, y.shape...)
		for len(shape) < len(x.shape)-axis {
			shape = append(shape, 1)
		}
		if y, err = c.reshaped(y, shape); err != nil {
			return nil, err
		}
	}
	if c.Op == "PRelu" && len(y.shape) == 1 && len(x.shape) > 1 && y.shape[0] == x.shape[1] && c.Version < 7 { // one for each channel
		var err error
		if y, err = c.reshaped(y, append([]int{y.shape[0]}, slices.Repeat([]int{1}, len(x.shape)-2)...)); err != nil {
			return nil, err
		}
	}
	return c.binaryAs(c.Op, x, y)
}

// fold is an operator of any number of operands.
func fold(op string, mean bool) func(c *call) ([]*Value, error) {
	return func(c *call) ([]*Value, error) {
		if err := c.need(max(len(c.in), 1)); err != nil {
			return nil, err
		}
		acc := []*Value{c.in[0]}
		for _, x := range c.in[1:] {
			var err error
			if acc, err = c.binaryAs(op, acc[0], x); err != nil {
				return nil, err
			}
		}
		if mean {
			n := constant(host.Scalar(acc[0].kind, float64(len(c.in))))
			n.model = true
			return c.binaryAs("Div", acc[0], n)
		}
		return acc, nil
	}
}

func mod(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	if c.int("fmod", 0) != 0 {
		return c.binaryAs("Fmod", c.in[0], c.in[1])
	}
	return c.binaryAs("Mod", c.in[0], c.in[1])
}

func pow(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, y := c.in[0], c.in[1]
	if onDevice(x) && y.known && y.t.Len() == 1 {
		e := float32(y.t.Floats()[0])
		if len(y.shape) > len(x.shape) {
			var err error
			if x, err = c.reshaped(x, append(make([]int, 0), ones(x.shape, len(y.shape))...)); err != nil {
				return nil, err
			}
		}
		return c.onFloat(x, func(b *batch.Batch, x batch.Value) batch.Value {
			switch e {
			case 2:
				return b.Mul(x, x)
			case 1:
				return x
			case 0.5:
				return b.Sqrt(x)
			}
			return b.PowScalar(x, e)
		})
	}
	if onDevice(x) && y.kind != x.kind && y.t != nil {
		kind := x.kind
		z, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
			return host.FromFloats(kind, in[0].Floats(), in[0].Shape...), nil
		}, y)
		if err != nil {
			return nil, err
		}
		y = z[0]
	}
	return c.binaryAs("Pow", x, y)
}

// ones puts axes of 1 before a shape until it has a rank.
func ones(shape []int, rank int) []int {
	out := make([]int, 0, rank)
	for range rank - len(shape) {
		out = append(out, 1)
	}
	return append(out, shape...)
}

func compare(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, y := c.in[0], c.in[1]
	if x.kind == y.kind && (onDevice(x, y) || x.kind == host.Bool && anyOnDevice(x, y)) {
		d, err := c.devAll(x, y)
		if err != nil {
			return nil, err
		}
		return c.made(host.Bool, deviceCompare[c.Op](c.rec(), d[0], d[1]))
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Compare(c.Op, in[0], in[1]) }, x, y)
}

// logic is And, Or, Xor and Not: on the device where an operand is there.
func logic(c *call) ([]*Value, error) {
	n := 2
	if c.Op == "Not" {
		n = 1
	}
	if err := c.need(n); err != nil {
		return nil, err
	}
	for _, v := range c.in {
		if v.kind != host.Bool {
			return nil, fmt.Errorf("%s of %v: %w", c.Op, v.kind, compute.ErrDType)
		}
	}
	if anyOnDevice(c.in...) {
		d, err := c.devAll(c.in...)
		if err != nil {
			return nil, err
		}
		b := c.rec()
		switch c.Op {
		case "Not":
			return c.made(host.Bool, not(b, d[0]))
		case "And":
			return c.made(host.Bool, b.Mul(d[0], d[1]))
		case "Or":
			return c.made(host.Bool, b.Maximum(d[0], d[1]))
		}
		return c.made(host.Bool, not(b, b.Equal(d[0], d[1])))
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		if len(in) == 1 {
			return host.Unary(c.Op, in[0])
		}
		return host.Binary(c.Op, in[0], in[1])
	}, c.in...)
}

// integers are operators that exist for integers only.
func integers(c *call) ([]*Value, error) {
	if err := c.need(len(c.in)); err != nil {
		return nil, err
	}
	op := c.Op
	if op == "BitShift" {
		op = map[string]string{"LEFT": "ShiftLeft", "RIGHT": "ShiftRight"}[c.text("direction", "")]
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		if len(in) == 1 {
			return host.Unary(op, in[0])
		}
		return host.Binary(op, in[0], in[1])
	}, c.in...)
}

func isNaN(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	if onDevice(x) {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		return c.made(host.Bool, not(c.rec(), c.rec().Equal(d, d)))
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Unary("IsNaN", in[0]) }, x)
}

func isInf(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	negative, positive := c.flag("detect_negative", true), c.flag("detect_positive", true)
	if onDevice(x) {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		b := c.rec()
		up, down := b.Equal(d, b.Scalar(inf)), b.Equal(d, b.Scalar(-inf))
		if !positive {
			up = b.Scale(up, 0)
		}
		if !negative {
			down = b.Scale(down, 0)
		}
		return c.made(host.Bool, b.Maximum(up, down))
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		f := in[0].Floats()
		out := make([]float64, len(f))
		for i, v := range f {
			if math.IsInf(v, 1) && positive || math.IsInf(v, -1) && negative {
				out[i] = 1
			}
		}
		return host.FromFloats(host.Bool, out, in[0].Shape...), nil
	}, x)
}

func where(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	cond, x, y := c.in[0], c.in[1], c.in[2]
	if cond.kind != host.Bool {
		return nil, fmt.Errorf("condition of %v: %w", cond.kind, compute.ErrDType)
	}
	floats := deviceFloat(x.kind) && deviceFloat(y.kind) && !(x.known && y.known && cond.known)
	bools := x.kind == host.Bool && y.kind == host.Bool && anyOnDevice(c.in...)
	if x.kind == y.kind && (floats || bools) {
		d, err := c.devAll(cond, x, y)
		if err != nil {
			return nil, err
		}
		return c.made(x.kind, c.rec().Select(d[0], d[1], d[2]))
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Where(in[0], in[1], in[2]) }, cond, x, y)
}

func clip(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x, low, high := c.in[0], c.arg(1), c.arg(2)
	if c.Version < 11 {
		l, h := c.float("min", -math.MaxFloat32), c.float("max", math.MaxFloat32)
		return c.onFloat(x, func(b *batch.Batch, x batch.Value) batch.Value { return b.Clip(x, l, h) })
	}
	knownBound := func(v *Value) bool { return v == nil || v.known && v.t.Len() == 1 }
	if onDevice(x) && knownBound(low) && knownBound(high) {
		l, h := -inf, inf
		if low != nil {
			l = low.t.F32s()[0]
		}
		if high != nil {
			h = high.t.F32s()[0]
		}
		return c.onFloat(x, func(b *batch.Batch, x batch.Value) batch.Value { return b.Clip(x, l, h) })
	}
	out := []*Value{x}
	for i, op := range []string{"Max", "Min"} {
		if bound := c.arg(1 + i); bound != nil {
			var err error
			if out, err = c.binaryAs(op, out[0], bound); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// gelu, celu and their like, of floats on the device.
var (
	leakyRelu = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value {
		return b.LeakyReLU(x, c.float("alpha", 0.01))
	})
	elu  = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value { return b.ELU(x, c.float("alpha", 1)) })
	celu = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value {
		a := c.float("alpha", 1)
		return b.Scale(b.ELU(b.Scale(x, 1/a), 1), a)
	})
	selu = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value {
		a, g := c.float("alpha", 1.67326319217681884765625), c.float("gamma", 1.05070102214813232421875)
		return b.Scale(b.ELU(x, a), g)
	})
	gelu = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value {
		if c.text("approximate", "none") == "tanh" {
			return b.GELU(x)
		}
		return b.GELUErf(x)
	})
	hardSigmoid = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value {
		return b.Clip(b.Add(b.Scale(x, c.float("alpha", 0.2)), b.Scalar(c.float("beta", 0.5))), 0, 1)
	})
	thresholdedRelu = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value {
		return b.Select(b.Less(b.Scalar(c.float("alpha", 1)), x), x, b.Scalar(0))
	})
	shrink = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value {
		bias, lambda := b.Scalar(c.float("bias", 0)), c.float("lambd", 0.5)
		down := b.Select(b.Less(b.Scalar(lambda), x), b.Sub(x, bias), b.Scalar(0))
		return b.Select(b.Less(x, b.Scalar(-lambda)), b.Add(x, bias), down)
	})
	swish = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value {
		return b.Mul(x, b.Sigmoid(b.Scale(x, c.float("alpha", 1))))
	})
)

func cast(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	to := host.Kind(c.int("to", 0))
	if c.Op == "CastLike" {
		if err := c.need(2); err != nil {
			return nil, err
		}
		to = c.in[1].kind
	}
	return one(c.cast(c.in[0], to))
}

// cast converts a value.
func (c *call) cast(x *Value, to host.Kind) (*Value, error) {
	saturate := c.flag("saturate", true)
	up := c.text("round_mode", "up")
	if !to.Known() {
		return nil, fmt.Errorf("conversion to %v: %w", to, compute.ErrUnsupported)
	}
	if x.sequence || x.absent {
		return nil, fmt.Errorf("conversion of %v: %w", x, compute.ErrDType)
	}
	if x.kind == to {
		return x, nil
	}
	rep, _ := representation(x.kind)
	if x.t == nil && rep == compute.Float32 && (deviceFloat(to) || to == host.Bool) {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		b := c.rec()
		switch {
		case to == host.Bool:
			d = not(b, not(b, d))
		case to == host.Float16 && x.kind != host.Bool:
			d = b.Cast(b.Cast(d, compute.Float16), compute.Float32)
		case to == host.BFloat16 && x.kind != host.Bool:
			d = b.Cast(b.Cast(d, compute.BFloat16), compute.Float32)
		}
		return c.device(to, d), nil
	}
	if x.t != nil && !x.known && x.kind == host.Uint8 && deviceFloat(to) { // a picture
		return c.device(to, c.rec().Cast(c.bytes(x), compute.Float32)), nil
	}
	if n := x.kind; x.t == nil && n.IsInteger() && to.IsInteger() && to.Bits() >= n.Bits() && to.Unsigned() == n.Unsigned() {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		return c.device(to, d), nil
	}
	out, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Cast(in[0], to, saturate, up) }, x)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// optimizers are steps of training: operands are a rate, a count, then each of parameters, gradients and states.
func optimizer(c *call) ([]*Value, error) {
	states := map[string]int{"Adagrad": 1, "Momentum": 1, "Adam": 2}[c.Op]
	if err := c.need(max(len(c.in), 2)); err != nil {
		return nil, err
	}
	n := (len(c.in) - 2) / (2 + states)
	if n < 1 || len(c.in) != 2+n*(2+states) {
		return nil, fmt.Errorf("%d operands: %w", len(c.in), compute.ErrArgument)
	}
	t, err := c.number(1, 0)
	if err != nil {
		return nil, err
	}
	d, err := c.devAll(slices.Concat(c.in[:1], c.in[2:])...)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	rate := b.Reshape(d[0], []int{}...)
	decay := b.Scalar(c.float("norm_coefficient", 0))
	values, state1, state2 := make([]*Value, n), make([]*Value, n), make([]*Value, n)
	for i := range n {
		x, g, s := d[1+i], d[1+n+i], d[1+2*n+i]
		k := c.in[2+i].kind
		g = b.Add(b.Mul(decay, x), g)
		var next, s2 batch.Value
		switch c.Op {
		case "Adagrad":
			s = b.Add(s, b.Mul(g, g))
			r := b.Scale(rate, 1/(1+float32(t)*c.float("decay_factor", 0)))
			next = b.Sub(x, b.Div(b.Mul(r, g), b.Add(b.Sqrt(s), b.Scalar(c.float("epsilon", 1e-6)))))
		case "Momentum":
			alpha, beta := c.float("alpha", 0), c.float("beta", 0)
			if t == 0 {
				beta = 1
			}
			s = b.Add(b.Scale(s, alpha), b.Scale(g, beta))
			step := s
			if c.text("mode", "standard") == "nesterov" {
				step = b.Add(g, b.Scale(s, alpha))
			}
			next = b.Sub(x, b.Mul(rate, step))
		case "Adam":
			alpha, beta := c.float("alpha", 0.9), c.float("beta", 0.999)
			h := d[1+3*n+i]
			s = b.Add(b.Scale(s, alpha), b.Scale(g, 1-alpha))
			s2 = b.Add(b.Scale(h, beta), b.Scale(b.Mul(g, g), 1-beta))
			r := rate
			if t > 0 {
				r = b.Scale(rate, float32(math.Sqrt(1-math.Pow(float64(beta), t))/(1-math.Pow(float64(alpha), t))))
			}
			next = b.Sub(x, b.Div(b.Mul(r, s), b.Add(b.Sqrt(s2), b.Scalar(c.float("epsilon", 1e-6)))))
			next = b.Scale(next, 1-c.float("norm_coefficient_post", 0))
			state2[i] = c.device(k, s2)
		}
		values[i], state1[i] = c.device(k, next), c.device(k, s)
	}
	if states == 2 {
		return slices.Concat(values, state1, state2), nil
	}
	return slices.Concat(values, state1), nil
}

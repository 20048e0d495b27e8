package exec

import (
	"fmt"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// A convolution whose weights are the model's waits until something needs its result. Factors and summands of the model that follow, as
// those of a batch normalisation, become part of its weights and its bias meanwhile.

// pendingConv is a convolution that is not recorded yet.
type pendingConv struct {
	x, weights, bias *Value // bias may be nil
	window           window
	groups           int
}

// waiting makes a value of a convolution that waits.
func (c *call) waiting(p *pendingConv, shape []int) *Value {
	return &Value{kind: p.x.kind, shape: shape, kept: -1, slot: -1, conv: p}
}

// record records a convolution that waits.
func (w *walk) record(p *pendingConv) (batch.Value, error) {
	c := &call{walk: w}
	d, err := c.devAll(p.x, p.weights, p.bias)
	if err != nil {
		return batch.Value{}, err
	}
	y, err := convolve(w.rec(), d[0], d[1], p.window, p.groups)
	if err != nil {
		return batch.Value{}, err
	}
	if p.bias == nil {
		return y(nil), nil
	}
	return y(&d[2]), nil
}

// sole reports whether operand i has no other use than this one.
func (c *call) sole(i int) bool {
	_, s := c.lookup(c.Inputs[i])
	return s != nil && s.left[c.Inputs[i]] == 1 && s == c.scopes[len(c.scopes)-1]
}

// perOutput reports whether a known value is one number, or one for each channel of a result of that many axes.
func perOutput(v *Value, channels, rank int) bool {
	if v == nil || !v.known || !v.model || v.kind != host.Float {
		return false
	}
	n := v.t.Len()
	if n == 1 {
		return len(v.shape) <= rank
	}
	at := len(v.shape) - rank + 1
	return n == channels && at >= 0 && v.shape[at] == channels
}

// absorbed is a convolution with a factor and a summand for each channel, each nil or perOutput.
func (c *call) absorbed(v, factor, summand *Value) *Value {
	p := *v.conv
	channels := v.shape[1]
	if factor != nil {
		scaled := func(t *host.Tensor) *host.Tensor {
			x, f := t.F32s(), factor.t.F32s()
			out := make([]float32, len(x))
			per := len(x) / max(channels, 1)
			for i := range out {
				out[i] = x[i] * f[i/per%len(f)]
			}
			return &host.Tensor{Kind: host.Float, Shape: t.Shape, Data: out}
		}
		p.weights = c.s.derive(p.weights, fmt.Sprintf("times %p", factor.t), scaled)
		if p.bias != nil {
			p.bias = c.s.derive(p.bias, fmt.Sprintf("times %p", factor.t), scaled)
		}
	}
	if summand != nil {
		if p.bias == nil {
			p.bias = c.s.derive(summand, fmt.Sprint("for channels ", channels), func(t *host.Tensor) *host.Tensor {
				return t.Reshaped(t.Len()).Pick(host.ExpandIndex([]int{t.Len()}, []int{channels}))
			})
		} else {
			p.bias = c.s.derive(p.bias, fmt.Sprintf("plus %p", summand.t), func(t *host.Tensor) *host.Tensor {
				x, a := t.F32s(), summand.t.F32s()
				out := make([]float32, len(x))
				for i := range out {
					out[i] = x[i] + a[i%len(a)]
				}
				return &host.Tensor{Kind: host.Float, Shape: t.Shape, Data: out}
			})
		}
	}
	return c.waiting(&p, v.shape)
}

// absorb makes Mul or Add of a convolution that waits and a known operand part of it, if it can.
func (c *call) absorb(op string, x, y *Value) *Value {
	for i, v := range []*Value{x, y} {
		other := []*Value{y, x}[i]
		if v.conv == nil || !c.sole(i) || !perOutput(other, v.shape[1], len(v.shape)) || c.recorded(v) {
			continue
		}
		switch op {
		case "Mul":
			return c.absorbed(v, other, nil)
		case "Add":
			return c.absorbed(v, nil, other)
		}
	}
	return nil
}

// recorded reports whether a value is in the current stage already.
func (w *walk) recorded(v *Value) bool {
	_, ok := w.devs[v]
	return ok
}

package exec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// activationOf is an activation of a recurrent layer, with its parameters.
func activationOf(name string, alpha, beta func(def float32) float32) (unaryFunc, error) {
	switch strings.ToLower(name) {
	case "sigmoid":
		return (*batch.Batch).Sigmoid, nil
	case "tanh":
		return (*batch.Batch).Tanh, nil
	case "relu":
		return (*batch.Batch).ReLU, nil
	case "softplus":
		return (*batch.Batch).Softplus, nil
	case "softsign":
		return deviceUnary["Softsign"], nil
	case "leakyrelu":
		a := alpha(0.01)
		return func(b *batch.Batch, x batch.Value) batch.Value { return b.LeakyReLU(x, a) }, nil
	case "elu":
		a := alpha(1)
		return func(b *batch.Batch, x batch.Value) batch.Value { return b.ELU(x, a) }, nil
	case "thresholdedrelu":
		a := alpha(1)
		return func(b *batch.Batch, x batch.Value) batch.Value {
			return b.Select(b.Less(b.Scalar(a), x), x, b.Scalar(0))
		}, nil
	case "hardsigmoid":
		a, s := alpha(0.2), beta(0.5)
		return func(b *batch.Batch, x batch.Value) batch.Value {
			return b.Clip(b.Add(b.Scale(x, a), b.Scalar(s)), 0, 1)
		}, nil
	case "scaledtanh":
		a, s := alpha(1), beta(1)
		return func(b *batch.Batch, x batch.Value) batch.Value { return b.Scale(b.Tanh(b.Scale(x, s)), a) }, nil
	case "affine":
		a, s := alpha(1), beta(0)
		return func(b *batch.Batch, x batch.Value) batch.Value { return b.Add(b.Scale(x, a), b.Scalar(s)) }, nil
	}
	return nil, fmt.Errorf("activation %q: %w", name, compute.ErrUnsupported)
}

// recurrent is LSTM, GRU and RNN: steps of products, unrolled.
func recurrent(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	gates := map[string]int{"LSTM": 4, "GRU": 3, "RNN": 1}[c.Op]
	x, w, r, bias, lengths, h0 := c.in[0], c.in[1], c.in[2], c.arg(3), c.arg(4), c.arg(5)
	var c0, peephole *Value
	if c.Op == "LSTM" {
		c0, peephole = c.arg(6), c.arg(7)
	}
	if len(x.shape) != 3 || len(w.shape) != 3 || len(r.shape) != 3 || !deviceFloat(x.kind) {
		return nil, fmt.Errorf("%v with %v and %v: %w", x, w, r, compute.ErrShape)
	}
	directions, hidden, size := r.shape[0], r.shape[2], x.shape[2]
	if w.shape[0] != directions || w.shape[1] != gates*hidden || w.shape[2] != size || r.shape[1] != gates*hidden || directions < 1 || directions > 2 {
		return nil, fmt.Errorf("%v with %v and %v: %w", x, w, r, compute.ErrShape)
	}
	steps, n := x.shape[0], x.shape[1]
	layout := c.int("layout", 0) == 1
	if layout {
		steps, n = n, steps
	}
	var mask *host.Tensor // [steps, n, 1]: 1 where a sequence goes on
	if lengths != nil {
		t, err := c.constant(lengths)
		if err != nil {
			return nil, err
		}
		all := true
		m := make([]float32, steps*n)
		if t.Len() != n {
			return nil, fmt.Errorf("%d lengths of %d sequences: %w", t.Len(), n, compute.ErrShape)
		}
		for i, l := range t.Ints() {
			if l < 0 || l > int64(steps) {
				return nil, fmt.Errorf("length %d of %d steps: %w", l, steps, compute.ErrArgument)
			}
			for s := range steps {
				if int64(s) < l {
					m[s*n+i] = 1
				} else {
					all = false
				}
			}
		}
		if !all {
			mask = &host.Tensor{Kind: host.Float, Shape: []int{steps, n, 1}, Data: m}
		}
	}
	d, err := c.devAll(x, w, r, bias, h0, c0, peephole)
	if err != nil {
		return nil, err
	}
	var m batch.Value
	if mask != nil {
		if m, err = c.dev(constant(mask)); err != nil {
			return nil, err
		}
	}
	b := c.rec()
	xs := d[0]
	first := func(v batch.Value, perm ...int) batch.Value {
		if layout {
			return b.Transpose(v, compute.TransposeOptions{Perm: perm})
		}
		return v
	}
	xs = first(xs, 1, 0, 2)
	names := c.texts("activations")
	if names == nil {
		for range directions {
			names = append(names, map[string][]string{"LSTM": {"Sigmoid", "Tanh", "Tanh"}, "GRU": {"Sigmoid", "Tanh"}, "RNN": {"Tanh"}}[c.Op]...)
		}
	}
	perDirection := map[string]int{"LSTM": 3, "GRU": 2, "RNN": 1}[c.Op]
	if len(names) != directions*perDirection {
		return nil, fmt.Errorf("activations %v: %w", names, compute.ErrArgument)
	}
	alphas, betas := c.floats("activation_alpha"), c.floats("activation_beta")
	take := func(list *[]float32) func(float32) float32 {
		return func(def float32) float32 {
			if len(*list) == 0 {
				return def
			}
			v := (*list)[0]
			*list = (*list)[1:]
			return v
		}
	}
	var acts []unaryFunc
	for _, name := range names {
		f, err := activationOf(name, take(&alphas), take(&betas))
		if err != nil {
			return nil, err
		}
		if limit := c.float("clip", 0); limit > 0 {
			g := f
			f = func(b *batch.Batch, x batch.Value) batch.Value { return g(b, b.Clip(x, -limit, limit)) }
		}
		acts = append(acts, f)
	}
	l := layer{b: b, op: c.Op, gates: gates, hidden: hidden, n: n, steps: steps, linearBeforeReset: c.int("linear_before_reset", 0) != 0,
		coupled: c.int("input_forget", 0) != 0, masked: mask != nil, mask: m}
	var ys, hs, cs []batch.Value
	for dir := range directions {
		pick := func(v batch.Value) batch.Value {
			shape := b.Shape(v)
			if directions == 1 {
				return b.Reshape(v, shape[1:]...)
			}
			start, size := make([]int, len(shape)), slices.Clone(shape)
			start[0], size[0] = dir, 1
			return b.Reshape(b.Slice(v, compute.SliceOptions{Start: start, Size: size}), shape[1:]...)
		}
		l.w, l.r, l.acts = pick(d[1]), pick(d[2]), acts[dir*perDirection:][:perDirection]
		l.bias, l.peephole = nil, nil
		if bias != nil {
			v := pick(d[3])
			l.bias = &v
		}
		if peephole != nil {
			v := pick(d[6])
			l.peephole = &v
		}
		state := func(v *Value, x batch.Value) batch.Value {
			if v == nil {
				return b.Fill(0, n, hidden)
			}
			return pick(first(x, 1, 0, 2))
		}
		h, cell := state(h0, d[4]), batch.Value{}
		if c.Op == "LSTM" {
			cell = state(c0, d[5])
		}
		back := c.text("direction", "forward") == "reverse" || dir == 1
		y, h, cell := l.run(xs, h, cell, back)
		ys, hs = append(ys, b.Reshape(y, steps, 1, n, hidden)), append(hs, b.Reshape(h, 1, n, hidden))
		if c.Op == "LSTM" {
			cs = append(cs, b.Reshape(cell, 1, n, hidden))
		}
	}
	y := b.Concat(1, ys...)
	if layout {
		y = b.Transpose(y, compute.TransposeOptions{Perm: []int{2, 0, 1, 3}})
	}
	out := []*Value{c.device(x.kind, y), c.device(x.kind, first(b.Concat(0, hs...), 1, 0, 2))}
	if c.Op == "LSTM" {
		out = append(out, c.device(x.kind, first(b.Concat(0, cs...), 1, 0, 2)))
	}
	return out, nil
}

// layer is one direction.
type layer struct {
	b                          *batch.Batch
	op                         string
	gates, hidden, n, steps    int
	w, r                       batch.Value
	bias, peephole             *batch.Value // [2·gates·hidden], [3·hidden]
	acts                       []unaryFunc
	linearBeforeReset, coupled bool
	masked                     bool
	mask                       batch.Value
}

// columns are part i of equal parts of the last axis.
func (l *layer) columns(x batch.Value, i, width int) batch.Value {
	shape := l.b.Shape(x)
	start := make([]int, len(shape))
	start[len(shape)-1] = i * width
	shape[len(shape)-1] = width
	return l.b.Slice(x, compute.SliceOptions{Start: start, Size: shape})
}

func (l *layer) run(xs, h, c batch.Value, back bool) (y, hn, cn batch.Value) {
	b := l.b
	wide := l.gates * l.hidden
	size := b.Shape(xs)[2]
	input := b.MatMul(b.Reshape(xs, l.steps*l.n, size), l.w, compute.MatMulOptions{TransB: true}) // of all steps at once
	var rb *batch.Value
	if l.bias != nil {
		wb, v := l.columns(*l.bias, 0, wide), l.columns(*l.bias, 1, wide)
		if l.op == "GRU" {
			input, rb = b.Add(input, wb), &v
		} else {
			input = b.Add(input, b.Add(wb, v))
		}
	}
	input = b.Reshape(input, l.steps, l.n, wide)
	outputs := make([]batch.Value, l.steps)
	for k := range l.steps {
		t := k
		if back {
			t = l.steps - 1 - k
		}
		x := b.Reshape(b.Slice(input, compute.SliceOptions{Start: []int{t, 0, 0}, Size: []int{1, l.n, wide}}), l.n, wide)
		h2, c2 := l.step(x, h, c, rb)
		out := h2
		if l.masked {
			m := b.Reshape(b.Slice(l.mask, compute.SliceOptions{Start: []int{t, 0, 0}, Size: []int{1, l.n, 1}}), l.n, 1)
			out = b.Select(m, h2, b.Scalar(0))
			h2 = b.Select(m, h2, h)
			if l.op == "LSTM" {
				c2 = b.Select(m, c2, c)
			}
		}
		h, c = h2, c2
		outputs[t] = b.Reshape(out, 1, l.n, l.hidden)
	}
	return b.Concat(0, outputs...), h, c
}

// step computes the next states from the products of the input.
func (l *layer) step(x, h, c batch.Value, rb *batch.Value) (h2, c2 batch.Value) {
	b, n := l.b, l.hidden
	trans := compute.MatMulOptions{TransB: true}
	switch l.op {
	case "RNN":
		return l.acts[0](b, b.Add(x, b.MatMul(h, l.r, trans))), c
	case "LSTM": // i, o, f, c
		g := b.Add(x, b.MatMul(h, l.r, trans))
		in, out, forget, cell := l.columns(g, 0, n), l.columns(g, 1, n), l.columns(g, 2, n), l.columns(g, 3, n)
		if l.peephole != nil {
			in = b.Add(in, b.Mul(l.columns(*l.peephole, 0, n), c))
			forget = b.Add(forget, b.Mul(l.columns(*l.peephole, 2, n), c))
		}
		in = l.acts[0](b, in)
		if l.coupled {
			forget = b.Sub(b.Scalar(1), in)
		} else {
			forget = l.acts[0](b, forget)
		}
		c2 = b.Add(b.Mul(forget, c), b.Mul(in, l.acts[1](b, cell)))
		if l.peephole != nil {
			out = b.Add(out, b.Mul(l.columns(*l.peephole, 1, n), c2))
		}
		return b.Mul(l.acts[0](b, out), l.acts[2](b, c2)), c2
	}
	// GRU: z, r, h
	rows := func(i int) batch.Value {
		return b.Slice(l.r, compute.SliceOptions{Start: []int{i * n, 0}, Size: []int{n, n}})
	}
	gate := func(i int) batch.Value {
		g := b.Add(l.columns(x, i, n), b.MatMul(h, rows(i), trans))
		if rb != nil {
			g = b.Add(g, l.columns(*rb, i, n))
		}
		return l.acts[0](b, g)
	}
	z, r := gate(0), gate(1)
	var inner batch.Value
	if l.linearBeforeReset {
		inner = b.MatMul(h, rows(2), trans)
		if rb != nil {
			inner = b.Add(inner, l.columns(*rb, 2, n))
		}
		inner = b.Mul(r, inner)
	} else {
		inner = b.MatMul(b.Mul(r, h), rows(2), trans)
		if rb != nil {
			inner = b.Add(inner, l.columns(*rb, 2, n))
		}
	}
	hh := l.acts[1](b, b.Add(l.columns(x, 2, n), inner))
	return b.Lerp(hh, h, z), c
}

package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// heads brings [batch, sequence, heads·size] to [batch, heads, sequence, size].
func (c *call) heads(x *Value, n int) (*Value, error) {
	if len(x.shape) == 4 {
		return x, nil
	}
	if len(x.shape) != 3 || n < 1 || x.shape[2]%n != 0 {
		return nil, fmt.Errorf("%v in %d heads: %w", x, n, compute.ErrShape)
	}
	y, err := c.reshaped(x, []int{x.shape[0], x.shape[1], n, x.shape[2] / n})
	if err != nil {
		return nil, err
	}
	return c.transposed(y, []int{0, 2, 1, 3})
}

// scores multiplies queries and keys of which several heads of queries share one of keys.
func scores(b *batch.Batch, q, k batch.Value) batch.Value {
	sq, sk := b.Shape(q), b.Shape(k)
	group := sq[1] / sk[1]
	y := b.MatMul(b.Reshape(q, sq[0]*sk[1], group*sq[2], sq[3]), b.Reshape(k, sk[0]*sk[1], sk[2], sk[3]), compute.MatMulOptions{TransB: true})
	return b.Reshape(y, sq[0], sq[1], sq[2], sk[2])
}

// weighted multiplies probabilities and values.
func weighted(b *batch.Batch, p, v batch.Value) batch.Value {
	sp, sv := b.Shape(p), b.Shape(v)
	group := sp[1] / sv[1]
	y := b.MatMul(b.Reshape(p, sp[0]*sv[1], group*sp[2], sp[3]), b.Reshape(v, sv[0]*sv[1], sv[2], sv[3]))
	return b.Reshape(y, sp[0], sp[1], sp[2], sv[3])
}

func checkHeads(q, k, v *Value) error {
	ok := len(q.shape) == 4 && len(k.shape) == 4 && len(v.shape) == 4 && k.shape[1] > 0 && q.shape[1]%max(k.shape[1], 1) == 0 && q.shape[0] == k.shape[0] &&
		q.shape[0] == v.shape[0] && k.shape[1] == v.shape[1] && k.shape[2] == v.shape[2] && q.shape[3] == k.shape[3]
	if !ok || !deviceFloat(q.kind) || q.kind != k.kind || !deviceFloat(v.kind) {
		return fmt.Errorf("attention of %v, %v, %v: %w", q, k, v, compute.ErrShape)
	}
	return nil
}

func attention(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	flat := len(c.in[0].shape) == 3
	q, err := c.heads(c.in[0], int(c.int("q_num_heads", 0)))
	if err != nil {
		return nil, err
	}
	k, err := c.heads(c.in[1], int(c.int("kv_num_heads", 0)))
	if err != nil {
		return nil, err
	}
	v, err := c.heads(c.in[2], int(c.int("kv_num_heads", 0)))
	if err != nil {
		return nil, err
	}
	past := 0
	if pk, pv := c.arg(4), c.arg(5); pk != nil && pv != nil {
		if len(pk.shape) == 4 {
			past = pk.shape[2]
		}
		if k, err = c.joined(2, []*Value{pk, k}); err == nil {
			v, err = c.joined(2, []*Value{pv, v})
		}
		if err != nil {
			return nil, err
		}
	}
	if err := checkHeads(q, k, v); err != nil {
		return nil, err
	}
	unpin := c.pin(q, k, v)
	place, err := c.placeMask(q, k, past)
	unpin()
	if err != nil {
		return nil, err
	}
	mask := c.arg(3)
	if mask != nil && len(mask.shape) > 0 {
		if missing := k.shape[2] - mask.shape[len(mask.shape)-1]; missing > 0 && mask.shape[len(mask.shape)-1] != 1 {
			after := make([]int, len(mask.shape))
			after[len(after)-1] = missing
			fill := constant(host.FromFloats(mask.kind, []float64{0}))
			if mask.kind != host.Bool {
				fill = constant(host.FromFloats(mask.kind, []float64{math.Inf(-1)}))
			}
			m, err := c.padded(mask, make([]int, len(after)), after, "constant", fill)
			if err != nil {
				return nil, err
			}
			mask = m[0]
		}
	}
	if mask != nil && mask.kind != host.Bool && !deviceFloat(mask.kind) {
		return nil, fmt.Errorf("mask of %v: %w", mask.kind, compute.ErrDType)
	}
	d, err := c.devAll(q, k, v, mask, place)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	scale := c.float("scale", 0)
	if !c.has("scale") {
		scale = float32(1 / math.Sqrt(float64(q.shape[3])))
	}
	s := b.Scale(scores(b, d[0], d[1]), scale)
	shape := []int{q.shape[0], q.shape[1], q.shape[2], k.shape[2]}
	shown := s
	mode := c.int("qk_matmul_output_mode", 0)
	if cap := c.float("softcap", 0); cap != 0 {
		s = b.Scale(b.Tanh(b.Scale(s, 1/cap)), cap)
	}
	if mode == 1 {
		shown = s
	}
	if mask != nil {
		if mask.kind == host.Bool {
			s = b.Select(d[3], s, b.Scalar(-inf))
		} else {
			s = b.Add(s, d[3])
		}
	}
	if place != nil {
		s = b.Select(d[4], s, b.Scalar(-inf))
	}
	if mode == 2 {
		shown = s
	}
	p := b.Softmax(s)
	if mask != nil || place != nil { // a query that sees nothing gives zeros
		seen := b.Less(b.Scalar(-inf), b.Reshape(b.Max(s, compute.LastAxis), append(slices.Clone(shape[:3]), 1)...))
		p = b.Select(seen, p, b.Scalar(0))
	}
	if mode == 3 {
		shown = p
	}
	y := weighted(b, p, d[2])
	if flat {
		y = b.Reshape(b.Transpose(y, compute.TransposeOptions{Perm: []int{0, 2, 1, 3}}), q.shape[0], q.shape[2], q.shape[1]*v.shape[3])
	}
	return []*Value{c.device(q.kind, y), k, v, c.device(q.kind, shown)}, nil
}

// placeMask is 1 where a query sees a key by their positions, or nil where all see all: [batch or 1, 1, queries, keys].
func (c *call) placeMask(q, k *Value, past int) (*Value, error) {
	causal := c.int("is_causal", 0) != 0
	left, right := c.int("left_window_size", -1), c.int("right_window_size", -1)
	lengths := c.arg(6)
	if !causal && left < 0 && right < 0 && lengths == nil {
		return nil, nil
	}
	n, queries, keys := 1, q.shape[2], k.shape[2]
	if lengths != nil {
		n = q.shape[0]
	}
	make1 := func(valid []int64) *host.Tensor {
		m := make([]float32, n*queries*keys)
		for b := range n {
			offset, count := int64(past), int64(keys)
			if valid != nil {
				offset, count = valid[b]-int64(queries), valid[b]
			}
			for i := range queries {
				at := int64(i) + offset
				for j := range keys {
					j64 := int64(j)
					if j64 < count && (!causal || j64 <= at) && (left < 0 || j64 >= at-left) && (right < 0 || j64 <= at+right) {
						m[(b*queries+i)*keys+j] = 1
					}
				}
			}
		}
		return &host.Tensor{Kind: host.Float, Shape: []int{n, 1, queries, keys}, Data: m}
	}
	if lengths == nil {
		return constant(make1(nil)), nil
	}
	out, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		if in[0].Len() != n {
			return nil, fmt.Errorf("%d lengths of %d sequences: %w", in[0].Len(), n, compute.ErrShape)
		}
		return make1(in[0].Ints()), nil
	}, lengths)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func flexAttention(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	q, k, v := c.in[0], c.in[1], c.in[2]
	if err := checkHeads(q, k, v); err != nil {
		return nil, err
	}
	d, err := c.devAll(q, k)
	if err != nil {
		return nil, err
	}
	scale := c.float("scale", float32(1/math.Sqrt(float64(q.shape[3]))))
	precision := host.Kind(c.int("softmax_precision", int64(host.Float)))
	defer c.pin(v)()
	modified := func(name string, x *Value) (*Value, error) {
		g := c.graphs[name]
		if g == nil {
			return x, nil
		}
		out, err := c.graph(g, []*Value{x})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(out) != 1 || out[0] == nil || !slices.Equal(out[0].shape, x.shape) {
			return nil, fmt.Errorf("%s gives another shape: %w", name, compute.ErrShape)
		}
		return out[0], nil
	}
	s, err := modified("score_mod", c.device(precision, c.rec().Scale(scores(c.rec(), d[0], d[1]), scale)))
	if err != nil {
		return nil, err
	}
	x, err := c.dev(s)
	if err != nil {
		return nil, err
	}
	p, err := modified("prob_mod", c.device(precision, c.rec().Softmax(x)))
	if err != nil {
		return nil, err
	}
	if d, err = c.devAll(p, v); err != nil {
		return nil, err
	}
	return c.made(q.kind, weighted(c.rec(), d[0], d[1]))
}

// rotary turns pairs of elements of each head by angles whose cosines and sines are given.
func rotary(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, cosines, sines, positions := c.in[0], c.in[1], c.in[2], c.arg(3)
	if c.Domain != "" { // com.microsoft: x, position_ids, cos, sin
		if err := c.need(4); err != nil {
			return nil, err
		}
		cosines, sines, positions = c.in[2], c.in[3], c.in[1]
	}
	flat := len(x.shape) == 3
	n := int(c.int("num_heads", 0))
	if flat && n == 0 && c.Domain != "" && len(cosines.shape) == 2 && cosines.shape[1] > 0 {
		n = x.shape[2] / (2 * cosines.shape[1])
	}
	h, err := c.heads(x, n)
	if err != nil {
		return nil, err
	}
	if len(h.shape) != 4 || !deviceFloat(x.kind) {
		return nil, fmt.Errorf("rotation of %v: %w", x, compute.ErrShape)
	}
	size := h.shape[3]
	dims := int(c.int("rotary_embedding_dim", 0))
	if dims == 0 {
		dims = size
	}
	if dims < 2 || dims%2 != 0 || dims > size {
		return nil, fmt.Errorf("rotation of %d of %d elements: %w", dims, size, compute.ErrShape)
	}
	half := dims / 2
	if positions != nil {
		if c.Domain != "" && host.Len(positions.shape) == 1 { // the first of consecutive ones
			steps := h.shape[2]
			p, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
				first, out := in[0].Ints()[0], make([]int64, steps)
				for i := range out {
					out[i] = first + int64(i)
				}
				return host.OfInts(out, 1, steps), nil
			}, positions)
			if err != nil {
				return nil, err
			}
			positions = p[0]
		}
		rows := func(table *Value) (*Value, error) {
			if len(table.shape) != 2 {
				return nil, fmt.Errorf("table %v: %w", table, compute.ErrShape)
			}
			out, err := c.gathered(table, positions, 0)
			if err != nil {
				return nil, err
			}
			return out[0], nil
		}
		unpin := c.pin(h, sines)
		cosines, err = rows(cosines)
		unpin()
		if err != nil {
			return nil, err
		}
		unpin = c.pin(h, cosines)
		sines, err = rows(sines)
		unpin()
		if err != nil {
			return nil, err
		}
	}
	if len(cosines.shape) != 3 || cosines.shape[2] != half || !slices.Equal(cosines.shape, sines.shape) {
		return nil, fmt.Errorf("cosines %v and sines %v for %d elements: %w", cosines, sines, dims, compute.ErrShape)
	}
	y, err := c.turn(h, cosines, sines, dims, c.int("interleaved", 0) != 0)
	if err != nil || !flat {
		return one(y, err)
	}
	if y, err = c.transposed(y, []int{0, 2, 1, 3}); err != nil {
		return nil, err
	}
	return one(c.reshaped(y, x.shape))
}

// turn rotates pairs of the first elements of heads [batch, heads, steps, size] by cosines and sines [batch or 1, steps, dims/2].
func (c *call) turn(h, cosines, sines *Value, dims int, interleaved bool) (*Value, error) {
	d, err := c.devAll(h, cosines, sines)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	s, half, size := h.shape, dims/2, h.shape[3]
	co, si := b.Reshape(d[1], cosines.shape[0], 1, cosines.shape[1], half), b.Reshape(d[2], cosines.shape[0], 1, cosines.shape[1], half)
	part := func(start, count, step int) batch.Value {
		return b.Slice(d[0], compute.SliceOptions{Start: []int{0, 0, 0, start}, Size: []int{s[0], s[1], s[2], count}, Step: []int{1, 1, 1, step}})
	}
	x1, x2 := part(0, half, 1), part(half, half, 1)
	if interleaved {
		step := 2
		if half == 1 {
			step = 1
		}
		x1, x2 = part(0, half, step), part(1, half, step)
	}
	y1, y2 := b.Sub(b.Mul(co, x1), b.Mul(si, x2)), b.Add(b.Mul(si, x1), b.Mul(co, x2))
	var y batch.Value
	if interleaved {
		column := []int{s[0], s[1], s[2], half, 1}
		y = b.Reshape(b.Concat(4, b.Reshape(y1, column...), b.Reshape(y2, column...)), s[0], s[1], s[2], dims)
	} else {
		y = b.Concat(3, y1, y2)
	}
	if dims < size {
		y = b.Concat(3, y, part(dims, size-dims, 1))
	}
	return c.device(h.kind, y), nil
}

// linearAttention keeps a matrix for each head as its state and updates it for each position.
func linearAttention(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	hq, hk := int(c.int("q_num_heads", 0)), int(c.int("kv_num_heads", 0))
	q, err := c.heads(c.in[0], hq)
	if err != nil {
		return nil, err
	}
	k, err := c.heads(c.in[1], hk)
	if err != nil {
		return nil, err
	}
	v, err := c.heads(c.in[2], hk)
	if err != nil {
		return nil, err
	}
	if err := checkHeads(q, k, v); err != nil {
		return nil, err
	}
	rule := c.text("update_rule", "gated_delta")
	gated, delta := rule == "gated" || rule == "gated_delta", rule == "delta" || rule == "gated_delta"
	state, decay, beta := c.arg(3), c.arg(4), c.arg(5)
	if gated && decay == nil || delta && beta == nil {
		return nil, fmt.Errorf("%s needs decay or beta: %w", rule, compute.ErrArgument)
	}
	n, steps, dk, dv := q.shape[0], q.shape[2], q.shape[3], v.shape[3]
	scale := c.float("scale", 0)
	if scale == 0 {
		scale = float32(1 / math.Sqrt(float64(dk)))
	}
	d, err := c.devAll(q, k, v, state, decay, beta)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	s := b.Fill(0, n*hk, dk, dv)
	kind := q.kind
	if state != nil {
		kind = state.kind
		s = b.Reshape(d[3], n*hk, dk, dv)
	}
	at := func(x batch.Value, t int) batch.Value { // [n, heads, steps, size] to [n, heads, size]
		sh := b.Shape(x)
		return b.Reshape(b.Slice(x, compute.SliceOptions{Start: []int{0, 0, t, 0}, Size: []int{sh[0], sh[1], 1, sh[3]}}), sh[0], sh[1], sh[3])
	}
	perStep := func(x batch.Value, v *Value, t int) batch.Value { // [n, steps, columns] to [n, columns]
		return b.Reshape(b.Slice(x, compute.SliceOptions{Start: []int{0, t, 0}, Size: []int{v.shape[0], 1, v.shape[2]}}), v.shape[0], v.shape[2])
	}
	group := hq / hk
	outputs := make([]batch.Value, steps)
	for t := range steps {
		kt, vt, qt := at(d[1], t), at(d[2], t), at(d[0], t)
		if gated {
			g := b.Exp(perStep(d[4], decay, t))
			if decay.shape[2] == hk*dk && dk != 1 {
				g = b.Reshape(g, n*hk, dk, 1)
			} else {
				g = b.Reshape(g, n*hk, 1, 1)
			}
			s = b.Mul(s, g)
		}
		row := b.Reshape(vt, n*hk, 1, dv)
		if delta {
			row = b.Sub(row, b.MatMul(b.Reshape(kt, n*hk, 1, dk), s))
			r := perStep(d[5], beta, t)
			if beta.shape[2] == 1 {
				r = expanded(b, r, []int{n, hk})
			}
			row = b.Mul(row, b.Reshape(r, n*hk, 1, 1))
		}
		s = b.Add(s, b.Mul(b.Reshape(kt, n*hk, dk, 1), row))
		o := b.Scale(b.MatMul(b.Reshape(qt, n*hk, group, dk), s), scale)
		outputs[t] = b.Reshape(o, n, 1, hq*dv)
	}
	y := b.Fill(0, n, 0, hq*dv)
	if steps > 0 {
		y = b.Concat(1, outputs...)
	}
	return []*Value{c.device(q.kind, y), c.device(kind, b.Reshape(s, n, hk, dk, dv))}, nil
}

func causalConv(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, w, bias, past := c.in[0], c.in[1], c.arg(2), c.arg(3)
	if len(x.shape) != 3 || len(w.shape) != 3 || w.shape[0] != x.shape[1] || w.shape[1] != 1 || w.shape[2] < 1 || !deviceFloat(x.kind) {
		return nil, fmt.Errorf("convolution of %v with %v: %w", x, w, compute.ErrShape)
	}
	d, err := c.devAll(x, w, bias, past)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	n, ch, state := x.shape[0], x.shape[1], w.shape[2]-1
	whole := d[0]
	if state > 0 {
		before := b.Fill(0, n, ch, state)
		if past != nil {
			before = d[3]
		}
		whole = b.Concat(2, before, whole)
	}
	o := compute.Conv1DOptions{Groups: ch}
	if act := c.text("activation", "none"); act == "silu" || act == "swish" {
		o.Act = compute.SiLU
	}
	y := b.Fill(0, x.shape...)
	switch {
	case x.shape[2] == 0:
	case bias != nil:
		y = b.Conv1DWithBias(whole, d[1], d[2], o)
	default:
		y = b.Conv1D(whole, d[1], o)
	}
	last := b.Slice(whole, compute.SliceOptions{Start: []int{0, 0, x.shape[2]}, Size: []int{n, ch, state}})
	return []*Value{c.device(x.kind, y), c.device(x.kind, last)}, nil
}

func swiglu(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	if !deviceFloat(c.in[0].kind) || c.in[0].kind != c.in[1].kind {
		return nil, fmt.Errorf("SwiGLU of %v: %w", c.in[0].kind, compute.ErrDType)
	}
	d, err := c.devAll(c.in[:2]...)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	if a := c.float("alpha", 1); a != 1 {
		return c.made(c.in[0].kind, b.Mul(b.Mul(d[0], b.Sigmoid(b.Scale(d[0], a))), d[1]))
	}
	return c.made(c.in[0].kind, b.SwiGLU(d[0], d[1]))
}

func tensorScatter(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	past, update, at := c.in[0], c.in[1], c.arg(2)
	axis, err := c.axis("axis", -2, len(past.shape))
	if err != nil || len(past.shape) != len(update.shape) || axis == 0 {
		return nil, fmt.Errorf("updates %v of %v: %w", update, past, compute.ErrShape)
	}
	if at == nil {
		at = constant(host.New(host.Int64, past.shape[0]))
	}
	circular := c.text("mode", "linear") == "circular"
	return c.scattered(past, at, update, "none", func(indices *host.Tensor) (host.Index, error) {
		first := indices.Ints()
		st := host.Strides(past.shape)
		index := host.Index{Shape: update.shape, From: make([]int, host.Len(update.shape))}
		if len(first) != past.shape[0] || update.shape[0] > past.shape[0] {
			return index, fmt.Errorf("%d indices for %v: %w", len(first), past, compute.ErrShape)
		}
		var err error
		host.Positions(update.shape, func(i int, pos []int) {
			to := 0
			for d, p := range pos {
				if d == axis {
					p64 := first[pos[0]] + int64(p)
					if circular {
						p64 %= int64(past.shape[axis])
					}
					if p64 < 0 || p64 >= int64(past.shape[axis]) {
						err = fmt.Errorf("position %d of %d: %w", p64, past.shape[axis], compute.ErrArgument)
						p64 = 0
					}
					p = int(p64)
				} else if p >= past.shape[d] {
					err = fmt.Errorf("updates %v of %v: %w", update, past, compute.ErrShape)
					p = 0
				}
				to += p * st[d]
			}
			index.From[i] = to
		})
		return index, err
	})
}

package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Operators of the domain com.microsoft that exported transformers have.

// fusedMatMul multiplies with transposed operands and a factor.
func fusedMatMul(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, y := c.in[0], c.in[1]
	turned := func(v *Value, name string) (*Value, error) {
		n := len(v.shape)
		if c.int(name, 0) == 0 || n < 2 {
			return v, nil
		}
		perm := make([]int, n)
		for d := range perm {
			perm[d] = d
		}
		perm[n-1], perm[n-2] = n-2, n-1
		return c.transposed(v, perm)
	}
	x, err := turned(x, "transA")
	if err == nil {
		y, err = turned(y, "transB")
	}
	if err != nil {
		return nil, err
	}
	z, err := c.multiplied(x, y)
	if alpha := c.float("alpha", 1); err == nil && alpha != 1 {
		return c.onFloat(z[0], func(b *batch.Batch, x batch.Value) batch.Value { return b.Scale(x, alpha) })
	}
	return z, err
}

// skipNorm normalises the sum of its operands: mean, deviation and the sum itself are further results.
func skipNorm(simplified bool) func(c *call) ([]*Value, error) {
	return func(c *call) ([]*Value, error) {
		if err := c.need(3); err != nil {
			return nil, err
		}
		x, skip, gamma := c.in[0], c.in[1], c.in[2]
		var beta, bias *Value
		if simplified {
			bias = c.arg(3)
		} else {
			beta, bias = c.arg(3), c.arg(4)
		}
		if len(x.shape) == 0 || !deviceFloat(x.kind) || len(gamma.shape) != 1 || gamma.shape[0] != x.shape[len(x.shape)-1] {
			return nil, fmt.Errorf("normalisation of %v by %v: %w", x, gamma, compute.ErrShape)
		}
		d, err := c.devAll(x, skip, gamma, beta, bias)
		if err != nil {
			return nil, err
		}
		b := c.rec()
		sum := b.Add(d[0], d[1])
		if bias != nil {
			sum = b.Add(sum, d[4])
		}
		eps := c.float("epsilon", 1e-12)
		var y batch.Value
		switch {
		case simplified:
			y = b.RMSNorm(sum, d[2], eps)
		case beta != nil:
			y = b.LayerNorm(sum, d[2], d[3], eps)
		default:
			y = b.LayerNorm(sum, d[2], b.Fill(0, gamma.shape...), eps)
		}
		out := []*Value{c.device(x.kind, y), nil, nil, c.device(x.kind, sum)}
		return out, nil
	}
}

// biasGelu is gelu of a sum.
func biasGelu(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	d, err := c.devAll(c.in[:2]...)
	if err != nil {
		return nil, err
	}
	return c.made(c.in[0].kind, c.rec().GELUErf(c.rec().Add(d[0], d[1])))
}

// fastGeluBias is gelu in its tanh form, of a sum if there is a bias.
func fastGeluBias(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	d, err := c.devAll(c.in[0], c.arg(1))
	if err != nil {
		return nil, err
	}
	x := d[0]
	if c.arg(1) != nil {
		x = c.rec().Add(x, d[1])
	}
	return c.made(c.in[0].kind, c.rec().GELU(x))
}

// quickGelu is x·sigmoid(alpha·x).
var quickGelu = float(func(c *call, b *batch.Batch, x batch.Value) batch.Value {
	return b.Mul(x, b.Sigmoid(b.Scale(x, c.float("alpha", 1.702))))
})

// matMulNBits multiplies with weights of 2 to 8 bits in blocks along k, which are brought to floats once.
func matMulNBits(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, w, scales, zeros := c.in[0], c.in[1], c.in[2], c.arg(3)
	k, n, bits, block := int(c.int("K", 0)), int(c.int("N", 0)), int(c.int("bits", 4)), int(c.int("block_size", 32))
	if k < 1 || n < 1 || (bits != 2 && bits != 4 && bits != 8) || block < 1 || k > host.Most/n || !deviceFloat(x.kind) || len(x.shape) == 0 || x.shape[len(x.shape)-1] != k {
		return nil, fmt.Errorf("%v times %d × %d weights of %d bits in blocks of %d: %w", x, k, n, bits, block, compute.ErrShape)
	}
	if !w.known || !scales.known || zeros != nil && !zeros.known {
		return nil, fmt.Errorf("weights that depend on data: %w", compute.ErrUnsupported)
	}
	blocks := (k + block - 1) / block
	per := 8 / bits
	bytes, bytesZero := (block+per-1)/per, (blocks+per-1)/per
	raw, ok := w.t.Data.([]uint8)
	if !ok || len(raw) != n*blocks*bytes || scales.t.Len() != n*blocks {
		return nil, fmt.Errorf("weights %v and scales %v of %d × %d: %w", w, scales, k, n, compute.ErrShape)
	}
	s := scales.t.Floats()
	zero := func(row, b int) float64 { return float64(int(1) << (bits - 1)) }
	if zeros != nil {
		switch z := zeros.t.Data.(type) {
		case []uint8:
			if len(z) != n*bytesZero {
				return nil, fmt.Errorf("zero points %v of %d × %d: %w", zeros, n, blocks, compute.ErrShape)
			}
			zero = func(row, b int) float64 { return float64(part(z[row*bytesZero:], b, bits)) }
		default:
			f := zeros.t.Floats()
			if len(f) != n*blocks {
				return nil, fmt.Errorf("zero points %v of %d × %d: %w", zeros, n, blocks, compute.ErrShape)
			}
			zero = func(row, b int) float64 { return f[row*blocks+b] }
		}
	}
	weights := c.s.derive(w, fmt.Sprint("floats", bits, block, k), func(*host.Tensor) *host.Tensor {
		out := make([]float32, n*k)
		for row := range n {
			for b := range blocks {
				data, z, f := raw[(row*blocks+b)*bytes:], zero(row, b), s[row*blocks+b]
				for i := range min(block, k-b*block) {
					out[row*k+b*block+i] = float32((float64(part(data, i, bits)) - z) * f)
				}
			}
		}
		return &host.Tensor{Kind: host.Float, Shape: []int{n, k}, Data: out}
	})
	d, err := c.devAll(x, weights, c.arg(5))
	if err != nil {
		return nil, err
	}
	b := c.rec()
	rows := b.Reshape(d[0], host.Len(x.shape)/k, k)
	o := compute.MatMulOptions{TransB: true}
	var y batch.Value
	if c.arg(5) != nil {
		y = b.MatMulWithBias(rows, d[1], d[2], o)
	} else {
		y = b.MatMul(rows, d[1], o)
	}
	return c.made(x.kind, b.Reshape(y, append(slices.Clone(x.shape[:len(x.shape)-1]), n)...))
}

// groupQueryAttention is attention with a cache of keys and values: query, key, value, past key and value, lengths − 1, total length,
// and tables of cosines and sines. Sequences of a batch have one length.
func groupQueryAttention(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	hq, hk := int(c.int("num_heads", 0)), int(c.int("kv_num_heads", 0))
	if hq < 1 || hk < 1 || hq%hk != 0 {
		return nil, fmt.Errorf("%d heads of %d: %w", hq, hk, compute.ErrArgument)
	}
	query, key, value := c.in[0], c.arg(1), c.arg(2)
	if len(query.shape) != 3 {
		return nil, fmt.Errorf("attention of %v: %w", query, compute.ErrShape)
	}
	var err error
	if key == nil { // packed
		size := query.shape[2] / (hq + 2*hk)
		packed := query
		if query, err = c.part(packed, 2, 0, hq*size); err == nil {
			if key, err = c.part(packed, 2, hq*size, hk*size); err == nil {
				value, err = c.part(packed, 2, (hq+hk)*size, hk*size)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if value == nil {
		return nil, fmt.Errorf("keys without values: %w", compute.ErrArgument)
	}
	q, err := c.heads(query, hq)
	if err != nil {
		return nil, err
	}
	k, err := c.heads(key, hk)
	if err != nil {
		return nil, err
	}
	v, err := c.heads(value, hk)
	if err != nil {
		return nil, err
	}
	defer c.pin(q, k, v)()
	lengths, err := c.intsArg(5, "")
	if err != nil {
		return nil, err
	}
	for _, l := range lengths {
		if l != lengths[0] {
			return nil, fmt.Errorf("sequences of different lengths %v: %w", lengths, compute.ErrUnsupported)
		}
	}
	steps, past := q.shape[2], 0
	if len(lengths) > 0 {
		past = int(lengths[0]) + 1 - steps
	}
	if past < 0 {
		return nil, fmt.Errorf("%d positions before %d: %w", past, steps, compute.ErrShape)
	}
	if c.int("do_rotary", 0) != 0 {
		cosines, sines := c.arg(7), c.arg(8)
		if cosines == nil || sines == nil {
			return nil, fmt.Errorf("no tables of cosines and sines: %w", compute.ErrArgument)
		}
		for _, x := range []**Value{&q, &k} {
			if *x, err = c.rotated(*x, cosines, sines, past); err != nil {
				return nil, err
			}
		}
	}
	if pk, pv := c.arg(3), c.arg(4); pk != nil && pv != nil && past > 0 {
		if len(pk.shape) != 4 || len(pv.shape) != 4 || pk.shape[2] < past || pv.shape[2] < past {
			return nil, fmt.Errorf("%d positions of caches %v and %v: %w", past, pk, pv, compute.ErrShape)
		}
		for _, x := range []struct {
			cache *Value
			now   **Value
		}{{pk, &k}, {pv, &v}} {
			p, err := c.part(x.cache, 2, 0, past)
			if err == nil {
				*x.now, err = c.joined(2, []*Value{p, *x.now})
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if err := checkHeads(q, k, v); err != nil {
		return nil, err
	}
	window := c.int("local_window_size", -1)
	keys := k.shape[2]
	mask := make([]float32, steps*keys)
	for i := range steps {
		for j := range keys {
			if at := keys - steps + i; j <= at && (window < 0 || int64(at-j) < window) {
				mask[i*keys+j] = 1
			}
		}
	}
	d, err := c.devAll(q, k, v, constant(&host.Tensor{Kind: host.Float, Shape: []int{steps, keys}, Data: mask}))
	if err != nil {
		return nil, err
	}
	b := c.rec()
	scale := c.float("scale", 0)
	if scale == 0 {
		scale = float32(1 / math.Sqrt(float64(q.shape[3])))
	}
	s := b.Scale(scores(b, d[0], d[1]), scale)
	if cap := c.float("softcap", 0); cap != 0 {
		s = b.Scale(b.Tanh(b.Scale(s, 1/cap)), cap)
	}
	y := weighted(b, b.Softmax(b.Select(d[3], s, b.Scalar(-inf))), d[2])
	y = b.Reshape(b.Transpose(y, compute.TransposeOptions{Perm: []int{0, 2, 1, 3}}), q.shape[0], steps, hq*v.shape[3])
	return []*Value{c.device(q.kind, y), k, v}, nil
}

// rotated turns heads by the rows of tables from a position on.
func (c *call) rotated(x, cosines, sines *Value, from int) (*Value, error) {
	steps := x.shape[2]
	if len(cosines.shape) != 2 || cosines.shape[0] < from+steps || !slices.Equal(cosines.shape, sines.shape) || 2*cosines.shape[1] > x.shape[3] {
		return nil, fmt.Errorf("positions %d to %d of tables %v and %v: %w", from, from+steps, cosines, sines, compute.ErrShape)
	}
	co, err := c.part(cosines, 0, from, steps)
	if err != nil {
		return nil, err
	}
	si, err := c.part(sines, 0, from, steps)
	if err != nil {
		return nil, err
	}
	if co, err = c.reshaped(co, []int{1, steps, cosines.shape[1]}); err == nil {
		si, err = c.reshaped(si, []int{1, steps, cosines.shape[1]})
	}
	if err != nil {
		return nil, err
	}
	return c.turn(x, co, si, 2*cosines.shape[1], c.int("rotary_interleaved", 0) != 0)
}

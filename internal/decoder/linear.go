package decoder

import (
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// fewRows is how many rows of activations the products that read each weight once take; beyond, tiles are faster.
const fewRows = 8

// Here weights meet activations: nothing else knows in what form a device has them.

// linear is x·wᵀ.
func (g *graph) linear(x batch.Value, w weight) batch.Value { return g.adapted(g.product(x, w), x, w) }

// product is x·wᵀ without what adapters add.
func (g *graph) product(x batch.Value, w weight) batch.Value {
	if w.before+w.after > 0 {
		x = g.Pad(x, compute.PadOptions{Before: []int{0, w.before}, After: []int{0, w.after}})
	}
	switch {
	case w.packed():
		return g.QuantMatMulRowMajor(x, g.Import(w.tensor), g.quantised(w))
	case g.n <= fewRows:
		return g.MatVec(g.Import(w.tensor), x)
	}
	return g.MatMul(x, g.wide(g.Import(w.tensor)), compute.MatMulOptions{TransB: true})
}

// quantised are the options of a product with w.
func (g *graph) quantised(w weight) compute.QuantOptions {
	return compute.QuantOptions{Format: w.format, Q8: !g.exact}
}

// qkv is linear with the three weights of attention, and their biases if there are any.
func (g *graph) qkv(x batch.Value, b *block[weight]) (q, k, v batch.Value) {
	q, k, v = g.productsQKV(x, b)
	return g.adapted(q, x, b.Q), g.adapted(k, x, b.K), g.adapted(v, x, b.V)
}

func (g *graph) productsQKV(x batch.Value, b *block[weight]) (q, k, v batch.Value) {
	packed, dtype := b.Q.packed(), b.Q.tensor.DType()
	if b.K.tensor.DType() != dtype || b.V.tensor.DType() != dtype {
		return g.biased(g.product(x, b.Q), b.QBias), g.biased(g.product(x, b.K), b.KBias), g.biased(g.product(x, b.V), b.VBias)
	}
	wq, wk, wv := g.Import(b.Q.tensor), g.Import(b.K.tensor), g.Import(b.V.tensor)
	o := compute.QuantQKVOptions{Q: b.Q.format, K: b.K.format, V: b.V.format, Q8: !g.exact}
	if b.QBias.missing() {
		if packed {
			return g.QuantQKV(x, wq, wk, wv, o)
		}
		return g.QKV(x, wq, wk, wv)
	}
	bq, bk, bv := g.Import(b.QBias.tensor), g.Import(b.KBias.tensor), g.Import(b.VBias.tensor)
	if packed {
		return g.QuantQKVWithBiases(x, wq, wk, wv, bq, bk, bv, o)
	}
	return g.QKVWithBiases(x, wq, wk, wv, bq, bk, bv)
}

func (g *graph) biased(x batch.Value, bias weight) batch.Value {
	if bias.missing() {
		return x
	}
	return g.Add(x, g.Import(bias.tensor))
}

// gateUp is silu(x·gateᵀ)·(x·upᵀ), or gelu.
func (g *graph) gateUp(x batch.Value, gate, up weight) batch.Value {
	switch {
	case g.model.GELU:
		return g.Mul(g.GELU(g.linear(x, gate)), g.linear(x, up))
	case gate.format != up.format || gate.tensor.DType() != up.tensor.DType() || len(gate.changes)+len(up.changes) > 0:
		return g.SwiGLU(g.linear(x, gate), g.linear(x, up))
	case gate.packed():
		return g.QuantGateUpSwiGLU(x, g.Import(gate.tensor), g.Import(up.tensor), g.quantised(gate))
	}
	return g.GateUpSwiGLU(x, g.Import(gate.tensor), g.Import(up.tensor))
}

// normLinear is linear of the norm of x.
func (g *graph) normLinear(x batch.Value, norm, w weight) batch.Value {
	if len(w.changes) > 0 {
		return g.linear(g.norm(x, norm), w)
	}
	gamma := g.Import(norm.tensor)
	if w.packed() {
		return g.QuantRMSNormMatVec(x, gamma, g.Import(w.tensor), g.model.Epsilon, g.quantised(w))
	}
	return g.RMSNormMatVec(x, gamma, g.Import(w.tensor), g.model.Epsilon)
}

// rows are those of w that ids name, in Float32.
func (g *graph) rows(w weight, ids batch.Value) batch.Value {
	if w.packed() {
		return g.DequantizeRows(g.Import(w.tensor), ids, compute.DequantizeOptions{Format: w.format})
	}
	return g.wide(g.Embedding(g.Import(w.tensor), ids))
}

// wide is a value in Float32.
func (g *graph) wide(x batch.Value) batch.Value {
	if g.DType(x) == compute.Float32 {
		return x
	}
	return g.Cast(x, compute.Float32)
}

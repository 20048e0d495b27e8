package decoder

import (
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// fewRows is how many rows of activations the products that read each weight once take; beyond, tiles are faster.
const fewRows = 8

// Here weights meet activations: nothing else knows in what form a device has them.

// linear is x·wᵀ.
func (g *graph) linear(x batch.Value, w weight) batch.Value {
	if g.n <= fewRows {
		return g.MatVec(g.Import(w.tensor), x)
	}
	return g.MatMul(x, g.wide(w), compute.MatMulOptions{TransB: true})
}

// qkv is linear with the three weights of attention, and their biases if there are any.
func (g *graph) qkv(x batch.Value, b *block[weight]) (q, k, v batch.Value) {
	wq, wk, wv := g.Import(b.Q.tensor), g.Import(b.K.tensor), g.Import(b.V.tensor)
	switch {
	case b.Q.tensor.DType() != b.K.tensor.DType() || b.Q.tensor.DType() != b.V.tensor.DType():
		return g.biased(g.linear(x, b.Q), b.QBias), g.biased(g.linear(x, b.K), b.KBias), g.biased(g.linear(x, b.V), b.VBias)
	case b.QBias.missing():
		return g.QKV(x, wq, wk, wv)
	}
	return g.QKVBv(x, wq, wk, wv, g.Import(b.QBias.tensor), g.Import(b.KBias.tensor), g.Import(b.VBias.tensor))
}

func (g *graph) biased(x batch.Value, bias weight) batch.Value {
	if bias.missing() {
		return x
	}
	return g.Add(x, g.Import(bias.tensor))
}

// gateUp is silu(x·gateᵀ)·(x·upᵀ).
func (g *graph) gateUp(x batch.Value, b *block[weight]) batch.Value {
	if b.Gate.tensor.DType() != b.Up.tensor.DType() {
		return g.SwiGLU(g.linear(x, b.Gate), g.linear(x, b.Up))
	}
	return g.GateUpSwiGLU(x, g.Import(b.Gate.tensor), g.Import(b.Up.tensor))
}

// normLinear is linear of the norm of x.
func (g *graph) normLinear(x batch.Value, norm, w weight) batch.Value {
	return g.RMSNormMatVec(x, g.Import(norm.tensor), g.Import(w.tensor), g.model.Epsilon)
}

// rows are those of w that ids name, in Float32.
func (g *graph) rows(w weight, ids batch.Value) batch.Value {
	x := g.Embedding(g.Import(w.tensor), ids)
	if w.tensor.DType() != compute.Float32 {
		x = g.Cast(x, compute.Float32)
	}
	return x
}

// wide is a weight in Float32.
func (g *graph) wide(w weight) batch.Value {
	x := g.Import(w.tensor)
	if w.tensor.DType() != compute.Float32 {
		x = g.Cast(x, compute.Float32)
	}
	return x
}

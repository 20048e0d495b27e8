package decoder

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

// Mixtures of experts have several feed-forward layers in place of one, of which each token takes those that a router finds likeliest (Shazeer
// and others, "Outrageously Large Neural Networks", 2017; Jiang and others, "Mixtral of Experts", 2024).

// ExpertConfig is the sizes of a mixture of experts.
type ExpertConfig struct {
	Experts      int     // of a layer; 0 for none
	UsedExperts  int     // that a token takes
	ExpertHidden int     // of an expert
	SharedHidden int     // of the expert that all tokens take; 0 for none
	ExpertNorm   bool    // the weights of the experts that a token takes are divided by their sum
	ExpertScale  float32 // by which these are multiplied; 0 is 1
}

// experts is the tensors of a mixture, missing in layers that are none.
type experts[T any] struct {
	Router                           T // [experts, width]
	Gate, Up, Down                   T // [experts, rows, columns]
	SharedRouter                     T // [width], of which a sigmoid says how much of the shared expert is added
	SharedGate, SharedUp, SharedDown T
}

// mostExperts is how many a token may take.
const mostExperts = 1024

// experts reads the sizes of a mixture.
func (m *metadata) experts(c *Config, known architecture) {
	n := 0
	if m.has("expert_count") {
		var err error
		if n, err = m.Int(m.prefix + "expert_count"); err != nil {
			m.fail(err)
		}
	}
	switch {
	case n == 0 && known.mixture == alwaysMixed:
		m.size("expert_count") // which is missing or 0
		return
	case n == 0:
		return
	case known.mixture == neverMixed:
		m.fail(fmt.Errorf("metadata %q: mixtures of experts: %w", m.prefix+"expert_count", compute.ErrUnsupported))
		return
	}
	if m.has("expert_gating_func") {
		if f, err := m.Int(m.prefix + "expert_gating_func"); err != nil || f != softmaxGating {
			m.fail(fmt.Errorf("metadata %q is %d, need %d for softmax: %w", m.prefix+"expert_gating_func", f, softmaxGating, compute.ErrUnsupported))
		}
	}
	e := &c.ExpertConfig
	e.Experts, e.UsedExperts, e.ExpertHidden = m.size("expert_count"), m.size("expert_used_count"), c.Hidden
	if e.UsedExperts > min(e.Experts, mostExperts) {
		m.fail(fmt.Errorf("metadata %q is %d, of %d experts and at most %d: %w", m.prefix+"expert_used_count", e.UsedExperts, e.Experts, mostExperts,
			compute.ErrShape))
	}
	if known.mixture == alwaysMixed {
		e.ExpertHidden = m.sizeOr("expert_feed_forward_length", max(1, c.Hidden/max(e.UsedExperts, 1)))
	}
	if known.shared {
		e.SharedHidden = m.sizeOr("expert_shared_feed_forward_length", c.Hidden)
	}
	e.ExpertNorm, e.ExpertScale = known.expertNorm, m.positiveOr("expert_weights_scale", 0)
	if m.has("expert_weights_norm") {
		var err error
		if e.ExpertNorm, err = gguf.Value[bool](m.File, m.prefix+"expert_weights_norm"); err != nil {
			m.fail(err)
		}
	}
	if m.err == nil && int64(e.Experts)*int64(e.ExpertHidden) > math.MaxInt32 {
		m.fail(fmt.Errorf("%d experts of %d elements: %w", e.Experts, e.ExpertHidden, compute.ErrTooLarge))
	}
}

const softmaxGating = 1

// experts reads the tensors of a mixture.
func (r *reader) experts(c *Config, at string) (e experts[*tensor]) {
	e.Router = r.tensor(at+"ffn_gate_inp.weight", c.Experts, c.Width)
	e.Gate = r.tensor(at+"ffn_gate_exps.weight", c.Experts, c.ExpertHidden, c.Width)
	e.Up = r.tensor(at+"ffn_up_exps.weight", c.Experts, c.ExpertHidden, c.Width)
	e.Down = r.tensor(at+"ffn_down_exps.weight", c.Experts, c.Width, c.ExpertHidden)
	if c.SharedHidden > 0 {
		e.SharedRouter = r.tensor(at+"ffn_gate_inp_shexp.weight", c.Width)
		e.SharedGate = r.tensor(at+"ffn_gate_shexp.weight", c.SharedHidden, c.Width)
		e.SharedUp = r.tensor(at+"ffn_up_shexp.weight", c.SharedHidden, c.Width)
		e.SharedDown = r.tensor(at+"ffn_down_shexp.weight", c.Width, c.SharedHidden)
	}
	return e
}

// convertExperts is what convert does for a mixture.
func convertExperts(e experts[*tensor], to func(t *tensor) weight) experts[weight] {
	return experts[weight]{Router: to(e.Router), Gate: to(e.Gate), Up: to(e.Up), Down: to(e.Down), SharedRouter: to(e.SharedRouter),
		SharedGate: to(e.SharedGate), SharedUp: to(e.SharedUp), SharedDown: to(e.SharedDown)}
}

// mixture is the feed-forward layer of a block for x.
func (g *graph) mixture(block int, x batch.Value, e *experts[weight]) batch.Value {
	m := &g.model
	g.part(block, "router")
	share, chosen := g.TopK(g.Softmax(g.linear(x, e.Router)), compute.TopKOptions{K: m.UsedExperts})
	if m.ExpertNorm {
		share = g.Div(share, g.Reshape(g.Sum(share, compute.LastAxis), g.n, 1))
	}
	if m.ExpertScale != 0 {
		share = g.Scale(share, m.ExpertScale)
	}
	g.part(block, "experts")
	hidden := g.SwiGLU(g.chosen(x, e.Gate, chosen), g.chosen(x, e.Up, chosen))
	y := g.MatMul(g.Reshape(share, g.n, 1, m.UsedExperts), g.chosen(hidden, e.Down, chosen))
	y = g.Reshape(y, g.n, m.Width)
	if e.SharedRouter.missing() {
		return y
	}
	g.part(block, "shared expert")
	common := g.linear(g.gateUp(x, e.SharedGate, e.SharedUp), e.SharedDown)
	much := g.Sigmoid(g.MatVec(g.Reshape(g.Import(e.SharedRouter.tensor), 1, m.Width), x))
	return g.Add(y, g.Mul(common, much))
}

// chosen is x times the matrices that are chosen.
func (g *graph) chosen(x batch.Value, w weight, chosen batch.Value) batch.Value {
	return g.MatMulExperts(x, g.Import(w.tensor), chosen, compute.ExpertOptions{Format: w.format, Q8: w.packed() && !g.exact})
}

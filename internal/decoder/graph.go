package decoder

import (
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// Output says what a plan reads back.
type Output struct {
	// TopK is 0 for all logits, 1 for the index of the largest one, else the number of largest ones, with their indices.
	TopK int
}

// Inputs of a plan are slices in host memory that each run reads, so that one plan serves all positions.
type inputs struct {
	tokens    []int32 // [n]
	positions []int32 // [n] of the tokens
	start     []int32 // [1] position of the first
	length    []int32 // [1] keys in use after the last
	last      []int32 // [1] row whose logits are wanted
}

func newInputs(n int) *inputs {
	all := make([]int32, 2*n+3)
	return &inputs{all[:n], all[n : 2*n], all[2*n : 2*n+1], all[2*n+1 : 2*n+2], all[2*n+2:]}
}

// set sets the tokens from a position on. If there are fewer than the plan's n, the last one is repeated: its keys and values
// go after those in use, where no query that matters sees them and the next tokens replace them.
func (in *inputs) set(tokens []int32, position int) {
	for i := range in.tokens {
		in.tokens[i] = tokens[min(i, len(tokens)-1)]
		in.positions[i] = int32(position + i)
	}
	in.start[0], in.length[0], in.last[0] = int32(position), int32(position+len(in.tokens)), int32(len(tokens)-1)
}

// results are what a run delivers: values and indices of the largest logits, the index alone, or all logits.
type results struct{ logits, values, indices *batch.Result }

// Part is where in the network a step was recorded.
type Part struct {
	Block int // −1 outside of the blocks
	Name  string
}

// mark says that a part begins at a step.
type mark struct {
	Part
	first int
}

// graph records the network for n tokens.
type graph struct {
	*batch.Batch
	model Config
	n     int
	exact bool
	long  bool // the context is longer than the original one
	on    *network[weight]
	marks []mark
}

func (g *graph) part(block int, name string) {
	g.marks = append(g.marks, mark{Part{block, name}, g.Len()})
}

// record is the whole network: n tokens after those in the caches, whose keys and values it appends there in place. Caches are
// [1, capacity, kvheads, headsize], two for each block.
func (g *graph) record(in *inputs, caches []compute.Tensor, o Output) results {
	positions, start, length := g.Upload(in.positions), g.Upload(in.start), g.Upload(in.length)
	g.part(-1, "embedding")
	x := g.rows(g.on.Embedding, g.Upload(in.tokens))
	if c := g.model.EmbedScale; c != 0 {
		x = g.Scale(x, c)
	}
	var branch batch.Value // which has to be added to x
	for i := range g.on.Blocks {
		b := &g.on.Blocks[i]
		g.part(i, "attention norm")
		normed := batch.Value{}
		if i == 0 {
			normed = g.norm(x, b.AttentionNorm)
		} else {
			x, normed = g.AddRMSNorm(x, branch, g.Import(b.AttentionNorm.tensor), g.model.Epsilon)
		}
		g.part(i, "query, key, value")
		q, k, v := g.qkv(normed, b)
		q, k = g.heads(q, g.model.Heads), g.heads(k, g.model.KVHeads)
		if !b.QNorm.missing() {
			g.part(i, "query norm, key norm")
			q, k = g.norm(q, b.QNorm), g.norm(k, b.KNorm)
		}
		g.part(i, "rope")
		q, k = g.rope(i, q, positions), g.rope(i, k, positions)
		g.part(i, "cache")
		keys := g.KVAppend(g.Import(caches[2*i]), k, start)
		values := g.KVAppend(g.Import(caches[2*i+1]), g.heads(v, g.model.KVHeads), start)
		g.part(i, "attention")
		y := g.AttentionWithLengths(q, keys, values, length, g.attention(i))
		g.part(i, "attention output")
		branch = g.linear(g.Reshape(y, g.n, g.model.Heads*g.model.HeadSize), b.Output)
		if !b.PostAttention.missing() {
			branch = g.norm(branch, b.PostAttention)
		}
		g.part(i, "feed-forward norm")
		x, normed = g.AddRMSNorm(x, branch, g.Import(b.FeedForwardNorm.tensor), g.model.Epsilon)
		g.part(i, "gate, up")
		hidden := g.gateUp(normed, b)
		g.part(i, "down")
		branch = g.linear(hidden, b.Down)
		if !b.PostFeedForward.missing() {
			branch = g.norm(branch, b.PostFeedForward)
		}
	}
	if x = g.Add(x, branch); g.n > 1 {
		g.part(-1, "last token")
		x = g.Embedding(x, g.Upload(in.last))
	}
	g.part(-1, "head")
	logits := g.normLinear(x, g.on.Norm, g.on.Head)
	if c := g.model.LogitCap; c != 0 {
		logits = g.Scale(g.Tanh(g.Scale(logits, 1/c)), c)
	}
	g.part(-1, "sampling")
	return g.output(logits, o)
}

func (g *graph) norm(x batch.Value, gamma weight) batch.Value {
	return g.RMSNorm(x, g.Import(gamma.tensor), g.model.Epsilon)
}

// attention are the options of a block.
func (g *graph) attention(block int) compute.AttentionOptions {
	o := compute.AttentionOptions{Causal: true, SoftCap: g.model.ScoreCap, Scale: g.model.ScoreScale}
	if g.model.windowed(block) {
		o.Window = g.model.Window
	}
	return o
}

// heads is [n, heads·size] as [1, n, heads, size].
func (g *graph) heads(x batch.Value, heads int) batch.Value {
	return g.Reshape(x, 1, g.n, heads, g.model.HeadSize)
}

func (g *graph) rope(block int, x, positions batch.Value) batch.Value {
	o, factors := g.model.Rope, g.on.Factors
	if g.long && !g.on.Long.missing() {
		factors = g.on.Long
	}
	turn := g.on.Turn
	if g.model.windowed(block) && g.model.WindowRope != o { // which has not been stretched
		o, factors, turn = g.model.WindowRope, weight{}, weight{}
	}
	if factors.missing() {
		x = g.Rope(x, positions, o)
	} else {
		x = g.RopeWithFactors(x, positions, g.Import(factors.tensor), o)
	}
	if !turn.missing() {
		x = g.Mul(x, g.Import(turn.tensor))
	}
	return x
}

func (g *graph) output(logits batch.Value, o Output) results {
	switch o.TopK {
	case 0:
		return results{logits: g.Read(logits)}
	case 1:
		return results{indices: g.Read(g.Reshape(g.ArgMax(logits), 1))}
	}
	values, indices := g.TopK(logits, compute.TopKOptions{K: o.TopK})
	return results{values: g.Read(values), indices: g.Read(indices)}
}

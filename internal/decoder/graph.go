package decoder

import (
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// Output says what a plan reads back.
type Output struct {
	// TopK is 0 for all logits, 1 for the index of the largest one, else the number of largest ones, with their indices.
	TopK int
	// States has the normalised states instead, of every token.
	States bool
	// Each has this of every token, instead of the last one.
	Each bool
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

// results are what a run delivers: values and indices of the largest logits, the index alone, all logits, or states.
type results struct{ logits, values, indices, states *batch.Result }

// next is what they say after each of n tokens.
func (r *results) next(n int) []*Next {
	all := make([]*Next, n)
	for i := range all {
		all[i] = &Next{}
	}
	share(all, r.logits, (*batch.Result).Float32s, func(x *Next, part []float32) { x.Logits = part })
	share(all, r.values, (*batch.Result).Float32s, func(x *Next, part []float32) { x.Logits = part })
	share(all, r.states, (*batch.Result).Float32s, func(x *Next, part []float32) { x.States = part })
	share(all, r.indices, (*batch.Result).Int32s, func(x *Next, part []int32) { x.Indices = part })
	return all
}

// share gives each its part of a result, if there is one.
func share[T any](all []*Next, r *batch.Result, data func(*batch.Result) []T, give func(*Next, []T)) {
	if r == nil {
		return
	}
	x := data(r)
	n := len(x) / len(all)
	for i := range all {
		give(all[i], x[i*n:(i+1)*n])
	}
}

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
	group batch.Group // whose members have a part of the weights each; nil for all
	add   func(b *batch.Batch, x batch.Value) batch.Value
	marks []mark

	lookup *lookup // of tokens, with a group
}

func (g *graph) part(block int, name string) {
	g.marks = append(g.marks, mark{Part{block, name}, g.Len()})
}

// attend appends the keys and values of the tokens to the cache of a block, in place, and returns what their queries see: [n, heads·size].
// Queries, keys and values are [1, n, heads, size].
type attend func(block int, q, k, v batch.Value) batch.Value

// recordSequence is the network for tokens after those in the caches of one sequence, [1, capacity, kvheads, headsize], two for each
// block.
func (g *graph) recordSequence(in *inputs, caches []compute.Tensor, o Output) results {
	start, length := g.Upload(in.start), g.Upload(in.length)
	last := in.last
	if g.n == 1 || o.States || o.Each {
		last = nil
	}
	return g.record(in.tokens, in.positions, last, o, func(i int, q, k, v batch.Value) batch.Value {
		g.part(i, "cache")
		keys := g.KVAppend(g.Import(caches[2*i]), k, start)
		values := g.KVAppend(g.Import(caches[2*i+1]), v, start)
		g.part(i, "attention")
		return g.Reshape(g.AttentionWithLengths(q, keys, values, length, g.attention(i)), g.n, g.model.Heads*g.model.HeadSize)
	})
}

// record is the whole network. Logits are wanted after the tokens that wanted names, nil for all.
func (g *graph) record(tokens, positions, wanted []int32, o Output, attend attend) results {
	at := g.Upload(positions)
	g.part(-1, "embedding")
	x := g.embed(tokens)
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
		q, k = g.rope(i, q, at), g.rope(i, k, at)
		y := attend(i, q, k, g.heads(v, g.model.KVHeads))
		g.part(i, "attention output")
		branch = g.sum(g.linear(y, b.Output))
		if !b.PostAttention.missing() {
			branch = g.norm(branch, b.PostAttention)
		}
		g.part(i, "feed-forward norm")
		x, normed = g.AddRMSNorm(x, branch, g.Import(b.FeedForwardNorm.tensor), g.model.Epsilon)
		if g.model.Experts > 0 {
			branch = g.mixture(i, normed, &b.Experts)
		} else {
			g.part(i, "gate, up")
			hidden := g.gateUp(normed, b.Gate, b.Up)
			g.part(i, "down")
			branch = g.sum(g.linear(hidden, b.Down))
		}
		if !b.PostFeedForward.missing() {
			branch = g.norm(branch, b.PostFeedForward)
		}
	}
	if x = g.Add(x, branch); wanted != nil {
		g.part(-1, "last token")
		x = g.Embedding(x, g.Upload(wanted))
	}
	g.part(-1, "head")
	if o.States {
		return results{states: g.Read(g.norm(x, g.on.Norm))}
	}
	logits := g.whole(g.normLinear(x, g.on.Norm, g.on.Head))
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
		if g.Shape(logits)[0] == 1 {
			return results{indices: g.Read(g.Reshape(g.ArgMax(logits), 1))}
		}
		return results{indices: g.Read(g.ArgMax(logits, compute.LastAxis))}
	}
	values, indices := g.TopK(logits, compute.TopKOptions{K: o.TopK})
	return results{values: g.Read(values), indices: g.Read(indices)}
}

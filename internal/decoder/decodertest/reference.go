// Package decodertest has a language model in float64 to compare with.
package decodertest

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/quant/gguf"
)

// Reference is the transformer in float64 and plain loops, from the file: nothing in it is shared with what is tested.
type Reference struct {
	t                                     testing.TB
	architecture                          string
	number                                func(key string, otherwise float64) float64
	tensors                               map[string][]float64
	width, heads, kv, size, dims, vocab   int
	blocks, window, period                int
	base, epsilon, scoreCap, logitCap     float64
	keys, values                          [][][]float64 // by block and position
	stretch, original, context, attention float64
	kind                                  string // of stretching
	State                                 []float64
}

// New reads a model.
func New(t testing.TB, f *gguf.File) *Reference {
	r := &Reference{t: t, tensors: map[string][]float64{}}
	var err error
	r.architecture, err = gguf.Value[string](f, "general.architecture")
	require.NoError(t, err)
	r.number = func(key string, otherwise float64) float64 {
		x, err := f.Float(r.architecture + "." + key)
		if errors.Is(err, gguf.ErrMissing) && !math.IsNaN(otherwise) {
			return otherwise
		}
		require.NoError(t, err)
		return x
	}
	must := math.NaN()
	for _, x := range f.Tensors() {
		y := make([]float32, x.Len())
		require.NoError(t, x.Dequantize(y))
		r.tensors[x.Name()] = make([]float64, len(y))
		for i, v := range y {
			r.tensors[x.Name()][i] = float64(v)
		}
	}
	r.width = int(r.number("embedding_length", must))
	r.heads, r.kv = int(r.number("attention.head_count", must)), int(r.number("attention.head_count_kv", must))
	r.size = int(r.number("attention.key_length", float64(r.width/r.heads)))
	r.dims = int(r.number("rope.dimension_count", float64(r.size)))
	r.blocks = int(r.number("block_count", must))
	if r.architecture == "bert" {
		r.epsilon = r.number("attention.layer_norm_epsilon", must)
	} else {
		r.base, r.epsilon = r.number("rope.freq_base", must), r.number("attention.layer_norm_rms_epsilon", must)
	}
	r.scoreCap, r.logitCap = r.number("attn_logit_softcapping", 0), r.number("final_logit_softcapping", 0)
	r.stretch, r.attention = r.number("rope.scaling.factor", 1), r.number("rope.scaling.attn_factor", 1)
	r.context = r.number("context_length", must)
	r.original = r.number("rope.scaling.original_context_length", r.context)
	r.kind, _ = gguf.Value[string](f, r.architecture+".rope.scaling.type")
	switch r.architecture {
	case "gemma2":
		r.window, r.period = int(r.number("attention.sliding_window", 4096)), 2
	case "gemma3":
		r.window, r.period = int(r.number("attention.sliding_window", 0)), 6
	}
	r.vocab = len(r.tensors["token_embd.weight"]) / r.width
	r.keys, r.values = make([][][]float64, r.blocks), make([][][]float64, r.blocks)
	return r
}

// SetContext has the model serve contexts of another length, on which the choice of its factors depends.
func (r *Reference) SetContext(tokens int) { r.context = float64(tokens) }

// windowed reports blocks whose queries see a window.
func (r *Reference) windowed(block int) bool { return r.window > 0 && (block+1)%r.period != 0 }

// times is a matrix of rows as long as x times x, and a bias if there is one.
func (r *Reference) times(name string, x []float64) []float64 {
	w, ok := r.tensors[name+".weight"]
	require.True(r.t, ok, name)
	y := make([]float64, len(w)/len(x))
	for i := range y {
		for j, v := range x {
			y[i] += w[i*len(x)+j] * v
		}
	}
	for i, v := range r.tensors[name+".bias"] {
		y[i] += v
	}
	return y
}

func (r *Reference) norm(name string, x []float64) []float64 {
	gamma, ok := r.tensors[name+".weight"]
	require.True(r.t, ok, name)
	y := make([]float64, 0, len(x))
	for ; len(x) > 0; x = x[len(gamma):] { // each head of several
		sum := 0.0
		for _, v := range x[:len(gamma)] {
			sum += v * v
		}
		for i, g := range gamma {
			y = append(y, x[i]/math.Sqrt(sum/float64(len(gamma))+r.epsilon)*g)
		}
	}
	return y
}

// angle is by how much a pair of elements turns from one position to the next, and by what they grow.
func (r *Reference) angle(block, pair int) (angle, scale float64) {
	base, stretched := r.base, true
	if r.architecture == "gemma3" && r.windowed(block) {
		base, stretched = 10000, false
	}
	angle = math.Pow(base, -2*float64(pair)/float64(r.dims))
	if !stretched {
		return angle, 1
	}
	for _, name := range []string{"rope_freqs", "rope_factors_short"} {
		if name == "rope_factors_short" && r.context > r.original {
			name = "rope_factors_long"
		}
		if factors := r.tensors[name+".weight"]; factors != nil {
			angle /= factors[pair]
		}
	}
	switch r.kind {
	case "linear":
		angle /= r.stretch
	case "yarn":
		// A pair that turns 32 times or more in the original context is as it was, one that turns once or less is stretched.
		at := func(turns float64) float64 {
			return float64(r.dims) * math.Log(r.original/(turns*2*math.Pi)) / (2 * math.Log(base))
		}
		from, to := math.Max(0, math.Floor(at(32))), math.Min(float64(r.dims-1), math.Ceil(at(1)))
		ramp := math.Min(1, math.Max(0, (float64(pair)-from)/math.Max(0.001, to-from)))
		angle = angle/r.stretch*ramp + angle*(1-ramp)
		return angle, r.attention * (1 + 0.1*math.Log(r.stretch))
	}
	return angle, r.attention
}

func (r *Reference) turn(block int, x []float64, position int) {
	for head := 0; head < len(x); head += r.size {
		for i := range r.dims / 2 {
			angle, scale := r.angle(block, i)
			a, b := head+2*i, head+2*i+1
			if r.architecture != "llama" {
				a, b = head+i, head+i+r.dims/2
			}
			sin, cos := math.Sincos(float64(position) * angle)
			x[a], x[b] = scale*(x[a]*cos-x[b]*sin), scale*(x[a]*sin+x[b]*cos)
		}
	}
}

// activation is the one of feed-forward layers.
func (r *Reference) activation(x float64) float64 {
	if strings.HasPrefix(r.architecture, "gemma") {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return x / (1 + math.Exp(-x))
}

func capped(x, limit float64) float64 {
	if limit == 0 {
		return x
	}
	return limit * math.Tanh(x/limit)
}

// attend is attention of the last query.
func (r *Reference) attend(b int, q []float64) []float64 {
	position := len(r.keys[b]) - 1
	first := 0
	if r.windowed(b) {
		first = max(0, position-r.window+1)
	}
	y := make([]float64, len(q))
	for head := range r.heads {
		shared := head / (r.heads / r.kv) * r.size
		weights, sum := make([]float64, position+1), 0.0
		for p := first; p <= position; p++ {
			for i := range r.size {
				weights[p] += q[head*r.size+i] * r.keys[b][p][shared+i]
			}
			weights[p] = math.Exp(capped(weights[p]/math.Sqrt(float64(r.size)), r.scoreCap))
			sum += weights[p]
		}
		for p := first; p <= position; p++ {
			for i := range r.size {
				y[head*r.size+i] += weights[p] / sum * r.values[b][p][shared+i]
			}
		}
	}
	return y
}

// Vocabulary is how many tokens there are.
func (r *Reference) Vocabulary() int { return r.vocab }

// Step returns the logits after one more token, and leaves its normalised state in State.
func (r *Reference) Step(token int32) []float64 {
	x := append([]float64(nil), r.tensors["token_embd.weight"][int(token)*r.width:][:r.width]...)
	if strings.HasPrefix(r.architecture, "gemma") {
		for i := range x {
			x[i] *= math.Sqrt(float64(r.width))
		}
	}
	add := func(y []float64) {
		for i, v := range y {
			x[i] += v
		}
	}
	has := func(name string) bool { return r.tensors[name+".weight"] != nil }
	for b := range r.blocks {
		at := fmt.Sprintf("blk.%d.", b)
		h := r.norm(at+"attn_norm", x)
		var q, k, v []float64
		if has(at + "attn_qkv") {
			all := r.times(at+"attn_qkv", h)
			n, m := r.heads*r.size, r.kv*r.size
			q, k, v = all[:n:n], all[n:n+m:n+m], all[n+m:]
		} else {
			q, k, v = r.times(at+"attn_q", h), r.times(at+"attn_k", h), r.times(at+"attn_v", h)
		}
		if has(at + "attn_q_norm") {
			q, k = r.norm(at+"attn_q_norm", q), r.norm(at+"attn_k_norm", k)
		}
		position := len(r.keys[b])
		r.turn(b, q, position)
		r.turn(b, k, position)
		r.keys[b], r.values[b] = append(r.keys[b], k), append(r.values[b], v)
		y := r.times(at+"attn_output", r.attend(b, q))
		if has(at + "post_attention_norm") {
			y = r.norm(at+"post_attention_norm", y)
		}
		add(y)
		h = r.norm(at+"ffn_norm", x)
		if has(at + "ffn_gate_inp") {
			y = r.mixture(at, h)
		} else {
			y = r.feedForward(at, "", h, r.times)
		}
		if has(at + "post_ffw_norm") {
			y = r.norm(at+"post_ffw_norm", y)
		}
		add(y)
	}
	x = r.norm("output_norm", x)
	r.State = x
	head := "output"
	if !has(head) {
		head = "token_embd"
	}
	logits := r.times(head, x)
	for i, v := range logits {
		logits[i] = capped(v, r.logitCap)
	}
	return logits
}

// feedForward is a gated layer, whose tensors' names end so.
func (r *Reference) feedForward(at, end string, h []float64, times func(name string, x []float64) []float64) []float64 {
	up := times(at+"ffn_up"+end, h)
	var gate []float64
	if r.tensors[at+"ffn_gate"+end+".weight"] != nil {
		gate = times(at+"ffn_gate"+end, h)
	} else {
		gate, up = up[:len(up)/2], up[len(up)/2:]
	}
	for i, g := range gate {
		gate[i] = r.activation(g) * up[i]
	}
	return times(at+"ffn_down"+end, gate)
}

// mixture is a layer of experts: those of the largest probabilities, and one that all tokens take.
func (r *Reference) mixture(at string, h []float64) []float64 {
	p := r.times(at+"ffn_gate_inp", h)
	sum := 0.0
	for i, v := range p {
		p[i] = math.Exp(v)
		sum += p[i]
	}
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
		p[i] /= sum
	}
	sort.SliceStable(order, func(i, j int) bool { return p[order[i]] > p[order[j]] })
	order = order[:int(r.number("expert_used_count", math.NaN()))]
	if sum = 0; r.architecture != "qwen2moe" { // the others normalise what they take
		for _, e := range order {
			sum += p[e]
		}
	} else {
		sum = 1
	}
	y := make([]float64, len(h))
	for _, e := range order {
		of := func(name string, x []float64) []float64 {
			w := r.tensors[name+".weight"]
			n := len(w) / len(p)
			out := make([]float64, n/len(x))
			for i := range out {
				for j, v := range x {
					out[i] += w[e*n+i*len(x)+j] * v
				}
			}
			return out
		}
		for i, v := range r.feedForward(at, "_exps", h, of) {
			y[i] += p[e] / sum * v
		}
	}
	if gate := r.tensors[at+"ffn_gate_inp_shexp.weight"]; gate != nil {
		much := 0.0
		for i, v := range gate {
			much += v * h[i]
		}
		much = 1 / (1 + math.Exp(-much))
		for i, v := range r.feedForward(at, "_shexp", h, r.times) {
			y[i] += much * v
		}
	}
	return y
}

// centred is the norm of deviations from the mean.
func (r *Reference) centred(name string, x []float64) []float64 {
	mean, sum := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sum += (v - mean) * (v - mean) / float64(len(x))
	}
	gamma, beta := r.tensors[name+".weight"], r.tensors[name+".bias"]
	require.Len(r.t, gamma, len(x), name)
	require.Len(r.t, beta, len(x), name)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(sum+r.epsilon)*gamma[i] + beta[i]
	}
	return y
}

// Encode returns the states of a text's tokens, of an encoder.
func (r *Reference) Encode(tokens []int32) [][]float64 {
	states := make([][]float64, len(tokens))
	sum := func(x, y []float64) []float64 {
		z := make([]float64, len(x))
		for i := range z {
			z[i] = x[i] + y[i]
		}
		return z
	}
	row := func(name string, i int) []float64 { return r.tensors[name+".weight"][i*r.width:][:r.width] }
	for p, token := range tokens {
		states[p] = r.centred("token_embd_norm", sum(sum(row("token_embd", int(token)), row("position_embd", p)), row("token_types", 0)))
	}
	for b := range r.blocks {
		at := fmt.Sprintf("blk.%d.", b)
		r.keys[b], r.values[b] = nil, nil
		for _, x := range states {
			r.keys[b], r.values[b] = append(r.keys[b], r.times(at+"attn_k", x)), append(r.values[b], r.times(at+"attn_v", x))
		}
		for p, x := range states { // of which only the own one is read
			x = r.centred(at+"attn_output_norm", sum(x, r.times(at+"attn_output", r.attend(b, r.times(at+"attn_q", x)))))
			h := r.times(at+"ffn_up", x)
			for i, v := range h {
				h[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
			}
			states[p] = r.centred(at+"layer_output_norm", sum(x, r.times(at+"ffn_down", h)))
		}
	}
	return states
}

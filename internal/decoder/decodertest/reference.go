// Package decodertest has a language model in float64 to compare with.
package decodertest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/quant/gguf"
)

// Reference is the transformer in float64 and plain loops, from the file: nothing in it is shared with what is tested.
type Reference struct {
	t                                           testing.TB
	tensors                                     map[string][]float64
	width, hidden, heads, kv, size, dims, vocab int
	blocks                                      int
	base, epsilon                               float64
	neox                                        bool
	keys, values                                [][][]float64 // by block and position
}

// New reads a model.
func New(t testing.TB, f *gguf.File) *Reference {
	r := &Reference{t: t, tensors: map[string][]float64{}}
	architecture, err := gguf.Value[string](f, "general.architecture")
	require.NoError(t, err)
	number := func(key string) float64 {
		x, err := f.Float(architecture + "." + key)
		require.NoError(t, err)
		return x
	}
	for _, x := range f.Tensors() {
		y := make([]float32, x.Len())
		require.NoError(t, x.Dequantize(y))
		r.tensors[x.Name()] = make([]float64, len(y))
		for i, v := range y {
			r.tensors[x.Name()][i] = float64(v)
		}
	}
	r.width, r.hidden = int(number("embedding_length")), int(number("feed_forward_length"))
	r.heads, r.kv = int(number("attention.head_count")), int(number("attention.head_count_kv"))
	r.size = r.width / r.heads
	r.blocks, r.base, r.epsilon = int(number("block_count")), number("rope.freq_base"), number("attention.layer_norm_rms_epsilon")
	r.neox = architecture == "qwen2"
	r.vocab = len(r.tensors["token_embd.weight"]) / r.width
	r.keys, r.values = make([][][]float64, r.blocks), make([][][]float64, r.blocks)
	return r
}

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
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(sum/float64(len(x))+r.epsilon) * r.tensors[name+".weight"][i]
	}
	return y
}

func (r *Reference) turn(x []float64, position int) {
	for head := 0; head < len(x); head += r.size {
		for i := range r.size / 2 {
			angle := float64(position) * math.Pow(r.base, -2*float64(i)/float64(r.size))
			if factors := r.tensors["rope_freqs.weight"]; factors != nil {
				angle /= factors[i]
			}
			a, b := head+2*i, head+2*i+1
			if r.neox {
				a, b = head+i, head+i+r.size/2
			}
			sin, cos := math.Sincos(angle)
			x[a], x[b] = x[a]*cos-x[b]*sin, x[a]*sin+x[b]*cos
		}
	}
}

// Vocabulary is how many tokens there are.
func (r *Reference) Vocabulary() int { return r.vocab }

// Step returns the logits after one more token.
func (r *Reference) Step(token int32) []float64 {
	x := append([]float64(nil), r.tensors["token_embd.weight"][int(token)*r.width:][:r.width]...)
	for b := range r.blocks {
		at := "blk." + string(rune('0'+b)) + "."
		h := r.norm(at+"attn_norm", x)
		q, k := r.times(at+"attn_q", h), r.times(at+"attn_k", h)
		position := len(r.keys[b])
		r.turn(q, position)
		r.turn(k, position)
		r.keys[b], r.values[b] = append(r.keys[b], k), append(r.values[b], r.times(at+"attn_v", h))
		y := make([]float64, len(q))
		for head := range r.heads {
			shared := head / (r.heads / r.kv) * r.size
			weights, sum := make([]float64, position+1), 0.0
			for p := range weights {
				for i := range r.size {
					weights[p] += q[head*r.size+i] * r.keys[b][p][shared+i]
				}
				weights[p] = math.Exp(weights[p] / math.Sqrt(float64(r.size)))
				sum += weights[p]
			}
			for p, w := range weights {
				for i := range r.size {
					y[head*r.size+i] += w / sum * r.values[b][p][shared+i]
				}
			}
		}
		for i, v := range r.times(at+"attn_output", y) {
			x[i] += v
		}
		h = r.norm(at+"ffn_norm", x)
		gate, up := r.times(at+"ffn_gate", h), r.times(at+"ffn_up", h)
		for i, g := range gate {
			gate[i] = g / (1 + math.Exp(-g)) * up[i]
		}
		for i, v := range r.times(at+"ffn_down", gate) {
			x[i] += v
		}
	}
	x = r.norm("output_norm", x)
	if r.tensors["output.weight"] == nil {
		return r.times("token_embd", x)
	}
	return r.times("output", x)
}

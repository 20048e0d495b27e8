package decoder

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// change is what a file differs in from a model: metadata, or tensors, which get a shape (rows last). Nil removes.
type change struct {
	metadata map[string]any
	tensors  map[string][]int
	types    map[string]quant.Type
}

// changed writes a model again, with tensors of zeros.
func changed(t testing.TB, r Random, c change) *gguf.File {
	var first, out bytes.Buffer
	require.NoError(t, r.Write(&first))
	from, err := gguf.New(bytes.NewReader(first.Bytes()), int64(first.Len()))
	require.NoError(t, err)
	w := gguf.NewWriter(&out)
	set := func(key string, v any) {
		if v != nil {
			require.NoError(t, w.Set(key, v))
		}
	}
	for _, key := range from.Keys() {
		v, _ := from.Value(key)
		if other, ok := c.metadata[key]; ok {
			v = other
			delete(c.metadata, key)
		}
		set(key, v)
	}
	for key, v := range c.metadata {
		set(key, v)
	}
	size := 0
	add := func(name string, typ quant.Type, shape []int) {
		if shape == nil {
			return
		}
		if other, ok := c.types[name]; ok {
			typ = other
		}
		require.NoError(t, w.AddTensor(name, typ, shape...))
		row, err := typ.RowSize(shape[len(shape)-1])
		require.NoError(t, err)
		for _, n := range shape[:len(shape)-1] {
			row *= n
		}
		size += row
	}
	for _, x := range from.Tensors() {
		shape := x.Shape()
		if other, ok := c.tensors[x.Name()]; ok {
			shape = other
			delete(c.tensors, x.Name())
		}
		add(x.Name(), x.Type(), shape)
	}
	for name, shape := range c.tensors {
		add(name, quant.F32, shape)
	}
	_, err = w.Write(make([]byte, size))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	f, err := gguf.New(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	return f
}

var (
	smallLlama   = Random{Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 16, Hidden: 24, Heads: 4, KVHeads: 2, Context: 32}
	smallMixtral = Random{Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 16, Hidden: 24, Heads: 4, KVHeads: 2, Context: 32, Experts: 5, UsedExperts: 2}
	smallGemma   = Random{Architecture: "gemma2", Tokenizer: "llama", Blocks: 2, Width: 16, Hidden: 24, Heads: 4, KVHeads: 2, Context: 32, Tied: true}
	smallPhi     = Random{Architecture: "phi3", Tokenizer: "llama", Blocks: 1, Width: 16, Hidden: 24, Heads: 4, KVHeads: 2, Context: 32, Factors: true}
	smallQwen    = Random{Architecture: "qwen2", Tokenizer: "gpt2", Blocks: 1, Width: 16, Hidden: 24, Heads: 2, KVHeads: 2, Context: 32, Tied: true}
)

func TestRead(t *testing.T) {
	m, err := Read(changed(t, smallLlama, change{}))
	require.NoError(t, err)
	require.Equal(t, Config{Architecture: "llama", Name: "random weights", Blocks: 2, Width: 16, Hidden: 24, Heads: 4, KVHeads: 2, HeadSize: 4,
		Vocabulary: 320, Context: 32, Epsilon: 1e-5, Rope: compute.RopeOptions{Dims: 4, Base: 50000, Precise: true}, Original: 32}, m.Config)
	require.NotSame(t, m.tensors.Embedding, m.tensors.Head)

	// What is not in a file, and models that were stretched.
	m, err = Read(changed(t, smallQwen, change{metadata: map[string]any{"qwen2.attention.head_count_kv": nil, "qwen2.rope.freq_base": nil,
		"general.name": nil, "qwen2.rope.scaling.type": "linear", "qwen2.rope.scaling.factor": float32(4), "qwen2.rope.dimension_count": uint32(6)}}))
	require.NoError(t, err)
	require.Equal(t, 2, m.KVHeads)
	require.Equal(t, compute.RopeOptions{NeoX: true, Dims: 6, Base: 10000, Scale: 0.25, Precise: true}, m.Rope)
	require.Same(t, m.tensors.Embedding, m.tensors.Head)
	m, err = Read(changed(t, smallLlama, change{metadata: map[string]any{"llama.rope.scale_linear": float32(2)}}))
	require.NoError(t, err)
	require.EqualValues(t, 0.5, m.Rope.Scale)

	// Heads may be wider than their share of the width.
	wide := change{metadata: map[string]any{"llama.attention.key_length": uint32(8), "llama.attention.value_length": uint32(8)},
		tensors: map[string][]int{}}
	for _, b := range []string{"blk.0.", "blk.1."} {
		wide.tensors[b+"attn_q.weight"], wide.tensors[b+"attn_output.weight"] = []int{32, 16}, []int{16, 32}
		wide.tensors[b+"attn_k.weight"], wide.tensors[b+"attn_v.weight"] = []int{16, 16}, []int{16, 16}
	}
	m, err = Read(changed(t, smallLlama, wide))
	require.NoError(t, err)
	require.Equal(t, 8, m.HeadSize)
}

func TestReadErrors(t *testing.T) {
	for _, c := range []struct {
		model Random
		change
		want error
		says string
	}{
		{smallLlama, change{metadata: map[string]any{"general.architecture": nil}}, gguf.ErrMissing, "general.architecture"},
		{smallLlama, change{metadata: map[string]any{"general.architecture": "mamba"}}, compute.ErrUnsupported, `"mamba"`},
		{smallLlama, change{metadata: map[string]any{"llama.block_count": nil}}, gguf.ErrMissing, "llama.block_count"},
		{smallLlama, change{metadata: map[string]any{"llama.block_count": "two"}}, compute.ErrDType, "llama.block_count"},
		{smallLlama, change{metadata: map[string]any{"llama.block_count": uint64(1 << 40)}}, compute.ErrArgument, "llama.block_count"},
		{smallLlama, change{metadata: map[string]any{"llama.block_count": uint32(1 << 30)}}, gguf.ErrMissing, "blk.2.attn_norm.weight"},
		{smallLlama, change{metadata: map[string]any{"llama.block_count": uint32(1)}}, compute.ErrUnsupported, "blk.1."},
		{smallLlama, change{metadata: map[string]any{"llama.embedding_length": uint32(0)}}, compute.ErrArgument, "llama.embedding_length"},
		{smallLlama, change{metadata: map[string]any{"llama.attention.head_count": uint32(3)}}, compute.ErrShape, "head_count_kv"},
		{smallLlama, change{metadata: map[string]any{"llama.attention.head_count": uint32(6)}}, compute.ErrShape, "embedding_length"},
		{smallLlama, change{metadata: map[string]any{"llama.attention.value_length": uint32(6)}}, compute.ErrUnsupported, "value_length"},
		{smallLlama, change{metadata: map[string]any{"llama.attention.layer_norm_rms_epsilon": float32(-1)}}, compute.ErrArgument, "epsilon"},
		{smallLlama, change{metadata: map[string]any{"llama.rope.dimension_count": uint32(3)}}, compute.ErrShape, "dimension_count"},
		{smallLlama, change{metadata: map[string]any{"llama.rope.scaling.type": "ntk"}}, compute.ErrUnsupported, `"ntk"`},
		{smallLlama, change{metadata: map[string]any{"llama.rope.scaling.type": "linear"}}, gguf.ErrMissing, "rope.scaling.factor"},
		{smallLlama, change{metadata: map[string]any{"llama.rope.scaling.type": "yarn"}}, gguf.ErrMissing, "rope.scaling.factor"},
		{smallLlama, change{metadata: map[string]any{"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": float32(4),
			"llama.rope.scaling.yarn_ext_factor": float32(0.5)}}, compute.ErrUnsupported, "yarn_ext_factor"},
		{smallGemma, change{metadata: map[string]any{"gemma2.attention.sliding_window": "wide"}}, compute.ErrDType, "sliding_window"},
		{smallGemma, change{metadata: map[string]any{"gemma2.attention.sliding_window_pattern": uint32(0)}}, compute.ErrArgument, "sliding_window_pattern"},
		{smallGemma, change{metadata: map[string]any{"gemma2.final_logit_softcapping": float32(-1)}}, compute.ErrArgument, "final_logit_softcapping"},
		{smallGemma, change{tensors: map[string][]int{"blk.0.post_ffw_norm.weight": nil}}, gguf.ErrMissing, "blk.0.post_ffw_norm.weight"},
		{smallPhi, change{tensors: map[string][]int{"blk.0.attn_qkv.weight": {31, 16}}}, compute.ErrShape, "blk.0.attn_qkv.weight"},
		{smallPhi, change{tensors: map[string][]int{"rope_factors_long.weight": nil}}, gguf.ErrMissing, "rope_factors_long.weight"},
		{smallPhi, change{metadata: map[string]any{"phi3.rope.scaling.type": "yarn", "phi3.rope.scaling.factor": float32(4)}}, compute.ErrUnsupported,
			"rope_factors_short.weight"},
		{smallLlama, change{metadata: map[string]any{"llama.expert_count": uint32(8)}}, gguf.ErrMissing, "expert_used_count"},
		{smallGemma, change{metadata: map[string]any{"gemma2.expert_count": uint32(8)}}, compute.ErrUnsupported, "expert_count"},
		{smallMixtral, change{metadata: map[string]any{"llama.expert_count": uint32(4)}}, compute.ErrShape, "blk.0.ffn_gate_inp.weight"},
		{smallMixtral, change{metadata: map[string]any{"llama.expert_used_count": uint32(6)}}, compute.ErrShape, "expert_used_count"},
		{smallMixtral, change{metadata: map[string]any{"llama.expert_used_count": uint32(0)}}, compute.ErrArgument, "expert_used_count"},
		{smallMixtral, change{metadata: map[string]any{"llama.expert_gating_func": uint32(2)}}, compute.ErrUnsupported, "expert_gating_func"},
		{smallMixtral, change{tensors: map[string][]int{"blk.1.ffn_down_exps.weight": nil}}, gguf.ErrMissing, "blk.1.ffn_down_exps.weight"},
		{smallMixtral, change{tensors: map[string][]int{"blk.1.ffn_down_exps.weight": {16, 24}}}, compute.ErrShape, "blk.1.ffn_down_exps.weight"},
		{smallMixtral, change{tensors: map[string][]int{"blk.1.ffn_gate.weight": {24, 16}}}, compute.ErrUnsupported, "blk.1.ffn_gate.weight"},
		{smallLlama, change{tensors: map[string][]int{"token_embd.weight": nil}}, gguf.ErrMissing, "token_embd.weight"},
		{smallLlama, change{tensors: map[string][]int{"token_embd.weight": {320, 8}}}, compute.ErrShape, "token_embd.weight"},
		{smallLlama, change{tensors: map[string][]int{"output.weight": {319, 16}}}, compute.ErrShape, "output.weight"},
		{smallLlama, change{tensors: map[string][]int{"blk.1.ffn_down.weight": {24, 16}}}, compute.ErrShape, "blk.1.ffn_down.weight"},
		{smallLlama, change{tensors: map[string][]int{"blk.1.attn_q.bias": {16}}}, gguf.ErrMissing, "blk.1.attn_k.bias"},
		{smallLlama, change{tensors: map[string][]int{"blk.1.attn_v.bias": {8}}}, gguf.ErrMissing, "blk.1.attn_q.bias"},
		{smallLlama, change{tensors: map[string][]int{"blk.0.attn_q_norm.weight": {4}}}, compute.ErrUnsupported, "blk.0.attn_q_norm.weight"},
		{smallLlama, change{types: map[string]quant.Type{"output.weight": quant.I8}}, compute.ErrUnsupported, "output.weight"},
		{smallQwen, change{tensors: map[string][]int{"blk.0.attn_q.bias": nil, "blk.0.attn_k.bias": nil, "blk.0.attn_v.bias": nil}},
			gguf.ErrMissing, "blk.0.attn_q.bias"},
	} {
		_, err := Read(changed(t, c.model, c.change))
		require.ErrorIs(t, err, c.want, c.says)
		require.ErrorContains(t, err, c.says)
	}
}

func TestRandomErrors(t *testing.T) {
	for _, edit := range []func(r *Random){
		func(r *Random) { r.Architecture = "toaster" },
		func(r *Random) { r.Heads = 3 },
		func(r *Random) { r.Blocks = 0 },
	} {
		r := smallLlama
		edit(&r)
		require.ErrorIs(t, r.Write(&bytes.Buffer{}), compute.ErrArgument)
	}
	r := smallLlama
	r.Format = Mixed
	require.ErrorIs(t, r.Write(&bytes.Buffer{}), compute.ErrShape, "rows of 16 are no blocks of 256")
	require.Equal(t, []quant.Type{quant.Q6_K, quant.Q4_K, quant.Q6_K}, []quant.Type{Mixed("output.weight"), Mixed("blk.0.attn_output.weight"),
		Mixed("blk.0.ffn_down.weight")})
}

func TestSampler(t *testing.T) {
	for _, bad := range []float64{-1, inf(), -inf(), inf() - inf()} {
		_, err := NewSampler(bad, 0, 0)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err := NewSampler(1, -1, 0)
	require.ErrorIs(t, err, compute.ErrArgument)

	greedy, err := NewSampler(0, 40, 0)
	require.NoError(t, err)
	require.Equal(t, Output{TopK: 1}, greedy.Output())
	require.EqualValues(t, 7, greedy.Pick(&Next{Indices: []int32{7}}))
	require.EqualValues(t, 1, greedy.Pick(&Next{Logits: []float32{1, 3, 2}}))

	// At temperature 2, logits of 2·log p are drawn with probability p.
	s, err := NewSampler(2, 3, 5)
	require.NoError(t, err)
	require.Equal(t, Output{TopK: 3}, s.Output())
	next := &Next{Logits: []float32{-1.0216512, -1.8325815, -5.5214609}, Indices: []int32{9, 4, 2}} // 0.6, 0.4, 0.0632…
	count := map[int32]float64{}
	const n = 20000
	for range n {
		count[s.Pick(next)]++
	}
	sum := 0.6 + 0.4 + 0.0632456
	require.InDelta(t, 0.6/sum, count[9]/n, 0.015)
	require.InDelta(t, 0.4/sum, count[4]/n, 0.015)
	require.InDelta(t, 0.0632456/sum, count[2]/n, 0.01)
	other, err := NewSampler(2, 3, 5)
	require.NoError(t, err)
	again, err := NewSampler(2, 3, 5)
	require.NoError(t, err)
	for range 50 {
		require.Equal(t, other.Pick(next), again.Pick(next), "the seed says it all")
	}
	nan := float32(inf() - inf())
	require.EqualValues(t, 9, s.Pick(&Next{Logits: []float32{nan, nan}, Indices: []int32{9, 4}}), "no panic")
	require.True(t, slices.Contains([]int32{0, 1}, s.Pick(&Next{Logits: []float32{1, 1}})))
}

func inf() float64 { return math.Inf(1) }

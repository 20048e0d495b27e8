//go:build !js

package decoder

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// fileWriter collects tensors of a file, which are written after the last.
type fileWriter struct {
	t    testing.TB
	out  bytes.Buffer
	w    *gguf.Writer
	data []byte
}

func newFileWriter(t testing.TB) *fileWriter {
	f := &fileWriter{t: t}
	f.w = gguf.NewWriter(&f.out)
	return f
}

func (f *fileWriter) set(key string, v any) { require.NoError(f.t, f.w.Set(key, v)) }

func (f *fileWriter) tensor(name string, x []float32, shape ...int) {
	require.NoError(f.t, f.w.AddTensor(name, quant.F32, shape...))
	for _, v := range x {
		f.data = binary.LittleEndian.AppendUint32(f.data, math.Float32bits(v))
	}
}

func (f *fileWriter) file() *gguf.File {
	_, err := f.w.Write(f.data)
	require.NoError(f.t, err)
	require.NoError(f.t, f.w.Close())
	file, err := gguf.New(bytes.NewReader(f.out.Bytes()), int64(f.out.Len()))
	require.NoError(f.t, err)
	return file
}

// adapted makes an adapter for matrices of a model, and the model with its changes in the weights.
func adapted(t testing.TB, f *gguf.File, scale, alpha float32, seed uint64, changes func(tensor string) bool) (adapter, merged *gguf.File) {
	const rank = 3
	random := rand.New(rand.NewPCG(seed, 0))
	a, m := newFileWriter(t), newFileWriter(t)
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		m.set(key, v)
	}
	architecture, err := gguf.Value[string](f, "general.architecture")
	require.NoError(t, err)
	a.set("general.type", "adapter")
	a.set("general.architecture", architecture)
	a.set("adapter.type", "lora")
	if alpha != 0 {
		a.set("adapter.lora.alpha", alpha)
		scale *= alpha / rank
	}
	normal := func(n int, deviation float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(deviation * random.NormFloat64())
		}
		return x
	}
	for _, x := range f.Tensors() {
		whole := &tensor{name: x.Name(), file: x}
		values, shape := make([]float32, whole.elements()), x.Shape()
		require.NoError(t, whole.dequantize(values))
		if len(shape) == 2 && changes(x.Name()) {
			low, high := normal(rank*shape[1], 1/math.Sqrt(float64(shape[1]))), normal(shape[0]*rank, 0.5)
			a.tensor(x.Name()+".lora_a", low, rank, shape[1])
			a.tensor(x.Name()+".lora_b", high, shape[0], rank)
			for i := range shape[0] {
				for j := range shape[1] {
					sum := 0.0
					for k := range rank {
						sum += float64(high[i*rank+k]) * float64(low[k*shape[1]+j])
					}
					values[i*shape[1]+j] += float32(float64(scale) * sum)
				}
			}
		}
		m.tensor(x.Name(), values, shape...)
	}
	return a.file(), m.file()
}

// TestAdapter compares with float64 and weights that were changed beforehand.
func TestAdapter(t *testing.T) {
	seed := seed(t)
	all := func(name string) bool { return !strings.Contains(name, "token_embd") }
	few := func(name string) bool { return strings.Contains(name, "attn_q") || strings.Contains(name, "ffn_up") }
	for name, model := range models(seed) {
		f := opened(t, model)
		for i, changes := range []func(string) bool{all, few} {
			file, merged := adapted(t, f, 0.75, float32(i*5), seed, changes)
			adapter, err := ReadAdapter(file)
			require.NoError(t, err)
			o := LoadOptions{Adapters: []ScaledAdapter{{adapter, 0.75}}}
			c := newCourse(t, merged, seed)
			for _, kind := range kinds {
				if kind != "cpu" && (name != "llama" || !testseed.Whole() && uint64(i) != seed%2) {
					continue
				}
				t.Run(name+"/"+kind, func(t *testing.T) {
					c.follow(t, loaded(t, f, device(t, kind), o), 4, false, false, 5e-5)
				})
			}
			if name == "llama" && i == 0 {
				members(t, f, "cpu", 2, o, func(rank int, w *Weights) error {
					s, err := w.NewSession(t.Context(), SessionOptions{Chunk: chunk, Exact: true})
					if err != nil {
						return err
					}
					defer s.Close()
					n, err := s.Feed(t.Context(), c.tokens[:promptLength+1]...)
					if err == nil && !(deviation(c.logits[0], n.Logits) <= 5e-5) {
						t.Errorf("member %d: off by %g", rank, deviation(c.logits[0], n.Logits))
					}
					return err
				})
				// Half and half is whole.
				two := loaded(t, f, device(t, "cpu"), LoadOptions{Adapters: []ScaledAdapter{{adapter, 0.5}, {adapter, 0.25}}})
				c.follow(t, two, 2, false, false, 5e-5)
				plain := newCourse(t, f, seed)
				c.tokens, c.logits = plain.tokens, plain.logits
				c.follow(t, loaded(t, f, device(t, "cpu"), LoadOptions{}), 2, false, false, 2e-5)
			}
		}
	}
}

func TestReadAdapter(t *testing.T) {
	base := map[string]any{"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora", "adapter.lora.alpha": float32(2)}
	write := func(change map[string]any, tensors ...any) *gguf.File {
		f := newFileWriter(t)
		for key, v := range base {
			if other, ok := change[key]; ok {
				v = other
			}
			if v != nil {
				f.set(key, v)
			}
		}
		for key, v := range change {
			if _, ok := base[key]; !ok {
				f.set(key, v)
			}
		}
		for i := 0; i < len(tensors); i += 2 {
			shape := tensors[i+1].([]int)
			n := 1
			for _, s := range shape {
				n *= s
			}
			f.tensor(tensors[i].(string), make([]float32, n), shape...)
		}
		return f.file()
	}
	for _, c := range []struct {
		err  error
		says string
		file *gguf.File
	}{
		{gguf.ErrMissing, "general.type", opened(t, smallLlama)},
		{compute.ErrUnsupported, `general.type is "model"`, write(map[string]any{"general.type": "model"})},
		{compute.ErrUnsupported, "adapter.type", write(map[string]any{"adapter.type": "control_vector"})},
		{gguf.ErrMissing, "general.architecture", write(map[string]any{"general.architecture": nil})},
		{compute.ErrUnsupported, "adapter.alora.invocation_tokens", write(map[string]any{"adapter.alora.invocation_tokens": uint32(1)})},
		{gguf.ErrMissing, "output.weight.lora_b", write(nil, "output.weight.lora_a", []int{2, 16})},
		{compute.ErrUnsupported, "output.weight.lora_b", write(nil, "output.weight.lora_b", []int{320, 2})},
		{compute.ErrShape, "output.weight", write(nil, "output.weight.lora_a", []int{2, 16}, "output.weight.lora_b", []int{320, 3})},
		{compute.ErrShape, "output.weight", write(nil, "output.weight.lora_a", []int{16}, "output.weight.lora_b", []int{320, 2})},
	} {
		_, err := ReadAdapter(c.file)
		require.ErrorIs(t, err, c.err)
		require.ErrorContains(t, err, c.says)
	}
	m, err := Read(opened(t, smallLlama))
	require.NoError(t, err)
	for _, c := range []struct {
		err  error
		says string
		file *gguf.File
	}{
		{compute.ErrShape, "qwen2", write(map[string]any{"general.architecture": "qwen2"})},
		{compute.ErrShape, "blk.7.attn_q.weight", write(nil, "blk.7.attn_q.weight.lora_a", []int{2, 16}, "blk.7.attn_q.weight.lora_b", []int{16, 2})},
		{compute.ErrShape, "blk.0.attn_k.weight", write(nil, "blk.0.attn_k.weight.lora_a", []int{2, 16}, "blk.0.attn_k.weight.lora_b", []int{16, 2})},
		{compute.ErrUnsupported, "token_embd.weight", write(nil, "token_embd.weight.lora_a", []int{2, 16}, "token_embd.weight.lora_b", []int{320, 2})},
	} {
		a, err := ReadAdapter(c.file)
		require.NoError(t, err)
		_, err = m.Load(t.Context(), device(t, "cpu"), LoadOptions{Adapters: []ScaledAdapter{{a, 1}}})
		require.ErrorIs(t, err, c.err)
		require.ErrorContains(t, err, c.says)
	}
}

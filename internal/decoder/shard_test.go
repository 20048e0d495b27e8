//go:build !js

package decoder

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/quant/gguf"
)

// spreadModels are the models, and one whose heads and tokens cannot be divided evenly.
func spreadModels(seed uint64) map[string]Random {
	all := models(seed)
	maps.DeleteFunc(all, func(_ string, r Random) bool { return r.Experts > 0 }) // which cannot be in parts
	all["uneven"] = Random{Architecture: "llama", Tokenizer: "gpt2", Blocks: 2, Width: 288, Hidden: 160, Heads: 9, KVHeads: 3, Context: 64,
		Tied: true, Seed: seed, Format: narrow}
	return all
}

// members loads a model spread over a group, on a device each, and calls f for every member.
func members(t *testing.T, f *gguf.File, kind string, size int, o LoadOptions, do func(rank int, w *Weights) error) {
	t.Helper()
	devices := make([]dist.Device, size)
	for i := range devices {
		devices[i] = device(t, kind)
	}
	groups, err := dist.Local(devices...)
	require.NoError(t, err)
	m, err := Read(f)
	require.NoError(t, err)
	errs := make([]error, size)
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() {
			o := o
			o.Group, o.AllReduce = g, (*batch.Batch).AllReduce
			w, err := m.Load(t.Context(), devices[i].(Device), o)
			if err != nil {
				errs[i] = err
				return
			}
			defer w.Close()
			errs[i] = do(i, w)
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

// TestSpread has every member compute the logits of the reference, all with the same bits, from a part of the weights.
func TestSpread(t *testing.T) {
	seed := seed(t)
	for name, model := range spreadModels(seed) {
		f := opened(t, model)
		c := newCourse(t, f, seed)
		whole := loaded(t, f, device(t, "cpu"), LoadOptions{}).Bytes()
		for _, kind := range kinds {
			for _, size := range []int{2, 3, 4} {
				if kind != "cpu" && (name != "llama" || size != 2) || size == 3 && name != "uneven" || size == 4 && (name == "gemma" || name == "uneven") {
					continue // a device reads parts as it reads the whole, and heads are divided as they can be
				}
				t.Run(fmt.Sprint(name, "/", kind, "/", size), func(t *testing.T) {
					const steps = 3
					logits, bytes := make([][steps][]float32, size), make([]int64, size)
					members(t, f, kind, size, LoadOptions{}, func(rank int, w *Weights) error {
						bytes[rank] = w.Bytes()
						s, err := w.NewSession(t.Context(), SessionOptions{Chunk: chunk, Exact: true})
						if err != nil {
							return err
						}
						defer s.Close()
						given := c.tokens[:promptLength+1]
						for i := range steps {
							n, err := s.Feed(t.Context(), given...)
							if err != nil {
								return err
							}
							logits[rank][i] = slices.Clone(n.Logits)
							given = c.tokens[promptLength+1+i:][:1]
						}
						return nil
					})
					sum := int64(0)
					for rank := range size {
						for i := range steps {
							require.Equal(t, logits[0][i], logits[rank][i])
						}
						require.Less(t, bytes[rank], whole)
						sum += bytes[rank]
					}
					for i := range steps {
						require.Len(t, logits[0][i], len(c.logits[i]))
						require.LessOrEqual(t, deviation(c.logits[i], logits[0][i]), forms["blocks"].accuracy, "step %d", i)
					}
					t.Logf("%d bytes of %d, together %d", bytes, whole, sum)
				})
			}
		}
	}
}

// TestSpreadParts looks at the rows and columns that members have: together all, and of the rest only what is in the same blocks.
func TestSpreadParts(t *testing.T) {
	seed := seed(t)
	f := opened(t, models(seed)["llama"]) // whose matrices have blocks of 256, and rows of 256 and of 512 columns
	m, err := Read(f)
	require.NoError(t, err)
	for _, size := range []int{1, 2, 4, 8} {
		var down, up, tokens []float32
		for rank := range size {
			part, err := m.shard(rank, size)
			require.NoError(t, err)
			require.Equal(t, m.Heads/size, part.Heads)
			require.Equal(t, max(m.KVHeads/size, 1), part.KVHeads)
			b := part.tensors.Blocks[1]
			d := b.Down
			x := make([]float32, d.elements())
			require.NoError(t, d.dequantize(x))
			require.Equal(t, m.Hidden/size, d.cols()-d.before-d.after)
			require.Less(t, d.before+d.after, max(2, 256-m.Hidden/size+1))
			for row := range 2 {
				down = append(down, x[row*d.cols()+d.before:(row+1)*d.cols()-d.after]...)
			}
			for _, p := range []struct {
				t  *tensor
				to *[]float32
			}{{b.Up, &up}, {part.tensors.Head, &tokens}} {
				x := make([]float32, p.t.elements())
				require.NoError(t, p.t.dequantize(x))
				*p.to = append(*p.to, x...)
			}
		}
		want := func(t1 *tensor) []float32 {
			x := make([]float32, t1.elements())
			require.NoError(t, t1.dequantize(x))
			return x
		}
		b := m.tensors.Blocks[1]
		require.Equal(t, want(b.Up), up)
		require.Equal(t, want(m.tensors.Head), tokens)
		all, n := want(b.Down), m.Hidden/size
		for rank := range size {
			for row := range 2 {
				require.Equal(t, all[row*m.Hidden+rank*n:][:n], down[(2*rank+row)*n:][:n])
			}
		}
	}
	for _, size := range []int{3, 16} {
		_, err := m.shard(0, size)
		require.ErrorIs(t, err, compute.ErrShape)
		require.ErrorContains(t, err, fmt.Sprintf("8 heads of queries on 2 of keys cannot be divided among %d members", size))
	}
	mixture, err := Read(opened(t, models(seed)["mixtral"]))
	require.NoError(t, err)
	_, err = mixture.shard(0, 2)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, "4 experts")
	_, err = m.Load(t.Context(), device(t, "cpu"), LoadOptions{Group: (*dist.Group)(nil)})
	require.ErrorIs(t, err, compute.ErrArgument)
}

// TestSpreadPaged continues two sequences together, on members who have a part each.
func TestSpreadPaged(t *testing.T) {
	seed := seed(t)
	f := opened(t, models(seed)["qwen2"])
	random := rand.New(rand.NewPCG(seed, 3))
	scripts := []*script{newScript(t, f, random, 9), newScript(t, f, random, 7)}
	members(t, f, "cpu", 2, LoadOptions{}, func(rank int, w *Weights) error {
		p, err := w.NewPaged(t.Context(), PagedOptions{SessionOptions{Context: 16, Chunk: 5, Exact: true}, 2, 32})
		if err != nil {
			return err
		}
		defer p.Close()
		a, b := p.Begin(scripts[0].tokens), p.Begin(scripts[1].tokens)
		for _, n := range []int{4, 1, 3, 1} { // of the first, beside one of the second
			if !p.Reserve(a, n) || !p.Reserve(b, 1) {
				return errors.New("no pages")
			}
			next, err := p.Step(t.Context(), Output{}, Feed{a, scripts[0].tokens[a.Position():][:n], false}, Feed{b, scripts[1].tokens[b.Position():][:1], false})
			if err != nil {
				return err
			}
			for i, s := range []*Sequence{a, b} {
				if off := deviation(scripts[i].logits[s.Position()-1], next[i][0].Logits); !(off <= 2e-5) {
					return fmt.Errorf("rank %d, sequence %d after %d tokens: %g", rank, i, s.Position(), off)
				}
			}
		}
		return nil
	})
}

package decoder

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

// Adapter is what a file adds to matrices of a model (Hu and others, "LoRA", 2021): to W the product of a narrow matrix B and a low one A,
// scaled. It has no data, and may be used from many goroutines.
type Adapter struct {
	Architecture string
	alpha        float32
	changes      map[string]*lowRank[*tensor] // by the name of the matrix
}

// lowRank is what is added to a matrix [rows, columns], in whatever form.
type lowRank[T any] struct {
	a T // [rank, columns]
	b T // [rows, rank]
}

// ReadAdapter looks at a file as llama.cpp has it: for each matrix that changes two tensors, with .lora_a and .lora_b after its name. The file
// must stay open until weights are loaded. Errors are those of [Read].
func ReadAdapter(f *gguf.File) (*Adapter, error) {
	a, err := readAdapter(f)
	if err != nil {
		return nil, fmt.Errorf("decoder: adapter: %w", err)
	}
	return a, nil
}

func readAdapter(f *gguf.File) (*Adapter, error) {
	a := &Adapter{changes: map[string]*lowRank[*tensor]{}}
	for _, x := range [][2]string{{"general.type", "adapter"}, {"adapter.type", "lora"}} {
		key, want := x[0], x[1]
		if got, err := gguf.Value[string](f, key); err != nil {
			return nil, err
		} else if got != want {
			return nil, fmt.Errorf("%s is %q, need %q: %w", key, got, want, compute.ErrUnsupported)
		}
	}
	var err error
	if a.Architecture, err = gguf.Value[string](f, "general.architecture"); err != nil {
		return nil, err
	}
	if a.alpha, err = gguf.Value[float32](f, "adapter.lora.alpha"); err != nil && !errors.Is(err, gguf.ErrMissing) {
		return nil, err
	}
	for _, key := range f.Keys() {
		if strings.HasPrefix(key, "adapter.") && key != "adapter.type" && key != "adapter.lora.alpha" {
			return nil, fmt.Errorf("metadata %s: %w", key, compute.ErrUnsupported)
		}
	}
	r := &reader{file: f, used: map[string]bool{}}
	for _, t := range f.Tensors() {
		name, ok := strings.CutSuffix(t.Name(), ".lora_a")
		if !ok {
			continue
		}
		l := &lowRank[*tensor]{r.any(t.Name()), r.any(name + ".lora_b")}
		if r.err == nil {
			if sa, sb := l.a.shape(), l.b.shape(); len(sa) != 2 || len(sb) != 2 || sa[0] != sb[1] {
				return nil, fmt.Errorf("tensors %s.lora_a %v and lora_b %v, rows first: %w", name, sa, sb, compute.ErrShape)
			}
		}
		a.changes[name] = l
	}
	if r.unused(); r.err != nil {
		return nil, r.err
	}
	return a, nil
}

// ScaledAdapter is an adapter and how much of it is added, 1 for all.
type ScaledAdapter struct {
	*Adapter
	Scale float32
}

// check reports adapters that are not of this model.
func (a *Adapter) check(m *Model) error {
	if a.Architecture != m.Architecture {
		return fmt.Errorf("an adapter of %s, the model is of %s: %w", a.Architecture, m.Architecture, compute.ErrShape)
	}
	shapes := map[string][]int{}
	m.each(func(t *tensor) {
		if t.file != nil {
			shapes[t.name] = t.file.Shape()
		}
	})
	for name, l := range a.changes {
		shape, ok := shapes[name]
		switch {
		case !ok:
			return fmt.Errorf("the adapter changes %s, which the model has not: %w", name, compute.ErrShape)
		case name == m.tensors.Embedding.name:
			return fmt.Errorf("the adapter changes %s: %w", name, compute.ErrUnsupported)
		}
		if want := []int{l.b.rows(), l.a.cols()}; !slices.Equal(shape, want) {
			return fmt.Errorf("the adapter changes %s as %v, the model has %v: %w", name, want, shape, compute.ErrShape)
		}
	}
	return nil
}

// changes brings what adapters add to a tensor, or to the part of it that is wanted, to the device.
func (u *upload) changes(t *tensor) (all []lowRank[weight]) {
	for _, adapter := range u.Adapters {
		l := adapter.changes[t.name]
		if l == nil {
			continue
		}
		scale, rank := adapter.Scale, l.a.rows()
		if adapter.alpha != 0 {
			scale *= adapter.alpha / float32(rank)
		}
		a, b := make([]float32, l.a.elements()), make([]float32, l.b.elements())
		if err := errors.Join(l.a.dequantize(a), l.b.dequantize(b)); err != nil {
			u.err = fmt.Errorf("tensor %s of an adapter: %w", t.name, err)
			return nil
		}
		for i := range b {
			b[i] *= scale
		}
		columns := l.a.cols()
		if t.width > 0 {
			from, to := t.left+t.before, t.left+t.width-t.after
			for i := range rank {
				copy(a[i*(to-from):], a[i*columns+from:i*columns+to])
			}
			columns = to - from
			a = a[:rank*columns]
		}
		b = b[t.from*rank:][:t.rows()*rank]
		all = append(all, lowRank[weight]{u.send(t.name, a, rank, columns), u.send(t.name, b, t.rows(), rank)})
	}
	return all
}

// adapted is what x makes of a matrix, y, and what adapters add.
func (g *graph) adapted(y, x batch.Value, w weight) batch.Value {
	for _, l := range w.changes {
		y = g.Add(y, g.product(g.product(x, l.a), l.b))
	}
	return y
}

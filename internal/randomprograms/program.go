package randomprograms

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// program is a program with data: what a test runs in several ways.
type randomProgram struct {
	program.Program
	text     []string // of every slot, for people
	integers map[program.Slot][]int32
	special  bool // NaN, infinities and subnormal numbers are among the data
	seed     uint64
}

// data returns what an input holds, the same each time.
func (p *randomProgram) data(s program.Slot) any {
	if x, ok := p.integers[s]; ok && p.Values[s].DType == compute.Uint32 {
		words := make([]uint32, len(x))
		for i, v := range x {
			words[i] = uint32(v)
		}
		return words
	} else if ok {
		return slices.Clone(x)
	}
	rng := rand.New(rand.NewPCG(p.seed, uint64(s)))
	x := make([]float32, p.Values[s].Len())
	for i := range x {
		x[i] = p.number(rng)
	}
	return x
}

// number is mostly small and sometimes one that functions have an edge or a tie at.
func (p *randomProgram) number(rng *rand.Rand) float32 {
	switch k := rng.IntN(16); {
	case k < 3:
		return edges[rng.IntN(len(edges))]
	case k == 3 && p.special:
		return specials[rng.IntN(len(specials))]
	}
	return float32(rng.Float64()*4 - 2)
}

// arrays gives every input as the reference takes it.
func (p *randomProgram) arrays() []reference.Array {
	values := make([]reference.Array, len(p.Values))
	for _, s := range slices.Concat(p.Host, p.Tensor) {
		values[s] = reference.Array{Shape: p.Values[s].Shape, Data: numbers(p.data(s))}
	}
	return values
}

// record records the program and returns its values by slot.
func (p *randomProgram) record(b *batch.Batch, tensors []compute.Tensor) []batch.Value {
	values := make([]batch.Value, len(p.Values))
	for _, s := range p.Host {
		values[s] = b.Upload(p.data(s), append([]int{}, p.Values[s].Shape...)...)
	}
	for i, s := range p.Tensor {
		values[s] = b.Import(tensors[i])
	}
	for _, step := range p.Steps {
		in := make([]batch.Value, len(step.In))
		for k, s := range step.In {
			in[k] = values[s]
		}
		for k, v := range b.Apply(step.Entry.Name, in, step.Attr.Scalars, step.Attr.Options) {
			values[step.Out[k]] = v
		}
	}
	return values
}

// run runs the program as a batch and returns what it gives: values read, values retained, and the contents of tensors
// afterwards.
func (p *randomProgram) run(dev batch.Device, options ...batch.Option) ([][]float64, error) {
	ctx := context.Background()
	var tensors []compute.Tensor
	defer func() {
		for _, t := range tensors {
			t.Close()
		}
	}()
	for _, s := range p.Tensor {
		t, f := device.Upload(context.Background(), program.ExecutorOf(dev), p.data(s), append([]int{}, p.Values[s].Shape...)...)
		if err := f.Await(ctx); err != nil {
			return nil, fmt.Errorf("upload of %s: %w", p.text[s], err)
		}
		tensors = append(tensors, t)
	}
	b := batch.New(dev, options...)
	values := p.record(b, tensors)
	var results []*batch.Result
	var kept []*batch.Kept
	for _, s := range p.Read {
		results = append(results, b.Read(values[s]))
	}
	for _, s := range p.Keep {
		kept = append(kept, b.Keep(values[s]))
	}
	if err := b.Start().Await(ctx); err != nil {
		return nil, err
	}
	var out [][]float64
	for _, r := range results {
		data, err := r.Data()
		if err != nil {
			return nil, err
		}
		out = append(out, numbers(data))
	}
	for i, t := range slices.Concat(keptTensors(kept), tensors) {
		data := program.MakeSlice(program.Type{DType: t.DType(), Shape: t.Shape()})
		if err := t.ReadAsync(data).Await(ctx); err != nil {
			return nil, fmt.Errorf("reading tensor %d: %w", i, err)
		}
		out = append(out, numbers(data))
	}
	for _, t := range keptTensors(kept) {
		t.Close()
	}
	return out, nil
}

func keptTensors(kept []*batch.Kept) []compute.Tensor {
	var tensors []compute.Tensor
	for _, k := range kept {
		tensors = append(tensors, k.Tensor())
	}
	return tensors
}

// results are the slots of what run returns.
func (p *randomProgram) results() []program.Slot {
	out := slices.Concat(p.Read, p.Keep)
	storage := p.Storage()
	for _, at := range p.Tensor {
		last := at
		for s, h := range storage {
			if h == at {
				last = program.Slot(s)
			}
		}
		out = append(out, last)
	}
	return out
}

func (p *randomProgram) String() string {
	var b strings.Builder
	for s := range p.Values {
		fmt.Fprintf(&b, "v%d %v = %s\n", s, p.Values[s].Type, p.text[s])
	}
	fmt.Fprintf(&b, "read %v, keep %v, seed %d", p.Read, p.Keep, p.seed)
	return b.String()
}

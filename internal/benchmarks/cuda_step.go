//go:build !js

package benchmarks

import (
	"context"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/args"
)

// operation is one of the catalogue as the device runs it, on buffers of random numbers.
type operation struct {
	in    []*cuda.Buffer[byte]
	out   []*cuda.Buffer[byte]
	moved int // bytes of the operands and the results
	// The variant of the kernel that was taken, where there are several, and the rest.
	variant string
	others  []string
	acts    []act
}

func (o *operation) capture(c *cuda.Capture) error {
	for _, f := range o.acts {
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// operation prepares one for graphs, by a variant of its kernel or by default. A program would do the same, but has no clock on
// the GPU.
func (k *clock) operation(ctx context.Context, m measured, variant string) (*operation, error) {
	p := &program.Program{}
	var slots []program.Slot
	for _, t := range m.in {
		slots = append(slots, p.Add(t, program.FromHost))
	}
	results, err := p.ApplyAll(m.entry, m.attr, slots...)
	if err != nil {
		return nil, err
	}
	o := &operation{}
	l, err := ptxkernels.Lower(&p.Steps[0], m.in, p.Types(results), &k.caps, func(_, _ string, candidates []string) int {
		i := max(0, slices.Index(candidates, variant))
		o.variant = candidates[i]
		o.others = slices.Delete(slices.Clone(candidates), i, i+1)
		return i
	})
	if err != nil {
		return nil, err
	}
	memory := map[lowering.Role][]*cuda.Buffer[byte]{}
	for i, t := range m.in {
		n := int32(0)
		if f := m.ints[i]; f != nil {
			n = f(m.in)
		}
		b, err := k.filled(ctx, t, n, slices.Contains(m.zeros, i))
		if err != nil {
			return nil, err
		}
		memory[lowering.Operand] = append(memory[lowering.Operand], b)
		o.moved += t.Bytes()
	}
	var sizes []int
	for _, t := range p.Types(results) {
		sizes = append(sizes, t.Bytes())
		o.moved += t.Bytes()
	}
	// What is changed in place is operand and result.
	memory[lowering.Result] = slices.Clone(memory[lowering.Operand][:m.entry.Updates])
	sizes = sizes[m.entry.Updates:]
	for role, sizes := range map[lowering.Role][]int{lowering.Result: sizes, lowering.Scratch: l.Scratch} {
		for _, n := range sizes {
			b, err := k.buffer(n)
			if err != nil {
				return nil, err
			}
			memory[role] = append(memory[role], b)
		}
	}
	part := func(at kit.Buffer) (*cuda.Buffer[byte], error) {
		b, n := memory[at.Role][at.Index], at.Size
		if n == 0 {
			n = b.Len() - at.Offset
		}
		s, err := b.Slice(at.Offset, at.Offset+n)
		if err == nil {
			k.clean.add(s.Close)
		}
		return s, err
	}
	o.in, o.out = memory[lowering.Operand], memory[lowering.Result]
	for _, x := range l.Actions {
		f, err := k.action(x, part)
		if err != nil {
			return nil, err
		}
		o.acts = append(o.acts, f)
	}
	return o, nil
}

func (k *clock) action(x kit.Action, part func(at kit.Buffer) (*cuda.Buffer[byte], error)) (act, error) {
	switch {
	case x.Copy != nil:
		from, err := part(x.Copy.From)
		if err != nil {
			return nil, err
		}
		to, err := part(x.Copy.To)
		return func(c *cuda.Capture) error { return cuda.CopyOnDevice(c, to, from) }, err
	case x.Fill != nil: // of words, which buffers of bytes do not take
		return nil, fmt.Errorf("a step that fills memory is not measured: %w", compute.ErrUnsupported)
	}
	family := kit.FamilyOf(x.Launch.Kernel.Family)
	m, err := family.Module()
	if err != nil {
		return nil, err
	}
	kernel, err := k.kernel("family "+family.Name, x.Launch.Kernel.Name, m)
	if err != nil {
		return nil, err
	}
	addresses := map[int]args.Arg{} // and tensor maps, by their places
	for _, q := range x.Launch.Pointers {
		b, err := part(q.Buffer)
		if err != nil {
			return nil, err
		}
		addresses[q.At] = b.Arg()
	}
	for _, q := range x.Launch.Maps {
		b, err := part(q.Buffer)
		if err != nil {
			return nil, err
		}
		if addresses[q.At], err = b.TensorMap(q.Map); err != nil {
			return nil, err
		}
	}
	var list []args.Arg
	for _, p := range kernel.Params() {
		a, ok := addresses[p.Offset]
		if !ok {
			a = args.Bytes(x.Launch.Params[p.Offset : p.Offset+p.Size])
		}
		list = append(list, a)
	}
	return func(c *cuda.Capture) error {
		_, err := c.Launch(kernel, cuda.Launch{Grid: x.Launch.Grid, Shared: uint32(x.Launch.Kernel.Shared)}, list...)
		return err
	}, nil
}

package gpu

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/program"
)

// single returns the program of one step by itself, on tensors of made-up data.
func single(ctx context.Context, dev *Device, p *program.Program, s *program.Step) (*program.Program, *program.IO, error) {
	alone, io := &program.Program{}, &program.IO{}
	step := *s
	step.In, step.Attr.Vary = nil, nil
	slots := map[program.Slot]program.Slot{}
	for _, in := range s.In {
		slot, ok := slots[in]
		if !ok {
			t := p.Values[in].Type
			x, err := madeUp(ctx, dev, t)
			if err != nil {
				for _, x := range io.Tensors {
					x.Close()
				}
				return nil, nil, err
			}
			io.Tensors = append(io.Tensors, x)
			slot = alone.Add(t, program.FromTensor)
			slots[in] = slot
		}
		step.In = append(step.In, slot)
	}
	step.Out = nil
	for _, t := range p.Types(s.Out) {
		step.Out = append(step.Out, alone.Add(t, program.FromStep))
	}
	alone.Steps = []program.Step{step}
	return alone, io, nil
}

// madeUp uploads small numbers; integers are zero, which every index may be.
func madeUp(ctx context.Context, dev *Device, t program.Type) (compute.Tensor, error) {
	data := program.MakeSlice(t)
	switch s := data.(type) {
	case []float32:
		for i := range s {
			s[i] = float32(i%13)/16 - 0.375
		}
	case []uint16:
		for i := range s {
			s[i] = 0x3400 + uint16(i%13) // just above a quarter
		}
	case []compute.BF16:
		for i := range s {
			s[i] = 0x3e80 + compute.BF16(i%13)
		}
	}
	x, f := dev.UploadAsync(data, t.Shape...)
	if err := f.Await(ctx); err != nil {
		if x != nil {
			x.Close()
		}
		return nil, err
	}
	return x, nil
}

// Browsers round the GPU's clock, for the sake of privacy, to a tenth of a millisecond.
const (
	tick       = 100 * time.Microsecond
	mostCopies = 64
)

// copies is how many times a step has to run one after the other for the clock to tell variants apart.
func (t *tuner) copies(ctx context.Context, dev *Device, alone *program.Program, io *program.IO, q *question) (int, error) {
	if t.d.info.Backend != "browser" || !t.d.info.has(webgpu.FeatureTimestamps) || alone.Steps[0].Entry.Updates > 0 {
		return 1, nil
	}
	c, err := t.contender(ctx, dev, alone, io, q, 0)
	if err != nil {
		return 1, ctx.Err() // there may be others
	}
	defer c.x.Close()
	if err := c.sample(ctx, io); err != nil { // warm
		return 1, err
	}
	return max(1, min(mostCopies, int(20*tick/max(c.x.GPUTime(), tick/4)))), nil
}

// repeated is a program with its only step so many times.
func repeated(alone *program.Program, copies int) *program.Program {
	p := *alone
	p.Values, p.Steps = slices.Clone(p.Values), slices.Clone(p.Steps)
	for range copies - 1 {
		s := alone.Steps[0]
		s.Out = nil
		for _, out := range alone.Types(alone.Steps[0].Out) {
			s.Out = append(s.Out, p.Add(out, program.FromStep))
		}
		p.Steps = append(p.Steps, s)
	}
	return &p
}

// results runs variant i once and returns what it computes, unless that depends on what was computed before.
func (t *tuner) results(ctx context.Context, dev *Device, alone *program.Program, io *program.IO, q *question, i int) ([]any, error) {
	if alone.Steps[0].Entry.Updates > 0 {
		return nil, nil
	}
	p, run := *alone, *io
	p.Read = p.Steps[0].Out
	run.Read = nil
	for _, out := range p.Types(p.Read) {
		run.Read = append(run.Read, program.MakeSlice(out))
	}
	pl, err := t.planOf(&p, q, i)
	if err != nil {
		return nil, err
	}
	x := newExecutable(dev, pl)
	defer x.Close()
	return run.Read, x.Start(&run).Await(ctx)
}

// farApart is beyond what rounding does to results, relative to the largest.
const farApart = 0.01

// alike tells whether results could be those of the same computation: a variant for which a driver has another code, or has it
// wrong, must not win.
func alike(a, b []any) bool {
	for i := range a {
		x, ok := a[i].([]float32)
		if !ok {
			continue // of 16 bits, or indices, which rounding may change altogether
		}
		y, largest, apart := b[i].([]float32), 0.0, 0.0
		for j := range x {
			if math.IsNaN(float64(x[j])) || math.IsInf(float64(x[j]), 0) {
				continue // small numbers give none where a result is of use
			}
			largest = max(largest, math.Abs(float64(x[j])))
			apart = max(apart, math.Abs(float64(y[j])-float64(x[j]))) // NaN if either is
		}
		if !(apart <= farApart*largest) {
			return false
		}
	}
	return true
}

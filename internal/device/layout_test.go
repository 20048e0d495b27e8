package device_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// randomProgram draws values of all sources and steps that read any of them, reshapes among them, and scratch memory for each step.
func randomProgram(t *rapid.T) (*program.Program, [][]int) {
	p := &program.Program{}
	typ := func() program.Type {
		return program.F32(rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 2000)).Draw(t, "elements"))
	}
	for range rapid.IntRange(1, 5).Draw(t, "inputs") {
		p.Add(typ(), rapid.SampledFrom([]program.Source{program.FromHost, program.FromHost, program.FromTensor}).Draw(t, "source"))
	}
	any := func() program.Slot { return program.Slot(rapid.IntRange(0, len(p.Values)-1).Draw(t, "slot")) }
	var scratch [][]int
	for range rapid.IntRange(0, 20).Draw(t, "steps") {
		if rapid.Float64Range(0, 1).Draw(t, "kind") < 0.2 {
			in := any()
			out := p.Add(program.F32(1, p.Values[in].Len()), program.FromStep)
			p.Steps = append(p.Steps, program.Step{Entry: catalogue.Reshape, In: []program.Slot{in}, Out: []program.Slot{out}})
			scratch = append(scratch, nil)
			continue
		}
		var in []program.Slot
		for range rapid.IntRange(0, 3).Draw(t, "operands") {
			in = append(in, any())
		}
		p.Steps = append(p.Steps, program.Step{Entry: program.UserKernel, In: in, Out: []program.Slot{p.Add(typ(), program.FromStep)}})
		scratch = append(scratch, rapid.SliceOfN(rapid.IntRange(0, 5000), 0, 3).Draw(t, "scratch"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "reads") {
		p.Read = append(p.Read, any())
	}
	for range rapid.IntRange(0, 3).Draw(t, "keeps") {
		p.Keep = append(p.Keep, any())
	}
	return p, scratch
}

// At no time do two values that are needed overlap, whatever the program and the device.
func TestLayout(t *testing.T) {
	const align = 64
	rapid.Check(t, func(t *rapid.T) {
		p, scratch := randomProgram(t)
		a := &device.Allocator{Align: align, Blocks: rapid.Bool().Draw(t, "blocks"), InHost: rapid.Bool().Draw(t, "in host"),
			InResults: rapid.Bool().Draw(t, "in results"), Room: func(bytes int) (int, error) { return max(bytes, 1), nil },
			Scratch: func(step int) []int { return scratch[step] }}
		until := make([]int, len(p.Steps))
		for i := range until {
			until[i] = rapid.OneOf(rapid.Just(i), rapid.Just(i), rapid.IntRange(i, len(p.Steps))).Draw(t, "until")
		}
		a.Until = func(step int) int { return until[step] }
		if !a.InHost {
			a.Inputs = p.Host
		}
		l := device.NewLayout(p)
		require.NoError(t, l.Allocate(a))

		storage := map[program.Slot]device.Kind{}
		for _, x := range []struct {
			slots []program.Slot
			in    device.Kind
			used  bool
		}{{p.Host, device.InHost, a.InHost}, {p.Tensor, device.InTensor, true}, {p.Keep, device.InRetained, true}, {p.Read, device.InResult, a.InResults}} {
			for _, s := range x.slots {
				if _, ok := storage[l.Storage[s]]; !ok && x.used {
					storage[l.Storage[s]] = x.in
				}
			}
		}
		last := slices.Repeat([]int{-1}, len(p.Values)) // the step that needs a value last
		for i, s := range p.Steps {
			last[s.Out[0]] = i
			require.Equal(t, l.View(i), l.Storage[s.Out[0]] != s.Out[0])
			if !l.View(i) {
				for _, in := range l.StorageOf(s.In) {
					last[in] = i
				}
			}
		}
		for i, s := range p.Steps {
			if until[i] > i {
				for _, used := range l.StorageOf(slices.Concat(s.In, s.Out)) {
					last[used] = max(last[used], until[i])
				}
			}
		}
		for _, s := range l.StorageOf(p.Read) {
			last[s] = len(p.Steps)
		}
		type extent struct{ at, n int }
		live := map[program.Slot]extent{}
		check := func(now []extent) {
			for i, x := range now {
				if a.Blocks {
					require.LessOrEqual(t, x.n, l.Blocks[x.at])
				} else {
					require.LessOrEqual(t, x.at+x.n, l.Peak)
					require.Zero(t, x.at%align)
				}
				for _, y := range now[:i] {
					if a.Blocks {
						require.NotEqual(t, x.at, y.at)
					} else {
						require.False(t, x.at < y.at+y.n && y.at < x.at+x.n)
					}
				}
			}
		}
		begin := func(s program.Slot) {
			at := l.Values[s]
			require.Equal(t, storage[l.Storage[s]], at.Kind)
			require.Equal(t, l.Values[l.Storage[s]], at)
			if at.Kind == device.InArena && l.Storage[s] == s {
				live[s] = extent{at.Offset, max(p.Values[s].Bytes(), 1)}
			}
		}
		for _, s := range append(p.Host[:len(p.Host):len(p.Host)], p.Tensor...) {
			begin(s)
		}
		check(slices.Collect(maps.Values(live)))
		for i, step := range p.Steps {
			begin(step.Out[0])
			var now []extent
			for s, x := range live {
				if last[s] >= i {
					now = append(now, x)
				}
			}
			for k, n := range scratch[i] {
				now = append(now, extent{l.Scratch[i][k], max(n, 1)})
			}
			check(now)
			for s := range live {
				if last[s] <= i {
					delete(live, s)
				}
			}
		}
		m := l.Memory()
		if len(p.Steps) == 0 && (a.InHost || len(p.Host) == 0) {
			require.Zero(t, m.Peak)
		}
	})
}

// A reshape shares memory, unless either side of it changes or becomes a tensor.
func TestViews(t *testing.T) {
	cache := program.F32(1, 2, 3, 4)
	row := program.F32(1, 1, 3, 4)
	at := program.Type{DType: compute.Int32, Shape: []int{1}}
	for name, c := range map[string]struct {
		updateOperand, updateResult, keep, want bool
	}{
		"read": {want: true}, "operand changes": {updateOperand: true}, "result changes": {updateResult: true}, "kept": {keep: true},
	} {
		p := &program.Program{}
		x := p.Add(cache, program.FromTensor)
		r, i := p.Add(row, program.FromHost), p.Add(at, program.FromHost)
		y, err := p.Apply(catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: cache.Shape}}, x)
		require.NoError(t, err)
		if c.updateOperand || c.updateResult {
			to := x
			if c.updateResult {
				to = y
			}
			_, err := p.Apply(catalogue.KVAppend, program.Attr{}, to, r, i)
			require.NoError(t, err)
		}
		if c.keep {
			p.Keep = []program.Slot{y}
		}
		require.Equal(t, c.want, device.NewLayout(p).View(0), name)
	}
}

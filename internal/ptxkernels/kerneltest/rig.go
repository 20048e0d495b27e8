package kerneltest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// LowerFunc returns the code of one step.
type LowerFunc func(s *program.Step, in, out []program.Type, caps *kit.Caps, choose lowering.Chooser) (kit.Lowering, error)

// Rig is the least that can run programs: one after the other on a software GPU with every check on, each value in memory of
// its own whose bytes nobody has written. It shows what lowerings and kernels do without a driver in between.
type Rig struct {
	program.Executor // nil: nobody calls the other methods
	GPU              *sim.GPU
	Caps             kit.Caps
	Pick             lowering.Chooser
	Lower            LowerFunc // of programs; not of single actions

	mu      sync.Mutex
	modules map[string]*sim.Module
	Instead map[*kit.Kernel]*sim.Kernel // of some kernels others
	Observe func(k *kit.Kernel, s *sim.Stats)
}

// New returns a rig on a software GPU whose size the seed chooses, since the size decides how work is divided.
func New(t testing.TB, c sim.Config, lower LowerFunc) *Rig {
	sizes := []int{1, 2, 4, 16, 132}
	r := Large(c, lower)
	r.Caps.Multiprocessors = sizes[conformance.Seed()%uint64(len(sizes))]
	t.Logf("%d multiprocessors", r.Caps.Multiprocessors)
	return r
}

// Large returns a rig on a software GPU of the default size.
func Large(c sim.Config, lower LowerFunc) *Rig {
	return &Rig{Lower: lower, GPU: sim.New(c), Caps: kit.DefaultCaps, modules: map[string]*sim.Module{}}
}

// Kernel returns a kernel on the software GPU, loading its module if need be.
func (r *Rig) Kernel(k *kit.Kernel) (*sim.Kernel, error) {
	if other := r.Instead[k]; other != nil {
		return other, nil
	}
	name, build := k.Family, func() (*ir.Module, error) { return kit.FamilyOf(k.Family).Module() }
	if name == "" {
		name, build = k.Name, func() (*ir.Module, error) { return kit.JITModule(k) }
	}
	m := r.modules[name]
	if m == nil {
		module, err := build()
		if err != nil {
			return nil, err
		}
		if m, err = r.GPU.Load(module); err != nil {
			return nil, err
		}
		r.modules[name] = m
	}
	return m.Kernel(k.Name)
}

// Compile lowers the steps of a program.
func (r *Rig) Compile(_ context.Context, p *program.Program) (program.Executable, error) {
	x := &RigProgram{Rig: r, Program: p}
	for i := range p.Steps {
		s := &p.Steps[i]
		l, err := x.Lower(s, p.Types(s.In), p.Types(s.Out), &r.Caps, r.Pick)
		if err != nil {
			return nil, err
		}
		x.Code = append(x.Code, l)
	}
	return x, nil
}

// RigProgram is a program on a rig.
type RigProgram struct {
	program.Executable // nil: nobody calls the other methods
	*Rig
	*program.Program
	Code   []kit.Lowering
	closed bool
}

// Close makes later runs fail.
func (x *RigProgram) Close() error {
	x.closed = true
	return nil
}

// Start runs the program before it returns.
func (x *RigProgram) Start(io *program.IO) *compute.Future {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return compute.Failed(compute.ErrClosed)
	}
	f, resolve := compute.NewFuture(nil)
	results, err := x.run(io)
	if err != nil {
		return compute.Failed(err)
	}
	resolve(nil, func() {
		for i := range results {
			copy(program.Bytes(io.Read[i]), results[i])
		}
	})
	return f
}

func (x *RigProgram) run(io *program.IO) (results [][]byte, err error) {
	if err := x.CheckIO(io, nil); err != nil {
		return nil, err
	}
	var all []uint64
	whole := x.wholeQuads()
	alloc := func(n, size int) uint64 {
		var at uint64
		if err == nil {
			if whole {
				n = kit.CeilDiv(n, 4*size) * 4 * size
			}
			at, err = x.GPU.Alloc(n)
			all = append(all, at)
		}
		return at
	}
	defer func() {
		for _, at := range all {
			x.GPU.Free(at)
		}
	}()
	values := make([]uint64, len(x.Values))
	for i, v := range x.Values {
		values[i] = alloc(v.Bytes(), v.DType.Size())
	}
	if err != nil {
		return nil, err
	}
	for i, s := range x.Host {
		if err := x.GPU.Write(values[s], program.Bytes(io.Host[i])); err != nil {
			return nil, err
		}
	}
	for i := range x.Steps {
		s := &x.Steps[i]
		var scratch []uint64
		for _, n := range x.Code[i].Scratch {
			scratch = append(scratch, alloc(n, 4))
		}
		if err != nil {
			return nil, err
		}
		if err := x.copyUpdated(s, values); err != nil {
			return nil, err
		}
		at := func(b kit.Buffer) uint64 {
			switch b.Role {
			case lowering.Operand:
				return values[s.In[b.Index]] + uint64(b.Offset)
			case lowering.Result:
				return values[s.Out[b.Index]] + uint64(b.Offset)
			}
			return scratch[b.Index] + uint64(b.Offset)
		}
		for _, a := range x.Code[i].Actions {
			if err := x.Act(a, at); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Entry.Name, err)
			}
		}
	}
	for _, s := range x.Read {
		p := make([]byte, x.Values[s].Bytes())
		if err := x.GPU.Read(p, values[s]); err != nil {
			return nil, err
		}
		results = append(results, p)
	}
	return results, nil
}

// wholeQuads tells whether a kernel of the program takes tensors as quads of elements: the last of them may reach beyond the end,
// as memory is allocated in larger pieces. All others may touch nothing but the tensors.
func (x *RigProgram) wholeQuads() bool {
	for _, l := range x.Code {
		for _, a := range l.Actions {
			if a.Launch != nil && strings.HasPrefix(a.Launch.Kernel.Parameters(), "u32 quads") {
				return true
			}
		}
	}
	return false
}

// copyUpdated gives results that are operands changed in place the operands' elements.
func (x *RigProgram) copyUpdated(s *program.Step, values []uint64) error {
	for k := range s.Entry.Updates {
		p := make([]byte, x.Values[s.In[k]].Bytes())
		if err := x.GPU.Read(p, values[s.In[k]]); err != nil {
			return err
		}
		if err := x.GPU.Write(values[s.Out[k]], p); err != nil {
			return err
		}
	}
	return nil
}

// Act executes an action of a lowering, with the address of each buffer.
func (r *Rig) Act(a kit.Action, at func(kit.Buffer) uint64) error {
	switch {
	case a.Copy != nil:
		p := make([]byte, a.Copy.From.Size)
		if err := r.GPU.Read(p, at(a.Copy.From)); err != nil {
			return err
		}
		return r.GPU.Write(at(a.Copy.To), p)
	case a.Fill != nil:
		p := make([]byte, 0, a.Fill.To.Size)
		for len(p) < a.Fill.To.Size {
			p = binary.LittleEndian.AppendUint32(p, a.Fill.Word)
		}
		return r.GPU.Write(at(a.Fill.To), p)
	}
	l := a.Launch
	k, err := r.Kernel(l.Kernel)
	if err != nil {
		return err
	}
	params := append([]byte(nil), l.Params...)
	for _, p := range l.Pointers {
		binary.LittleEndian.PutUint64(params[p.At:], at(p.Buffer))
	}
	for _, m := range l.Maps {
		m.Map.Address = at(m.Buffer)
		b, err := m.Map.Encode()
		if err != nil {
			return err
		}
		copy(params[m.At:], b[:])
	}
	b := l.Kernel.Block
	stats, err := r.GPU.Run(context.Background(), k, sim.Launch{
		Grid:  sim.Dim3{X: int(l.Grid[0]), Y: int(l.Grid[1]), Z: int(l.Grid[2])},
		Block: sim.Dim3{X: b[0], Y: b[1], Z: b[2]}, Params: params, Shared: l.Kernel.Shared})
	if err == nil && r.Observe != nil {
		r.Observe(l.Kernel, stats)
	}
	return err
}

// EveryCheck is the configuration for small cases.
func EveryCheck(seed uint64) sim.Config { return sim.Config{Checks: sim.AllChecks, Seed: seed} }

// Fast is the configuration for large ones.
func Fast() sim.Config { return sim.Config{Workers: 2} }

// Perform runs the actions of a lowering on operands of these bytes; the result has so many.
func (r *Rig) Perform(t *testing.T, l kit.Lowering, result int, operands ...[]byte) []byte {
	alloc := func(n int) uint64 {
		at, err := r.GPU.Alloc(max(16, (n+15)&^15))
		require.NoError(t, err)
		t.Cleanup(func() { r.GPU.Free(at) })
		return at
	}
	var in, scratch []uint64
	for _, b := range operands {
		in = append(in, alloc(len(b)))
		require.NoError(t, r.GPU.Write(in[len(in)-1], b))
	}
	for _, n := range l.Scratch {
		scratch = append(scratch, alloc(n))
	}
	out := alloc(result)
	for _, a := range l.Actions {
		require.NoError(t, r.Act(a, func(b kit.Buffer) uint64 {
			switch b.Role {
			case lowering.Operand:
				return in[b.Index] + uint64(b.Offset)
			case lowering.Result:
				return out + uint64(b.Offset)
			}
			return scratch[b.Index] + uint64(b.Offset)
		}))
	}
	got := make([]byte, result)
	require.NoError(t, r.GPU.Read(got, out))
	return got
}

// OneOf returns one of some values.
func OneOf[T any](rng *rand.Rand, v ...T) T { return v[rng.IntN(len(v))] }

package lower

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
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// rig is the least that can run programs: one after the other on a software GPU with every check on, each value in memory of
// its own whose bytes nobody has written. It shows what lowerings and kernels do without a driver in between.
type rig struct {
	gpu   *sim.GPU
	caps  Caps
	pick  Chooser
	lower LowerFunc // of programs; not of single actions

	mu      sync.Mutex
	modules map[string]*sim.Module
	instead map[*Kernel]*sim.Kernel // of some kernels others
	observe func(k *Kernel, s *sim.Stats)
}

func newRigOf(t testing.TB, c sim.Config, lower LowerFunc) *rig {
	// How work is divided depends on the size of the GPU, which the seed chooses.
	sizes := []int{1, 2, 4, 16, 132}
	size := sizes[conformance.Seed()%uint64(len(sizes))]
	t.Logf("%d multiprocessors", size)
	return &rig{lower: lower, gpu: sim.New(c), caps: Caps{Multiprocessors: size, MaxGrid: DefaultCaps.MaxGrid, Target: DefaultCaps.Target}, modules: map[string]*sim.Module{}}
}

func (r *rig) kernel(k *Kernel) (*sim.Kernel, error) {
	if other := r.instead[k]; other != nil {
		return other, nil
	}
	name, build := k.Family, func() (*ir.Module, error) { return FamilyOf(k.Family).Module() }
	if name == "" {
		name, build = k.Name, func() (*ir.Module, error) { return Made(k) }
	}
	m := r.modules[name]
	if m == nil {
		module, err := build()
		if err != nil {
			return nil, err
		}
		if m, err = r.gpu.Load(module); err != nil {
			return nil, err
		}
		r.modules[name] = m
	}
	return m.Kernel(k.Name)
}

func (r *rig) Compile(p *program.Program) (program.Executable, error) {
	x := &rigProgram{rig: r, Program: p}
	for i := range p.Steps {
		s := &p.Steps[i]
		l, err := x.lower(s, p.Types(s.In), p.Types(s.Out), &r.caps, r.pick)
		if err != nil {
			return nil, err
		}
		x.code = append(x.code, l)
	}
	return x, nil
}

type rigProgram struct {
	*rig
	*program.Program
	code   []Lowering
	closed bool
}

func (x *rigProgram) Close() error {
	x.closed = true
	return nil
}

func (x *rigProgram) Start(io *program.IO) *compute.Future {
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

func (x *rigProgram) run(io *program.IO) (results [][]byte, err error) {
	if err := x.CheckIO(io); err != nil {
		return nil, err
	}
	var all []uint64
	whole := x.wholeQuads()
	alloc := func(n, size int) uint64 {
		var at uint64
		if err == nil {
			if whole {
				n = ceilDiv(n, 4*size) * 4 * size
			}
			at, err = x.gpu.Alloc(n)
			all = append(all, at)
		}
		return at
	}
	defer func() {
		for _, at := range all {
			x.gpu.Free(at)
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
		if err := x.gpu.Write(values[s], program.Bytes(io.Host[i])); err != nil {
			return nil, err
		}
	}
	for i := range x.Steps {
		s := &x.Steps[i]
		var scratch []uint64
		for _, n := range x.code[i].Scratch {
			scratch = append(scratch, alloc(n, 4))
		}
		if err != nil {
			return nil, err
		}
		if err := x.copyUpdated(s, values); err != nil {
			return nil, err
		}
		at := func(b Buffer) uint64 {
			switch b.Role {
			case Operand:
				return values[s.In[b.Index]] + uint64(b.Offset)
			case Result:
				return values[s.Out[b.Index]] + uint64(b.Offset)
			}
			return scratch[b.Index] + uint64(b.Offset)
		}
		for _, a := range x.code[i].Actions {
			if err := x.act(a, at); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Entry.Name, err)
			}
		}
	}
	for _, s := range x.Read {
		p := make([]byte, x.Values[s].Bytes())
		if err := x.gpu.Read(p, values[s]); err != nil {
			return nil, err
		}
		results = append(results, p)
	}
	return results, nil
}

// wholeQuads tells whether a kernel of the program takes tensors as quads of elements: the last of them may reach beyond the end,
// as memory is allocated in larger pieces. All others may touch nothing but the tensors.
func (x *rigProgram) wholeQuads() bool {
	for _, l := range x.code {
		for _, a := range l.Actions {
			if a.Launch != nil && strings.Contains(a.Launch.Kernel.Doc, "Parameters: u32 quads") {
				return true
			}
		}
	}
	return false
}

// copyUpdated gives results that are operands changed in place the operands' elements.
func (x *rigProgram) copyUpdated(s *program.Step, values []uint64) error {
	for k := range s.Entry.Updates {
		p := make([]byte, x.Values[s.In[k]].Bytes())
		if err := x.gpu.Read(p, values[s.In[k]]); err != nil {
			return err
		}
		if err := x.gpu.Write(values[s.Out[k]], p); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) act(a Action, at func(Buffer) uint64) error {
	switch {
	case a.Copy != nil:
		p := make([]byte, a.Copy.Bytes)
		if err := r.gpu.Read(p, at(a.Copy.From)); err != nil {
			return err
		}
		return r.gpu.Write(at(a.Copy.To), p)
	case a.Fill != nil:
		p := make([]byte, 0, 4*a.Fill.Words)
		for range a.Fill.Words {
			p = binary.LittleEndian.AppendUint32(p, a.Fill.Word)
		}
		return r.gpu.Write(at(a.Fill.To), p)
	}
	l := a.Launch
	k, err := r.kernel(l.Kernel)
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
	stats, err := r.gpu.Run(context.Background(), k, sim.Launch{
		Grid:  sim.Dim3{X: int(l.Grid[0]), Y: int(l.Grid[1]), Z: int(l.Grid[2])},
		Block: sim.Dim3{X: b[0], Y: b[1], Z: b[2]}, Params: params, Shared: l.Kernel.Shared})
	if err == nil && r.observe != nil {
		r.observe(l.Kernel, stats)
	}
	return err
}

// everyCheck is the configuration for small cases.
func everyCheck(seed uint64) sim.Config { return sim.Config{Checks: sim.AllChecks, Seed: seed} }

// fast is the configuration for large ones.
func fast() sim.Config { return sim.Config{Workers: 2} }

// perform runs the actions of a lowering on operands of these bytes; the result has so many.
func (r *rig) perform(t *testing.T, l Lowering, result int, operands ...[]byte) []byte {
	alloc := func(n int) uint64 {
		at, err := r.gpu.Alloc(max(16, (n+15)&^15))
		require.NoError(t, err)
		t.Cleanup(func() { r.gpu.Free(at) })
		return at
	}
	var in, scratch []uint64
	for _, b := range operands {
		in = append(in, alloc(len(b)))
		require.NoError(t, r.gpu.Write(in[len(in)-1], b))
	}
	for _, n := range l.Scratch {
		scratch = append(scratch, alloc(n))
	}
	out := alloc(result)
	for _, a := range l.Actions {
		require.NoError(t, r.act(a, func(b Buffer) uint64 {
			switch b.Role {
			case Operand:
				return in[b.Index] + uint64(b.Offset)
			case Result:
				return out + uint64(b.Offset)
			}
			return scratch[b.Index] + uint64(b.Offset)
		}))
	}
	got := make([]byte, result)
	require.NoError(t, r.gpu.Read(got, out))
	return got
}

func oneOf[T any](rng *rand.Rand, v ...T) T { return v[rng.IntN(len(v))] }

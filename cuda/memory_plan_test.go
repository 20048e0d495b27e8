package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/memplan"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// randomProgram draws values of all sources and steps that read any of them, and scratch memory for each step.
func randomProgram(t *rapid.T) (*program.Program, [][]int) {
	p := &program.Program{}
	typ := func() program.Type {
		return program.Type{DType: compute.Float32, Shape: []int{rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 2000)).Draw(t, "elements")}}
	}
	for range rapid.IntRange(0, 5).Draw(t, "inputs") {
		p.Add(typ(), rapid.SampledFrom([]program.Source{program.FromHost, program.FromHost, program.FromTensor}).Draw(t, "source"))
	}
	if len(p.Values) == 0 {
		p.Add(typ(), program.FromHost)
	}
	any := func() program.Slot { return program.Slot(rapid.IntRange(0, len(p.Values)-1).Draw(t, "slot")) }
	var scratch [][]int
	for range rapid.IntRange(0, 20).Draw(t, "steps") {
		var in []program.Slot
		for range rapid.IntRange(0, 3).Draw(t, "operands") {
			in = append(in, any())
		}
		p.Steps = append(p.Steps, program.Step{In: in, Out: []program.Slot{p.Add(typ(), program.FromStep)}})
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

// extent is a piece of memory.
type extent struct {
	at, n uint64
	what  string
}

func disjoint(t require.TestingT, all []extent) {
	for i, a := range all {
		require.Zero(t, a.at%kit.Align, a.what)
		for _, b := range all[:i] {
			require.False(t, a.n > 0 && b.n > 0 && a.at < b.at+b.n && b.at < a.at+a.n, "%v and %v", a, b)
		}
	}
}

// At no time do two values that are needed overlap, whatever the program.
func TestArrange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, scratch := randomProgram(t)
		large := rapid.SampledFrom([]uint64{0, 1000, 1 << 40}).Draw(t, "large")
		pl := &plan{prog: p, allocations: make([]allocation, len(p.Values))}
		for _, step := range scratch {
			for _, n := range step {
				pl.allocations = append(pl.allocations, allocation{bytes: uint64(n)})
			}
		}
		var uses []memplan.Use
		for i, s := range p.Steps {
			uses = append(uses, memplan.Use{In: s.In, Out: s.Out, Scratch: scratch[i]})
		}
		pl.arrange(uses, large)

		kept, tensor := map[program.Slot]bool{}, map[program.Slot]bool{}
		for _, s := range p.Tensor {
			tensor[s] = true
		}
		for _, s := range p.Keep {
			kept[s] = !tensor[s]
		}
		born := make([]int, len(p.Values)) // the step that writes it; −1 for inputs
		last := make([]int, len(p.Values)) // the step that needs it last
		for s := range p.Values {
			born[s], last[s] = -1, -1
		}
		for i, step := range p.Steps {
			born[step.Out[0]], last[step.Out[0]] = i, i
			for _, s := range step.In {
				last[s] = i
			}
		}
		for _, s := range p.Read {
			last[s] = len(p.Steps)
		}
		value := func(s int) extent { return extent{pl.allocations[s].at, uint64(p.Values[s].Bytes()), "value"} }
		sum := uint64(0)
		for s := range p.Values {
			want := inArena
			switch {
			case tensor[program.Slot(s)]:
				want = inTensor
			case kept[program.Slot(s)]:
				want = inRetained
			}
			require.Equal(t, want, pl.allocations[s].kind)
			require.EqualValues(t, p.Values[s].Bytes(), pl.allocations[s].bytes)
			if want == inArena {
				e := value(s)
				require.LessOrEqual(t, e.at+e.n, pl.arena)
				sum += aligned(max(e.n, 1))
			}
		}
		next := len(p.Values)
		for i := -1; i <= len(p.Steps); i++ {
			var live []extent
			for s := range p.Values {
				if pl.allocations[s].kind == inArena && born[s] <= i && (last[s] >= i || i < 0) {
					live = append(live, value(s))
				}
			}
			if i >= 0 && i < len(p.Steps) {
				for range scratch[i] {
					x := pl.allocations[next]
					require.LessOrEqual(t, x.at+x.bytes, pl.arena)
					live = append(live, extent{x.at, x.bytes, "scratch"})
					sum += aligned(max(x.bytes, 1))
					next++
				}
			}
			disjoint(t, live)
		}
		require.LessOrEqual(t, pl.arena, sum)
		if len(p.Steps) == 0 && len(p.Host) == 0 {
			require.Zero(t, pl.arena)
		}

		// One copy brings all inputs that are not large; the staging memory has the same order.
		var staged []extent
		for i, s := range p.Host {
			x := pl.allocations[s]
			require.Equal(t, x.bytes > large, pl.large[i])
			if pl.large[i] {
				require.True(t, x.kind != inArena || x.at >= pl.inputs)
				continue
			}
			staged = append(staged, extent{pl.uploadAt[i], x.bytes, "staged"})
			require.LessOrEqual(t, pl.uploadAt[i]+x.bytes, pl.upload)
			if x.kind == inArena {
				require.Equal(t, x.at, pl.uploadAt[i])
				require.LessOrEqual(t, x.at+x.bytes, pl.inputs)
			}
		}
		disjoint(t, staged)
		var results []extent
		for i, s := range p.Read {
			results = append(results, extent{pl.readAt[i], pl.allocations[s].bytes, "result"})
			require.LessOrEqual(t, pl.readAt[i]+pl.allocations[s].bytes, pl.read)
		}
		disjoint(t, results)
	})
}

// A long chain needs the room of two of its values, whatever its length, or of one where steps work in place.
func TestArrangeReuses(t *testing.T) {
	d := softDevice(t)
	for name, values := range map[string]uint64{"relu": 1, "softmax": 1, "transpose": 2} {
		p := &program.Program{}
		x := p.Add(f32(300, 1000), program.FromHost)
		for range 12 {
			x = with(t, p, name, program.Attr{Options: catalogue.Lookup(name).Options}, x)
		}
		p.Read = []program.Slot{x}
		e := compiled(t, d, p)
		require.Len(t, e.actions, 12)
		require.Equal(t, values*aligned(1_200_000), e.arena, name)
		require.NoError(t, e.Close())
	}
}

// What is computed element by element lies over an operand that nobody needs any more: a chain takes the room of its input, fused
// steps of several results that of theirs. Values that are read later keep theirs.
func TestInPlace(t *testing.T) {
	d := softDevice(t)
	rng := randomSource(t)
	const n = 4000
	p := &program.Program{}
	x := p.Add(f32(n), program.FromHost)
	row := p.Add(f32(40), program.FromHost)
	y := with(t, p, "reshape", program.Attr{Options: compute.ReshapeOptions{Shape: []int{100, 40}}}, x)
	y = with(t, p, "neg", program.Attr{}, y)
	y = with(t, p, "mul", program.Attr{}, row, y)
	early := with(t, p, "softmax", program.Attr{}, y)
	both := program.Expression{Inputs: 3, Nodes: []program.Node{{Entry: catalogue.Sub, Args: []int{0, 1}}, {Entry: catalogue.Mul, Args: []int{3, 2}}}, Results: []int{3, 4}}
	out, err := p.ApplyAll(program.Fused, program.Attr{Options: both}, early, y, row)
	require.NoError(t, err)
	last := with(t, p, "add", program.Attr{}, out[1], out[0])
	p.Read = []program.Slot{last, out[0]}
	q := *p
	q.NoReuse = true
	exec, apart := compiled(t, d, p), compiled(t, d, &q)
	for range 4 { // also as a graph
		io := &program.IO{Host: []any{randomFloats(rng, n), randomFloats(rng, 40)}, Read: []any{make([]float32, n), make([]float32, n)}}
		ran(t, exec, io)
		require.Equal(t, direct(t, d, &q, io), io.Read)
	}
	// Softmax leaves its operand alone, which is read later: two tensors are there at most.
	require.LessOrEqual(t, exec.Memory().Peak, 2*4*n+4*kit.Align)
	require.Greater(t, apart.Memory().Peak, 6*4*n)
	require.NoError(t, exec.Close())
	require.NoError(t, apart.Close())
}

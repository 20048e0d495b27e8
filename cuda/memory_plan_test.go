package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

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

// One copy brings all inputs that are not large; the staging memory has the same order.
func TestStagingLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &program.Program{}
		for range rapid.IntRange(0, 8).Draw(t, "inputs") {
			p.Add(f32(rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 2000)).Draw(t, "elements")), program.FromHost)
		}
		if len(p.Host) > 0 {
			p.Keep = rapid.SliceOfN(rapid.SampledFrom(p.Host), 0, 3).Draw(t, "kept")
			p.Read = rapid.SliceOfN(rapid.SampledFrom(p.Host), 0, 3).Draw(t, "read")
		}
		large := rapid.SampledFrom([]uint64{0, 1000, 1 << 40}).Draw(t, "large")
		pl := &plan{prog: p, layout: device.NewLayout(p)}
		require.NoError(t, pl.allocate(nil, large, nil))
		var staged []extent
		for i, s := range p.Host {
			x, n := pl.layout.Values[s], pl.bytes(s)
			require.Equal(t, n > large, pl.large[i])
			if pl.large[i] {
				require.True(t, x.Kind != device.InArena || uint64(x.Offset) >= pl.inputs)
				continue
			}
			staged = append(staged, extent{pl.uploadAt[i], n, "staged"})
			require.LessOrEqual(t, pl.uploadAt[i]+n, pl.upload)
			if x.Kind == device.InArena {
				require.EqualValues(t, x.Offset, pl.uploadAt[i])
				require.LessOrEqual(t, uint64(x.Offset)+n, pl.inputs)
			}
		}
		disjoint(t, staged)
		var results []extent
		for i, s := range p.Read {
			results = append(results, extent{pl.readAt[i], pl.bytes(s), "result"})
			require.LessOrEqual(t, pl.readAt[i]+pl.bytes(s), pl.read)
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
		e := compile(t, d, p)
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
	exec, apart := compile(t, d, p), compile(t, d, &q)
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

package sim_test

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

const header = ".version 8.0\n.target sm_90\n.address_size 64\n"

// module parses PTX; a body without .version gets the usual first lines.
func module(t testing.TB, src string) *ir.Module {
	if !strings.Contains(src, ".version") {
		src = header + src
	}
	m, err := parse.Module("test.ptx", []byte(src))
	require.NoError(t, err)
	return m
}

// body is a kernel k with a pointer out, which is in %out, and these instructions. %r, %rd, %f, %fd, %p and %h are declared.
func body(code string) string {
	return `.visible .entry k(.param .u64 out) {
	.reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<40>; .reg .f64 %fd<20>;
	.reg .b64 %out; .reg .b32 %t; .reg .b64 %mine;
	ld.param.u64 %out, [out];
	cvta.to.global.u64 %out, %out;
	mov.u32 %t, %tid.x;
	mad.wide.u32 %mine, %t, 4, %out;
` + code + "\n\tret;\n}\n"
}

// launch runs a kernel with one buffer of n words as argument, zeroed, and returns the words.
func launch(t testing.TB, cfg sim.Config, src string, l sim.Launch, n int) ([]uint32, *sim.Stats, error) {
	g := sim.New(cfg)
	m, err := g.Load(module(t, src))
	require.NoError(t, err)
	k, err := m.Kernel("k")
	require.NoError(t, err)
	out, err := g.Alloc(4 * n)
	require.NoError(t, err)
	require.NoError(t, g.Fill(out, 4*n, 0))
	l.Params, err = k.Pack(out)
	require.NoError(t, err)
	stats, err := g.Run(context.Background(), k, l)
	if err != nil {
		return nil, nil, err
	}
	return words(t, g, out, n), stats, nil
}

func words(t testing.TB, g *sim.GPU, addr uint64, n int) []uint32 {
	b := make([]byte, 4*n)
	require.NoError(t, g.Read(b, addr))
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out
}

// upload makes a buffer of words.
func upload(t testing.TB, g *sim.GPU, v []uint32) uint64 {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], x)
	}
	a, err := g.Alloc(len(b))
	require.NoError(t, err)
	require.NoError(t, g.Write(a, b))
	return a
}

// threads is a launch of one block.
func threads(n int) sim.Launch { return sim.Launch{Grid: sim.Dim3{X: 1}, Block: sim.Dim3{X: n}} }

// fault runs and requires a fault of the kind.
func fault(t testing.TB, cfg sim.Config, kind sim.FaultKind, src string, l sim.Launch) *sim.Fault {
	_, _, err := launch(t, cfg, src, l, 64)
	var f *sim.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, kind, f.Kind, "%v", err)
	return f
}

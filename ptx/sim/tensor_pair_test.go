package sim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// pairOf is a launch of a pair of blocks of 128 threads.
func pairOf() sim.Launch {
	return sim.Launch{Grid: sim.Dim3{X: 2}, Block: sim.Dim3{X: 128}, Cluster: sim.Dim3{X: 2}}
}

// split lays out the parts of a matrix that both blocks have.
func split(data []byte, rows int) []byte {
	half := len(data) / 2
	return append(rowsOf(data[:half], rows, half/rows), rowsOf(data[half:], rows, half/rows)...)
}

// ofPair is D from the lanes of both blocks.
func (f *tensorForm) ofPair(lanes []byte) []byte {
	rows, _, of := f.halves()
	size := f.td.Bits() / 8
	d := make([]byte, f.m*f.n*size)
	for row := range f.m {
		for col := range f.n {
			lane := row/rows*128 + row%rows + col/of*64
			copy(d[(row*f.n+col)*size:][:size], lanes[(lane*of+col%of)*4:])
		}
	}
	return d
}

func TestTensorPair(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, f := range []tensorForm{
		{kind: "f16", m: 256, n: 48, ta: ir.F16, tb: ir.F16, td: ir.F32, d: 1}, {kind: "f16", m: 128, n: 32, ta: ir.F16, tb: ir.F16, td: ir.F16},
		{kind: "tf32", m: 128, n: 16, ta: ir.TF32, tb: ir.TF32, td: ir.F32, a: 2, b: 2, d: 1},
		{kind: "i8", m: 256, n: 32, ta: ir.S8, tb: ir.U8, td: ir.S32, a: 1, d: 2},
		{kind: "f16", m: 256, n: 16, ta: ir.BF16, tb: ir.BF16, td: ir.F32, a: 1, b: 1, d: 1, inMemory: true},
		{kind: "f8f6f4", m: 128, n: 32, ta: ir.E4M3, tb: ir.E5M2, td: ir.F32, b: 1, d: 1, inMemory: true},
	} {
		f.pair = true
		k := 64 * 8 / f.ta.Bits()
		a, va := matrix(rng, f.ta, f.m*k)
		b, vb := matrix(rng, f.tb, f.n*k)
		want, size := gemm(f.m, f.n, k, va, byRows(vb, k, f.n), nil)
		rows, columns, of := f.halves()
		if !f.inMemory {
			a = split(a, rows)
		}
		for _, cfg := range checkedSeeds(2) {
			r := changedRig(t, cfg, 3, f.kernel(), inPairs)
			r.bytes(a).bytes(split(b, columns)).out(2 * 128 * 4 * of)
			require.NoError(t, r.launch(pairOf()), "%+v", f)
			near(t, f.ofPair(r.read(2)), f.td, want, size, f.kind)
		}
	}
	// With scales each block has those of its rows, and all of the columns.
	c := scaledCase{"mxf8f6f4.block_scale.scale_vec::1X", 256, 48, e4m3, e2m3, 16, 32, true}
	f, a, b, scales, want, size := c.form(rng)
	for _, cfg := range checkedSeeds(1) {
		r := changedRig(t, cfg, 4, f.kernel(), inPairs)
		r.bytes(split(a, 128)).bytes(split(b, 24)).out(2 * 128 * 4 * f.n).bytes(scales)
		require.NoError(t, r.launch(pairOf()))
		near(t, f.ofPair(r.read(2)), ir.F32, want, size, c.kind)
	}
	scales = slices.Clone(scales)
	scales[128*32*4+8*4]++
	r := changedRig(t, sim.Config{}, 4, f.kernel(), inPairs)
	r.bytes(split(a, 128)).bytes(split(b, 24)).out(2 * 128 * 4 * f.n).bytes(scales)
	require.Contains(t, faults(t, r.launch(pairOf()), sim.BadOperand).Detail, "the scales of row 0 of B")
}

func TestTensorPairFaults(t *testing.T) {
	f := tensorForm{kind: "f16", m: 128, n: 32, td: ir.F32, d: 1, pair: true}
	run := func(l sim.Launch, changes ...string) error {
		r := changedRig(t, sim.Config{Checks: sim.AllChecks}, 3, strings.NewReplacer(changes...).Replace(f.kernel()), inPairs)
		r.bytes(make([]byte, 2*64*64)).bytes(make([]byte, 2*16*64)).out(2 * 128 * 4 * 16)
		return r.launch(l)
	}
	require.NoError(t, run(pairOf()))
	alone := pairOf()
	alone.Cluster = sim.Dim3{X: 1}
	require.Contains(t, faults(t, run(alone), sim.BadOperand).Detail, "has no other one to make a pair")
	// The other block does not wait for the product that writes its tensor memory.
	faults(t, run(pairOf(), "WAIT:\n", "WAIT:\n setp.ne.u32 %p1, %rank, 0;\n@%p1 bra GO;\n", "tcgen05.fence::after_thread_sync;",
		"GO:\ntcgen05.fence::after_thread_sync;"), sim.AsyncHazard)
	// The mbarrier of one block only.
	require.Error(t, run(pairOf(), ".b64 [%s];", ".b64 [%s+0];"))
	require.Contains(t, faults(t, run(pairOf(), "mov.b32 %r10,", "mov.b16 %both, 7;\nmov.b32 %r10,"), sim.BadOperand).Detail, "multicast to blocks 0x7")
	f.inMemory = true
	f.ta, f.tb = ir.F16, ir.F16
	r := changedRig(t, sim.Config{}, 3, strings.Replace(f.kernel(), "rem.u32 %r0, %t, 64;", "rem.u32 %r0, %t, 65;", 1), inPairs)
	data := make([]byte, 2*66*64)
	data[64] = 1
	r.bytes(data).bytes(make([]byte, 2*16*64)).out(2 * 128 * 4 * 16)
	require.Contains(t, faults(t, r.launch(pairOf()), sim.BadOperand).Detail, "is not the same in lanes")
}

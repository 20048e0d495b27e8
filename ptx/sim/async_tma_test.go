package sim_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// mapped begins a kernel with n tensor maps m0, m1 … and then the pointers p0, p1 … as parameters, and mbarriers for one
// arrival. %rd50 and up are the generic addresses of the maps.
func mapped(maps, args int) string {
	var s strings.Builder
	for i := range maps {
		fmt.Fprintf(&s, ".param .align 64 .b8 m%d[128], ", i)
	}
	code := strings.Replace(barriers(args, "1"), "k(", "k("+strings.TrimSuffix(s.String(),
		map[bool]string{true: ", "}[args == 0]), 1)
	code = strings.Replace(code, "sm[4096]", "sm[65536]", 1)
	for i := range maps {
		code += fmt.Sprintf("mov.b64 %%rd%d, m%d;\ncvta.param.u64 %%rd%d, %%rd%d;\n", 50+i, i, 50+i, 50+i)
	}
	return code
}

// tensor is a random tensor in a buffer of its own.
func tensor(rng *rand.Rand, rank int, typ tensormap.DataType, swizzle tensormap.Swizzle) (m tensormap.Map, data []byte) {
	m = tensormap.Map{Type: typ, Rank: rank, Swizzle: swizzle}
	size := uint64(typ.Bytes())
	for i := range rank {
		m.Dims[i] = 1 + rng.Uint64N(uint64(24/rank))
		m.Box[i] = 1 + rng.Uint32N(uint32(min(5, 9-rank))) // at most 32 KiB
		m.ElementStrides[i] = 1
		if i > 0 && rng.IntN(3) == 0 {
			m.ElementStrides[i] = 1 + rng.Uint32N(3)
		}
	}
	per := uint32(16 / size)
	m.Box[0] = per * (1 + rng.Uint32N(uint32(swizzle.Span()/16)))
	if swizzle == tensormap.NoSwizzle {
		m.Box[0] = per * (1 + rng.Uint32N(5))
	}
	bytes := m.Dims[0] * size
	for i := 1; i < rank; i++ {
		m.Strides[i-1] = (bytes+15)&^15 + 16*rng.Uint64N(3)
		bytes = m.Strides[i-1] * m.Dims[i]
	}
	data = make([]byte, bytes)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return m, data
}

// boxOf is the tile in plain order: elements of the tensor, or of the fill.
func boxOf(m *tensormap.Map, data []byte, at []int32, visit func(i int, where int)) {
	var n [5]int
	total := 1
	for d := range 5 {
		n[d] = 1
		if d < m.Rank {
			step := 1
			if d > 0 {
				step = int(m.ElementStrides[d])
			}
			n[d] = (int(m.Box[d]) + step - 1) / step
		}
		total *= n[d]
	}
	for i := range total {
		rest, where, inside := i, 0, true
		for d := range m.Rank {
			step := 1
			if d > 0 {
				step = int(m.ElementStrides[d])
			}
			x := int(at[d]) + rest%n[d]*step
			rest /= n[d]
			inside = inside && x >= 0 && x < int(m.Dims[d])
			if d == 0 {
				where += x * m.Type.Bytes()
			} else {
				where += x * int(m.Strides[d-1])
			}
		}
		if !inside {
			where = -1
		}
		visit(i, where)
	}
}

func coords(at []int32) string {
	s := make([]string, len(at))
	for i, x := range at {
		s[i] = fmt.Sprint(x)
	}
	return "{" + strings.Join(s, ", ") + "}"
}

var (
	tensorTypes = []tensormap.DataType{tensormap.U8, tensormap.U16, tensormap.F16, tensormap.F32, tensormap.F64, tensormap.BF16}
	swizzles    = []tensormap.Swizzle{tensormap.NoSwizzle, tensormap.Swizzle32, tensormap.Swizzle64, tensormap.Swizzle128}
)

func encoded(t *testing.T, m tensormap.Map) []byte {
	b, err := m.Encode()
	require.NoError(t, err)
	return b[:]
}

// converted is what becomes of an element that comes to shared memory.
func converted(m *tensormap.Map, b []byte) []byte {
	bits := binary.LittleEndian.Uint32(b)
	subnormal := bits&0x7f800000 == 0
	if subnormal && (m.Type == tensormap.F32FTZ || m.Type == tensormap.TF32FTZ) {
		bits &= 1 << 31
	}
	switch {
	case m.Type == tensormap.F32FTZ:
	case bits&0x7fffffff > 0x7f800000:
		bits = 0x7fffffff
	default:
		bits = (bits + 1<<12) &^ (1<<13 - 1)
	}
	return binary.LittleEndian.AppendUint32(nil, bits)
}

// TestTensorOfPairs: copies whose mbarrier may be that of the other block of a pair are refused.
func TestTensorOfPairs(t *testing.T) {
	m, err := sim.New(sim.Config{}).Load(module(t, ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n"+
		".reg .b32 %r<4>; .reg .b64 %d<2>;\ncp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes "+
		"[%r0], [%d0, {%r1, %r2}], [%r3];\nret;\n}\n"))
	require.NoError(t, err)
	_, err = m.Kernel("k")
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, "tensor copies of a pair of blocks")
}

func TestTensorLoad(t *testing.T) {
	rng := ptxtest.Random(t)
	converting := []tensormap.DataType{tensormap.F32FTZ, tensormap.TF32, tensormap.TF32FTZ}
	types := slices.Concat(tensorTypes, converting)
	for i := range 120 {
		rank, swizzle := 1+i%5, swizzles[rng.IntN(4)]
		m, data := tensor(rng, rank, types[rng.IntN(len(types))], swizzle)
		if m.Type.IsFloat() && rng.IntN(2) == 0 {
			m.Fill = tensormap.FillNaN
		}
		at := make([]int32, rank)
		for d := range at {
			at[d] = int32(rng.IntN(int(m.Dims[d])+8)) - 4
		}
		size := m.BoxBytes()
		base := 1024 + 128*rng.IntN(8)
		code := mapped(1, 1) + fmt.Sprintf(`
	@%%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r0], %d;
	@%%p15 cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r0+%d], [%%rd50, %s], [%%r0];
`, size, rank, base, coords(at)) + await("L", "%r0", "0") + dump(base&^1023, (size+base%1024+1023)&^1023)
		cfg := checkedSeeds(3)[rng.IntN(5)]
		cfg.Checks &^= sim.CheckInit // the dump reads around the tile
		r := newRig(t, cfg, code)
		buf, err := r.gpu.Alloc(len(data))
		require.NoError(t, err)
		require.NoError(t, r.gpu.Write(buf, data))
		m.Address = buf
		r.args, r.bufs, r.size = []any{encoded(t, m)}, []uint64{0}, []int{0}
		r.out((size + base%1024 + 1023) &^ 1023)
		require.NoError(t, r.launch(threads(32)), "%+v", m)
		got, elem := r.read(1), m.Type.Bytes()
		boxOf(&m, data, at, func(i, where int) {
			want := copied(&m, data, where)
			if where >= 0 && slices.Contains(converting, m.Type) {
				want = converted(&m, want)
			}
			place := int(m.Swizzle.Apply(uint64(base+i*elem))) - base&^1023
			require.Equal(t, want, got[place:][:elem], "%+v at %v element %d", m, at, i)
		})
	}
}

// dump copies shared memory to %a0.
func dump(from, n int) string {
	return fmt.Sprintf(`
	mad.lo.u32 %%r20, %%t, 16, %%r0;
	mad.wide.u32 %%rd20, %%t, 16, %%a0;
	mov.u32 %%r21, 0;
DUMP:
	ld.shared.v4.u32 {%%r22, %%r23, %%r24, %%r25}, [%%r20+%d];
	st.global.v4.u32 [%%rd20], {%%r22, %%r23, %%r24, %%r25};
	add.u32 %%r20, %%r20, 512;
	add.u64 %%rd20, %%rd20, 512;
	add.u32 %%r21, %%r21, 512;
	setp.lt.u32 %%p13, %%r21, %d;
	@%%p13 bra DUMP;
	ret;
}
`, from, n)
}

func TestTensorStoreReduce(t *testing.T) {
	rng := ptxtest.Random(t)
	for i := range 80 {
		rank, swizzle := 1+i%5, swizzles[rng.IntN(4)]
		op, typ := "", tensorTypes[rng.IntN(len(tensorTypes))]
		if i%2 == 1 {
			op, typ = []string{"add", "min", "max"}[rng.IntN(3)], tensormap.S32
		}
		m, data := tensor(rng, rank, typ, swizzle)
		at := make([]int32, rank)
		for d := range at {
			at[d] = int32(rng.IntN(int(m.Dims[d])+4)) - 2
		}
		size := m.BoxBytes()
		code := mapped(1, 1) + "mad.wide.u32 %rd1, %t, 4, %a0;\nmad.lo.u32 %r1, %t, 4, %r0;\nmov.u32 %r2, 0;\nFILL:\n" +
			"ld.global.u32 %r3, [%rd1];\n" +
			"st.shared.u32 [%r1+1024], %r3;\nadd.u64 %rd1, %rd1, 128;\nadd.u32 %r1, %r1, 128;\nadd.u32 %r2, %r2, 128;\n" +
			fmt.Sprintf("setp.lt.u32 %%p1, %%r2, %d;\n@%%p1 bra FILL;\nfence.proxy.async;\nbar.sync 0;\n@!%%p15 bra END;\n", size)
		if op == "" {
			code += fmt.Sprintf("cp.async.bulk.tensor.%dd.global.shared::cta.bulk_group [%%rd50, %s], [%%r0+1024];\n", rank, coords(at))
		} else {
			code += fmt.Sprintf("cp.reduce.async.bulk.tensor.%dd.global.shared::cta.%s.tile.bulk_group [%%rd50, %s], [%%r0+1024];\n",
				rank, op, coords(at))
		}
		code += "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\nret;\n}\n"
		r := newRig(t, checkedSeeds(3)[rng.IntN(5)], code)
		buf, err := r.gpu.Alloc(len(data))
		require.NoError(t, err)
		require.NoError(t, r.gpu.Write(buf, data))
		m.Address = buf
		tile := make([]byte, (size+1151)&^127)
		for i := range tile {
			tile[i] = byte(rng.Uint32())
		}
		r.args, r.bufs, r.size = []any{encoded(t, m)}, []uint64{buf}, []int{len(data)}
		r.bytes(tile)
		require.NoError(t, r.launch(threads(32)), "%+v", m)
		want, elem := append([]byte(nil), data...), m.Type.Bytes()
		boxOf(&m, data, at, func(i, where int) {
			if where < 0 {
				return
			}
			v := tile[m.Swizzle.Apply(uint64(i*elem)):][:elem]
			if op != "" {
				a, b := int32(number(data[where:], ir.S32, 0)), int32(number(v, ir.S32, 0))
				put(want[where:], ir.S32, 0, uint64(uint32(map[string]int32{"add": a + b, "min": min(a, b), "max": max(a, b)}[op])))
				return
			}
			copy(want[where:], v)
		})
		require.Equal(t, want, r.read(0), "%+v at %v %s", m, at, op)
	}
}

func TestTensorFaults(t *testing.T) {
	good := tensormap.Map{Type: tensormap.F16, Rank: 2, Dims: [5]uint64{64, 16}, Strides: [4]uint64{128}, Box: [5]uint32{64, 8},
		Swizzle: tensormap.Swizzle128}
	const load = "@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 1024;\n" +
		"@%p15 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0+1024], [%rd50, {0, 0}], [%r0];\n"
	run := func(code string, change func(m *tensormap.Map, b []byte)) error {
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, mapped(1, 1)+code+await("L", "%r0", "0")+"ret;\n}\n")
		r.bytes(make([]byte, 2048))
		m := good
		m.Address = r.bufs[0]
		b := encoded(t, m)
		if change != nil {
			change(&m, b)
			if len(m.Strides) > 0 && m != (tensormap.Map{}) {
				b2 := encoded(t, m)
				if string(b2) != string(b) && b[0] == b2[0] {
					b = b2
				}
			}
		}
		r.args = append([]any{b}, r.args...)
		return r.launch(threads(32))
	}
	require.NoError(t, run(load, nil))
	f := faults(t, run(load, func(_ *tensormap.Map, b []byte) { b[0] = 0 }), sim.BadOperand)
	require.Contains(t, f.Detail, "no tensor map")
	f = faults(t, run(load, func(m *tensormap.Map, _ []byte) {
		m.Rank, m.Dims[2], m.Box[2], m.Strides[1] = 3, 1, 1, 2048
	}), sim.BadOperand)
	require.Contains(t, f.Detail, "rank 3")
	faults(t, run(load, func(m *tensormap.Map, _ []byte) { m.Dims[1] = 17; m.Box[1] = 17 }), sim.OutOfBounds)
	faults(t, run(strings.ReplaceAll(load, "[%r0+1024]", "[%r0+1088]"), nil), sim.Misaligned)
	require.NoError(t, run(strings.ReplaceAll(load, "[%r0+1024]", "[%r0+1152]"), nil))
	faults(t, run(strings.ReplaceAll(load, "[%r0+1024]", "[%r0+65408]"), nil), sim.OutOfBounds)
	faults(t, run(strings.ReplaceAll(load, " 1024;", " 1008;"), nil), sim.BadOperand)
	require.NoError(t, run("@%p15 cp.async.bulk.prefetch.tensor.2d.L2.global [%rd50, {100000, 0}];\n"+load, nil))
	require.NoError(t, run(strings.ReplaceAll(load, "{0, 0}", "{-64, 16}"), nil), "all of it outside: filled, and credited")
	faults(t, run(load+"@%p15 st.global.u32 [%a0], %r0;\n", nil), sim.AsyncHazard)
	// written by the kernel itself before, without a proxy fence
	faults(t, run("@%p15 st.global.u32 [%a0], %r0;\n"+load, nil), sim.ProxyFence)
	require.NoError(t, run("@%p15 st.global.u32 [%a0], %r0;\n@%p15 fence.proxy.async;\n"+load, nil))
}

// A tile for several blocks of a cluster arrives in each of them, on the mbarrier of each.
func TestTensorMulticast(t *testing.T) {
	rng := ptxtest.Random(t)
	data := make([]byte, 2048)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	m := tensormap.Map{Type: tensormap.F32, Rank: 2, Dims: [5]uint64{16, 32}, Strides: [4]uint64{64}, Box: [5]uint32{16, 8}}
	code := mapped(1, 1) + `
	mov.u32 %r10, %cluster_ctarank;
	@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 1024;
	barrier.cluster.arrive.aligned;
	barrier.cluster.wait.aligned;
	mov.b16 %h1, 15;
	shl.b32 %r11, %r10, 9;
	add.u32 %r12, %r11, %r0;
	shl.b32 %r13, %r10, 3;
	and.b32 %r14, %r10, 1;
	setp.eq.u32 %p1, %r14, 0;
	and.pred %p1, %p1, %p15;
	@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r12+1024], [%rd50,
		{0, %r13}], [%r0], %h1;
` + await("L", "%r0", "0") + `
	mad.lo.u32 %r20, %t, 16, %r0;
	shl.b32 %r15, %r10, 11;
	mad.lo.u32 %r15, %t, 16, %r15;
	cvt.u64.u32 %rd20, %r15;
	add.u64 %rd20, %a0, %rd20;
	ld.shared.v4.u32 {%r22, %r23, %r24, %r25}, [%r20+1024];
	st.global.v4.u32 [%rd20], {%r22, %r23, %r24, %r25};
	ld.shared.v4.u32 {%r22, %r23, %r24, %r25}, [%r20+2048];
	st.global.v4.u32 [%rd20+512], {%r22, %r23, %r24, %r25};
	barrier.cluster.arrive.aligned;
	barrier.cluster.wait.aligned;
	ret;
}
`
	for _, cfg := range checkedSeeds(10) {
		r := newRig(t, cfg, code).bytes(data)
		m.Address = r.bufs[0]
		r.args = []any{encoded(t, m)}
		r.bytes(make([]byte, 4*2048))
		require.NoError(t, r.launch(sim.Launch{Grid: sim.Dim3{X: 4}, Block: sim.Dim3{X: 32}, Cluster: sim.Dim3{X: 4}}))
		got := r.read(1)
		for rank := range 4 {
			require.Equal(t, data[:512], got[2048*rank:][:512])
			require.Equal(t, data[1024:1536], got[2048*rank+512:][:512])
		}
	}
	r := newRig(t, sim.Config{}, strings.Replace(code, "mov.b16 %h1, 15", "mov.b16 %h1, 31", 1)).bytes(data)
	r.args = []any{encoded(t, m)}
	r.bytes(make([]byte, 4*2048))
	faults(t, r.launch(sim.Launch{Grid: sim.Dim3{X: 4}, Block: sim.Dim3{X: 32}, Cluster: sim.Dim3{X: 4}}), sim.BadOperand)
}

// copied is the element of data at a byte, or what the map fills in where that is negative.
func copied(m *tensormap.Map, data []byte, where int) []byte {
	if where >= 0 {
		return data[where:][:m.Type.Bytes()]
	}
	fill := make([]byte, m.Type.Bytes())
	for i := range fill {
		if m.Fill == tensormap.FillNaN {
			fill[i] = 0xff
		}
	}
	return fill
}

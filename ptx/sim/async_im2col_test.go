package sim_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// images are random images with a map of columns.
func images(rng *rand.Rand, rank int, typ tensormap.DataType, swizzle tensormap.Swizzle) (m tensormap.Map, data []byte) {
	m = tensormap.Map{Type: typ, Rank: rank, Swizzle: swizzle, Pixels: 1 + rng.Uint32N(40)}
	size := typ.Bytes()
	m.Dims[0] = 1 + rng.Uint64N(100)
	m.Channels = uint32(16 / size * (1 + rng.IntN(swizzle.Span()/16)))
	if m.Type.IsFloat() && rng.IntN(2) == 0 {
		m.Fill = tensormap.FillNaN
	}
	bytes := m.Dims[0] * uint64(size)
	for d := 1; d < rank; d++ {
		m.Dims[d] = 2 + rng.Uint64N(5)
		m.ElementStrides[d] = 1
		m.Strides[d-1] = (bytes+15)&^15 + 16*rng.Uint64N(2)
		bytes = m.Strides[d-1] * m.Dims[d]
		if d < rank-1 {
			m.ElementStrides[d] = 1 + rng.Uint32N(2)
			m.Lower[d-1], m.Upper[d-1] = int32(rng.IntN(4)-2), int32(rng.IntN(4))
		}
	}
	m.ElementStrides[0] = 1
	data = make([]byte, bytes)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return m, data
}

// pixels calls visit with the number of an element in shared memory and its place in the data, -1 outside.
func pixels(m *tensormap.Map, at, offsets []int32, visit func(i, where int)) {
	var p [5]int
	for d := range at {
		p[d] = int(at[d])
	}
	images := m.Rank - 1
	for pixel := range int(m.Pixels) {
		for ch := range int(m.Channels) {
			where, inside := 0, true
			for d := range m.Rank {
				x := p[d]
				switch {
				case d == 0:
					x += ch
				case d < images:
					x += int(offsets[d-1])
				}
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
			visit(pixel*int(m.Channels)+ch, where)
		}
		d := 1
		for ; d < images; d++ {
			p[d] += int(m.ElementStrides[d])
			if p[d] < int(m.Dims[d])+int(m.Upper[d-1]) {
				break
			}
			p[d] = int(m.Lower[d-1])
		}
		if d == images {
			p[d]++
		}
	}
}

func TestTensorIm2col(t *testing.T) {
	rng := ptxtest.Random(t)
	for i := range 60 {
		rank := 3 + i%3
		m, data := images(rng, rank, tensorTypes[rng.IntN(len(tensorTypes))], swizzles[rng.IntN(4)])
		at, offsets := make([]int32, rank), make([]int32, rank-2)
		for d := range at {
			at[d] = int32(rng.IntN(int(m.Dims[d])))
			if d > 0 && d < rank-1 {
				at[d] = m.Lower[d-1] + int32(rng.IntN(int(m.Dims[d])+int(m.Upper[d-1])-int(m.Lower[d-1])))
				offsets[d-1] = int32(rng.IntN(4))
			}
		}
		size := m.BoxBytes()
		head := ""
		for d, o := range offsets {
			head += fmt.Sprintf("mov.b16 %%h%d, %d;\n", d, o)
		}
		code := mapped(1, 1) + head + fmt.Sprintf(`
	@%%p15 cp.async.bulk.prefetch.tensor.%[2]dd.L2.global.im2col [%%rd50, %[3]s], %[4]s;
	@%%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r0], %[1]d;
	@%%p15 cp.async.bulk.tensor.%[2]dd.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%%r0+1024], [%%rd50, %[3]s], [%%r0], %[4]s;
`, size, rank, coords(at), list("%h", 0, rank-2)) + await("L", "%r0", "0") + dump(1024, (size+1023)&^1023)
		cfg := checkedSeeds(3)[rng.IntN(5)]
		cfg.Checks &^= sim.CheckInit // the dump reads around the tile
		r := newRig(t, cfg, code)
		buf, err := r.gpu.Alloc(len(data))
		require.NoError(t, err)
		require.NoError(t, r.gpu.Write(buf, data))
		m.Address = buf
		r.args, r.bufs, r.size = []any{encoded(t, m)}, []uint64{0}, []int{0}
		r.out((size + 1023) &^ 1023)
		require.NoError(t, r.launch(threads(32)), "%+v", m)
		got, elem := r.read(1), m.Type.Bytes()
		pixels(&m, at, offsets, func(i, where int) {
			want := copied(&m, data, where)
			require.Equal(t, want, got[m.Swizzle.Apply(uint64(i*elem)):][:elem], "%+v at %v %v element %d", m, at, offsets, i)
		})
	}
}

// A column stored without offsets reaches the pixels that it would be loaded from.
func TestTensorIm2colStore(t *testing.T) {
	rng := ptxtest.Random(t)
	for i := range 20 {
		rank := 3 + i%3
		m, data := images(rng, rank, tensormap.U32, tensormap.NoSwizzle)
		at := make([]int32, rank)
		for d := 1; d < rank-1; d++ {
			at[d] = m.Lower[d-1]
		}
		code := mapped(1, 1) + fmt.Sprintf(`
	@!%%p15 bra END;
	mov.u32 %%r1, 0;
FILL:
	cvt.u64.u32 %%rd1, %%r1;
	add.u64 %%rd1, %%a0, %%rd1;
	ld.global.u32 %%r3, [%%rd1];
	add.u32 %%r2, %%r0, %%r1;
	st.shared.u32 [%%r2+1024], %%r3;
	add.u32 %%r1, %%r1, 4;
	setp.lt.u32 %%p1, %%r1, %d;
	@%%p1 bra FILL;
	fence.proxy.async;
	cp.async.bulk.tensor.%dd.global.shared::cta.im2col_no_offs.bulk_group [%%rd50, %s], [%%r0+1024];
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
END:
	ret;
}
`, m.BoxBytes(), rank, coords(at))
		r := newRig(t, checkedSeeds(3)[rng.IntN(5)], code)
		buf, err := r.gpu.Alloc(len(data))
		require.NoError(t, err)
		require.NoError(t, r.gpu.Write(buf, data))
		m.Address = buf
		column := make([]byte, m.BoxBytes())
		for i := range column {
			column[i] = byte(rng.Uint32())
		}
		r.args, r.bufs, r.size = []any{encoded(t, m)}, []uint64{buf}, []int{len(data)}
		r.bytes(column)
		require.NoError(t, r.launch(threads(32)), "%+v", m)
		pixels(&m, at, make([]int32, 3), func(i, where int) {
			if where >= 0 {
				copy(data[where:][:4], column[4*i:])
			}
		})
		require.Equal(t, data, r.read(0), "%+v", m)
	}
}

func TestTensorIm2colFaults(t *testing.T) {
	good := tensormap.Map{Type: tensormap.F16, Rank: 5, Dims: [5]uint64{8, 4, 4, 4, 2}, Strides: [4]uint64{16, 64, 256, 1024},
		Pixels: 16, Channels: 8, Lower: [3]int32{-1, -1, -1}, Upper: [3]int32{-1, -1, -1}}
	const load = "mov.b16 %h0, 1;\n@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 256;\n" +
		"@%p15 cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r0+1024], [%rd50, {0, 0, 0, 0, 0}], " +
		"[%r0], {%h0, %h0, %h0};\n"
	run := func(code string, m tensormap.Map) error {
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, mapped(1, 1)+code+await("L", "%r0", "0")+"ret;\n}\n")
		r.bytes(make([]byte, 2048))
		m.Address = r.bufs[0]
		r.args = append([]any{encoded(t, m)}, r.args...)
		return r.launch(threads(32))
	}
	require.NoError(t, run(load, good))
	f := faults(t, run(strings.Replace(load, "{0, 0, 0, 0, 0}", "{0, 0, 3, 0, 0}", 1), good), sim.BadOperand)
	require.Contains(t, f.Detail, "begins at 3 in dimension 2, want -1 to 2")
	f = faults(t, run(strings.Replace(load, "%h0, 1;", "%h0, 32;", 1), good), sim.BadOperand)
	require.Contains(t, f.Detail, "an offset of 32 pixels, want less than 32")
	tiles := good
	tiles.Pixels, tiles.Channels, tiles.Lower, tiles.Upper = 0, 0, [3]int32{}, [3]int32{}
	tiles.Box = [5]uint32{8, 4, 4, 1, 1}
	f = faults(t, run(load, tiles), sim.BadOperand)
	require.Contains(t, f.Detail, "the tensor map is one of tiles, the instruction copies columns")
	tile := strings.NewReplacer(".im2col", ".tile", ", {%h0, %h0, %h0}", "").Replace(load)
	require.NoError(t, run(tile, tiles))
	f = faults(t, run(tile, good), sim.BadOperand)
	require.Contains(t, f.Detail, "the tensor map is one of columns")
}

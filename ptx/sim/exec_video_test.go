package sim_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// TestVideo: bytes of images are compared, blended and packed. What is computed with each of them is tested in package eval.
func TestVideo(t *testing.T) {
	rng := ptxtest.Random(t)
	words := make([]uint32, 64)
	for i := range words {
		words[i] = rng.Uint32()
	}
	r := newRig(t, sim.Config{Checks: sim.AllChecks}, `.visible .entry k(.param .u64 words, .param .u64 out) {
	.reg .b32 a, b, c, t, sum; .reg .b64 p, q;
	ld.param.u64 p, [words]; ld.param.u64 q, [out];
	mov.u32 t, %tid.x; mad.wide.u32 p, t, 4, p; mad.wide.u32 q, t, 16, q;
	ld.global.u32 a, [p]; ld.global.u32 b, [p+128];
	mov.u32 sum, 7;
	vabsdiff4.u32.u32.u32.add sum, a, b, sum;
	st.global.u32 [q], sum;
	vmad.u32.u32.u32 c, a.b1, 3, -t;
	st.global.u32 [q+4], c;
	vmad.s32.u32.u32.sat c, a.h1, -b.b3, t;
	st.global.u32 [q+8], c;
	vadd.u32.s32.s32.sat a.b2, b.b0, a.h0, a;
	st.global.u32 [q+12], a;
	ret;
}
`)
	buf := make([]byte, 4*len(words))
	for i, v := range words {
		binary.LittleEndian.PutUint32(buf[4*i:], v)
	}
	r.bytes(buf).out(32 * 16)
	require.NoError(t, r.launch(threads(32)))
	got := r.read(1)
	for i := range 32 {
		a, b := words[i], words[i+32]
		sum := uint32(7)
		for at := 0; at < 32; at += 8 {
			x, y := int(a>>at&255), int(b>>at&255)
			sum += uint32(max(x-y, y-x))
		}
		blend := uint32(min(max(int(int8(b))+int(int16(a)), 0), 255))
		want := []uint32{sum, a>>8&255*3 - uint32(i), uint32(i) - a>>16*(b>>24), a&^0xff0000 | blend<<16}
		for k, w := range want {
			require.Equal(t, w, binary.LittleEndian.Uint32(got[16*i+4*k:]), "result %d of thread %d", k, i)
		}
	}
}

package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/sim"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// A kernel makes a tensor map of zeros, field by field, as Triton's do; it is the one that the host would have encoded.
func TestTensormapReplace(t *testing.T) {
	const replace = "tensormap.replace.tile."
	code := `.visible .entry k(.param .u64 out, .param .u64 data) {
	.shared .align 128 .b8 map[128]; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;
	mov.u32 %r1, map; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; add.u32 %r3, %r3, %r1; st.shared.u32 [%r3], 0; bar.warp.sync -1;
	ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [data]; setp.ne.u32 %p, %r2, 0; @%p bra DONE;
	mov.u64 %rd3, map;
	` + replace + `global_address.shared::cta.b1024.b64 [%rd3], %rd2;
	` + replace + `rank.shared::cta.b1024.b32 [%rd3], 1;
	` + replace + `box_dim.shared::cta.b1024.b32 [%rd3], 0, 64;
	` + replace + `box_dim.shared::cta.b1024.b32 [%rd3], 1, 8;
	` + replace + `global_dim.shared::cta.b1024.b32 [%rd3], 0, 100;
	` + replace + `global_dim.shared::cta.b1024.b32 [%rd3], 1, 9;
	` + replace + `global_stride.shared::cta.b1024.b64 [%rd3], 0, 208;
	` + replace + `element_stride.shared::cta.b1024.b32 [%rd3], 0, 1;
	` + replace + `element_stride.shared::cta.b1024.b32 [%rd3], 1, 1;
	` + replace + `elemtype.shared::cta.b1024.b32 [%rd3], 10;
	` + replace + `interleave_layout.shared::cta.b1024.b32 [%rd3], 0;
	` + replace + `swizzle_mode.shared::cta.b1024.b32 [%rd3], 3;
	` + replace + `fill_mode.shared::cta.b1024.b32 [%rd3], 1;
DONE:
	bar.warp.sync -1;
	mov.u64 %rd3, map;
	tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%rd3], 128;
	ret; }`
	for _, cfg := range checkedSeeds(1) {
		r := newRig(t, cfg, code).out(128).bytes(make([]byte, 4096))
		require.NoError(t, r.launch(threads(32)))
		m := tensormap.Map{Type: tensormap.BF16, Rank: 2, Address: r.bufs[1], Dims: [5]uint64{100, 9}, Strides: [4]uint64{208},
			Box: [5]uint32{64, 8}, Swizzle: tensormap.Swizzle128, Fill: tensormap.FillNaN}
		require.Equal(t, encoded(t, m), r.read(0))
	}
}

func TestTensormapReplaceRefuses(t *testing.T) {
	for _, code := range []string{"rank.b1024.b32 [%rd1], 5;", "box_dim.b1024.b32 [%rd1], 1, 257;", "element_stride.b1024.b32 [%rd1], 0, 9;",
		"elemtype.b1024.b32 [%rd1], 13;", "swizzle_mode.b1024.b32 [%rd1], 9;"} {
		r := newRig(t, sim.Config{}, `.visible .entry k(.param .u64 out) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [out];
			tensormap.replace.tile.`+code+` ret; }`).bytes(make([]byte, 128))
		faults(t, r.launch(threads(1)), sim.BadOperand)
	}
}

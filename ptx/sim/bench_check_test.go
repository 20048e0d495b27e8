package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
)

const benchN = 128

// squareTiles is the plain tiled GEMM, x·x for a square matrix of side benchN: two loads from shared memory for each fma.
func squareTiles() *sample {
	var b strings.Builder
	fmt.Fprintf(&b, `
	shr.u32 %%r1, %%t, 4; and.b32 %%r2, %%t, 15;           // row and column in the tile
	rem.u32 %%r3, %%b, %[1]d; div.u32 %%r4, %%b, %[1]d;
	mad.lo.u32 %%r5, %%r4, 16, %%r1; mad.lo.u32 %%r6, %%r3, 16, %%r2;   // row and column in the result
	mad.lo.u32 %%r7, %%r5, %[2]d, %%r2; mul.wide.u32 %%d1, %%r7, 4; add.u64 %%d1, %%d1, %%x;
	mad.lo.u32 %%r8, %%r1, %[2]d, %%r6; mul.wide.u32 %%d2, %%r8, 4; add.u64 %%d2, %%d2, %%x;
	mad.lo.u32 %%r9, %%r5, %[2]d, %%r6; mul.wide.u32 %%d3, %%r9, 4; add.u64 %%d3, %%d3, %%y;
	mov.u32 %%r10, buf; mad.lo.u32 %%r11, %%r1, 64, %%r10; mad.lo.u32 %%r12, %%r2, 4, %%r10;
	mov.f32 %%f1, 0f00000000; mov.u32 %%r13, 0;
LOOP:
	ld.global.f32 %%f2, [%%d1]; ld.global.f32 %%f3, [%%d2];
	st.shared.f32 [%%sm], %%f2; st.shared.f32 [%%sm+1024], %%f3;
	bar.sync 0;
`, benchN/16, benchN)
	for k := range 16 {
		fmt.Fprintf(&b, "ld.shared.f32 %%f4, [%%r11+%d]; ld.shared.f32 %%f5, [%%r12+%d]; fma.rn.f32 %%f1, %%f4, %%f5, %%f1;\n", 4*k, 1024+64*k)
	}
	fmt.Fprintf(&b, `bar.sync 0;
	add.u64 %%d1, %%d1, 64; add.u64 %%d2, %%d2, %d;
	add.u32 %%r13, %%r13, 16; setp.lt.u32 %%p1, %%r13, %d;
	@%%p1 bra LOOP;
	st.global.f32 [%%d3], %%f1;`, 16*4*benchN, benchN)
	return &sample{name: "tiles", ptx: b.String(), shared: 2048, grid: benchN / 16 * (benchN / 16), block: 256, words: benchN * benchN}
}

// BenchmarkChecks is a kernel that does little but load from shared memory, with each check alone and all of them.
func BenchmarkChecks(b *testing.B) {
	s := squareTiles()
	for _, c := range []struct {
		name string
		cfg  Config
	}{{"none", Config{}}, {"init", Config{Checks: CheckInit}}, {"race", Config{Checks: CheckRace}},
		{"all", Config{Checks: AllChecks}}, {"counters", Config{Counters: true}}} {
		b.Run(c.name, func(b *testing.B) {
			p := prepare(b, s, c.cfg, ptxtest.Replay(1))
			for b.Loop() {
				_, err := p.gpu.Run(context.Background(), p.kernel, p.launch)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.N)*benchN*benchN*benchN/b.Elapsed().Seconds()/1e6, "Mlane-FMA/s")
		})
	}
}

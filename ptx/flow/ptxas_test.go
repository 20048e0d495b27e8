package flow_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/wavelane/wavelane/internal/ptxkernels" // all families
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

var usedRegisters = regexp.MustCompile(`Used (\d+) registers`)

// registersOf is what ptxas -v says.
func registersOf(t *testing.T, ptxas string, m *ir.Module) int {
	t.Helper()
	log, err := ptxtest.Assemble(t, ptxas, ptxtest.TargetOf(m), m.String(), "-v")
	require.NoError(t, err, "%s", m)
	found := usedRegisters.FindStringSubmatch(log)
	require.NotNil(t, found, log)
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}

// straight is a kernel in which n values are loaded in front of a barrier and stored after it: loads do not move past it, so
// that all live at once.
func straight(t *testing.T, n int, typ string) *ir.Module {
	var b strings.Builder
	b.WriteString(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x) {\n")
	fmt.Fprintf(&b, ".reg .u64 %%a; .reg .%s %%v<%d>;\n", typ, n)
	b.WriteString("ld.param.u64 %a, [x];\n")
	for i := range n {
		fmt.Fprintf(&b, "ld.global.%s %%v%d, [%%a+%d];\n", typ, i, i*8)
	}
	b.WriteString("bar.sync 0;\n")
	for i := range n {
		fmt.Fprintf(&b, "st.global.%s [%%a+%d], %%v%d;\n", typ, i*8, i)
	}
	b.WriteString("ret;\n}\n")
	m, err := parse.Module("straight", []byte(b.String()))
	require.NoError(t, err)
	return m
}

// TestPressureAgainstPtxas relates the pressure to the registers that ptxas takes.
//
// Where all values have to live at once, ptxas takes as many as are live and a few more (measured: 4 with 64-bit values; with
// 32-bit ones, where registers cost nothing yet, up to 26). In whole kernels it moves loads up, unrolls loops, and splits,
// shortens and shares addresses: measured over the first kernel of each of 92 families, half of what is live to twice as much,
// with a correlation of 0.89. So pressure tells which kernels take many, and does not tell how many.
func TestPressureAgainstPtxas(t *testing.T) {
	ptxas := ptxtest.Ptxas(t)
	for _, typ := range []string{"u32", "f32", "u64", "f64"} {
		for _, n := range []int{1, 4, 11, 30, 60, 100} {
			m := straight(t, n, typ)
			live := flow.New(m.Funcs[0]).Liveness().Pressure().Units.Live
			regs := registersOf(t, ptxas, m)
			t.Logf("%3d of %s: %3d live, ptxas %3d", n, typ, live, regs)
			require.LessOrEqual(t, live, regs)
			if typ[1:] == "64" {
				require.LessOrEqual(t, regs, live+8)
			} else {
				require.LessOrEqual(t, regs, live+live/2+16)
			}
		}
	}
	var live, regs []float64
	for _, f := range kit.Families() {
		k := f.Kernels[0]
		m, err := k.Module()
		require.NoError(t, err)
		p := flow.New(m.Funcs[0]).Liveness().Pressure()
		r := registersOf(t, ptxas, m)
		t.Logf("%-40s %3d live (%s: %s), ptxas %3d", k.Name, p.Units.Live, p.Units.Pos, p.Units.Text, r)
		require.LessOrEqual(t, p.Units.Live, 2*r)
		live, regs = append(live, float64(p.Units.Live)), append(regs, float64(r))
	}
	r := correlation(live, regs)
	t.Logf("correlation over %d kernels: %.3f", len(live), r)
	require.Greater(t, r, 0.8)
}

// correlation is Pearson's.
func correlation(x, y []float64) float64 {
	mean := func(s []float64) (m float64) {
		for _, v := range s {
			m += v / float64(len(s))
		}
		return m
	}
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}

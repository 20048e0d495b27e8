package analyze

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/flow"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// randomIndices is straight-line code that computes indices from the thread, the block and two parameters, with a register for
// each step. Values stay small and positive, as indices are.
func randomIndices(rng *rand.Rand, steps int) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".version 7.0\n.target sm_80\n.address_size 64\n"+
		".visible .entry k(.param .u32 a, .param .u32 b) .reqntid 32, 4\n{\n"+
		"\t.reg .b32 %%r<%d>;\n\t.reg .pred %%p<%d>;\n", steps+8, steps+8)
	b.WriteString("\tld.param.u32 %r0, [a];\n\tld.param.u32 %r1, [b];\n\tmov.u32 %r2, %tid.x;\n\tmov.u32 %r3, %tid.y;\n" +
		"\tmov.u32 %r4, %ctaid.x;\n\tmov.u32 %r5, 7;\n")
	for i := range steps {
		d, x, y := i+6, rng.IntN(i+6), rng.IntN(i+6)
		c := 1 << rng.IntN(6)
		switch rng.IntN(10) {
		case 0, 1:
			fmt.Fprintf(&b, "\tadd.u32 %%r%d, %%r%d, %%r%d;\n", d, x, y)
		case 2:
			fmt.Fprintf(&b, "\tmad.lo.u32 %%r%d, %%r%d, %d, %%r%d;\n", d, x, c, y)
		case 3:
			fmt.Fprintf(&b, "\tmul.lo.u32 %%r%d, %%r%d, %%r%d;\n", d, rng.IntN(6), rng.IntN(6))
		case 4:
			fmt.Fprintf(&b, "\tshl.b32 %%r%d, %%r%d, %d;\n", d, rng.IntN(6), rng.IntN(6))
		case 5:
			fmt.Fprintf(&b, "\tshr.u32 %%r%d, %%r%d, %d;\n", d, x, rng.IntN(4))
		case 6:
			fmt.Fprintf(&b, "\tand.b32 %%r%d, %%r%d, %d;\n", d, x, c-1)
		case 7:
			fmt.Fprintf(&b, "\t%s.b32 %%r%d, %%r%d, %d;\n", []string{"xor", "or"}[rng.IntN(2)], d, x, rng.IntN(c))
		case 8:
			fmt.Fprintf(&b, "\t%s.u32 %%r%d, %%r%d, %d;\n", []string{"div", "rem"}[rng.IntN(2)], d, x, c)
		case 9:
			fmt.Fprintf(&b, "\tsetp.%s.u32 %%p%d, %%r%d, %%r%d;\n\tselp.b32 %%r%d, %%r%d, %%r%d, %%p%d;\n",
				[]string{"lt", "ge", "eq", "le"}[rng.IntN(4)], d, x, y, d, rng.IntN(6), rng.IntN(6), d)
		}
	}
	b.WriteString("\tret;\n}\n")
	return b.String()
}

// What the machine says with symbols is what it computes when their values are known.
func TestSymbolsAgreeWithNumbers(t *testing.T) {
	rng := ptxtest.Random(t)
	compared, symbolic := 0, 0
	for range 300 {
		text := randomIndices(rng, 12)
		m, err := parse.Module("k.ptx", []byte(text))
		require.NoError(t, err, "%s", text)
		f := m.Funcs[0]
		a, b, c := uint64(rng.IntN(50)), uint64(rng.IntN(50)), rng.IntN(50)
		final := func(o Options) []*vec {
			w := newMachine(m, f, flow.New(f), &o, [3]int{32, 4, 1})
			st := &state{regs: make([]*vec, len(f.Regs)), here: make([]presence, w.threads), maxreg: make([]int, 4)}
			for i := range st.here {
				st.here[i] = must
			}
			for i := range f.Body {
				if f.Body[i].Kind() != ir.Directive && f.Body[i].Op != "ret" {
					w.step(st, i)
				}
			}
			return st.regs
		}
		symbols := final(Options{})
		numbers := final(Options{Params: map[string]uint64{"a": a, "b": b}, Grid: [3]int{50}, block: &[3]int{c}})
		values := map[string]int64{"a": int64(a), "b": int64(b), "%ctaid.x": int64(c)}
		for r := 1; r < len(f.Regs); r++ {
			require.True(t, numbers[r].isConst(), "%s", text)
			for thread := range 128 {
				sum, known := at(symbols[r].c, thread), true
				for _, e := range symbols[r].terms {
					v, ok := values[e.sym.name]
					known = known && (ok || at(e.k, thread) == 0)
					sum += v * at(e.k, thread)
				}
				if !known {
					continue
				}
				compared++
				symbolic += len(symbols[r].terms)
				require.Equal(t, at(numbers[r].c, thread), sum, "%s of thread %d, a=%d b=%d block=%d\n%s", f.Regs[r].Name, thread, a, b, c,
					text)
			}
		}
	}
	require.Greater(t, compared, 100_000)
	require.Greater(t, symbolic, 50_000)
}

// Levels say among which threads a value is the same: never of fewer than it is.
func TestLevel(t *testing.T) {
	warps := make([]int64, 64)
	lanes := make([]int64, 64)
	for i := range warps {
		warps[i], lanes[i] = int64(i/32), int64(i%32)
	}
	require.Equal(t, perBlock, constant(5).level())
	require.Equal(t, perWarp, (&vec{c: warps}).level())
	require.Equal(t, perThread, (&vec{c: lanes}).level())
	s := &symbol{id: 1, level: perWarp}
	require.Equal(t, perWarp, of(s).level())
	require.Equal(t, perThread, scale(of(s), lanes).level())
	require.Equal(t, perBlock, combine(of(s), of(s), 1, -1).level())
}

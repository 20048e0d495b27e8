package opt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/opt"
	"github.com/wavelane/wavelane/ptx/parse"
)

// single are the passes one by one.
var single = []opt.Pass{opt.Fold, opt.Copies, opt.Common, opt.Strength, opt.Addresses, opt.Branches, opt.Unroll, opt.Dead}

// choices are sets of passes: none, each alone, each left out, each pair, all.
func choices() []opt.Pass {
	out := []opt.Pass{0, opt.All}
	for i, a := range single {
		out = append(out, a, opt.All&^a)
		for _, b := range single[:i] {
			out = append(out, a|b)
		}
	}
	return out
}

// TestSameResults runs random programs before and after choices of passes.
func TestSameResults(t *testing.T) {
	rng := ptxtest.Random(t)
	n := 100
	if testing.Short() {
		n = 25
	}
	sets := choices()
	var before, after uint64
	for round := range n {
		m := randomModule(rng)
		data := randomData(rng)
		want, steps, err := execute(m, data)
		require.NoError(t, err, "%s", m)
		before += steps
		text := m.String()
		// All, and two of the others.
		for i, set := range []opt.Pass{opt.All, sets[round%len(sets)], opt.Pass(rng.Uint64()) & opt.All} {
			o := opt.Options{Passes: set, Unroll: rng.IntN(2) * rng.IntN(6)}
			got, stats, err := opt.Run(m, o)
			require.NoError(t, err)
			require.Equal(t, text, m.String(), "the module itself changed")
			out, steps, err := execute(got, data)
			require.NoError(t, err, "%+v\n%s\n%s", o, m, got)
			require.Equal(t, want, out, "%+v\n%s\n%s", o, m, got)
			if i == 0 {
				after += steps
			}
			checkStats(t, m, got, stats)
			require.NoError(t, ir.Validate(got), "%+v\n%s", o, got)
			again, _, err := opt.Run(m, o)
			require.NoError(t, err)
			require.True(t, ir.Equal(got, again), "two runs, two results")
			if o.Unroll == 0 {
				twice, _, err := opt.Run(got, o)
				require.NoError(t, err)
				require.Equal(t, got.String(), twice.String(), "%+v\n%s", o, m)
			}
			parsed, err := parse.Module("optimised", []byte(got.String()))
			require.NoError(t, err)
			require.True(t, ir.Equal(parsed, got), "registers are not in the parser's order:\n%s", got)
		}
	}
	t.Logf("%d instructions of lanes before, %d after all passes", before, after)
	require.Less(t, after, before)
}

func checkStats(t *testing.T, before, after *ir.Module, s opt.Stats) {
	t.Helper()
	count := func(m *ir.Module) (n int) {
		for i := range m.Funcs[0].Body {
			if m.Funcs[0].Body[i].Kind() != ir.Directive {
				n++
			}
		}
		return n
	}
	require.Equal(t, count(before), s.Before)
	require.Equal(t, count(after), s.After)
	change := 0
	for _, p := range s.Passes {
		change += p.Added - p.Removed
	}
	require.Equal(t, s.After-s.Before, change, "%+v", s)
}

func TestOptions(t *testing.T) {
	m := randomModule(ptxtest.Replay(1))
	for _, o := range []opt.Options{{Passes: opt.All + 1}, {Unroll: -1}, {MaxUnrolled: -1}} {
		_, _, err := opt.Run(m, o)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, _, err := opt.Run(nil, opt.Options{})
	require.ErrorIs(t, err, compute.ErrArgument)
	require.Equal(t, "fold+dead", (opt.Fold | opt.Dead).String())
}

package ptxkernels

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// Every family is a module: the same text whenever it is built, which parses to the same module,
// for every GPU from sm_50 on or the oldest that has what it needs. TestStrict analyses them.
func TestFamilies(t *testing.T) {
	require.NotEmpty(t, kit.Families())
	home := map[string]string{} // of each kernel the family
	for _, f := range kit.Families() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			m, err := f.Module()
			require.NoError(t, err)
			again, err := (&kit.Family{Name: f.Name, Kernels: f.Kernels}).Module()
			require.NoError(t, err)
			text := m.String()
			require.Equal(t, text, again.String(), "the text depends on more than the kernels")
			back, err := parse.Module(f.Name, []byte(text))
			require.NoError(t, err)
			require.Equal(t, text, back.String())
			require.True(t, ir.Equal(m, back))

			_, target, err := ir.Requires(m)
			require.NoError(t, err)
			target.SM = max(target.SM, 50)
			require.Equal(t, target, m.Target)

		})
		require.Same(t, f, kit.FamilyOf(f.Name))
		for _, k := range f.Kernels {
			require.Equal(t, f.Name, k.Family)
			require.Empty(t, home[k.Name], "%s of %s has a namesake", k.Name, k.Family)
			home[k.Name] = k.Family
			require.Regexp(t, regexp.MustCompile(`^[a-z][a-z0-9_]*$`), k.Name)
			require.NotEmpty(t, k.Doc, k.Name)
			threads := k.Block[0] * k.Block[1] * k.Block[2]
			require.True(t, threads > 0 && threads <= 1024 && threads%32 == 0, "%s: blocks of %v", k.Name, k.Block)
		}
	}
	require.Nil(t, kit.FamilyOf("no such family"))
}

// Every entry of the catalogue has code.
func TestCatalogue(t *testing.T) {
	for _, e := range catalogue.All() {
		require.Contains(t, table(), e, e.Name)
	}
}

// lowerCall lowers a call, with a chooser that takes the variant of that number, or the last.
func lowerCall(e *program.Entry, c conformance.Call, caps *kit.Caps, variant int) (l kit.Lowering, variants int, err error) {
	p := &program.Program{}
	var slots []program.Slot
	for _, t := range c.In {
		slots = append(slots, p.Add(t, program.FromHost))
	}
	out, err := p.ApplyAll(e, c.Attr, slots...)
	if err != nil {
		return kit.Lowering{}, 0, err
	}
	l, err = Lower(&p.Steps[0], c.In, p.Types(out), caps, func(_, _ string, candidates []string) int {
		variants = max(variants, len(candidates))
		return min(variant, len(candidates)-1)
	})
	return l, variants, err
}

// loweredAgain is of how many calls TestEveryKernelIsLaunched lowers one twice, others by each seed.
const loweredAgain = 16

// Each call of the suite has code, in every variant, on GPUs large and small: the same each time. Together they launch every
// kernel there is.
func TestEveryKernelIsLaunched(t *testing.T) {
	trials, err := trialsOf() // which lowers all of them
	require.NoError(t, err)
	for _, k := range all() {
		require.True(t, slices.ContainsFunc(trials[k], func(c trial) bool { return !c.extra }), "no call launches %s of %s", k.Name, k.Family)
	}
	for _, e := range lowered() {
		calls, err := conformance.Calls(e)
		require.NoError(t, err)
		for i, c := range calls {
			if !everything && uint64(i)%loweredAgain != conformance.Seed()%loweredAgain {
				continue
			}
			for _, caps := range capsTried {
				for variant, variants := 0, 1; variant < variants; variant++ {
					l, n, err := lowerCall(e, c, &caps, variant)
					require.NoError(t, err)
					variants = max(variants, n)
					again, _, err := lowerCall(e, c, &caps, variant)
					require.NoError(t, err)
					require.Equal(t, l, again)
				}
			}
		}
	}
}
